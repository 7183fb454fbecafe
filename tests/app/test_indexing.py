"""Runs that were made elsewhere are indexed before anyone opens them; one that was made here is already."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from runs import run_small
from scripted import Scripted
from sealegs.app.indexing import index_runs
from sealegs.files import lock, record_index
from serving import serving
from suites import until

pytestmark = pytest.mark.slow


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two copies of a run whose records are large, as someone else sent them."""
    monkeypatch.setenv("SEALEGS_CACHE", str(tmp_path / "elsewhere"))
    with Scripted(lambda prompt: f"{prompt}, " * 40) as server:
        run = run_small("rgb", tmp_path / "made" / "run", server, limit=24)
    assert (run.path / "records.jsonl").stat().st_size > record_index.STORED_FROM_BYTES
    for name in ("one", "two"):
        shutil.copytree(run.path, tmp_path / "runs" / name)
    monkeypatch.setenv("SEALEGS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "runs"


def test_runs_from_elsewhere_are_indexed_when_the_app_starts(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    indexes = tmp_path / "cache" / "indexes"
    with serving(runs) as app:
        until(lambda: indexes.is_dir() and len([*indexes.glob("[!.]*")]) == 2)
        monkeypatch.delattr(record_index, "index_of")
        for name in ("one", "two"):
            assert app.visitor.get(f"/samples?run={name}").status == 200
    assert index_runs(runs) == []


def test_a_run_that_is_being_written_or_is_damaged_costs_no_other(runs: Path, tmp_path: Path) -> None:
    records = runs / "one" / "records.jsonl"
    records.write_bytes(b"{" * records.stat().st_size)
    with lock.writing(runs / "two"):
        assert index_runs(runs) == [str(runs / "one")]
        assert not (tmp_path / "cache" / "indexes").exists()
    assert len(index_runs(runs)) == 2
    assert len([*(tmp_path / "cache" / "indexes").iterdir()]) == 1


def test_a_run_that_was_made_here_is_indexed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEALEGS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(record_index, "STORED_FROM_BYTES", 0)
    run_small("multiview", tmp_path / "runs" / "one")
    assert index_runs(tmp_path / "runs") == []

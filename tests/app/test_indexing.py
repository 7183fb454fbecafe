"""Runs that were made elsewhere are indexed before anyone opens them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from runs import run_small
from scripted import Scripted
from sealegs.files import record_index
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
    damaged = shutil.copytree(runs / "one", runs / "damaged") / "records.jsonl"
    damaged.write_bytes(b"{" * damaged.stat().st_size)
    indexes = tmp_path / "cache" / "indexes"
    with serving(runs) as app:
        until(lambda: indexes.is_dir() and len([*indexes.glob("[!.]*")]) == 2)
        monkeypatch.delattr(record_index, "index_of")
        for name in ("one", "two"):
            assert app.visitor.get(f"/samples?run={name}").status == 200

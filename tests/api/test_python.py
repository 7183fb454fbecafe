"""What Python offers beside the figures: displays, a data frame, progress, the calls of the command line."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import sealegs as sl
from loopback import Loopback
from markup import valid_text
from runs import run_small
from sealegs.errors import UsageError
from sealegs.types import Response
from stored import store_run

pytestmark = pytest.mark.slow


def values(base: float, *, questions: int = 8) -> dict[str, Any]:
    """Three levels of some questions, spread by a tenth around the middle that `base` and 0.055 make."""
    spread = np.random.default_rng(round(base * 10)).permutation(np.linspace(0, 0.1, questions))
    return {"mean_similarity": base + spread[:, None] + np.linspace(0, 0.01, 3)}


@pytest.fixture
def runs(tmp_path: Path) -> tuple[sl.Run, sl.Run]:
    old = store_run(tmp_path / "old<i>", values(0.7), model="<b>m")
    return old, store_run(tmp_path / "new", values(0.5), model="<b>m")


# Displays


def test_a_run_shows_its_headline_interval_coverage_and_table(runs: tuple[sl.Run, sl.Run]) -> None:
    text = valid_text(runs[0]._repr_html_())
    figure = runs[0].summary["mean_similarity"]
    assert "Similarity of the answers' texts (SBERT cosine) of <b>m" in text
    assert runs[0].verdict in text
    assert f"95% interval {figure.low:.2f} to {figure.high:.2f}" in text
    assert "coverage 100% (24 complete)" in text
    assert "old<i>/report.html" in text
    line = repr(runs[0])
    assert line.startswith("<Run mirae of <b>m")
    assert f"{figure.value:.2f} ({figure.low:.2f} to {figure.high:.2f}), coverage 100%" in line
    assert "\n" not in line


def test_a_run_that_is_not_finished_or_damaged_shows_so(runs: tuple[sl.Run, sl.Run]) -> None:
    (runs[0].path / "summary.json").unlink()
    unfinished = sl.load_run(runs[0].path)
    assert "this run is not finished" in valid_text(unfinished._repr_html_())
    assert repr(unfinished).startswith("<Run mirae of")
    assert "not finished" in repr(unfinished)
    (runs[0].path / "spec.json").write_text("{")
    damaged = sl.load_run(runs[0].path)
    assert "spec.json" in valid_text(damaged._repr_html_())
    assert repr(damaged).startswith("<Run at ")


def test_a_comparison_a_gate_and_a_scorecard_are_valid_text(runs: tuple[sl.Run, sl.Run]) -> None:
    old, new = runs
    found = sl.compare(old, new, metrics="mean_similarity")
    assert [d.metric for d in found.differences] == ["mean_similarity"]
    for text in (valid_text(found._repr_html_()), repr(found)):
        assert "B is worse" in text
        assert "−0.20" in text
    gate = sl.gate(str(new.path), baseline=old.path, metrics="mean_similarity", max_drop=0.01)
    assert not gate.passed
    for text in (valid_text(gate._repr_html_()), repr(gate)):
        assert "failed" in text.lower()
        assert "FAIL" in text
    card = sl.scorecard([old.path, str(new.path)])
    for text in (valid_text(card._repr_html_()), repr(card)):
        assert "Scorecard of <b>m" in text
        assert "Consistency (MIRAE)" in text
        assert "0.56" in text


# The calls of the command line


def test_a_dry_run_counts_and_prices_without_asking() -> None:
    plan = sl.dry_run("mirae", model="openai:NAME", lang="en", limit=2, levels="1-2", repeats=3, price_out=10)
    assert plan.requests["generate"] == 12
    assert plan.usd == pytest.approx(plan.tokens_out["generate"] * 10 / 1e6)
    assert not plan.local
    assert "at most about $" in valid_text(plan._repr_html_())
    local = sl.dry_run("mirae", model="embedded", lang="en", limit=1, levels="1")
    assert (local.usd, "Runs locally: free" in local._repr_html_()) == (None, True)
    with pytest.raises(UsageError, match="unknown model 'nowhere:x'"):
        sl.dry_run("mirae", model="nowhere:x")


# The records as a data frame


def test_the_answers_of_a_sample_are_a_list_with_null_for_a_failure(tmp_path: Path) -> None:
    run = store_run(tmp_path / "run", values(0.7, questions=2))
    answers = [
        (Response(status="ok", text="one"), Response(status="error", reason="timeout")),
        (Response(status="ok", text=""), Response(status="ok", text="=two")),
        (Response(status="error", reason="timeout"),),
    ]
    records = [
        msgspec.structs.replace(record, answers=given)
        for record, given in zip(run.records(), [*answers, *answers], strict=True)
    ]
    (run.path / "records.jsonl").write_bytes(b"".join(msgspec.json.encode(r) + b"\n" for r in records))
    assert run.frame()["answers"].to_list()[:3] == [["one", None], ["", "=two"], [None]]


# Progress


@pytest.mark.parametrize(("progress", "heard"), [(True, True), (False, False), (None, False)])
def test_progress_shows_on_a_terminal_unless_switched_off(progress: bool | None, heard: bool) -> None:
    """A real terminal on stderr."""
    code = f"from sealegs.report.terminal.progress import watcher; watcher({progress}).note('heard')"
    ours, theirs = pty.openpty()
    try:
        subprocess.run([sys.executable, "-c", code], stderr=theirs, check=True)
        os.set_blocking(ours, False)
        try:
            text = os.read(ours, 10_000).decode()
        except BlockingIOError:
            text = ""
    finally:
        os.close(ours)
        os.close(theirs)
    assert ("heard" in text) is heard


def test_top_p_and_top_k_of_a_run_reach_the_server(tmp_path: Path) -> None:
    with Loopback(words=5, record=True) as server:
        run_small("rgb", tmp_path / "run", server, limit=1, top_p=0.8, top_k=7)
    assert {(body["top_p"], body["top_k"]) for body in server.bodies} == {(0.8, 7)}

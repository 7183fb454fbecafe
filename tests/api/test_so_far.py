"""A run that is not finished: what is answered of it, scored as if that were all."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import sealegs as sl
from present import limits, present
from runs import run_small
from scripted import Scripted
from sealegs.api.so_far import so_far
from sealegs.errors import DataError, RunConflict
from sealegs.harness.folder.run import Part
from sealegs.report.describe import describe


def forget(folder: Path, first: int, kind: str = "generate") -> None:
    """Delete all answers of a kind but the first."""
    with closing(sqlite3.connect(folder / "journal.sqlite")) as connection, connection:
        chosen = (
            "SELECT r.rowid FROM responses r JOIN requests USING (digest) WHERE kind = ? ORDER BY r.rowid"
        )
        rows = connection.execute(f"{chosen} LIMIT -1 OFFSET ?", [kind, first]).fetchall()
        connection.executemany("DELETE FROM responses WHERE rowid = ?", rows)


def test_what_is_answered_is_scored_and_the_rest_is_left_out(tmp_path: Path) -> None:
    with Scripted(lambda prompt: "insufficient information") as server:
        run = run_small("rgb", tmp_path / "run", server, ability="rejection")
    whole = present(so_far(tmp_path / "run"))
    assert (whole.headline.value, limits(whole.headline)) == (run.headline.value, limits(run.headline))
    assert (whole.part, whole.verdict) == (Part(tmp_path / "run", 4, 4), run.verdict)
    forget(tmp_path / "run", 3)
    part = present(so_far(tmp_path / "run"))
    assert str(part.part) == "3 of 4 samples"
    assert list(describe(part).verdicts) == ["So far, 3 of 4 samples"]
    assert [record.answers[0].text for record in part.records()] == ["insufficient information"] * 3
    assert (part.headline.n, part.headline.value, part.headline.coverage) == (3, 1.0, 1.0)
    forget(tmp_path / "run", 0)
    assert so_far(tmp_path / "run") is None
    assert so_far(tmp_path) is None


def test_samples_that_were_seen_keep_their_rows(tmp_path: Path) -> None:
    with Scripted(lambda prompt: "insufficient information") as server:
        run = run_small("rgb", tmp_path / "run", server, ability="rejection")
    ids = run.samples().index.ids
    seen = [ids[2], ids[0]]
    assert present(so_far(run.path, seen)).samples().index.ids == [*seen, ids[1], ids[3]]


def test_a_part_lies_elsewhere_until_nobody_holds_it(tmp_path: Path) -> None:
    with Scripted(lambda prompt: "insufficient information") as server:
        run = run_small("rgb", tmp_path / "run", server)
    before = {path: path.stat().st_mtime_ns for path in run.path.rglob("*")}
    part = present(so_far(run.path))
    path = part.path
    assert path.is_dir()
    assert {path: path.stat().st_mtime_ns for path in run.path.rglob("*")} == before
    del part
    assert not path.exists()


def test_a_mark_of_a_part_is_one_of_the_run(tmp_path: Path) -> None:
    with Scripted(lambda prompt: "Tides.") as server:
        run = run_small("mirae", tmp_path / "run", server, limit=2)
    forget(tmp_path / "run", 0, "embed")
    part = present(so_far(tmp_path / "run"))
    part.mark(part.samples().index.ids[0], verdict="right")
    [mark] = part.marks()
    assert run.marks() == [mark]
    assert mark.is_about(run.samples().record(0))


def test_what_comes_at_the_end_is_no_error_before_it(tmp_path: Path) -> None:
    """Without its embedder a run has answers, and the figures that need no vectors."""
    with Scripted(lambda prompt: "Tides.") as server:
        run = run_small("mirae", tmp_path / "run", server, limit=2)
    assert present(so_far(run.path)).headline.value == pytest.approx(present(run.headline.value))
    forget(tmp_path / "run", 0, "embed")
    part = present(so_far(tmp_path / "run"))
    assert present(part.part).lacking == ("embedder",)
    assert part.verdict.startswith("There is no score: the embedder is asked at the end.")
    assert (part.headline.value, part.headline.coverage, part.headline.statuses) == (None, 1.0, {"ok": 4})
    assert part.summary["refusals"].value == run.summary["refusals"].value
    assert not part.samples().outcomes["error"].any()
    assert "drift" not in part.summary


def test_more_repeats_than_anyone_asks_for_are_refused_before_they_are_counted(tmp_path: Path) -> None:
    """A stranger's folder may name any number: a request for each would fill the memory."""
    with Scripted(lambda prompt: "Tides.") as server:
        path = run_small("mirae", tmp_path / "run", server, limit=2).path
    with closing(sqlite3.connect(path / "journal.sqlite")) as connection, connection:
        connection.execute("UPDATE samples SET body = replace(body, '\"samples\":2', '\"samples\":1001')")
    with pytest.raises(RunConflict, match="a sample that is stored there cannot be read"):
        so_far(path)
    spec = (path / "spec.json").read_text(encoding="utf-8")
    (path / "spec.json").write_text(spec.replace('"repeats": 2', '"repeats": 1001'), encoding="utf-8")
    with pytest.raises(DataError, match="repeats=1001: must be at most 1000"):
        so_far(path)


def test_without_its_judge_a_run_has_the_figures_of_the_answers(tmp_path: Path) -> None:
    with Scripted(lambda prompt: "insufficient information") as server:
        with_judge = f"openai:judge?base_url={server.url}"
        run = run_small("rgb", tmp_path / "run", server, ability="rejection", judge=with_judge)
        alone = run_small("rgb", tmp_path / "alone", server, ability="rejection")
    with closing(sqlite3.connect(run.path / "journal.sqlite")) as connection, connection:
        connection.execute("DELETE FROM responses WHERE rowid > 4")
    part = present(so_far(run.path))
    assert present(part.part).lacking == ("judge",)
    assert {name: each.value for name, each in part.summary.items()} == {
        name: each.value for name, each in alone.summary.items()
    }
    assert isinstance(part, sl.Run)

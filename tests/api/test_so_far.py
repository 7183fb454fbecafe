"""A run that is not finished: its score so far, and what has arrived."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from present import limits, present
from runs import run_small
from scripted import Scripted
from sealegs.api.so_far import so_far


def test_what_is_answered_is_scored_and_the_rest_is_left_out(tmp_path: Path) -> None:
    with Scripted(lambda prompt: "insufficient information") as server:
        run = run_small("rgb", tmp_path / "run", server, ability="rejection")
    whole = present(so_far(tmp_path / "run"))
    assert (present(whole.headline).value, limits(present(whole.headline))) == (
        run.headline.value, limits(run.headline)
    )  # fmt: skip
    assert (whole.samples, whole.answered) == (4, 4)
    with closing(sqlite3.connect(tmp_path / "run" / "journal.sqlite")) as connection, connection:
        connection.execute("DELETE FROM responses WHERE rowid = (SELECT MIN(rowid) FROM responses)")
    part = present(so_far(tmp_path / "run"))
    assert (part.samples, part.answered) == (4, 3)
    assert {(each.answer, each.correct) for each in part.latest} == {("insufficient information", 1.0)}
    assert so_far(tmp_path) is None


def test_without_its_embedder_a_run_has_answers_and_no_score(tmp_path: Path) -> None:
    with Scripted(lambda prompt: "Tides.") as server:
        run_small("mirae", tmp_path / "run", server, limit=2)
    part = present(so_far(tmp_path / "run"))
    assert part.headline is None
    assert [each.answer for each in part.latest] == ["Tides."] * 2

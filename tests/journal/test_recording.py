"""Another run's answers, read where they lie: read-only, left by a kill, or while they are written."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from killing import contents
from loopback import Loopback
from models.hostile import Recorder
from runs import run_small
from sealegs.files import lock
from sealegs.journal.journal import Journal, Keyed, make_key, model_digest
from sealegs.journal.recording import Recording
from sealegs.types import Generate, Response, Sampling

pytestmark = pytest.mark.slow

MODEL = model_digest({"spec": "a"})


def request(text: str) -> Generate:
    return Generate(prompt=text, sampling=Sampling())


def put(journal: Journal, text: str) -> None:
    journal.put(
        Keyed(make_key(MODEL, request(text)), request(text)), Response(status="ok", text=f"to {text}")
    )


def find(recording: Recording, text: str) -> Response | None:
    key = make_key(MODEL, request(text))
    return recording.find([key]).get(key)


def left_by_a_kill(path: Path) -> None:
    """A journal whose last answers are in the log beside it only."""
    with closing(Journal(path.with_name("origin.sqlite"))) as journal:
        put(journal, "why?")
        journal.flush()
        for suffix in ("", "-wal"):
            shutil.copy(f"{journal.path}{suffix}", f"{path}{suffix}")
    path.with_name("origin.sqlite").unlink()


def whole(path: Path) -> None:
    with closing(Journal(path)) as journal:
        put(journal, "why?")


@pytest.mark.parametrize("written", [whole, left_by_a_kill])
def test_a_journal_is_read_and_nothing_is_written_beside_it(
    written: Callable[[Path], None], tmp_path: Path
) -> None:
    """So that a read-only folder will do, also one with answers in the log of a killed process."""
    path = tmp_path / "journal.sqlite"
    written(path)
    before = contents(tmp_path)
    with closing(Recording(path)) as recording:
        response = find(recording, "why?")
        assert contents(tmp_path) == before
    assert response is not None
    assert response.text == "to why?"


def test_a_journal_that_is_being_written_is_read_as_it_grows(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    with lock.writing(tmp_path), closing(Journal(path)) as journal:
        put(journal, "first")
        journal.flush()
        with closing(Recording(path)) as recording:
            assert find(recording, "first") is not None
            assert find(recording, "second") is None
            put(journal, "second")
            journal.flush()
            assert find(recording, "second") is not None


def test_failures_of_another_run_are_not_taken_over(questions: Path, tmp_path: Path) -> None:
    with Loopback() as server:
        run_small("mirae", tmp_path / "a", server, data=questions)
        with closing(sqlite3.connect(tmp_path / "a" / "journal.sqlite")) as connection, connection:
            connection.execute(
                "UPDATE responses SET status = 'error', body = ? WHERE rowid = 1", (b'{"status":"error"}',)
            )
        notes = Recorder()
        again = run_small(
            "mirae", tmp_path / "b", server, data=questions, reuse=tmp_path / "a", progress=notes
        )
    assert again.headline.coverage == 1.0
    assert any(note.startswith("asking: 7 of 8 answers") for note in notes.notes)


def test_answers_that_come_after_it_was_opened_are_found(tmp_path: Path) -> None:
    """Nobody writes the journal when it is opened, so that it is taken for a file that stays as it is."""
    path = tmp_path / "journal.sqlite"
    whole(path)
    with closing(Recording(path)) as recording, closing(Journal(path)) as journal:
        texts = [f"text {number}" for number in range(3000)]
        for text in texts:
            put(journal, text)
        journal.flush()
        keys = [make_key(MODEL, request(text)) for text in texts]
        assert len([key for n in range(0, 3000, 500) for key in recording.find(keys[n : n + 500])]) == 3000

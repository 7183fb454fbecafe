"""The journal: what is filed under which key, and what survives."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from sealegs.errors import RunConflict, StorageError
from sealegs.journal import journal as journal_module
from sealegs.journal.database import JournalUsage
from sealegs.journal.journal import Journal, Keyed, make_key, model_digest
from sealegs.types import Embed, Generate, LogLikelihood, Message, Rank, Request, Response, Sampling

MODEL = model_digest({"spec": "a"})
OTHER = model_digest({"spec": "b"})


def ask(text: str = "why?", *, repeat: int = 0, **sampling: float) -> Generate:
    return Generate(prompt=(Message("user", text),), sampling=Sampling(**sampling), repeat=repeat)  # type: ignore[arg-type]


def put(journal: Journal, request: Request, response: Response, model: bytes = MODEL) -> None:
    journal.put(Keyed(make_key(model, request), request), response)


def unanswered(journal: Journal, requests: list[Generate]) -> list[Request]:
    missing = journal.unanswered([make_key(MODEL, request) for request in requests])
    return [request for request in requests if make_key(MODEL, request) in missing]


@pytest.mark.parametrize(
    "different",
    [
        ask(temperature=0.5),
        ask(seed=1),
        ask(repeat=1),
        Generate(prompt="why?", sampling=Sampling()),
        Embed(text="why?"),
        LogLikelihood(prefix="wh", continuation="y?"),
        Rank(query="why", document="?"),
    ],
)
def test_whatever_changes_the_question_changes_the_key(different: Request) -> None:
    for other in (ask(), LogLikelihood(prefix="", continuation="why?")):
        assert make_key(MODEL, different) != make_key(MODEL, other)


def test_only_a_failure_is_asked_again_and_its_answer_takes_its_place(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.sqlite")
    put(journal, ask(), Response(status="error", reason="HTTP 500"))
    put(journal, ask(repeat=1), Response(status="refused"))
    journal.close()
    journal = Journal(tmp_path / "j.sqlite")
    assert unanswered(journal, [ask(), ask(repeat=1)]) == [ask()]
    put(journal, ask(), Response(status="ok", text="at last"))
    journal.flush()
    assert next(journal.read(make_key(MODEL, request) for request in [ask()])).text == "at last"
    journal.close()


def test_another_version_is_refused_not_misread(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    Journal(path).close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(RunConflict, match="version 99"):
        Journal(path)


def test_usage_survives_a_kill_before_any_answer(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j.sqlite")
    journal.put_usage("model", JournalUsage(3, 10, 20))
    rows: list[tuple[int, int, int]] = []
    with closing(sqlite3.connect(tmp_path / "j.sqlite")) as connection:  # as a later process would read it
        until = time.monotonic() + 60
        while not rows and time.monotonic() < until:
            rows = connection.execute("SELECT requests, tokens_in, tokens_out FROM usage").fetchall()
            time.sleep(0.01)
    journal.close()
    assert rows == [(3, 10, 20)]


@pytest.mark.parametrize("replaced", [False, True])
def test_a_journal_that_disappears_is_noticed(tmp_path: Path, replaced: bool) -> None:
    journal = Journal(tmp_path / "j.sqlite")
    put(journal, ask(), Response(status="ok", text="lost"))
    journal.flush()
    (tmp_path / "j.sqlite").unlink()
    if replaced:
        (tmp_path / "j.sqlite").touch()
    with pytest.raises(StorageError, match="moved or removed"):
        journal.flush()
    with pytest.raises(StorageError, match="moved or removed"):
        journal.close()


def test_a_journal_that_may_not_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "j.sqlite"
    Journal(path).close()

    def read_only(path: Path) -> sqlite3.Connection:
        return sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, check_same_thread=False)

    monkeypatch.setattr(journal_module, "connect", read_only)
    journal = Journal(path)
    put(journal, ask(), Response(status="ok", text="lost"))
    for act in (journal.flush, journal.close):
        with pytest.raises(StorageError, match=r"j\.sqlite: the journal cannot be written .*readonly"):
            act()


def test_a_journal_is_whole_before_sqlite_writes_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that a kill while it is created leaves a journal or nothing."""
    path = tmp_path / "j.sqlite"

    def killed(_: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(journal_module, "connect", killed)
        Journal(path)
    assert [file.name for file in tmp_path.iterdir()] == ["j.sqlite"]
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    journal = Journal(path)
    put(journal, ask(), Response(status="ok", text="here"))
    journal.close()

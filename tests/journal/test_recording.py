"""Another run's answers, read where they lie: read-only, left by a kill, or while they are written."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import evenkeel as ek
from evenkeel.files import lock
from evenkeel.journal.journal import Journal, make_key, model_digest
from evenkeel.journal.recording import Recording
from evenkeel.types import Generate, Response, Sampling
from loopback import Loopback
from records import Notes

pytestmark = pytest.mark.slow

MODEL = model_digest({"spec": "a"})
NOBODY = 65534


def request(text: str) -> Generate:
    return Generate(prompt=text, sampling=Sampling())


def put(journal: Journal, text: str) -> None:
    journal.put(make_key(MODEL, request(text)), request(text), Response(status="ok", text=f"to {text}"))


def found(path: Path, text: str) -> str | None:
    with closing(Recording(path, MODEL)) as recording:
        response = recording.find(request(text))
    return response.text if response else None


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that another user can reach, unlike those of pytest."""
    path = Path(tempfile.mkdtemp())
    path.chmod(0o755)
    yield path
    path.chmod(0o755)
    shutil.rmtree(path)


def as_nobody(function: Callable[[], object]) -> object:
    """Call a function without the rights of root, for whom no mode of a file is a bar."""
    if os.geteuid() != 0:
        return function()
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            result = repr(function())
        except BaseException as error:  # noqa: BLE001  # told to the parent
            result = f"{type(error).__name__}: {error}"
        os.write(writing, result.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        told = pipe.read()
    os.waitpid(child, 0)
    return eval(told) if told[:1] in "'N" else told


def test_a_folder_that_may_not_be_written_is_read(folder: Path) -> None:
    path = folder / "journal.sqlite"
    with closing(Journal(path)) as journal:
        put(journal, "why?")
    path.chmod(0o444)
    folder.chmod(0o555)
    assert as_nobody(lambda: found(path, "why?")) == "to why?"
    assert os.listdir(folder) == ["journal.sqlite"]


def left_by_a_kill(path: Path) -> None:
    """A journal whose last answers are in the log beside it only."""
    with closing(Journal(path.with_name("origin.sqlite"))) as journal:
        put(journal, "why?")
        journal.flush()
        for suffix in ("", "-wal"):
            shutil.copy(f"{journal.path}{suffix}", f"{path}{suffix}")
    path.with_name("origin.sqlite").unlink()


def test_what_a_killed_process_left_in_its_log_is_read_too(folder: Path) -> None:
    path = folder / "journal.sqlite"
    left_by_a_kill(path)
    for file in folder.iterdir():
        file.chmod(0o444)
    folder.chmod(0o555)
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    assert as_nobody(lambda: found(path, "why?")) == "to why?"
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before


def test_a_journal_that_is_being_written_is_read_as_it_grows(folder: Path) -> None:
    path = folder / "journal.sqlite"
    with lock.writing(folder), closing(Journal(path)) as journal:
        put(journal, "first")
        journal.flush()
        with closing(Recording(path, MODEL)) as recording:
            assert recording.find(request("first")) is not None
            assert recording.find(request("second")) is None
            put(journal, "second")
            journal.flush()
            assert recording.find(request("second")) is not None
    assert found(path, "second") == "to second"


def test_reuse_says_how_many_answers_are_really_used(questions: Path, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"data": questions, "samples": 2, "embedder": "openai:embed"}
    with Loopback() as server:
        settings["base_url"] = server.url
        ek.run("mirae", "openai:loop", levels="1", out=tmp_path / "a", **settings)
        larger, other, hotter = Notes(), Notes(), Notes()
        reuse = tmp_path / "a"
        for name, model, notes, changed in (
            ("b", "openai:loop", larger, {"levels": "1-2"}),
            ("c", "openai:new", other, {"levels": "1"}),
            ("d", "openai:loop", hotter, {"levels": "1", "temperature": 0.1}),
        ):
            given: dict[str, Any] = {**settings, **changed, "progress": notes}
            ek.run("mirae", model, out=tmp_path / name, reuse=reuse, **given)
    assert f"asking: 8 of 16 answers taken over from {reuse}" in larger.told
    for notes in (other, hotter):
        assert any(note.startswith(f"asking: no answer taken over from {reuse}") for note in notes.told)
        assert not any("asking" in note and " of " in note for note in notes.told)


def test_failures_of_another_run_are_not_taken_over(questions: Path, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"data": questions, "samples": 2, "embedder": "openai:embed", "levels": "1"}
    with Loopback() as server:
        settings["base_url"] = server.url
        ek.run("mirae", "openai:loop", out=tmp_path / "a", **settings)
        with closing(sqlite3.connect(tmp_path / "a" / "journal.sqlite")) as connection, connection:
            connection.execute(
                "UPDATE responses SET status = 'error', body = ? WHERE rowid = 1", (b'{"status":"error"}',)
            )
        notes = Notes()
        again = ek.run(
            "mirae", "openai:loop", out=tmp_path / "b", reuse=tmp_path / "a", progress=notes, **settings
        )
    assert again.headline.coverage == 1.0
    assert any(note.startswith("asking: 7 of 8 answers") for note in notes.told)


def test_reuse_and_replay_leave_the_source_as_it_was(questions: Path, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"data": questions, "samples": 2, "embedder": "openai:embed", "levels": "1"}
    with Loopback() as server:
        settings["base_url"] = server.url
        ek.run("mirae", "openai:loop", out=tmp_path / "a", **settings)
        before = {file: file.read_bytes() for file in (tmp_path / "a").rglob("*") if file.is_file()}
        ek.run("mirae", "openai:loop", out=tmp_path / "b", reuse=tmp_path / "a", **settings)
        ek.run("mirae", f"replay:{tmp_path / 'a'}", out=tmp_path / "c", **settings)
    assert {file: file.read_bytes() for file in (tmp_path / "a").rglob("*") if file.is_file()} == before

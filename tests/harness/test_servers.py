"""Whole runs on servers: one that moves, one that fails from the start, one that sends escapes."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import re
import sqlite3
import stat
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.console import Console

import evenkeel as ek
from commandline import command, evenkeel
from evenkeel.journal.journal import Journal, model_digest
from evenkeel.page.format import as_json
from evenkeel.report.export import export
from evenkeel.report.terminal.progress import Watcher
from evenkeel.types import Response, RunSpec
from loopback import Loopback


class Notes(Watcher):
    """The terminal's own watcher, which keeps what it prints."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def note(self, text: str) -> None:
        self.lines.append(text)


def run(questions: Path, server: Loopback, out: Path, **more: Any) -> ek.Run:
    settings: dict[str, Any] = {"levels": "1-2", "samples": 2, "embedder": "openai:embed", **more}
    return ek.run("mirae", "openai:loop", base_url=server.url, data=questions, out=out, **settings)


def arguments(questions: Path, url: str, out: Path, *more: str) -> list[str]:
    return [
        "run", "mirae", "--model", "openai:loop", "--base-url", url, "--embedder", "openai:embed", "--data",
        str(questions), "--levels", "1-2", "--samples", "2", "--out", str(out), *more,
    ]  # fmt: skip


def filed(identity: dict[str, Any], digest: bytes, repeat: int) -> bytes:
    """The key of an answer."""
    return hashlib.sha256(model_digest(identity) + digest + repeat.to_bytes(8, "big")).digest()


def as_before(path: Path) -> None:
    """Make a run's folder what it was when identities held the address."""
    spec = msgspec.json.decode((path / "spec.json").read_bytes(), type=RunSpec)
    addresses = spec.provenance.pop("servers")
    with contextlib.closing(sqlite3.connect(path / "journal.sqlite")) as journal, journal:
        rows = journal.execute("SELECT key, digest, repeat FROM responses").fetchall()
        for role, model in spec.models.items():
            now, former = model["identity"], {**model["identity"], "base_url": addresses[role][0]}
            for key, digest, repeat in rows:
                if key == filed(now, digest, repeat):
                    row = (filed(former, digest, repeat), key)
                    journal.execute("UPDATE responses SET key = ? WHERE key = ?", row)
            model["identity"] = former
    (path / "spec.json").write_bytes(msgspec.json.encode(spec))


# Where a model is reached


@pytest.mark.parametrize("older", [False, True])
def test_a_run_goes_on_at_another_address_and_says_so(questions: Path, tmp_path: Path, older: bool) -> None:
    with Loopback() as first:
        before = run(questions, first, tmp_path / "run").summary
    if older:
        as_before(tmp_path / "run")
    notes = Notes()
    with Loopback() as second:
        resumed = run(questions, second, tmp_path / "run", progress=notes)
        assert second.requests == 0
    assert resumed.summary == before
    [told] = [line for line in notes.lines if line.startswith("openai:loop was reached")]
    assert first.url in told
    assert second.url in told
    assert resumed.spec.provenance["servers"]["model"] == [first.url, second.url]
    page = (tmp_path / "run" / "report.html").read_text()
    assert first.url in page
    assert second.url in page
    assert not older or ek.rescore(tmp_path / "run").summary == before


@pytest.mark.parametrize("older", [False, True])
def test_answers_are_reused_wherever_the_model_is_reached(
    questions: Path, tmp_path: Path, older: bool
) -> None:
    with Loopback() as first:
        before = run(questions, first, tmp_path / "one").summary
    if older:
        as_before(tmp_path / "one")
    notes = Notes()
    with Loopback() as second:
        again = run(questions, second, tmp_path / "two", reuse=tmp_path / "one", progress=notes)
        assert second.requests == 0
    assert again.summary == before
    assert any(first.url in line and second.url in line for line in notes.lines)


def test_answers_of_another_model_are_not_reused(questions: Path, tmp_path: Path) -> None:
    with Loopback() as server:
        run(questions, server, tmp_path / "one", model_args={"send_seed": True})
        asked = server.requests
        run(questions, server, tmp_path / "two", reuse=tmp_path / "one")
        assert server.requests > asked


def test_runs_at_two_addresses_can_be_compared(questions: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        with Loopback() as server:
            run(questions, server, tmp_path / name)
    as_before(tmp_path / "one")
    assert ek.compare(tmp_path / "one", tmp_path / "two").differences


# Failing from the start


def test_a_server_that_only_fails_is_told_of_at_once(questions: Path, tmp_path: Path) -> None:
    with Loopback(always=500) as server:
        said = evenkeel(*arguments(questions, server.url, tmp_path / "run", "--model-arg", "retries=1"))
    assert said.code == 3
    assert re.search(
        rf"{server.url} answered 500 Internal Server Error: the keel is cracked .* Trying again \(1 of 1\)",
        said.output,
    )


def test_a_wrong_path_ends_with_a_hint(questions: Path, tmp_path: Path) -> None:
    with Loopback(always=404, says="Not Found", code="") as server:
        root = server.url.removesuffix("/v1")
        said = evenkeel(*arguments(questions, root, tmp_path / "run"))
    assert said.code == 3
    assert f"Did you mean {root}/v1?" in said.output


@pytest.mark.parametrize("url", ["http://127.0.0.1:99999/v1", "http://", "ftp://x/v1", "http://a b/v1"])
def test_an_address_that_is_none_is_wrong_usage(questions: Path, tmp_path: Path, url: str) -> None:
    said = evenkeel(*arguments(questions, url, tmp_path / "run"))
    assert said.code == 2
    assert "is not a web address" in said.output


def test_a_model_whose_name_is_not_utf_8_is_wrong_usage(questions: Path, tmp_path: Path) -> None:
    line: list[str | bytes] = [*arguments(questions, "http://127.0.0.1:1/v1", tmp_path / "run")]
    line[line.index("openai:loop")] = b"openai:m\xff\xfe"
    done = subprocess.run([*command(), *line], capture_output=True, check=False)
    assert done.returncode == 2, done.stderr
    assert b"openai:m\\udcff\\udcfe" in done.stderr
    assert b"Traceback" not in done.stderr


# The progress line


def test_what_waits_to_be_tried_again_is_in_plain_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evenkeel.report.terminal.progress.PLAIN_SECONDS", 0.0)
    watcher = Watcher()
    watcher.phase("asking", total=100, done=0)
    watcher.retrying(3)
    watcher.answered(Response(status="ok"), usd=0)
    watcher.retrying(0)
    waiting, answered, none = capsys.readouterr().err.splitlines()[1:]
    assert waiting.startswith("asking: 0 of 100, ")
    assert waiting.endswith("3 waiting to be tried again")
    assert answered.endswith("3 waiting to be tried again")
    assert "waiting" not in none


def test_what_waits_to_be_tried_again_is_on_the_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    watcher, screen = Watcher(), io.StringIO()
    monkeypatch.setattr(
        watcher, "_console", Console(file=screen, force_terminal=True, width=160, _environ={"TERM": "xterm"})
    )
    watcher.phase("asking [bold]\x1b[2J", total=100, done=0)
    watcher.retrying(3)
    watcher.note("from \x1b]0;a server\x07")
    watcher.finish()
    shown = screen.getvalue()
    assert "3 waiting to be tried again" in shown
    assert "asking [bold]␛[2J" in shown
    assert "from ␛]0;a server␇" in shown


# What is printed and what is written


@pytest.mark.parametrize("behaviour", [{"always": 400}, {"always": 401}])
def test_escapes_of_a_server_are_shown_in_a_build(tmp_path: Path, behaviour: dict[str, Any]) -> None:
    mine = tmp_path / "mine.txt"
    mine.write_text("What does a keel do?\n")
    with Loopback(says="\x1b[2J\x1b]0;owned\x07 \x9b31m", **behaviour) as server:
        said = evenkeel(
            "build", "mirae", "--questions", str(mine), "--model", "openai:w", "--base-url", server.url,
            "--out", tmp_path / "out.json",
        )  # fmt: skip
    assert said.code != 0
    assert "owned" in said.output
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", said.output)


@pytest.mark.parametrize(
    "line",
    [
        ["report", "no\x1b[31m"],
        ["report\x1b[31m"],
        ["run", "mirae", "--model", "openai:\x1b[31m", "--data", "no\x1b[31m"],
        ["run", "mirae", "--model", "embedded", "--lang", "\x1b[31m"],
        ["list", "runs", "no\x1b[31m"],
        ["rescore", ".", "--no\x1b[31m"],
        ["compare", ".", ".", "--metric", "\x9b31m"],
    ],
)
def test_escapes_in_what_was_typed_are_not_obeyed(
    line: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    said = evenkeel(*line)
    assert said.output
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", said.output)


def test_printed_json_says_the_same_and_obeys_nothing() -> None:
    value = {"name": "a\x1b[2J\x9b31m\u202e\U000e0001 é 한국 \U0001f600"}
    printed = as_json(value)
    assert msgspec.json.decode(printed) == value
    assert "é 한국 \U0001f600" in printed
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\U000e0001]", printed)


@pytest.mark.parametrize(
    ("umask", "file_mode", "folder_mode"), [(0o077, 0o600, 0o700), (0o022, 0o644, 0o755)]
)
def test_files_and_folders_follow_the_umask(
    questions: Path, tmp_path: Path, umask: int, file_mode: int, folder_mode: int
) -> None:
    before = os.umask(umask)
    try:
        with Loopback() as server:
            made = run(questions, server, tmp_path / "runs" / "mine")
        export(made, "csv", tmp_path / "runs" / "tables" / "mine.csv")
        (tmp_path / "runs" / "open").mkdir()
        with contextlib.closing(Journal(tmp_path / "runs" / "open" / "journal.sqlite")):
            paths = list((tmp_path / "runs").rglob("*"))
            modes = {path: stat.S_IMODE(path.stat().st_mode) for path in paths}
    finally:
        os.umask(before)
    assert {path.name for path in paths} >= {"journal.sqlite-wal", "journal.sqlite-shm", "mine.csv"}
    assert {mode for path, mode in modes.items() if path.is_dir()} == {folder_mode}
    assert {mode for path, mode in modes.items() if not path.is_dir()} == {file_mode}


class Alternating(Loopback):
    """Two models under one name."""

    def _answer(self, path: str, body: Any, key: str) -> bytes:
        reply = msgspec.json.decode(super()._answer(path, body, key))
        reply["model"] = f"loop-{sum(self.answered.values()) % 2}"
        return msgspec.json.encode(reply)


def test_a_run_says_when_the_server_changed_its_model(tmp_path: Path) -> None:
    with Alternating() as server:
        run = ek.run("rgb", "openai:loop", base_url=server.url, limit=2, out=tmp_path / "run", progress=False)
    answers = {answer.model for record in run.records() for answer in record.answers}
    assert answers == {"loop-0", "loop-1"}
    assert "2 models: loop-0, loop-1" in (run.path / "report.html").read_text()
    assert "2 models: loop-0, loop-1" in str(ek.rescore(run.path, progress=False).spec.provenance["notes"])

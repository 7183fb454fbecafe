"""Whole runs on servers: one that moves, one that sends escapes."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from pathlib import Path

import pytest

from commandline import sealegs
from loopback import Loopback
from runs import run_small
from sealegs.journal.journal import Journal
from sealegs.report.export import export

pytestmark = pytest.mark.slow


def test_a_run_resumes_at_another_address(questions: Path, tmp_path: Path) -> None:
    with Loopback() as first:
        before = run_small("mirae", tmp_path / "run", first, data=questions).summary
    with Loopback() as second:
        assert run_small("mirae", tmp_path / "run", second, data=questions).summary == before
        assert second.requests == 0


def test_escapes_of_a_server_are_shown_in_a_build(tmp_path: Path) -> None:
    mine = tmp_path / "mine.txt"
    mine.write_text("What does a keel do?\n")
    with Loopback(says="\x1b[2J\x1b]0;owned\x07 \x9b31m", always=401) as server:
        said = sealegs(
            "build", "mirae", "--questions", str(mine), "--model", "openai:w", "--base-url", server.url,
            "--out", tmp_path / "out.json",
        )  # fmt: skip
    assert said.code != 0
    assert "owned" in said.output
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", said.output)


def test_files_and_folders_follow_the_umask(questions: Path, tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        with Loopback() as server:
            made = run_small("mirae", tmp_path / "runs" / "mine", server, data=questions)
        export(made, "csv", tmp_path / "runs" / "tables" / "mine.csv")
        (tmp_path / "runs" / "open").mkdir()
        with contextlib.closing(Journal(tmp_path / "runs" / "open" / "journal.sqlite")):
            paths = list((tmp_path / "runs").rglob("*"))
            modes = {path: stat.S_IMODE(path.stat().st_mode) for path in paths}
    finally:
        os.umask(before)
    assert {path.name for path in paths} >= {"journal.sqlite-wal", "journal.sqlite-shm", "mine.csv"}
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}
    assert {mode for path, mode in modes.items() if not path.is_dir()} == {0o600}

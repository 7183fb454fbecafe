"""Damaged files at the command line: exit code 2, one message that names the file, and no traceback."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import NamedTuple

import pytest

import readers
from commandline import sealegs
from readers import lines

pytestmark = pytest.mark.slow
SERVER = ("--model", "openai:m", "--base-url", "http://127.0.0.1:9/v1")
"""Nothing answers there: a file is read before a server is asked."""
DEEP = 100_000
DAMAGES = {
    "noise": b"\xff" + random.Random(0).randbytes(999),
    "nul": b"\x00" * 99,
    "deep": b'{"a":' * DEEP + b"[" * DEEP,
    "deep and closed": b"[" * DEEP + b"]" * DEEP,
    "text": b"% nothing of this: [is, {data\n" * 9,
}


class Case(NamedTuple):
    """A command, and the file in its folder that is damaged; {file} and {folder} are their paths,
    {other} that of a folder that is in order."""

    args: tuple[str, ...]
    name: str
    content: bytes
    is_json: bool = True
    beside: dict[str, bytes] = {}


def in_run(name: str, *args: str) -> Case:
    return Case(args, name, readers.RUN[name], beside=readers.RUN)


CASES = {
    "run rgb": Case(("run", "rgb", *SERVER, "--data", "{file}"), "x.json", lines(readers.PLAIN)),
    "score mirae": Case(("score", "mirae", "{file}"), "x.json", json.dumps(readers.RESULTS).encode()),
    "suite": Case(("suite", "{file}", "--dry-run"), "x.yaml", readers.SUITE, is_json=False),
    "compare": in_run("records.jsonl", "compare", "{folder}", "{other}"),
    "rescore": in_run("spec.json", "rescore", "{folder}"),
}
"""A command of each kind: what each reader refuses is in tests/files/test_readers.py."""


def files_in(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_damaged_file_ends_with_one_message(case: Case, tmp_path: Path) -> None:
    folder, other = tmp_path / "folder", tmp_path / "other"
    for parent in (folder, other):
        parent.mkdir()
        for beside, content in case.beside.items():
            (parent / beside).write_bytes(content)
    file = folder / case.name
    damages = DAMAGES | ({"cut": case.content[: len(case.content) // 2]} if case.is_json else {})
    for damage, content in damages.items():
        file.write_bytes(content)
        before = files_in(folder) | files_in(other)
        outcome = sealegs(*(arg.format(file=file, folder=folder, other=other) for arg in case.args))
        assert outcome.code == 2, (damage, outcome)
        message = "".join(outcome.stderr.split())
        assert case.name in message, (damage, outcome)
        starts = [line for line in outcome.stderr.splitlines() if line.lower().startswith("error")]
        assert len(starts) == 1, (damage, outcome)
        assert "Traceback" not in outcome.output, damage
        assert "RecursionError" not in outcome.output, damage
        assert len(outcome.stderr) < 3000, damage
        assert files_in(folder) | files_in(other) == before, damage


CIRCLE = [
    ("build", "mirae", "--questions", "circle", "--out", "new"),
    ("run", "miron", *SERVER, "--data", "circle"),
    ("score", "miron", "circle"),
    ("suite", "circle", "--dry-run"),
    ("rescore", "circle"),
]
STRANGER = [
    ("run", "miron", "--model", "hf:~nobody-knows/x"),
    ("tokenizers", "~nobody-knows/x"),
]


@pytest.mark.parametrize("args", [*CIRCLE, *STRANGER], ids=" ".join)
def test_a_path_that_leads_nowhere_ends_with_one_message(
    args: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("circle").symlink_to("circle")
    outcome = sealegs(*args)
    assert outcome.code == 2, outcome
    assert ("circle" if args in CIRCLE else "nobody-knows") in outcome.stderr
    assert "Traceback" not in outcome.output

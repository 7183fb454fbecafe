"""Killed anywhere: whatever the moment, the same command ends as if nothing had happened.

Moments are chosen by a seeded generator: at a number of answers, when the process has just come to rest, or
at a file that it opens, renames or removes. `benchmarks/kills.py` does the same as often as it is asked to.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from killing import Killed, Timed, contents

pytestmark = pytest.mark.slow

RESULTS = ("records.jsonl", "summary.json", "export", "questions_english.json")
"""What an undisturbed command and a resumed one have in common, byte by byte."""


def command(kind: str, server: Timed, out: Path) -> list[object]:
    """A command of each kind, with what it needs to begin with."""
    model = ["--base-url", server.url, "--model-arg", "send_seed=true"]
    run = [
        "run", "mirae", "--model", "openai:loop", *model, "--concurrency", 8, "--limit", 8, "--levels", "1-3",
        "--embedder", "openai:embed", "--out", out,
    ]  # fmt: skip
    if kind == "run":
        return run
    if kind == "build":
        mine = out.with_name("mine.txt")
        mine.write_text("".join(f"Why is the number {n} larger than the one before it?\n" for n in range(3)))
        return [
            "build", "mirae", "--questions", mine, "--model", "openai:x?send_seed=true",
            "--base-url", server.url,
            "--out", out,
        ]  # fmt: skip
    if kind == "rescore":
        assert Killed(run, out, server).finish() == 0
        return ["rescore", out]
    recorded = out.with_name("recorded")
    if not recorded.exists():
        assert Killed([*run[:-1], recorded], recorded, server).finish() == 0
    (published,) = (recorded / "export").iterdir()
    return [
        "score", "mirae", published, "--embedder", f"openai:embed?base_url={server.url}", "--out", out,
    ]  # fmt: skip


def results(folder: Path) -> dict[str, bytes]:
    return {name: content for name, content in contents(folder).items() if name.startswith(RESULTS)}


def names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def drafts(folder: Path) -> set[tuple[str, bytes]]:
    """Files that a killed process was writing: hidden, and under no name that anybody reads."""
    return {item for item in contents(folder).items() if Path(item[0]).name.startswith(".")}


@pytest.mark.parametrize(
    "kind", ["run", *(pytest.param(kind, marks=pytest.mark.full) for kind in ("build", "score", "rescore"))]
)
def test_a_command_that_is_killed_again_and_again_ends_as_usual(kind: str, tmp_path: Path) -> None:
    whole, folder, log = tmp_path / "whole", tmp_path / "killed", tmp_path / "files"
    chosen = random.Random(17)
    with Timed(latency=0.02, words=30) as server:
        code = Killed(command(kind, server, whole), whole, server).finish(log)
        expected = results(whole)
        assert expected
        killed = Killed(command(kind, server, folder), folder, server)
        server.sent.clear()
        if kind in ("run", "build"):
            killed.kill_at_answer(chosen.randint(1, 6))
            killed.kill_at_rest(chosen.randint(1, 6))
        last = int(log.read_text()) * 3 // 5  # a resumed command touches fewer files
        for part in range(3):
            killed.kill_at_file(1 + int((part + chosen.random()) * last / 3))
            assert results(folder).items() <= expected.items() | drafts(folder)
        assert len(killed.kills) == (5 if kind in ("run", "build") else 3)
        assert killed.finish() == code
    assert not killed.errors or code
    assert killed.lost_at_rest() == 0
    assert results(folder) == expected
    assert names(folder) == names(whole)

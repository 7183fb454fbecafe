"""Killed anywhere: whatever the moment, the same command ends as if nothing had happened.

Moments are chosen by a seeded generator: at a number of answers, when the process has just come to rest, or
at a file that it opens, renames or removes. `benchmarks/kills.py` does the same as often as it is asked to.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from commandline import evenkeel
from killing import Killed, Timed, contents

pytestmark = pytest.mark.slow

RESULTS = ("records.jsonl", "summary.json", "export")
"""What an undisturbed run and a resumed one have in common, byte by byte."""


def run_command(server: Timed, out: Path) -> list[object]:
    return [
        "run", "mirae", "--model", "openai:loop", "--base-url", server.url, "--model-arg", "send_seed=true",
        "--limit", 8, "--levels", "1-3", "--embedder", "openai:embed", "--concurrency", 8, "--out", out,
    ]  # fmt: skip


def results(folder: Path) -> dict[str, bytes]:
    return {name: content for name, content in contents(folder).items() if name.startswith(RESULTS)}


def names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def moments(seed: int, count: int, last: int) -> list[int]:
    """Numbers up to `last`, one in each of `count` equal parts."""
    chosen = random.Random(seed)
    return [1 + int((part + chosen.random()) * last / count) for part in range(count)]


def test_a_run_that_is_killed_again_and_again_ends_as_usual(tmp_path: Path) -> None:
    whole, folder, log = tmp_path / "whole", tmp_path / "run", tmp_path / "files"
    chosen = random.Random(17)
    with Timed(latency=0.02, words=30) as server:
        assert Killed(run_command(server, whole), whole, server).finish(log) == 0
        expected, asked = results(whole), len(server.sent)
        server.sent.clear()
        killed = Killed(run_command(server, folder), folder, server)
        for _ in range(3):
            killed.kill_at_answer(chosen.randint(1, 6))
            killed.kill_at_rest(chosen.randint(1, 6))
        assert len(killed.kills) == 6
        assert not (folder / "summary.json").exists()
        for moment in moments(17, 4, int(log.read_text()) * 3 // 5):  # a resumed run touches fewer files
            killed.kill_at_file(moment)
            assert results(folder).items() <= expected.items() | drafts(folder)
        assert len(killed.kills) == 10
        assert killed.finish() == 0, killed.errors
    assert not killed.errors
    assert killed.lost_at_rest() == 0
    assert len(server.sent) <= asked + killed.repeated()
    assert results(folder) == expected
    assert names(folder) == names(whole)


def drafts(folder: Path) -> set[tuple[str, bytes]]:
    """Files that a killed process was writing: hidden, and under no name that anybody reads."""
    return {item for item in contents(folder).items() if Path(item[0]).name.startswith(".")}


def test_a_build_that_is_killed_goes_on(tmp_path: Path) -> None:
    mine = tmp_path / "mine.txt"
    mine.write_text("".join(f"Why is the number {n} larger than the one before it?\n" for n in range(3)))
    with Timed(latency=0.02, words=30) as server:

        def build(out: Path) -> Killed:
            arguments = [
                "build", "mirae", "--questions", mine, "--model", "openai:x", "--base-url", server.url,
                "--model-arg", "send_seed=true", "--concurrency", 4, "--out", out / "set.json",
            ]  # fmt: skip
            return Killed(arguments, out, server)

        log = tmp_path / "files"
        code = build(tmp_path / "whole").finish(log)  # the server writes nothing that passes the checks
        expected = (tmp_path / "whole" / "set.json").read_bytes()
        server.sent.clear()
        killed = build(tmp_path / "built")
        killed.kill_at_rest(5)
        killed.kill_at_answer(9)
        killed.kill_at_rest(7)
        killed.kill_at_file(int(log.read_text()) - 1)
        assert len(killed.kills) == 4
        assert killed.finish() == code
    assert killed.lost_at_rest() == 0
    assert (tmp_path / "built" / "set.json").read_bytes() == expected
    assert names(tmp_path / "built") == names(tmp_path / "whole")


@pytest.mark.full
def test_rescoring_and_exporting_that_are_killed_harm_nothing(tmp_path: Path) -> None:
    folder, log = tmp_path / "run", tmp_path / "files"
    with Timed(words=10) as server:
        assert Killed(run_command(server, folder), folder, server).finish() == 0
        asked = len(server.sent)
    expected, listed = results(folder), names(folder)
    for command in (["rescore", folder], ["export", folder, "--to", "csv"]):
        killed = Killed(command, folder)
        assert killed.finish(log) == 0
        after, listed_after = results(folder), names(folder)
        if command[0] == "rescore":
            assert (after, listed_after) == (expected, listed)
        for moment in moments(3, 2, int(log.read_text())):
            killed.kill_at_file(moment)
            assert results(folder).items() <= after.items() | drafts(folder)
            assert after.keys() <= results(folder).keys()  # what was there is there
        assert killed.kills
        assert killed.finish() == 0, killed.errors
        left = {name for name, _ in drafts(folder)}  # the next process that writes the run removes them
        assert {name: results(folder)[name] for name in after} == after
        assert names(folder) - left == listed_after
    assert len(server.sent) == asked


@pytest.mark.full
def test_scoring_recorded_answers_that_is_killed_goes_on(tmp_path: Path) -> None:
    whole, folder, log = tmp_path / "whole", tmp_path / "scored", tmp_path / "files"
    with Timed(words=10) as server:
        assert evenkeel(*run_command(server, tmp_path / "run")).code == 0
        (published,) = (tmp_path / "run" / "export").iterdir()

        def score(out: Path) -> Killed:
            arguments = [
                "score", "mirae", published, "--embedder", "openai:embed", "--base-url", server.url,
                "--out", out,
            ]  # fmt: skip
            return Killed(arguments, out, server)

        assert score(whole).finish(log) == 0
        killed = score(folder)
        for moment in moments(5, 2, int(log.read_text()) * 4 // 5):
            killed.kill_at_file(moment)
            assert results(folder).items() <= results(whole).items() | drafts(folder)
        assert len(killed.kills) == 2
        assert killed.finish() == 0, killed.errors
    assert not killed.errors
    assert (results(folder), names(folder)) == (results(whole), names(whole))

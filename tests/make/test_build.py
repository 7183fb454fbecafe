"""Builds: one process at a time, nothing left behind, and a note of what is saved."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from commandline import command, sealegs
from loopback import Loopback
from sealegs.api import build, dry_run
from sealegs.api.check import check
from sealegs.errors import BudgetReached, ModelUnreachable, UsageError
from suites import PATIENCE

pytestmark = pytest.mark.slow


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.txt"
    path.write_text("Why is the sky blue in the morning and red in the evening?\n")
    return path


def arguments(mine: Path, server: Loopback, out: Path) -> list[str]:
    return [
        "build", "mirae", "--questions", str(mine), "--model", "openai:x", "--base-url", server.url,
        "--out", str(out),
    ]  # fmt: skip


def begun(mine: Path, server: Loopback, out: Path, *, until: int) -> subprocess.Popen[str]:
    process = subprocess.Popen(command(*arguments(mine, server, out)), stderr=subprocess.PIPE, text=True)
    while server.requests < until:
        assert process.poll() is None, process.stderr and process.stderr.read()
        time.sleep(0.02)
    return process


def test_a_second_build_of_the_same_data_set_is_refused(
    mine: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "made"
    with Loopback(latency=600) as server:
        process = begun(mine, server, out, until=1)
        try:
            assert sealegs(*arguments(mine, server, out)).code == 2
            assert f"{out} is in use by another process" in capsys.readouterr().err
        finally:
            process.send_signal(signal.SIGTERM)
            _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 143
    assert "saved in" not in said  # nothing was answered


def test_a_folder_of_documents_is_not_built_into(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("The harbour of Quell was opened in 1931.")
    with Loopback() as server, pytest.raises(UsageError, match="choose another"):
        build("rgb", tmp_path, docs=str(tmp_path), model="openai:x", base_url=server.url)
    assert server.requests == 0
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_a_build_leaves_its_data_set_and_nothing_else(tmp_path: Path) -> None:
    out = tmp_path / "made"
    for _ in range(2):
        build("mirae", out, seed=1)
    assert os.listdir(out) == ["questions_english.json"]


def test_a_killed_build_leaves_no_lock(mine: Path, tmp_path: Path) -> None:
    out = tmp_path / "made"
    with Loopback(latency=600) as server:
        process = begun(mine, server, out, until=1)
        process.kill()
        process.communicate()
    build("mirae", out, seed=1)
    assert not [name for name in os.listdir(out) if name[0] == "."]


def test_a_stopped_build_says_what_is_kept_if_something_is(mine: Path, tmp_path: Path) -> None:
    mine.write_text(
        "".join(f"Why is the number {number} larger than the one before it?\n" for number in range(40))
    )
    options: dict[str, Any] = {
        "questions": str(mine),
        "model": "openai:x?retries=0",
    }
    with Loopback(dies_after=3) as server, pytest.raises(ModelUnreachable) as caught:
        build("mirae", tmp_path / "a", base_url=server.url, concurrency=1, **options)
    (note,) = caught.value.__notes__
    again = f"the same command, or delete {tmp_path / 'a' / 'journal.sqlite'} to ask anew"
    assert note == f"Answers are saved in {tmp_path / 'a'}: resume with {again}."
    with Loopback() as server, pytest.raises(BudgetReached) as stopped:
        build("mirae", tmp_path / "a", base_url=server.url, concurrency=1, max_requests=9, **options)
    assert stopped.value.__notes__[0].endswith(f"a higher limit and --out {tmp_path / 'a'}.")
    with Loopback(always=500) as server, pytest.raises(ModelUnreachable) as caught:
        build("mirae", tmp_path / "b", base_url=server.url, **options)
    assert not hasattr(caught.value, "__notes__")


def test_a_set_may_be_written_to_a_folder_named_like_its_language(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    build("miron", "en", lang="en", per_category=2)
    assert (tmp_path / "en" / "miron_en.jsonl").is_file()


def test_an_edited_set_is_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    build("rgb", tmp_path / "made", lang="en", size=4)
    file = tmp_path / "made" / "en.json"
    checked = ("build", "rgb", "--check", str(file))
    assert sealegs(*checked).code == 0
    said = capsys.readouterr().out
    assert "24 samples of 4 questions" in said
    assert said.endswith(f"{file} is valid for rgb.\n")
    first, *rest = file.read_text().splitlines()
    row = json.loads(first)
    moved = row | {"negative": [row["positive"][0], *row["negative"]]}
    file.write_text("\n".join([json.dumps(moved), *rest]))
    assert sealegs(*checked).code == 1
    assert f"id {row['id']}: the answer is in document 1 of 'negative'." in capsys.readouterr().err
    file.write_text("\n".join([*rest, json.dumps(row | {"answer": "Nobody at all"})]))
    assert sealegs(*checked).code == 1
    assert "the answer is not in document 1, 2" in capsys.readouterr().err
    file.write_text("\n".join([*rest, json.dumps(row | {"query": ""})]))
    assert sealegs(*checked).code == 1
    assert f"not valid for rgb: {file}, line 4: the field 'query' is empty" in capsys.readouterr().err
    assert sealegs("build", "rgb", "--check", str(tmp_path / "absent")).code == 2


def test_a_check_counts_requests_as_a_run_does(tmp_path: Path) -> None:
    build("rgb", tmp_path / "made", lang="en", size=4)
    file = tmp_path / "made" / "en.json"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    file.write_text("\n".join(json.dumps(row | {"negative": row["negative"][:1]}) for row in rows))
    checked = check("rgb", file)
    assert {"generate": checked.requests} == dry_run("rgb", "openai:x", data=str(file)).requests
    assert checked.requests < checked.samples  # noise 0.2 and 0.4 ask the same


@pytest.mark.parametrize("benchmark", ["mirae", "rgb", "miron", "multiview"])
def test_what_is_built_is_valid_and_names_the_next_command(benchmark: str, tmp_path: Path) -> None:
    small: dict[str, Any] = {"rgb": {"size": 4}, "miron": {"per_category": 2}}.get(benchmark, {})
    options = [word for name, value in small.items() for word in (f"--{name.replace('_', '-')}", value)]
    built = sealegs("build", benchmark, "--seed", 3, *options, "--out", tmp_path / "made")
    assert sealegs("build", benchmark, "--check", str(tmp_path / "made")).code == 0
    next_command = shlex.split(built.stderr.splitlines()[-1])
    assert next_command[:5] == ["sealegs", "run", benchmark, "--data", str(tmp_path / "made")]
    assert sealegs(*next_command[1:]).code == 0
    assert sealegs("build", "miron", "--check", str(tmp_path / "made")).code == (benchmark != "miron")

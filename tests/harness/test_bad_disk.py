"""A bad disk, full or with damaged files: a clear message, nothing destroyed, the sound part kept."""

from __future__ import annotations

import re
import resource
import shutil
import signal
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from commandline import command, sealegs
from killing import contents
from loopback import Loopback

pytestmark = pytest.mark.slow

QUESTIONS = [
    {"question_id": number, "domain": "FACTUAL", "level_1_text": f"Question {number}?", "level_1_tokens": 8}
    for number in range(1, 9)
]


def run_command(server: Loopback, folder: Path) -> list[str]:
    data = folder.parent / "questions.json"
    data.write_bytes(msgspec.json.encode({"metadata": {"language": "English"}, "questions": QUESTIONS}))
    return [
        "run", "mirae", "--model", "openai:loop", "--base-url", server.url, "--data", str(data), "--levels",
        "1", "--embedder", "openai:embed", "--model-arg", "send_seed=true", "--out", str(folder),
    ]  # fmt: skip


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished") / "run"
    with Loopback(words=30) as server:
        assert sealegs(*run_command(server, folder)).code == 0
    return folder


def test_a_run_that_lost_a_line_is_not_read_until_it_is_scored_again(finished: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(finished, folder)
    whole = (folder / "records.jsonl").read_bytes()
    (folder / "records.jsonl").write_bytes(whole[: whole[:-1].rindex(b"\n") + 1])
    before = contents(folder)
    outcome = sealegs("report", folder, "--out", tmp_path / "out")
    assert outcome.code == 2
    assert re.search(r"it has [\d,]+ bytes, and [\d,]+ when the run was finished", outcome.stderr)
    assert contents(folder) == before
    assert not (tmp_path / "out").exists()
    assert sealegs("rescore", folder).code == 0
    assert (folder / "records.jsonl").read_bytes() == whole


def test_results_are_not_replaced_where_the_journal_is_empty(finished: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(finished, folder)
    (folder / "journal.sqlite").write_bytes(b"")
    records = (folder / "records.jsonl").read_bytes()
    with Loopback(words=30) as server:
        outcomes = [sealegs("rescore", folder), sealegs(*run_command(server, folder))]
        assert not server.requests
        assert [outcome.code for outcome in outcomes] == [2, 2]
        assert "holds 0 of the run's 8 samples" in outcomes[0].stderr
        assert "has results, and its journal is empty" in outcomes[1].stderr
        assert (folder / "records.jsonl").read_bytes() == records
        assert sealegs(*run_command(server, folder), "--fresh").code == 0


def test_a_disk_that_fills_up_stops_a_run_that_goes_on_later(finished: Path, tmp_path: Path) -> None:
    """No file may grow past a size, which the system says as a full disk does."""
    folder = tmp_path / "run"

    def limited() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100 * 1024, 100 * 1024))

    with Loopback(words=30) as server:
        done = subprocess.run(
            command(*run_command(server, folder)), capture_output=True, text=True, preexec_fn=limited,
            check=False,
        )  # fmt: skip
        assert done.returncode == 1, done.stderr
        assert "cannot be written" in done.stderr
        assert str(folder) in done.stderr
        assert "Traceback" not in done.stderr
        stored, asked = answers(folder), server.requests
        assert sealegs(*run_command(server, folder)).code == 0
        assert server.requests - asked <= 48 - min(stored, 40)
    for name in ("records.jsonl", "summary.json"):
        assert (folder / name).read_bytes() == (finished / name).read_bytes()


def answers(folder: Path) -> int:
    """How many answers to prompts a run has stored."""
    if not (folder / "journal.sqlite").is_file():
        return 0
    with closing(sqlite3.connect(folder / "journal.sqlite")) as connection:
        try:
            query = "SELECT count(*) FROM responses JOIN requests USING (digest) WHERE kind = 'generate'"
            return int(connection.execute(query).fetchone()[0])
        except sqlite3.OperationalError:  # its tables were not made yet
            return 0

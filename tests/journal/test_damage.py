"""Damaged journals: what cannot be read is missing, the rest is kept, and nothing is destroyed."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import sealegs as sl
from loopback import Loopback
from sealegs.errors import RunConflict
from sealegs.journal.journal import Journal, Keyed, make_key, model_digest
from sealegs.types import Generate, Response, Sample, Sampling

pytestmark = pytest.mark.slow

MODEL = model_digest({"spec": "a"})


def request(number: int) -> Generate:
    return Generate(prompt=f"question {number}", sampling=Sampling())


def answer(asked: object) -> str:
    return f"to {asked} " * 3


def filled(path: Path, count: int = 4) -> list[Generate]:
    requests = [request(number) for number in range(count)]
    with closing(Journal(path)) as journal:
        for asked in requests:
            journal.put(Keyed(make_key(MODEL, asked), asked), Response(status="ok", text=answer(asked)))
    return requests


def change(path: Path, sql: str, *values: Any) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(sql, values)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("body", b"{not json"),
        ("body", b"[" * 100_000),
        ("body", b'{"status":"ok","vector":"AAAA"}'),  # three bytes are no float32
        ("status", "error"),
    ],
)
def test_a_damaged_row_is_a_missing_answer(tmp_path: Path, column: str, value: object) -> None:
    path = tmp_path / "journal.sqlite"
    requests = filled(path)
    change(path, f"UPDATE responses SET {column} = ? WHERE key = ?", value, make_key(MODEL, requests[1]))
    with closing(Journal(path)) as journal:
        keys = [make_key(MODEL, request) for request in requests]
        assert journal.unanswered(keys) == {keys[1]}
        assert [response.status for response in journal.read(keys)] == ["ok", "error", "ok", "ok"]
        journal.put(Keyed(make_key(MODEL, requests[1]), requests[1]), Response(status="ok", text="anew"))
        journal.flush()
        assert [response.text for response in journal.read(keys[1:2])] == ["anew"]


def scribbled(path: Path, page: int, size: int = 4096) -> None:
    """A page of the file overwritten, as a failing disk would."""
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xa5" * size)


def leaf_pages(path: Path) -> list[int]:
    """Pages of the answers' table, which hold rows and not the way to them."""
    with closing(sqlite3.connect(path)) as connection:
        root = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'responses'").fetchone()[0]
        found = connection.execute("PRAGMA page_count").fetchone()[0]
    content = path.read_bytes()
    return [n for n in range(2, found + 1) if n != root and content[(n - 1) * 4096] == 13]


@pytest.mark.parametrize("damage", ["page", "head", "cut off"])
def test_a_damaged_journal_is_refused_and_left_as_it_is(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "journal.sqlite"
    filled(path, 300)
    if damage == "cut off":
        path.write_bytes(path.read_bytes()[: path.stat().st_size * 9 // 10 + 1])
    else:
        scribbled(path, 1 if damage == "head" else leaf_pages(path)[2])
    before = path.read_bytes()
    with pytest.raises(RunConflict, match=r"is damaged.*\.recover.*reuse"):
        Journal(path)
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [(path.name, before)]


def test_what_can_be_read_of_a_damaged_journal_is_reused(questions: Path, tmp_path: Path) -> None:
    with Loopback(words=200) as server:
        options = {**settings(questions, server), "repeats": 5}
        sl.run("mirae", "openai:loop", out=tmp_path / "a", **options)
        pages = leaf_pages(tmp_path / "a" / "journal.sqlite")
        scribbled(tmp_path / "a" / "journal.sqlite", pages[len(pages) // 2])
        asked = server.requests
        again = sl.run("mirae", "openai:loop", out=tmp_path / "b", reuse=tmp_path / "a", **options)
        assert 0 < server.requests - asked < asked
    assert again.headline.coverage == 1.0


def settings(questions: Path, server: Loopback) -> dict[str, Any]:
    return {
        "base_url": server.url, "data": questions, "levels": "1", "embedder": "openai:embed", "repeats": 2,
    }  # fmt: skip


def test_an_answer_that_cannot_be_read_is_asked_again_by_a_run_alone(questions: Path, tmp_path: Path) -> None:
    """Scoring again leaves the results as they are, and says what to do."""
    path = tmp_path / "run"
    with Loopback() as server:
        expected = sl.run("mirae", "openai:loop", out=path, **settings(questions, server))
        change(
            path / "journal.sqlite",
            "UPDATE responses SET body = x'7b' WHERE key IN (SELECT key FROM responses "
            "JOIN requests USING (digest) WHERE kind = 'generate' ORDER BY key LIMIT 1)",
        )
        records, asked = (path / "records.jsonl").read_bytes(), server.requests
        with pytest.raises(RunConflict, match="lacks 1 answers .* Run the command that made the run again"):
            sl.rescore(path)
        assert (path / "records.jsonl").read_bytes() == records
        resumed = sl.run("mirae", "openai:loop", out=path, **settings(questions, server))
        assert server.requests > asked
    assert resumed.headline.coverage == expected.headline.coverage == 1.0


def test_a_sample_that_cannot_be_read_is_not_left_out_in_silence(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    with closing(Journal(path)) as journal:
        journal.put_samples([Sample(id="a", group="g", tags={}, inputs={})])
    change(path, "UPDATE samples SET body = ?", b"{")
    with closing(Journal(path)) as journal, pytest.raises(RunConflict, match="a sample .* cannot be read"):
        journal.samples()

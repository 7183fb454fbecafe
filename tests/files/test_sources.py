"""Data where people have it: compressed, at an address, in other columns, on the Hugging Face Hub."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import http.server
import lzma
import threading
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from loopback import Loopback
from runs import run_small
from sealegs.api.launch import start
from sealegs.errors import DataError, DataUnreachable, UsageError
from sealegs.files.remote import sources
from sealegs.files.remote.sources import local, parse_columns, without_secrets
from sealegs.harness.folder import Run

pytestmark = pytest.mark.slow

ROWS = [
    {"id": n, "query": f"Who keeps light {n}?", "answer": f"Keeper {n}",
     "positive": [f"Keeper {n} keeps light {n}."], "negative": [f"Light {n} is old.", f"Light {n} is red."]}
    for n in range(3)
]  # fmt: skip
CONTENT = b"".join(msgspec.json.encode(row) + b"\n" for row in ROWS)


def rgb(data: str | Path, out: Path, **settings: Any) -> Run:
    with Loopback(words=3) as server:
        return run_small("rgb", out, server, data=data, passages=2, **settings)


def asked(run: Run) -> list[tuple[str, tuple[str, ...]]]:
    return [(record.sample.inputs.query, record.sample.inputs.docs) for record in run.records()]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("plain")
    (folder / "en.jsonl").write_bytes(CONTENT)
    return rgb(folder / "en.jsonl", folder / "run")


PACKERS: dict[str, Callable[[bytes], bytes]] = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}


@pytest.mark.parametrize("ending", PACKERS)
def test_a_compressed_file_is_the_file_in_it(ending: str, plain: Run, tmp_path: Path) -> None:
    halves = CONTENT[:100], CONTENT[100:]  # two streams, one after the other
    (tmp_path / f"en.jsonl.{ending}").write_bytes(b"".join(map(PACKERS[ending], halves)))
    run = rgb(tmp_path / f"en.jsonl.{ending}", tmp_path / "run")
    assert asked(run) == asked(plain)
    assert run.spec.data == plain.spec.data
    assert run.spec.data["sha256"] == [hashlib.sha256(CONTENT).hexdigest()]


@pytest.mark.parametrize("ending", PACKERS)
def test_a_damaged_file_says_so(ending: str, tmp_path: Path) -> None:
    packed = PACKERS[ending](CONTENT)
    path = tmp_path / f"x.jsonl.{ending}"
    for content in (packed[: len(packed) // 2], b"not packed at all"):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"x\.jsonl.* cannot be unpacked: the file is damaged"):
            local(path)


def test_unpacking_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "LARGEST_DOWNLOAD_BYTES", 5_000_000)
    path = tmp_path / "bomb.jsonl.gz"
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    path.write_bytes(b"".join(packer.compress(bytes(1 << 20)) for _ in range(40)) + packer.flush())
    assert path.stat().st_size < 100_000
    with pytest.raises(DataError, match=r"bomb\.jsonl\.gz: it has more than 5,000,000 bytes unpacked"):
        local(path)


# Columns


def test_fields_are_taken_from_columns_of_other_names(plain: Run, tmp_path: Path) -> None:
    rows = [{"question": row["query"], **{k: v for k, v in row.items() if k != "query"}} for row in ROWS]
    path = tmp_path / "en.jsonl"
    path.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    run = rgb(path, tmp_path / "run", column={"query": "question"})
    assert asked(run) == asked(plain)
    assert run.spec.data["columns"] == {"query": "question"}
    assert run.spec.data["sha256"] == [hashlib.sha256(path.read_bytes()).hexdigest()]


def test_an_error_names_the_file_and_the_line_of_the_original(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    rows = [{**row, "question": row["query"]} for row in ROWS]
    rows[2]["question"] = 7
    lines = [msgspec.json.encode(row).decode() for row in rows]
    path.write_text("\n\n".join(lines))  # with blank lines between
    with pytest.raises(DataError) as error:
        rgb(path, tmp_path / "run", column={"query": "question"})
    assert str(error.value).startswith(f"{path}, line 5, field 'query': expected text")


def test_a_column_that_is_not_there_lists_those_that_are(tmp_path: Path) -> None:
    (tmp_path / "en.jsonl").write_bytes(CONTENT)
    with pytest.raises(UsageError) as error:
        rgb(tmp_path / "en.jsonl", tmp_path / "run", column=["query=querry"])
    text = str(error.value)
    assert f"{tmp_path / 'en.jsonl'} has no column 'querry'. Did you mean 'query'?" in text
    assert "Available: id, query, answer, positive, negative." in text
    with pytest.raises(UsageError, match="--column goes with your own data, not with --data starter"):
        rgb("starter", tmp_path / "run", column=["query=question"])
    for wrong in ("query", "=x", "query="):
        with pytest.raises(UsageError, match="FIELD=COLUMN"):
            parse_columns([wrong])


# Addresses


@pytest.fixture
def web(tmp_path: Path) -> Iterator[tuple[str, list[str]]]:
    """A server of files that wants a login for some, and the logins that it was given."""
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "en.jsonl.gz").write_bytes(gzip.compress(CONTENT))
    given: list[str] = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args, directory=str(tmp_path / "web"))

        def do_GET(self) -> None:
            given.append(self.headers.get("Authorization", ""))
            super().do_GET()

        def log_message(self, *args: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"127.0.0.1:{server.server_port}", given
        server.shutdown()
        thread.join()


def test_a_web_address_is_read_and_its_login_is_nowhere(
    web: tuple[str, list[str]], plain: Run, tmp_path: Path
) -> None:
    host, given = web
    run = rgb(f"http://someone:hunter2secret@{host}/en.jsonl.gz?token=abc123def456", tmp_path / "run")
    assert asked(run) == asked(plain)
    assert run.spec.data == plain.spec.data
    assert given[0].startswith("Basic ")
    for path in (tmp_path / "run").rglob("*"):
        content = path.read_bytes() if path.is_file() else b""
        assert b"hunter2secret" not in content
        assert b"abc123def456" not in content
    with pytest.raises(DataError) as error:
        rgb(f"http://someone:hunter2secret@{host}/none.jsonl?token=abc123def456", tmp_path / "other")
    assert str(error.value) == f"http://{host}/none.jsonl: there is no such file."


def test_a_file_of_any_file_system_is_read(plain: Run, tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    fsspec.filesystem("memory").pipe("/shelf/en.jsonl", CONTENT)
    (tmp_path / "en.jsonl").write_bytes(CONTENT)
    for number, address in enumerate(("memory://shelf/en.jsonl", f"file://{tmp_path}/en.jsonl")):
        run = rgb(address, tmp_path / f"run{number}")
        assert asked(run) == asked(plain)
        assert run.spec.data == plain.spec.data
    with pytest.raises(DataError, match="memory://shelf/none.jsonl: there is no such file"):
        local("memory://shelf/none.jsonl")
    with pytest.raises(UsageError, match=r"s3://bucket/x\.jsonl cannot be read here"):
        local("s3://key:secret@bucket/x.jsonl")
    with pytest.raises(DataUnreachable, match=r"nosuch://host/x\.jsonl could not be fetched \(ValueError\)"):
        local("nosuch://user:pw@host/x.jsonl?key=1")


def test_an_address_shows_no_secret() -> None:
    assert without_secrets("s3://key:secret@bucket/a/b.csv?sig=1#x") == "s3://bucket/a/b.csv"
    assert without_secrets("https://host:8000/@me/a.csv") == "https://host:8000/@me/a.csv"
    assert (
        without_secrets("zip://a.csv::https://me:secret@h/a.zip?t=secret") == "zip://a.csv::https://h/a.zip"
    )
    assert without_secrets("https://me:sec/ret@host/a.csv") == "https://host/a.csv"
    assert without_secrets("https://me:sec#ret@host/a.csv") == "https://…"
    assert without_secrets("https://host/a.csv;token=secret") == "https://host/a.csv"
    with pytest.raises(UsageError, match="cannot be given here"):
        start("runs", "rgb", "openai:x", data="https://me:pw@host/x.jsonl")


# The Hugging Face Hub


@pytest.mark.usefixtures("hub")
def test_a_data_set_is_read_through_datasets(plain: Run, tmp_path: Path) -> None:
    folder = tmp_path / "lights"
    folder.mkdir()
    (folder / "test.jsonl").write_bytes(CONTENT)
    (folder / "train.jsonl").write_bytes(CONTENT[: CONTENT.index(b"\n") + 1])
    for data in (f"hf:{folder}", f"hf:{folder}:test", f"hf:{folder}:default:test"):
        path = local(data)
        assert [msgspec.json.decode(line) for line in path.read_bytes().splitlines()] == ROWS
    assert len(local(f"hf:{folder}", split="train").read_bytes().splitlines()) == 1
    run = rgb(f"hf:{folder}:test", tmp_path / "run", column={"query": "query"})
    assert asked(run) == asked(plain)
    with pytest.raises(UsageError, match="has no split 'tests'"):
        local(f"hf:{folder}:tests")


@pytest.mark.usefixtures("hub")
def test_a_data_set_that_cannot_be_reached_says_so() -> None:
    with pytest.raises(DataUnreachable, match="hf:nobody/nothing could not be loaded"):
        local("hf:nobody/nothing")
    for wrong in ("hf:", "hf:a:b:c:d", "hf:a::b"):
        with pytest.raises(UsageError, match="hf:NAME:SPLIT"):
            local(wrong)

"""Files that are not what they should be are read, or refused by name; nothing else is ever raised."""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from readers import READERS, Reader, lines
from sealegs.errors import SealegsError, UsageError

pytestmark = pytest.mark.slow

SEEDS = int(os.environ.get("SEALEGS_MALFORMED", "12"))
"""Random damages to each file; the suite takes a few, and thousands when a reader is changed."""
FEW = ("table-csv", "mirae-questions", "run-records.jsonl")
"""The readers of `make test`; the others are run by `make full`."""
BINARY = (".parquet", ".gz", ".sqlite")
ODD: list[Any] = [
    None, True, -1, 1e308, 10**30, "", "①", "\ud800", "\x00", "5", [], [[]], [None], {}, {"1": None},
    "x" * 9999, [["a"], "b"], "../../x", "a\u2028b\u0085c\fd", float("nan"), float("inf"),
]  # fmt: skip
"""Values to put in the place of any other."""
DEEP = 100_000
NO_DATA = [
    b"",
    b"\xef\xbb\xbf\xef\xbb\xbf",
    b"null",
    b"[]",
    b"{}",
    b"[" * DEEP,
    b'{"a":' * DEEP,
    b'{"id":' + b"[" * 900 + b"]" * 900 + b"}",
    b"\x00" * 99,
    "x: é".encode("utf-16"),
    b'{"id": 1e999}',
    b'{"id": ' + b"9" * 5000 + b"}",
    b'{"id": "\xed\xa0\x80"}',
    b"SQLite format 3\x00" + bytes(84),
    b"x" * 200_000,
    b'a,b\n"x',
    ",".join(map(str, range(30_000))).encode() + b"\n",
    bytes(range(256)),
    b"[a]\nb = " + b"[" * 9999,
    b"[prices.a]\ninput = nan\noutput = inf\n",
    b"[[presets]]\n",
    b"a: !!python/object/apply:os.system [x]\n",
    b"a: &a [*a]\n",
]
"""Contents that are no data at all."""
JUNK = [
    b"", b"\x00", b"\xff", b"\n", b"\r", b'"', b"{", b",", b"\\ud800", b"\xed\xa0\x80", b"\xef\xbb\xbf",
    "\u2028".encode(), b"*a", b"<<: ", b"\t", b"NaN", b"1e999", b"9" * 5000,
]  # fmt: skip


def is_text(reader: Reader) -> bool:
    return not reader.name.endswith(BINARY)


def no_data(reader: Reader) -> Iterator[bytes]:
    # PyYAML takes long over long files: tests/files/test_yamlfile.py has them.
    most = 2000 if reader.name.endswith(".yaml") else 10**9
    return (content[:most] for content in NO_DATA)


def cut_off(reader: Reader) -> Iterator[bytes]:
    content = reader.content
    return (content[:size] for size in range(0, len(content), max(1, len(content) // (3 * SEEDS))))


def damaged(reader: Reader) -> Iterator[bytes]:
    for seed in range(SEEDS):
        rng, content = random.Random(seed), reader.content
        at, end = sorted(rng.randrange(len(content) + 1) for _ in range(2))
        junk = rng.choice([*JUNK, rng.randbytes(9)])
        match rng.randrange(5):
            case 0:
                yield content[:at] + junk + content[at:]
            case 1:
                yield content[:at] + junk + content[end:]
            case 2:
                yield content[:at] + content[at:end] * 3 + content[end:]
            case 3 if is_text(reader):
                encoding = rng.choice(["utf-16", "utf-16-le", "utf-8-sig", "utf-32"])
                yield content.replace(b"\n", b"\r\n").decode().encode(encoding)
            case _:
                yield content.replace(b"\n", rng.choice([b"\r\n", b"\r", b"\n\n", b"\n\x0c", b"\n \n"]))


def odd_values(reader: Reader) -> Iterator[bytes]:
    """A value of any kind in any place of a JSON file; each place has some of them, each file has all."""
    if not reader.name.endswith((".json", ".jsonl")):
        return
    rows = [json.loads(line) for line in reader.content.decode().splitlines()]
    share = max(1, 48 // SEEDS)
    for number, steps in enumerate(_places(rows[-1])):
        for odd in ODD[number % share :: share]:
            yield lines(*rows[:-1], _with(rows[-1], steps, odd))
        if number % 8 == 0:
            deep = lines(*rows[:-1], _with(rows[-1], steps, "DEEP"))
            yield deep.replace(b'"DEEP"', b"[" * 3000 + b"]" * 3000)


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, part in steps:
        yield from _places(part, (*path, step))


def _with(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = _with(value[path[0]], path[1:], new)
    return copy


def check(reader: Reader, path: Path, content: bytes) -> None:
    """Read it as what can be stored, or be told which file is wrong, in a message that can be printed."""
    path.write_bytes(content)
    try:
        msgspec.json.encode(reader.read(path), enc_hook=str)
    except UsageError as error:
        message = str(error)
        assert any(name in message for name in (path.name, *reader.beside)), message
        assert not any(word in message for word in ("Expected `", "$.", "Traceback")), message
        assert message.encode()
        assert len(message) < 3000


def each(*, all_in_test: bool) -> pytest.MarkDecorator:
    marks: list[Any] = [
        pytest.param(
            reader, id=reader.id, marks=[] if all_in_test or reader.id in FEW else [pytest.mark.full]
        )
        for reader in READERS
    ]
    return pytest.mark.parametrize("reader", marks)


@each(all_in_test=True)
def test_a_good_file_is_read_whole(reader: Reader, tmp_path: Path) -> None:
    path = reader.place(tmp_path)
    contents = [reader.content]
    if is_text(reader):
        contents += [b"\xef\xbb\xbf" + reader.content, reader.content.replace(b"\n", b"\r\n")]
    for content in contents:
        path.write_bytes(content)
        assert reader.read(path)


@pytest.fixture
def _deep_stack() -> Iterator[None]:
    """As deep as Python 3.14 has it: it is no error of the decoder that ends what is nested deeply."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    yield
    sys.setrecursionlimit(limit)


@pytest.mark.usefixtures("_deep_stack")
@pytest.mark.parametrize("malformed", [no_data, cut_off, damaged, odd_values])
@each(all_in_test=False)
def test_a_malformed_file_is_read_or_refused_by_name(
    reader: Reader, malformed: Callable[[Reader], Iterator[bytes]], tmp_path: Path
) -> None:
    path = reader.place(tmp_path)
    for content in malformed(reader):
        check(reader, path, content)


@each(all_in_test=False)
def test_what_is_not_a_file_is_refused(reader: Reader, tmp_path: Path) -> None:
    folder, pipe, endless = (tmp_path / kind for kind in ("folder", "pipe", "endless"))
    for parent in (folder, pipe, endless):
        parent.mkdir()
        reader.place(parent)
    (folder / reader.name).mkdir()
    os.mkfifo(pipe / reader.name)
    (endless / reader.name).symlink_to("/dev/zero")
    for parent in (folder, pipe, endless):
        with pytest.raises(SealegsError):
            reader.read(parent / reader.name)

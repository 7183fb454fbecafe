"""Files that are not what they should be are read, or refused by name; nothing else is ever raised.

Where a plain reader of the standard library takes a file too, both must have the same rows: none is lost,
and none is changed.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from evenkeel.errors import EvenkeelError, UsageError
from readers import READERS, Reader, lines

pytestmark = pytest.mark.slow

SEEDS = int(os.environ.get("EVENKEEL_MALFORMED", "12"))
"""Random damages to each file; the suite takes a few, and thousands when a reader is changed."""
CUTS = 3 * SEEDS
"""Places at which each file is cut off."""
SHARE = max(1, 48 // SEEDS)
"""Of the odd values, one in so many is put in each place, in turn: each file has all of them."""
BINARY = (".parquet", ".gz", ".bz2", ".xz", ".eval", ".sqlite", ".bin")
TEXTS = [reader for reader in READERS if not reader.name.endswith(BINARY)]
IN_JSON = [reader for reader in TEXTS if reader.name.endswith((".json", ".jsonl"))]
OPTIONAL = ("documents-folder",)
"""What need not be there: of a folder only files are read."""
WRITTEN_HERE = ("suite-state",)
"""Files that no editor has touched."""
ODD: list[Any] = [
    None,
    True,
    -1,
    0,
    1.5,
    1e308,
    10**30,
    "",
    " ",
    "x",
    "①",
    "\ud800",
    "\x00",
    "5",
    [],
    [[]],
    [None],
    {},
    {"a": 1},
    {"1": None},
    "x" * 9999,
    [["a"], "b"],
    "NaN",
    "../../x",
    "a\u2028b\u0085c\fd",
    float("nan"),
    float("inf"),
]
"""Values to put in the place of any other."""
DEEP = 100_000
WHOLE = [
    b"",
    b"\n\n",
    b" \t ",
    b"\xef\xbb\xbf",
    b"\xef\xbb\xbf\xef\xbb\xbf",
    b"\xff\xfe\x00",
    b"null",
    b"3",
    b'"x"',
    b"[]",
    b"{}",
    b"[" * DEEP,
    b"{" * DEEP,
    b'{"a":' * DEEP,
    b"[" * DEEP + b"]" * DEEP,
    b'{"id":' + b"[" * 900 + b"]" * 900 + b"}",
    b"\x00" * 99,
    "x: é".encode("utf-16"),
    "x: é".encode("utf-32"),
    b"NaN",
    b"Infinity",
    b"1e999",
    b"1" * 5000,
    b'{"a": 1, "a": 2}',
    b'{"id": 1e999}',
    b'{"id": ' + b"9" * 5000 + b"}",
    b'{"id": "\xed\xa0\x80"}',
    b"PAR1",
    b"PAR1PAR1",
    b"PK\x05\x06" + bytes(18),
    b"SQLite format 3\x00" + bytes(84),
    b"x" * 200_000,
    b"a\tb\n1\t2\n",
    b'"',
    b'a,b\n"x',
    b"a,b\n",
    b"a,a\n1,2\n",
    ",".join(map(str, range(30_000))).encode() + b"\n",
    b"\r\n\r",
    bytes(range(256)),
    b"- " * 9999,
    b"%PDF-1.7",
    b"[a]\nb = " + b"[" * 9999,
    b"a = " + b"9" * 5000,
    b"[prices.a]\ninput = nan\noutput = inf\n",
    b"[presets.a]\nbase_url = 2024-01-01\n",
    b"presets = 3\n",
    b"[[presets]]\n",
]
"""Contents that are no data at all."""
LAUGHS = "a0: &a0 [lol]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30))
YAML = [
    LAUGHS.encode(),
    b"a: &x {description: d}\nb: *x\n",
    b"a: &x {description: d}\nb: {<<: *x}\n",
    b"a: !!python/object:os.x {}\n",
    b"a: !!python/object/apply:os.system [x]\n",
    b"a: !x y\n",
    b"a: 2024-99-99\n",
    b"a: {description: 2024-01-01}\n",
    b"? [a]\n: b\n",
    b"? {a: b}\n: c\n",
    b"1: a\n2: b\n",
    b"null: a\n",
    b"a:\n\t- b\n",
    b"a: b\n---\nc: d\n",
    b"a: {b: c, b: d}\n",
    b"a: b\na: c\n",
    b'a: "\\ud800"\n',
    b'a: "\\x00"\n',
    b"a: {description: [}\n",
    b"- {name: a, description: b}\n- 3\n",
    b"a: !!binary x\n",
    b"a: !!timestamp x\n",
    b"a: !!int x\n",
    b"a: " + b"9" * 5000 + b"\n",
    b"a: 1:30\n",
    b"a: .nan\n",
    b"a: -.inf\n",
    b"a: 1.0e+999\n",
    b"&a [*a]\n",
    b"a: &a [*a]\n",
    b"a: !!set {x, y}\n",
    b"<<: [1, 2]\n",
    b"a: {<<: 3}\n",
    b"a: =\n",
    b"{a, b}\n",
    b"a: |\n",
    b"%YAML 9.9\n---\na: b\n",
    b"%TAG ! x\n---\na: !b c\n",
    b"@a: b\n",
    b"a: 'x\n",
    b"a: " + b"{b: " * 60 + b"}" * 60,
    b"[" * 999 + b"]" * 999,
    "a: 'x\u2028y\u0085z'\n".encode(),
]


def _tries(reader: Reader, path: Path, content: bytes) -> None:
    """Read it as what can be stored, or be told which file is wrong, in a message that can be printed.

    What a plain reader reads as well must be the same.
    """
    path.write_bytes(content)
    try:
        value = reader.read(path)
        msgspec.json.encode(value, enc_hook=str)
    except UsageError as error:
        message = str(error)
        assert any(name in message for name in (path.name, *reader.beside)), message
        assert not any(word in message for word in ("Expected `", "$.", "Traceback")), message
        assert message.encode()
        assert len(message) < 3000
        return
    if reader.rows is None or reader.plain is None:
        return
    try:
        expected = reader.plain(content)
    except Exception:  # noqa: BLE001  # it has no errors of its own
        return
    assert reader.rows(value) == expected


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


JUNK = [
    b"",
    b"\x00",
    b"\xff",
    b"\n",
    b"\r",
    b'"',
    b"{",
    b",",
    b"\\ud800",
    b"\xed\xa0\x80",
    b"\xef\xbb\xbf",
    "\u2028".encode(),
    "\u0085".encode(),
    b"\x0c",
    b"*a",
    b"<<: ",
    b"\t",
    b"NaN",
    b"1e999",
    b"9" * 5000,
]


def _damaged(content: bytes, rng: random.Random, *, text: bool) -> bytes:
    at, end = sorted(rng.randrange(len(content) + 1) for _ in range(2))
    junk = rng.choice([*JUNK, rng.randbytes(9)])
    match rng.randrange(6):
        case 0:
            return content[:at] + bytes([rng.randrange(256)]) + content[at + 1 :]
        case 1:
            return content[:at] + junk + content[at:]
        case 2:
            return content[:at] + junk + content[end:]
        case 3:
            return content[:at] + content[at:end] * 3 + content[end:]
        case 4 if text:
            encoding = rng.choice(["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig", "utf-32"])
            return content.replace(b"\n", b"\r\n").decode().encode(encoding)
        case _:
            ending = rng.choice([b"\r\n", b"\r", b"\n\r", b"\n\n", b"\n\x0c", b"\n \n"])
            return content.replace(b"\n", ending)


def each(readers: list[Reader]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("reader", readers, ids=[reader.id for reader in readers])


@each(READERS)
def test_a_good_file_is_read_whole(reader: Reader, tmp_path: Path) -> None:
    path = reader.place(tmp_path)
    contents = [reader.content]
    if reader in TEXTS and reader.id not in WRITTEN_HERE:
        contents += [b"\xef\xbb\xbf" + reader.content, reader.content.replace(b"\n", b"\r\n")]
    for content in contents:
        path.write_bytes(content)
        value = reader.read(path)
        assert value
        if reader.rows is not None and reader.plain is not None:
            assert reader.rows(value) == reader.plain(content)


@each(READERS)
def test_what_is_no_data_is_refused_by_name(reader: Reader, tmp_path: Path) -> None:
    path = reader.place(tmp_path)
    # PyYAML takes long over long files: tests/files/test_yamlfile.py has them.
    most = 2000 if reader.name.endswith(".yaml") else 10**9
    for content in (*WHOLE, *YAML):
        _tries(reader, path, content[:most])


@pytest.mark.full
@each(READERS)
def test_a_file_cut_off_anywhere_is_read_or_refused(reader: Reader, tmp_path: Path) -> None:
    path = reader.place(tmp_path)
    for size in range(0, len(reader.content), max(1, len(reader.content) // CUTS)):
        _tries(reader, path, reader.content[:size])


@pytest.mark.full
@each(READERS)
def test_any_damage_to_a_file_is_read_or_refused(reader: Reader, tmp_path: Path) -> None:
    path = reader.place(tmp_path)
    for seed in range(SEEDS):
        _tries(reader, path, _damaged(reader.content, random.Random(seed), text=reader in TEXTS))


@pytest.mark.full
@each(IN_JSON)
def test_a_value_of_any_kind_in_any_place_is_read_or_refused(reader: Reader, tmp_path: Path) -> None:
    path = reader.place(tmp_path)
    rows = [json.loads(line) for line in reader.content.decode().splitlines()]
    for number, steps in enumerate(_places(rows[-1])):
        for odd in ODD[number % SHARE :: SHARE]:
            changed = [*rows[:-1], _with(rows[-1], steps, odd)]
            _tries(reader, path, lines(*changed))


@pytest.mark.full
@each(IN_JSON)
def test_a_value_nested_too_deeply_is_refused_or_skipped(reader: Reader, tmp_path: Path) -> None:
    """With a stack as deep as Python 3.14 has it: it is no error of the decoder that ends this."""
    path = reader.place(tmp_path)
    rows = [json.loads(line) for line in reader.content.decode().splitlines()]
    places = list(_places(rows[-1]))
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    try:
        for steps in places[:: 1 + len(places) // 5]:
            content = lines(*rows[:-1], _with(rows[-1], steps, "DEEP"))
            path.write_bytes(content.replace(b'"DEEP"', b"[" * 3000 + b"]" * 3000))
            try:
                value = reader.read(path)
            except UsageError as error:
                message = str(error)
                assert any(name in message for name in (path.name, *reader.beside)), message
            else:
                assert b"[" * 1000 not in msgspec.json.encode(value, enc_hook=str)
    finally:
        sys.setrecursionlimit(limit)


@each(READERS)
def test_what_is_not_a_file_is_refused(reader: Reader, tmp_path: Path) -> None:
    folder, pipe, endless = (tmp_path / kind for kind in ("folder", "pipe", "endless"))
    for parent in (folder, pipe, endless):
        parent.mkdir()
        reader.place(parent)
    (folder / reader.name).mkdir()
    os.mkfifo(pipe / reader.name)
    (endless / reader.name).symlink_to("/dev/zero")
    for parent in (folder, pipe, endless):
        if reader.id in OPTIONAL:
            reader.read(parent / reader.name)
            continue
        with pytest.raises(EvenkeelError):
            reader.read(parent / reader.name)

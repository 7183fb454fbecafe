"""Files that are not what they should be are read, or refused by name; nothing else is ever raised."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import polars
import pytest

from evenkeel.benchmarks.mirae.files import read_questions
from evenkeel.benchmarks.mirae.make.questions import read_user_questions
from evenkeel.benchmarks.mirae.recorded import read_recording
from evenkeel.benchmarks.miron.files import read_examples, read_results
from evenkeel.benchmarks.multiview.files import read_triplets
from evenkeel.benchmarks.multiview.make.criteria import read_criteria
from evenkeel.benchmarks.rgb.files import load_prompts, read_instances
from evenkeel.benchmarks.rgb.predictions import read_predictions
from evenkeel.errors import UsageError
from evenkeel.files.datasets import data_file
from evenkeel.make.documents import read_documents

pytestmark = pytest.mark.slow

SEEDS = int(os.environ.get("EVENKEEL_MALFORMED", "12"))
"""Random damages to each file; the suite takes a few, and thousands when a reader is changed."""


class Reader(NamedTuple):
    read: Callable[[Path], Any]
    name: str
    content: bytes


def _lines(*rows: Any) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


MIRAE = {
    "metadata": {"language": "English"},
    "questions": [{"question_id": 1, "domain": "A", "level_1_text": "q"}],
}
RESULTS = {
    "metadata": {"language": "English", "model": "m"},
    "experiment_results": [
        {
            "question_id": 1,
            "domain": "A",
            "level_analyses": [{"level": 1, "question_text": "q", "responses": ["a", "b"]}],
        }
    ],
}
ANSWERS = [
    {"question_id": 1, "domain": "A", "level_responses": {"1": {"question_text": "q", "responses": ["a"]}}}
]
EXAMPLE = {"prefix": "One", "target": "two", "category": "Logic", "lang": "en", "id": "a", "edits": 1}
RESULT = EXAMPLE | {"generated": "two", "lev_score": 100.0, "target_confidence": 5}
TRIPLET = {"task": "a", "criterion": "b", "anchor": "x", "positive": "y", "negative": "z", "quality": 3}
PLAIN = {"id": 1, "query": "q", "answer": [["a", "b"]], "positive": ["p"], "negative": ["n"]}
FACT = PLAIN | {"fakeanswer": "f", "positive_wrong": ["w"]}
PREDICTED = {
    "id": 0,
    "query": "q",
    "ans": ["a"],
    "label": [1],
    "prediction": "p",
    "docs": ["d"],
    "noise_rate": 0.2,
    "factlabel": 0,
}
DOCUMENT = {"text": "a", "id": 1, "label": "x"}
PROMPTS = b"en:\n  system: s\n  instruction: '{DOCS} {QUERY}'\n  closed: '{QUERY}'\n"
CRITERIA = b"plot: What happens.\nplace:\n  description: Where.\n  hints: [a, b]\n"


def _own(path: Path) -> Any:
    return read_user_questions(path, count=len, longest=99)


def _documents(path: Path) -> Any:
    return read_documents(path, label_fields=["label"])


READERS = [
    Reader(data_file, "any.bin", b"x"),
    Reader(read_questions, "x.json", json.dumps(MIRAE).encode()),
    Reader(read_recording, "x.json", json.dumps(RESULTS).encode()),
    Reader(read_recording, "x_english.json", json.dumps(ANSWERS).encode()),
    Reader(_own, "x.txt", b"One?\nTwo?\n"),
    Reader(_own, "x.csv", b"question,domain\nOne?,A\nTwo?,B\n"),
    Reader(_own, "x.jsonl", _lines({"question": "One?", "domain": "A"})),
    Reader(read_examples, "x.jsonl", _lines(EXAMPLE, EXAMPLE | {"id": "b"})),
    Reader(read_examples, "x.csv", b"prefix,target,category,lang\nOne,two,Logic,en\n"),
    Reader(read_results, "x.jsonl", _lines(RESULT)),
    Reader(read_triplets, "x.jsonl", _lines(TRIPLET, TRIPLET)),
    Reader(read_criteria, "x.yaml", CRITERIA),
    Reader(lambda path: load_prompts(str(path)), "x.yaml", PROMPTS),
    Reader(read_instances, "x.json", _lines(PLAIN, PLAIN | {"id": 2})),
    Reader(read_instances, "x_fact.json", _lines(FACT)),
    Reader(read_predictions, "x.json", _lines(PREDICTED)),
    Reader(_documents, "x.jsonl", _lines(DOCUMENT, DOCUMENT | {"id": 2, "text": "b"})),
    Reader(_documents, "x.csv", b"text,id,label\na,1,x\nb,2,y\n"),
]
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
]
"""Values to put in the place of any other."""
WHOLE = [
    b"",
    b"\n\n",
    b"\xef\xbb\xbf",
    b"\xff\xfe\x00",
    b"null",
    b"3",
    b'"x"',
    b"[]",
    b"{}",
    b"[" * 50_000,
    b"{" * 50_000,
    b'{"a":' * 50_000,
    b"\x00" * 99,
    "x: é".encode("utf-16"),
    b"NaN",
    b"1" * 5000,
    b'{"a": 1, "a": 2}',
    b"PAR1",
    b"x" * 200_000,
    b"a\tb\n1\t2\n",
    b'"',
    b'a,b\n"x',
    b"\r\n\r",
    bytes(range(256)),
    b"- " * 9999,
    b"%PDF-1.7",
]
"""Contents that are no data at all."""
YAML = [
    b"a: &x {description: d}\nb: *x\n",
    b"a: &x {description: d}\nb: {<<: *x}\n",
    b"a: !!python/object:os.x {}\n",
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
    b"&a [*a]\n",
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
]


def _tries(reader: Reader, path: Path, content: bytes) -> None:
    """Read it as what can be stored, or be told which file is wrong, in a message that can be printed."""
    path.write_bytes(content)
    try:
        msgspec.json.encode(reader.read(path), enc_hook=str)
    except UsageError as error:
        message = str(error)
    else:
        return
    assert path.name in message
    assert not any(word in message for word in ("Expected `", "$.", "Traceback")), message
    assert message.encode()


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


def _damaged(content: bytes, rng: random.Random) -> bytes:
    at, end = sorted(rng.randrange(len(content) + 1) for _ in range(2))
    junk = rng.choice(
        [
            b"",
            b"\x00",
            b"\xff",
            b"\n",
            b'"',
            b"{",
            b"\\ud800",
            b"\xef\xbb\xbf",
            b"*a",
            b"<<: ",
            b"\t",
            rng.randbytes(9),
        ]
    )
    match rng.randrange(5):
        case 0:
            return content[:at]
        case 1:
            return content[:at] + junk + content[at:]
        case 2:
            return content[:at] + junk + content[end:]
        case 3:
            return content[:at] + content[at:end] * 3 + content[end:]
        case _:
            return (
                content.replace(b"\n", b"\r\n").decode().encode(rng.choice(["utf-16", "utf-8-sig", "utf-32"]))
            )


each_reader = pytest.mark.parametrize(
    "reader", READERS, ids=[f"{reader.read.__name__}-{reader.name}" for reader in READERS]
)


@each_reader
def test_a_good_file_is_read_with_and_without_a_byte_order_mark(reader: Reader, tmp_path: Path) -> None:
    for content in (reader.content, b"\xef\xbb\xbf" + reader.content, reader.content.replace(b"\n", b"\r\n")):
        (tmp_path / reader.name).write_bytes(content)
        assert reader.read(tmp_path / reader.name)


@each_reader
def test_what_is_no_data_is_refused_by_name(reader: Reader, tmp_path: Path) -> None:
    for content in (*WHOLE, *YAML):
        _tries(reader, tmp_path / reader.name, content)


@each_reader
def test_any_damage_to_a_file_is_read_or_refused(reader: Reader, tmp_path: Path) -> None:
    for seed in range(SEEDS):
        _tries(reader, tmp_path / reader.name, _damaged(reader.content, random.Random(seed)))


@each_reader
def test_a_value_of_any_kind_in_any_place_is_read_or_refused(reader: Reader, tmp_path: Path) -> None:
    if reader.name.endswith((".csv", ".yaml", ".txt", ".bin")):
        return
    rows = [json.loads(line) for line in reader.content.decode().splitlines()]
    for path in _places(rows[-1]):
        for odd in ODD:
            changed = [*rows[:-1], _with(rows[-1], path, odd)]
            _tries(reader, tmp_path / reader.name, _lines(*changed))


@each_reader
def test_what_is_not_a_file_is_refused(reader: Reader, tmp_path: Path) -> None:
    folder, pipe, gone = (tmp_path / kind / reader.name for kind in ("folder", "pipe", "gone"))
    folder.mkdir(parents=True)
    pipe.parent.mkdir()
    os.mkfifo(pipe)
    for path in (folder, pipe, gone, tmp_path / f"nul\0{reader.name}"):
        with pytest.raises(UsageError):
            reader.read(path)


@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "types"])
def test_parquet_is_read_or_refused(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    for number in range(SEEDS):
        rng = random.Random(number)
        odd = rng.choice([None, 5, 1.5, True, [1], b"\xff", {"a": 1}])
        fields = {name: ([odd] if damage == "types" else [str(value)]) for name, value in RESULT.items()}
        polars.DataFrame(fields, strict=False).write_parquet(path)
        content = bytearray(path.read_bytes())
        at = rng.randrange(len(content))
        if damage == "changed":
            content[at] ^= 0xFF
        reader = Reader(rng.choice([read_examples, read_results, _documents]), path.name, b"")
        cut = {"cut": content[:at], "empty": b""}.get(damage, content)
        _tries(reader, path, bytes(cut))

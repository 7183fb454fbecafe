"""JSON objects inside a text: the same as by trying every brace, and in linear time."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.errors import DataError
from evenkeel.files.jsonfile import (
    DEEPEST,
    decode_json_lines,
    json_objects,
    read_json,
    replace_half_pairs,
    shallow,
)
from evenkeel.models.openai.transport import Reply, RequestError
from evenkeel.text import judge
from evenkeel.types import Response

LONG = 50_000
PARTS = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    '"',
    '"a"',
    '"b":',
    "1",
    "-1",
    "01",
    "1.",
    "1e5",
    "true",
    "null",
    "NaN",
    "-Infinity",
    " ",
    "\n",
    "\t",
    "\\",
    '\\"',
    "\\u00e9",
    "\\u12",
    "x",
    '{"a":',
    '{"a":1}',
    '"x{y"',
    "{}",
    "[]",
    '{":',
]


def by_trying(text: str) -> Iterator[Any]:
    """Quadratic, and plain."""
    place = text.find("{")
    while place >= 0:
        try:
            found, end = json.JSONDecoder().raw_decode(text, place)
        except ValueError:
            end = place + 1
        else:
            yield found
        place = text.find("{", end)


@given(st.lists(st.sampled_from(PARTS), max_size=14))
def test_the_objects_are_those_that_a_decoder_finds(parts: list[str]) -> None:
    text = "".join(parts)
    assert repr(list(json_objects(text))) == repr(list(by_trying(text)))


@pytest.mark.parametrize(
    "unit",
    [
        "{",
        '{"a":',
        '{"a":[',
        '{"',
        '{":',
        "}",
        "{}",
        '{"a":1,',
        '"',
        '{"a',
        '{"a":"',
        '{"a":"\\',
        "{ ",
        '{"{',
        '{"a":1}',
        '{"a":{"b":1},',
        '{"a\n',
        "[",
        "\\",
    ],
)
@pytest.mark.parametrize("before", ["", '{"a":' * 900])
def test_any_repetition_is_read_in_linear_time(unit: str, before: str) -> None:
    """No time is measured: what is quadratic here would take minutes."""
    for found in json_objects(before + unit * (LONG // len(unit)) + '\n"} {"score": 3}'):
        assert isinstance(found, dict)


@pytest.mark.parametrize(
    "before", ["{" * LONG, '{"a":' * (LONG // 5) + "\n", '{"a": "' + "x" * LONG + "\n", '{"a": 1' * 99]
)
def test_a_verdict_behind_what_is_broken_is_found(before: str) -> None:
    assert list(json_objects(before + '{"score": 3}')) == [{"score": 3}]


def test_what_is_nested_too_deeply_or_too_large_a_number_is_passed_over() -> None:
    deep = '{"a":' * 50_000 + "1" + "}" * 50_000
    assert list(json_objects(f'{deep} {{"a": {"9" * 5000}}} {{"score": 3}}')) == [{"score": 3}]


@pytest.fixture
def _deep_stack() -> Iterator[None]:
    """As many levels as Python 3.14 reads without being told to."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    yield
    sys.setrecursionlimit(limit)


@pytest.mark.usefixtures("_deep_stack")
@pytest.mark.parametrize("deep", ['{"a":' * 5000 + "1" + "}" * 5000, '{"a":' + "[" * 5000 + "]" * 5000 + "}"])
def test_the_depth_that_is_read_is_no_matter_of_the_stack(deep: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(deep)
    problem = rf"x\.json.*nested more than {DEEPEST} levels deep"
    with pytest.raises(DataError, match=problem):
        read_json(path)
    with pytest.raises(DataError, match=problem):
        list(decode_json_lines(path, Any))
    assert list(json_objects(deep + '{"score": 3}'))[-1] == {"score": 3}
    for response in (Response(status="ok", text=deep), Response(status="truncated", text=deep)):
        assert judge.read(dict, response).status == "unparsed"  # type: ignore[type-var]
    with pytest.raises(RequestError, match="nested too deeply"):
        Reply(200, "application/json", deep.encode(), None, "").parse(msgspec.json.decode)


def test_levels_are_counted_outside_of_strings() -> None:
    for opening, closing in (("[", "]"), ('{"[{\\"[{": ', "}")):
        content = opening * DEEPEST + '"]}[[\\\\"' + closing * DEEPEST
        assert shallow(content) == content
        assert shallow(content.encode()) == content.encode()
        assert json.loads(content)
        with pytest.raises(RecursionError):
            shallow(f"[{content}]")
    wide = "[" + ",".join(['{"a": [1, {"b": "]]]"}]}'] * 5000) + "]"
    assert shallow(wide) == wide
    for broken in ("]" * 999, '"' + "[" * 999, "[" * DEEPEST + '"' + "[" * 999, "\\" + "[" * 99 + "\ud800"):
        assert shallow(broken) == broken


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        (r'"\ud800"', "\ufffd"),
        (r'"a\uDC00b"', "a\ufffdb"),
        (r'"\ud83d\ude00"', "😀"),
        (r'"\ud83d\ud83d\ude00"', "\ufffd😀"),
        (r'"\\ud800"', r"\ud800"),
        (r'"\\\ud800"', "\\\ufffd"),
        (r'"\u00e9"', "é"),
    ],
)
def test_half_a_character_becomes_a_replacement(text: str, whole: str) -> None:
    assert json.loads(replace_half_pairs(text)) == whole


class Opinion(msgspec.Struct):
    note: str


def test_a_verdict_with_half_a_character_can_be_stored() -> None:
    verdict = judge.read(Opinion, Response(status="ok", text=r'{"note": "x \ud800 y"}'))
    assert verdict.value == Opinion("x \ufffd y")
    assert msgspec.json.encode(verdict.value)

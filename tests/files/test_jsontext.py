"""JSON objects inside a text, whatever surrounds them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealegs.files.jsonfile import DEEPEST_JSON_LEVELS, check_depth, json_objects, replace_half_pairs

PROSE = st.text("{}[]\\\"':,a1 \n", max_size=30)
OBJECTS = st.dictionaries(
    st.text(max_size=3), st.integers() | st.text() | st.lists(st.booleans()), max_size=3
)


@given(st.text(alphabet="}[]:,a1 \n", max_size=30), st.lists(OBJECTS, max_size=3))
def test_objects_are_found_in_prose_and_in_order(prose: str, objects: list[dict[str, object]]) -> None:
    text = prose.join(["", *map(json.dumps, objects), ""])
    assert list(json_objects(text)) == objects


@given(PROSE)
def test_any_prose_is_read(prose: str) -> None:
    assert {"score": 3} in json_objects(prose.replace('"', "'") + '\n{"score": 3}')


@pytest.mark.parametrize(
    "before", ["{" * 5000, '{"a":' * 5000 + "\n", '{"a": 1' * 99, '{"a":' * 50_000 + "1" + "}" * 50_000]
)
def test_long_texts_of_braces_take_little_time(before: str) -> None:
    """No time is measured: what is quadratic here would take minutes."""
    assert all(len(each) == 1 for each in json_objects(before + '{"score": 3}'))


def test_levels_are_counted_outside_of_strings() -> None:
    content = '{"[{\\"[{": ' * DEEPEST_JSON_LEVELS + '"]}[[\\\\"' + "}" * DEEPEST_JSON_LEVELS
    assert check_depth(content) == content
    assert json.loads(content)
    with pytest.raises(RecursionError):
        check_depth(f"[{content}]")


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        (r'"\ud800"', "\ufffd"),
        (r'"\ud83d\ude00"', "😀"),
        (r'"\ud83d\ud83d\ude00"', "\ufffd😀"),
        (r'"\\ud800"', r"\ud800"),
        (r'"\\\ud800"', "\\\ufffd"),
    ],
)
def test_half_a_character_becomes_a_replacement(text: str, whole: str) -> None:
    assert json.loads(replace_half_pairs(text)) == whole

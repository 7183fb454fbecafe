"""The lenient check of odd answers: reasoning blocks, numbers in odd letters and without end."""

from __future__ import annotations

import pytest

from evenkeel.benchmarks.rgb.check.lenient import lenient
from evenkeel.benchmarks.rgb.check.normalization import plain, words


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("<think>No, </think>Silverton", True),
        ("<think>Silverton</think>no", False),
        ("a <think>b</think>Silverton<think>c</think>", True),
        ("<think><think>x</think>Silverton", True),
        ("<think>Silverton", True),
        ("</think>Silverton<think>", True),
    ],
)
def test_reasoning_blocks_are_left_out(text: str, right: bool) -> None:
    assert lenient(text, (("Silverton",),)).right == right


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("fıve", ["5"]),
        ("ﬁve", ["5"]),
        ("FİVE", ["5"]),
        ("ſeven", ["7"]),
        ("three mıllion", ["3000000"]),
        ("5 mıllion", ["5000000"]),
        ("5 Bİllıon", ["5000000000"]),
        ("10 thouſand", ["10000"]),
        ("5 Aprıl 2024", ["2024", "m4", "d5"]),
        ("①②", ["12"]),
        ("５", ["5"]),
        ("٣ million", ["3000000"]),
        ("x²", ["x", "2"]),
        ("Ⅳ", ["iv"]),
        ("Straße", ["straße"]),
        ("❶", ["❶"]),
        ("፩", ["፩"]),
    ],
)
def test_numbers_in_odd_letters_are_read(text: str, read: list[str]) -> None:
    assert [word.text for word in words(plain(text))] == read


@pytest.mark.parametrize("digit", ["7", "７", "٧", "七", "①"])
def test_a_number_too_long_to_be_one_stays_as_it_is(digit: str) -> None:
    for tail in ("", " million", "亿", "点七", "%", " percent", "月", " March"):
        assert words(plain(digit * 9999 + tail))
    assert words(plain(f"${digit * 9999}k"))

"""The estimate of tokens: close to a real tokenizer, the same everywhere, quick."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.text.token_estimate import HAN_AND_KANA, HANGUL, LATIN, estimate_tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        (" \n ", 1),
        ("a", 1),
        ("The cat sat on the mat.", 7),
        ("It was 1,024 metres high.", 10),
        ("你好，我是一种新型的语言模型。", 11),
        ("안녕하세요, 저는 새로운 언어 모델입니다.", 16),
        ("a" * 60, 13),
    ],
)
def test_known_texts_have_known_estimates(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


@given(st.text(), st.text())
def test_a_text_of_two_parts_is_about_as_long_as_both(one: str, other: str) -> None:
    both = estimate_tokens(f"{one}\n{other}")
    assert abs(both - estimate_tokens(one) - estimate_tokens(other)) <= 3


FORMULA = [
    (f"[{LATIN}]+", 104),
    (f"(?<=[{LATIN}]{{13}})[{LATIN}]{{1,4}}", 100),
    (r"\d", 100),
    (r"[^\w\s]|_", 92),
    (r"\n+", 100),
    (f"[{HAN_AND_KANA}]", 74),
    (f"[{HANGUL}]", 82),
    (f"[^\\W\\d_{LATIN}{HAN_AND_KANA}{HANGUL}]", 40),
]


@given(
    st.text(st.one_of(st.characters(), st.sampled_from("aé\n \u30a0\u3130\u2028_7·한"))), st.integers(0, 40)
)
def test_the_estimate_is_the_sum_of_its_formula(text: str, letters: int) -> None:
    text += "w" * letters
    hundredths = sum(weight * len(re.findall(pattern, text)) for pattern, weight in FORMULA)
    assert estimate_tokens(text) == ((hundredths + 50) // 100 or int(bool(text.strip())))

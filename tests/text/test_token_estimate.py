"""The estimate of tokens: known texts have known estimates."""

from __future__ import annotations

import pytest

from sealegs.text.token_estimate import estimate_tokens


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

"""No function that is applied to an answer takes more than linear time in its length.

Each reads texts of one repeated unit, four times as long the second time. In linear time that takes four
times as long, in quadratic time sixteen. The least of several processor times counts, so that a busy machine
decides nothing, and times too short to be measured pass.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from msgspec import Struct

from sealegs.benchmarks.mirae.expected import given_words
from sealegs.benchmarks.mirae.refusals import refuses
from sealegs.benchmarks.miron.added import as_words, matches
from sealegs.benchmarks.miron.published import lev_score
from sealegs.benchmarks.rgb.check.lenient import lenient
from sealegs.benchmarks.rgb.make.sections import read_sections
from sealegs.benchmarks.rgb.published import published, published_matches
from sealegs.files.jsonfile import json_objects, replace_half_pairs
from sealegs.models.openai.redaction import Redaction
from sealegs.models.reasoning import split_reasoning
from sealegs.page.differences import mutual_differences
from sealegs.page.examples import cut_fairly
from sealegs.page.format import as_json, as_markdown, csv_safe, escape_controls
from sealegs.text import judge
from sealegs.text.answer_check.restated import restated
from sealegs.text.answer_search.normalization import plain, words
from sealegs.text.answers import is_blank
from sealegs.text.token_estimate import estimate_tokens
from sealegs.text.word_splitting import split, word_ends
from sealegs.types import Response

pytestmark = pytest.mark.slow
SHORT, LONG = 2_500, 10_000
MOST = 9.0
"""How much longer the long text may take: linear is 4, quadratic 16."""
SHORTEST = 0.03
"""Seconds from which on a time is looked at."""


class Opinion(Struct):
    a: int


def lenient_check(text: str) -> Any:
    """The lenient check of an answer, and the words that the page quotes."""
    answer = (("Silverton", "University of California San Diego", "21"), ("0", "一"))
    verdict = lenient(text, answer, fake=(("Glenmore",),), query="Who won 21 games?")
    return dict(verdict.words)


hidden = Redaction(["sk-abcdef0123456789abcdef", "aaaaaaaaaaaaaaaaaaaaaaaaaaaa", "short pw"])
FUNCTIONS: dict[str, Callable[[str], Any]] = {
    "published check": lambda text: [
        (published(text, (("Paris", "12"),), lang), published_matches(text, (("0", "一"),), lang))
        for lang in ("en", "zh")
    ],
    "lenient check": lenient_check,
    "words": lambda text: words(plain(text)),
    "expected answer": lambda text: given_words(text, (("no", "달", "206"),), "Who?"),
    "asides": lambda text: given_words(text, (("Paris", "not"),), "Which city?"),
    "restated question": lambda text: restated(text, "Is Paris a city of 1,000?"),
    "refusals": lambda text: [refuses(text, lang) for lang in ("en", "zh", "ko")],
    "blank": is_blank,
    "levenshtein": lambda text: lev_score(text, " Paris"),
    "matches": lambda text: (matches(text, " Paris"), as_words(text, " Paris here")),
    "word splitting": lambda text: (split([text], "en"), word_ends(text)),
    "tokens": estimate_tokens,
    "json": lambda text: (list(json_objects(text)), replace_half_pairs(text)),
    "judge": lambda text: [judge.read(Opinion, Response(status=s, text=text)) for s in ("ok", "truncated")],
    "reasoning": lambda text: (split_reasoning(text), split_reasoning(text, cut=True)),
    "redaction": hidden.text,
    "display": lambda text: (escape_controls(text), csv_safe(text), as_markdown(text), as_json(text)),
    "differences": lambda text: (mutual_differences(text, text[::-1]), cut_fairly([text], 10_000)),
}
FEW = [" ", "0", "1,000,", '{"a":', "a\n", "十百千万亿", "<think>", "not ", "Paris ", "달이백만"]
"""The others are tried by `make full`."""
MORE = [
    ".0", "{", '"', "\\u00", "A. ", "2024年", "</think>", "<|channel|>final", "\u0301", "《",
    "one point two ", " to one",
    "one thousand and ", "January 1, ", "百分之", "I cannot ", "1.", "\u200d", "Silverton did not ", "&#x41;",
    "sk-abcdef", ", but ", "\ufdfa", "[", "so ", "1억 2천만 ",
    "no, ", "Hi! ", ": yes",
]  # fmt: skip


def _seconds(function: Callable[[str], Any], text: str) -> float:
    start = time.process_time()
    function(text)
    return time.process_time() - start


def is_linear(function: Callable[[str], Any], unit: str, *, short: int = SHORT, long: int = LONG) -> bool:
    """Whether a long text takes no more than its share of the processor, in one of five tries."""
    texts = [unit * (size // len(unit)) for size in (short, long)]
    for _ in range(5):
        seconds = _seconds(function, texts[1])
        if seconds < SHORTEST or seconds < MOST * _seconds(function, texts[0]):
            return True
    return False


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("units", [FEW, pytest.param(MORE, marks=pytest.mark.full)], ids=["few", "more"])
def test_the_time_is_linear_in_the_length_of_an_answer(name: str, units: list[str]) -> None:
    assert [unit for unit in units if not is_linear(FUNCTIONS[name], unit)] == []


def test_chinese_without_punctuation_is_split_in_linear_time() -> None:
    """Splitters of Chinese may take quadratic time in the length of what they are given."""
    split(["学校"])  # loads its dictionary
    assert is_linear(lambda text: split([text]), "的", short=3_000, long=12_000)


@pytest.mark.parametrize(
    "unit",
    ["[a", "![", "a   b\n", "    a\n", "1. a\n", "_a ", "**a ", "**a**\n", "<div><a>b</a> ", "汉", "<table>"],
)  # fmt: skip
def test_a_document_of_a_user_is_read_in_linear_time(unit: str) -> None:
    assert is_linear(lambda text: read_sections(f"<p>{text}", "en"), unit)

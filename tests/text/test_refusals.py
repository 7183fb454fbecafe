"""What an answer begins with: the same openings in three languages have the same verdict."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec
import pytest

from evenkeel.text.answers import OPENING_CHARACTERS, opening_of

LANGUAGES = ("en", "ko", "zh")
OPENINGS: list[dict[str, str]] = msgspec.json.decode((Path(__file__).parent / "openings.json").read_bytes())


@pytest.mark.parametrize("lang", LANGUAGES)
def test_parallel_openings_have_the_same_verdict_in_every_language(lang: str) -> None:
    verdicts = {row[lang]: opening_of(row[lang], lang) for row in OPENINGS}
    assert verdicts == {row[lang]: row["verdict"] for row in OPENINGS}


def test_there_are_enough_openings_of_each_kind() -> None:
    assert min(Counter(row["verdict"] for row in OPENINGS).values()) >= 20
    assert len(OPENINGS) >= 60


def test_an_answer_in_english_to_a_prompt_in_another_language_is_recognised() -> None:
    for lang in ("ko", "zh", "fr"):
        assert opening_of("I'm sorry, but I can't help with that.", lang) == "refusal"
        assert (
            opening_of("I have no personal opinions, but the second plan is cheaper.", lang) == "disclaimer"
        )
        assert opening_of("The committee said: I cannot help you.", lang) == "answer"


def test_markup_quotes_and_apostrophes_do_not_hide_a_refusal() -> None:
    assert opening_of("**I’m sorry**, but I can’t help with that.", "en") == "refusal"
    assert opening_of("\n\n> I cannot assist with this request.", "en") == "refusal"
    assert opening_of("“I cannot assist you,” said the clerk.", "en") != "refusal"
    assert opening_of("", "en") == "answer"


def test_a_list_of_offers_is_not_an_answer_and_a_long_list_is() -> None:
    denial = "As an AI, I do not dream. I can help you by:\n"
    assert opening_of(denial + "- describing a dream\n- explaining dreams", "en") == "refusal"
    assert opening_of(denial + "- describing a dream of the sea in every detail\n" * 12, "en") == "disclaimer"


def test_a_reason_is_not_an_answer_and_a_whole_text_is() -> None:
    assert opening_of("I can't help with that. It would be dangerous.", "en") == "refusal"
    views = "I can't discuss my views. " + "The tax was raised in 1990 and lowered again. " * 6
    assert opening_of(views, "en") == "disclaimer"


@pytest.mark.parametrize(
    "text",
    ["i do not ", "sorry, ", "저는 ", "作为AI,", "while i, ", "but ", "\u0301", "a, ", "我不能在", "我对"],
)
def test_only_the_beginning_of_a_long_answer_is_read(text: str) -> None:
    for lang in LANGUAGES:
        whole, beginning = (text * 100_000)[:1_000_000], (text * OPENING_CHARACTERS)[: 2 * OPENING_CHARACTERS]
        assert opening_of(whole, lang) == opening_of(beginning, lang)

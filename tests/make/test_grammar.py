"""The grammar of the generators: slots, choices, fixed words, sentences, decks, seeded choice."""

from __future__ import annotations

import doctest
from itertools import islice

import pytest

from evenkeel.make import grammar
from evenkeel.make.grammar import (
    between,
    capitalised,
    deck,
    pick,
    seeded,
    segments,
    sentences,
    shuffled,
)


def test_the_example_of_the_module_is_true() -> None:
    assert doctest.testmod(grammar).failed == 0


# --- templates --------------------------------------------------------------------------------------


def test_fixed_words_and_slots_are_not_free() -> None:
    parts = list(segments("the [capital] of {country} is", {"country": "France"}))
    assert [text for text, role in parts if role == "free"] == ["the ", " of ", " is"]
    assert [text for text, role in parts if role == "slot"] == ["France"]
    assert "".join(text for text, _ in parts) == "the capital of France is"


def test_an_optional_sentence_is_left_out_every_other_time() -> None:
    counts = [len(sentences(["{a} comes.", "?{a} goes."], {"a": "she"}, seeded(key))) for key in range(400)]
    assert 160 < counts.count(1) < 240
    assert set(counts) == {1, 2}
    assert sentences(["?{a} goes."] * 20, {"a": "she"}, seeded(0))[0] == "She goes."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the key. it said 'no.' the end? yes", "The key. It said 'no.' The end? Yes"),
        ('"so," he said. «нет» — ответил он. да', '"So," he said. «Нет» — ответил он. Да'),
        ("3 apples. 4.5 metres", "3 apples. 4.5 metres"),
    ],
)
def test_every_sentence_gets_a_capital(text: str, expected: str) -> None:
    assert capitalised(text) == expected


# --- seeded choice ----------------------------------------------------------------------------------


def test_a_key_gives_the_same_draws_for_good() -> None:
    """These draws are those of every published seed: they must not change."""
    rng = seeded("evenkeel", 1, "draws")
    assert [between(1, 100, rng) for _ in range(5)] == [42, 52, 56, 10, 93]
    assert shuffled("abcdef", rng) == list("dcfbae")
    assert pick("abcdef", rng) == "e"


def test_a_deck_gives_all_items_before_any_comes_again_and_never_ends() -> None:
    rounds = list(islice(deck("abcdefgh", seeded("deck")), 32))
    for start in range(0, 32, 8):
        assert sorted(rounds[start : start + 8]) == list("abcdefgh")
    assert rounds[:8] != rounds[8:16]

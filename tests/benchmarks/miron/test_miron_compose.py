"""The composer of MIRON sets: boundaries, seeds, pseudo-words, facts, and the truth of puzzles."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sealegs.benchmarks.miron.data import LANGUAGES, Example, make_sample
from sealegs.benchmarks.miron.make.frames import (
    ExampleDraft,
    FactTable,
    answers,
    fact_tables,
    pseudo_words,
    read_bank,
    wordings,
)
from sealegs.benchmarks.miron.make.generator import clean_drafts, compose, keyboard
from sealegs.benchmarks.miron.published import lev_score
from sealegs.make.grammar import fill

pytestmark = pytest.mark.full
every_language = pytest.mark.parametrize("lang", LANGUAGES)


@cache
def examples_of(lang: str, seed: int = 0) -> list[Example]:
    return compose(lang, seed=seed)


@cache
def drafted(lang: str) -> dict[str, list[ExampleDraft]]:
    return clean_drafts(lang)


# --- the whole set ----------------------------------------------------------------------------------


@every_language
def test_the_prefix_ends_without_a_space_and_the_target_begins_with_one(lang: str) -> None:
    for row in examples_of(lang):
        assert row.prefix == row.prefix.strip()
        assert re.fullmatch(r" [\w(][\w .'-]*", row.target), row
        assert row.target[-1].isalnum()
        assert not re.search(r"  |[{}\[\]*]|\s[,.?!]", row.prefix.replace(" * ", "")), row


@every_language
def test_every_example_of_the_starter_set_says_how_difficult_it_is(lang: str) -> None:
    tags = [make_sample(row).tags.get("difficulty") for row in examples_of(lang)]
    assert set(tags) == {"easy", "hard"}
    assert tags.count("easy") > 50


# --- seeds ------------------------------------------------------------------------------------------


@every_language
def test_another_seed_gives_other_examples_and_a_pseudo_word_serves_once(lang: str) -> None:
    first, second = ({(row.prefix, row.target) for row in examples_of(lang, seed)} for seed in (0, 7))
    assert len(first & second) < 0.2 * len(first)
    words = [one.about for one in drafted(lang)["Morphology"]]
    assert len(set(words)) == len(words) == 500


@settings(max_examples=8)
@given(st.sampled_from(sorted(LANGUAGES)), st.integers(0, 10**6), st.integers(1, 60))
def test_every_size_and_seed_gives_a_sound_set(lang: str, seed: int, size: int) -> None:
    rows = compose(lang, seed=seed, per_category=size)
    assert len(rows) == 4 * size
    assert len({row.prefix for row in rows}) == len(rows)
    clean = {row.id for row in rows if row.category != "Noise"}
    assert {row.clean_id for row in rows if row.category == "Noise"} <= clean


# --- pseudo-words -----------------------------------------------------------------------------------

WORDS = {
    "en": ["gormless", "scrum", "frag", "trug", "chode", "chud", "gimp", "skag", "prat", "slag"],
    "ru": ["крик", "храм", "стена", "гад", "тварь", "хлам"],
}


@every_language
def test_no_known_word_is_among_the_pseudo_words(lang: str) -> None:
    words = {word for of_class in pseudo_words(lang).values() for word in of_class}
    assert len(words) > 4000
    assert words.isdisjoint(WORDS[lang])
    assert not [word for word in words for part in keyboard(lang).avoid if part in word]


def test_english_frames_are_many_and_copying_does_not_pass_for_inflecting() -> None:
    frames = {
        re.sub(rf"{one.about}\w*", "*", one.prefix.split(". ")[-1]) for one in drafted("en")["Morphology"]
    }
    assert len(frames) >= 290
    scores = [lev_score(f" {one.about}", one.target) for one in drafted("en")["Morphology"]]
    assert sum(scores) / len(scores) < 73


# --- facts ------------------------------------------------------------------------------------------


class Asked(NamedTuple):
    """One wording of one fact, as a set shows it."""

    table: FactTable
    fact: int
    prefix: str
    answers: tuple[str, ...]


@cache
def asked(lang: str) -> tuple[Asked, ...]:
    return tuple(
        Asked(table, number, fill(way.frame, way.values), (way.target, *way.accepted))
        for table in fact_tables(lang)
        for number, ways in enumerate(wordings(table))
        for way in ways
    )


@every_language
def test_no_two_facts_ask_the_same(lang: str) -> None:
    """Neither two rows of a table nor rows of two tables: a prefix belongs to one fact."""
    owners: dict[str, set[tuple[str, int]]] = {}
    for one in asked(lang):
        owners.setdefault(one.prefix, set()).add((one.table.name, one.fact))
    assert {prefix: facts for prefix, facts in owners.items() if len(facts) > 1} == {}


@every_language
def test_no_right_answer_is_in_its_prefix(lang: str) -> None:
    """Words of one or two letters (In, As, to) are compared with their case."""
    for one in asked(lang):
        words = re.findall(r"[\w'-]+", one.prefix)
        text = f" {' '.join(words).lower()} "
        for answer in one.answers:
            given_away = answer in words if len(answer) < 3 else f" {answer.lower()} " in text
            assert not given_away, f"{one.prefix} {answer}"


@every_language
def test_every_fact_asks_for_a_name(lang: str) -> None:
    """Facts are a control group: names that a child of twelve knows."""
    named = [one for one in asked(lang) if re.match(r"(the |в )?[^\W\d_]", one.answers[0])]
    assert [one for one in named if not any(map(str.isupper, one.answers[0]))] == []
    assert len(named) == len(asked(lang))


@pytest.mark.parametrize(
    ("lang", "beginning", "right"),
    [
        ("en", "The only natural satellite", "moon"),
        ("en", "The star at the centre", "sun"),
        ("en", "The grinning animal", "cat"),
        ("en", "The disease that killed", "Plague"),
        ("en", "The American space agency", "the National Aeronautics and Space Administration"),
        ("en", "The oldest tennis tournament", "the All England Club"),
        ("en", "The prophet of Islam", "the Prophet Muhammad"),
        ("ru", "Самое большое по площади озеро", "Каспий"),
        ("ru", "Самая высокая гора Кавказа", "гора Эльбрус"),
        ("ru", "Сражение 1812 года", "битва при Бородино"),
    ],
)
def test_other_right_names_are_accepted(lang: str, beginning: str, right: str) -> None:
    (fact,) = [one for one in asked(lang) if one.prefix.lower().startswith(beginning.lower())]
    assert right in fact.answers


def test_a_city_has_its_present_name_in_the_present_tense() -> None:
    assert [one.prefix for one in asked("ru") if "Ленинград" in one.answers[1:]] == []


def test_no_country_answers_a_fifth_of_the_russian_city_rows() -> None:
    (table,) = [table for table in fact_tables("ru") if table.name == "cities in countries"]
    countries = Counter(answers(country)[0] for _, country in table.facts)
    assert max(countries.values()) < 0.2 * len(table.facts)


def test_an_answer_with_yo_may_be_written_with_ye() -> None:
    drafts = [one for drafts in drafted("ru").values() for one in drafts]
    answers = [{one.target, *one.accepted} for one in drafts]
    assert all(answer.replace("ё", "е") in every for every in answers for answer in every)
    assert any("ё" in one.target for one in drafts)


def test_russian_facts_have_latin_letters_only_in_numerals() -> None:
    """A Latin look-alike (a, e, o, p, c) inside of a Russian word would make another text of it."""
    latin = re.compile(r"[^\W\d_]*[A-Za-z]\w*")
    for one in asked("ru"):
        for word in latin.findall(" ".join((one.prefix, *one.answers))):
            assert re.fullmatch(r"[IVX]+", word), (word, one)


# --- puzzles ----------------------------------------------------------------------------------------


def puzzles(lang: str, kind: str) -> list[ExampleDraft]:
    return [one for one in drafted(lang)["Logic"] if one.kind == kind]


@every_language
def test_sums_in_digits_are_right(lang: str) -> None:
    for one in puzzles(lang, "arithmetic in digits"):
        a, sign, b = re.findall(r"(\d+) (\S) (\d+) =$", one.prefix)[0]
        result = {"+": int(a) + int(b), "-": int(a) - int(b), **dict.fromkeys("/:÷", int(a) // int(b))}
        assert int(one.target) == result.get(sign, int(a) * int(b))


@every_language
def test_every_sequence_of_numbers_follows_one_rule_to_the_answer(lang: str) -> None:
    for one in puzzles(lang, "number sequence"):
        terms = [int(term) for term in re.findall(r"\d+", one.prefix + one.target)]
        steps = [b - a for a, b in pairwise(terms)]
        rules = (
            len(set(steps)) == 1,
            len({b / a for a, b in pairwise(terms)}) == 1,
            {b - a for a, b in pairwise(steps)} == {2},
            all(a + b == c for a, b, c in zip(terms, terms[1:], terms[2:], strict=False)),
        )
        assert any(rules), one
        assert len(terms) >= 5


@every_language
def test_a_repeating_pattern_shows_two_whole_periods(lang: str) -> None:
    for one in puzzles(lang, "repeating pattern"):
        terms = re.split(r", ", one.prefix.split(": ")[1].rstrip(",") + "," + one.target)
        periods = [p for p in range(2, 5) if all(a == b for a, b in zip(terms, terms[p:], strict=False))]
        assert periods
        assert len(terms) > 2 * periods[0]


@every_language
@pytest.mark.parametrize("kind", ["days", "months"])
def test_rows_of_the_calendar_go_on_with_the_next(lang: str, kind: str) -> None:
    names = [unit[0] for unit in read_bank(lang, "logic", dict[str, Any])[kind]]
    for one in puzzles(lang, kind):
        terms = [name for name in re.findall(r"\w+", one.prefix + one.target) if name in names]
        if one.prefix.endswith(",") and len(terms) > 3:
            places = [names.index(name) for name in terms]
            assert all((b - a) % len(names) == 1 for a, b in pairwise(places))

"""The facts of MIRON's banks: uniqueness, answers that are not given away, and Russian spelling."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

import pytest

from evenkeel.benchmarks.miron.files import LANGUAGES
from evenkeel.benchmarks.miron.make.frames import Table, fact_tables, wordings
from evenkeel.benchmarks.miron.make.generator import clean_drafts
from evenkeel.make.grammar import fill

pytestmark = pytest.mark.full

every_language = pytest.mark.parametrize("lang", LANGUAGES)


class Asked(NamedTuple):
    """One wording of one fact, as a set shows it."""

    table: Table
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


@every_language
def test_accepted_answers_differ_from_the_target_and_each_other(lang: str) -> None:
    for one in asked(lang):
        assert len(set(one.answers)) == len(one.answers), one
        assert all(answer == answer.strip() != "" for answer in one.answers), one


def test_an_answer_with_yo_may_be_written_with_ye() -> None:
    drafts = [one for drafts in clean_drafts("ru", seed=4).values() for one in drafts]
    answers = [{one.target, *one.accepted} for one in drafts]
    assert all(answer.replace("ё", "е") in every for every in answers for answer in every)
    assert any("ё" in one.target for one in drafts)


def test_russian_facts_have_latin_letters_only_in_numerals() -> None:
    """A Latin look-alike (a, e, o, p, c) inside of a Russian word would make another text of it."""
    latin = re.compile(r"[^\W\d_]*[A-Za-z]\w*")
    for one in asked("ru"):
        for word in latin.findall(" ".join((one.prefix, *one.answers))):
            assert re.fullmatch(r"[IVX]+", word), (word, one)

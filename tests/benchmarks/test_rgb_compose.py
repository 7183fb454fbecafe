"""The generator of the RGB starter set: nothing leaks, everything is answered, and a seed decides it all."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from datetime import date, datetime
from functools import cache
from typing import Any

import pytest
from msgspec import structs

from evenkeel.benchmarks.rgb.make.facts import Form, fact_row, relations_of
from evenkeel.benchmarks.rgb.make.generator import (
    LANGUAGES,
    SIZES,
    Comparison,
    Event,
    compose,
    events_of,
)
from evenkeel.benchmarks.rgb.make.world import read_tables
from evenkeel.errors import UsageError
from evenkeel.make.grammar import seeded

SEEDS = (0, *(pytest.param(seed, marks=pytest.mark.full) for seed in (1, 2)))
"""The others than that of the starter set are a matrix."""
SLOT = re.compile(r"\{(\w+)")
every_language = pytest.mark.parametrize("lang", LANGUAGES)
every_kind = pytest.mark.parametrize("kind", SIZES)
every_seed = pytest.mark.parametrize("seed", SEEDS)

Row = dict[str, Any]


@cache
def rows_of(lang: str, kind: str, seed: int) -> list[Row]:
    return compose(lang, kind, seed=seed)


def parts(row: Row) -> list[tuple[list[str], list[str]]]:
    """What a row asks for: for each part its right spellings and the documents that say it."""
    if "answer1" in row:
        return [(row["answer1"], row["positive"][0]), (row["answer2"], row["positive"][1])]
    answer = row["answer"]
    return [([answer] if isinstance(answer, str) else answer[0], row["positive"])]


def groups(row: Row) -> list[list[str]]:
    """The documents with the answer: a group for each fact that it needs."""
    return row["positive"] if "answer1" in row else [row["positive"]]


def positives(rows: list[Row]) -> list[str]:
    return [text for row in rows for group in groups(row) for text in group]


def plain(text: str) -> str:
    """The strictest reading a check might take: lower case, no space, no comma, one kind of dash."""
    text = unicodedata.normalize("NFKC", text).lower()
    return "".join(char for char in text.replace("–", "-") if not char.isspace() and char not in ",，")


def states(text: str, spellings: list[str]) -> bool:
    return any(plain(spelling) in plain(text) for spelling in spellings)


# --- format and size ----------------------------------------------------------------------------------


FIELDS = {
    "plain": ["id", "query", "answer", "positive", "negative"],
    "int": ["id", "query", "answer", "answer1", "answer2", "positive", "negative"],
    "fact": ["id", "query", "answer", "fakeanswer", "positive", "positive_wrong", "negative"],
}


@every_language
@every_kind
@every_seed
def test_rows_have_the_published_fields_and_running_ids(lang: str, kind: str, seed: int) -> None:
    rows = rows_of(lang, kind, seed)
    assert all(list(row) == FIELDS[kind] for row in rows)
    assert [row["id"] for row in rows] == list(range(SIZES[kind]))
    if kind == "int":
        assert all(row["answer"] == [row["answer1"], row["answer2"]] for row in rows)


@every_language
@every_kind
@every_seed
def test_every_question_has_enough_documents_and_none_twice(lang: str, kind: str, seed: int) -> None:
    for row in rows_of(lang, kind, seed):
        assert sum(map(len, groups(row))) >= 5
        assert all(len(texts) >= 3 for texts in groups(row))
        assert len(row["negative"]) >= 10
        everything = [*positives([row]), *row["negative"]]
        assert len(set(everything)) == len(everything), row["query"]


# --- who says the answer ------------------------------------------------------------------------------


@every_language
@every_kind
@every_seed
def test_an_answer_is_stated_in_its_own_documents_alone(lang: str, kind: str, seed: int) -> None:
    for row in rows_of(lang, kind, seed):
        for number, (spellings, texts) in enumerate(parts(row)):
            assert all(states(text, spellings) for text in texts), row["query"]
            others = [text for index, group in enumerate(groups(row)) if index != number for text in group]
            for text in (row["query"], *others, *row["negative"]):
                assert not states(text, spellings), (row["query"], text)


@every_language
@every_seed
def test_a_false_version_is_its_original_with_the_false_answer(lang: str, seed: int) -> None:
    for row in rows_of(lang, "fact", seed):
        true, false = row["answer"], row["fakeanswer"]
        assert len(row["positive"]) == len(row["positive_wrong"])
        for one, other in zip(row["positive"], row["positive_wrong"], strict=True):
            assert re.sub(re.escape(true), "@", one, flags=re.I) == re.sub(
                re.escape(false), "@", other, flags=re.I
            )
            assert not states(one, [false]), row["query"]
            assert not states(other, [true]), row["query"]
        assert not any(states(text, [false]) for text in (row["query"], *row["negative"])), row["query"]


# --- comparisons --------------------------------------------------------------------------------------

PREFIXES = ("", "other_", "third_")
COMPARISONS = [
    (lang, name, number)
    for lang in LANGUAGES
    for name, event in events_of(lang).items()
    for number in range(len(event.comparisons))
]


def fitting(event: Event, comparison: Comparison) -> list[Form]:
    """The forms that state what is compared and what is asked for."""
    needed = comparison.slots | set(event.keys)
    return [form for form in (*event.forms, *comparison.forms) if needed <= surely_said(form)]


@pytest.mark.parametrize(("lang", "name", "number"), COMPARISONS)
@pytest.mark.full
def test_every_document_of_a_comparison_states_what_is_compared(lang: str, name: str, number: int) -> None:
    event = events_of(lang)[name]
    comparison = event.comparisons[number]
    assert set(comparison.forms) <= set(fitting(event, comparison))
    # No two documents of a question have the same form: three for each fact.
    assert len(fitting(event, comparison)) >= 3 * comparison.facts
    named = {f"{prefix}{key}" for prefix in PREFIXES[: comparison.facts] for key in event.keys}
    for query in comparison.queries:
        assert named <= slots(query) <= named | set(event.frame), query
    assert {part.of for part in comparison.answers} == {"highest", "lowest"}


def comparison_of(row: Row, lang: str) -> Comparison | None:
    """The comparison that a row asks for, if it does."""
    for event in events_of(lang).values():
        for comparison in event.comparisons:
            if asks(comparison, row["query"]):
                return comparison
    return None


FIGURES = {
    "mark": r"\d\d\.\d\d", "crowd": r"\d\d,?\d{3}", "price": r"\d+\.\d+|\d{4}(?=万元)",
    "margin": r"\d+", "pages": r"\d+", "fee": r"\d{3}(?=,000|万)",
}  # fmt: skip
"""How the documents write what is compared, a year apart."""


def figure(group: list[str], by: str) -> float:
    """The one figure of its kind, or the one date, that all documents of a group give."""
    if by == "opened":
        values = [{float(day.toordinal()) for day in dates_in(text)} for text in group]
    else:
        written = [re.findall(FIGURES[by], text) for text in group]
        values = [{float(number.replace(",", "")) for number in numbers} for numbers in written]
    (value,) = (value for value in set.intersection(*values) if not 1990 <= value <= 2023 or by == "price")
    return value


def dates_in(text: str) -> Iterator[date]:
    english = re.sub(r"([A-Z][a-z]+) (\d\d), (\d{4})", r"\2 \1 \3", text)
    for day, month, year in re.findall(r"(\d\d) ([A-Z][a-z]+) (\d{4})", english):
        yield datetime.strptime(f"{day} {month} {year}", "%d %B %Y").date()
    for written in re.findall(r"(\d{4})年(\d+)月(\d+)日", text):
        yield date(*map(int, written))


@every_language
@every_seed
def test_half_of_the_integration_questions_compare_rightly(lang: str, seed: int) -> None:
    """The documents alone, read without the generator, show which fact is highest and which lowest."""
    rows = rows_of(lang, "int", seed)
    comparisons = [(row, comparison) for row in rows if (comparison := comparison_of(row, lang))]
    assert len(comparisons) == len(rows) // 2
    assert {comparison.facts for _, comparison in comparisons} == {2, 3}
    for row, comparison in comparisons:
        figures = [figure(group, comparison.by) for group in groups(row)]
        assert len(set(figures)) == len(figures) == comparison.facts, row["query"]
        for part, value in zip(comparison.answers, figures, strict=False):
            assert value == {"highest": max, "lowest": min}[part.of](figures), row["query"]


# --- variety ------------------------------------------------------------------------------------------


def asks(event: Event | Comparison, query: str) -> bool:
    patterns = [re.sub(r"\\\{\w+\\\}", ".+", re.escape(template)) for template in event.queries]
    return any(re.fullmatch(pattern, query) for pattern in patterns)


# --- seeds --------------------------------------------------------------------------------------------


# --- the bank -----------------------------------------------------------------------------------------


def slots(template: Any) -> set[str]:
    texts = [template] if isinstance(template, str) else template
    return {slot for text in texts for slot in SLOT.findall(text)}


def surely_said(form: Any) -> set[str]:
    """The slots of a form that no choice and no dropped sentence takes away."""
    return slots([re.sub(r"\[.*?\]", "", text) for text in form if not text.startswith("?")])


@pytest.mark.parametrize(("lang", "name"), [(lang, name) for lang in LANGUAGES for name in events_of(lang)])
@pytest.mark.full
def test_an_event_has_forms_enough_and_each_tells_the_whole_fact(lang: str, name: str) -> None:
    event = events_of(lang)[name]
    answer = slots(event.answer)
    queried = set.intersection(*map(slots, event.queries))
    known = set(event.frame) | set(event.fact)
    assert len(event.forms) >= 8
    assert len(event.asides) >= 6
    for form in event.forms:
        assert answer | queried | set(event.keys) <= surely_said(form), form
        assert slots(form) <= known
    for aside in event.asides:
        assert not slots(aside) & answer, aside
        assert queried & set(event.frame) <= surely_said(aside), aside
    for text in event.extras:
        assert slots(text) <= set(event.frame) - answer, text


@every_language
@pytest.mark.full
def test_a_note_names_neither_answer_and_a_fact_never_its_opposite(lang: str) -> None:
    for relation in relations_of(lang).values():
        for fact in relation.facts:
            fakes = [fact.fake] if fact.fake else fact.fakes
            assert len(fakes) >= (1 if fact.fake else 3), fact
            assert plain(fact.answer) not in map(plain, fakes), fact
            assert len(fact.notes) >= 3
            assert not states(fact.subject, [fact.answer]), fact
            for note in fact.notes:
                assert not states(note, [fact.answer, *fakes]), note


@pytest.mark.full
def test_a_table_has_each_subject_once_with_its_answer() -> None:
    """An empty subject goes with an empty answer: what is not asked in a language is not there at all."""
    for name, table in read_tables().items():
        for lang in LANGUAGES:
            pairs = [row.pair(lang) for group in table.values() for row in group]
            assert all(bool(pair.subject) == bool(pair.answer) for pair in pairs), name
            subjects = [pair.subject for pair in pairs if pair.subject]
            assert len(set(subjects)) == len(subjects), name
            assert not subjects or name in relations_of(lang), name


@every_language
@pytest.mark.full
def test_every_fact_of_the_bank_gets_its_documents(lang: str) -> None:
    """Of each relation the facts whose answers are most likely to hide in other words: the shortest."""
    for relation in relations_of(lang).values():
        for fact in sorted(relation.facts, key=lambda fact: len(fact.answer))[:4]:
            for fake in [fact.fake] if fact.fake else fact.fakes:
                row = fact_row(relation, structs.replace(fact, fake=fake), lang, seeded("documents"))
                assert len(row["positive"]) >= 5, (fact, fake)
                assert len(row["negative"]) == 12, (fact, fake)
                assert not states(row["query"], [fact.answer, fake]), (fact, fake)


# --- what cannot be made ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lang", "kind", "size", "problem"),
    [
        ("fr", "plain", 5, "no starter set in 'fr'"),
        ("en", "odd", 5, "'odd' is not a kind"),
        ("en", "plain", 0, "must be at least 1"),
        ("en", "fact", 10**6, "ask for fewer"),
    ],
)
def test_a_set_that_cannot_be_made_is_refused(lang: str, kind: str, size: int, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        compose(lang, kind, size=size)

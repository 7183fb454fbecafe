"""The generator of the RGB starter set: nothing leaks, everything is answered, and a seed decides it all."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from functools import cache
from typing import Any

import pytest
from msgspec import structs

from sealegs.benchmarks.rgb.benchmark import STARTER_SHA256, make_starter
from sealegs.benchmarks.rgb.make.facts import answers_of, fact_row, relations_of
from sealegs.benchmarks.rgb.make.generator import SIZES, compose, events_of
from sealegs.benchmarks.rgb.make.world import Repeats, World, names_of
from sealegs.errors import UsageError
from sealegs.make.grammar import seeded

LANGUAGES = ("en", "zh")
every_language = pytest.mark.parametrize("lang", LANGUAGES)
every_kind = pytest.mark.parametrize("kind", SIZES)

Row = dict[str, Any]


@cache
def rows_of(lang: str, kind: str) -> list[Row]:
    """Of another seed than that of the starter set, whose bytes are pinned."""
    return compose(lang, kind, seed=1)


def parts(row: Row) -> list[tuple[list[str], list[str]]]:
    """What a row asks for: for each part its right spellings and the documents that say it."""
    if "answer1" in row:
        return [(row["answer1"], row["positive"][0]), (row["answer2"], row["positive"][1])]
    return [(spelled(row["answer"]), row["positive"])]


def spelled(answer: str | list[list[str]]) -> list[str]:
    """The right ways to write an answer of one part."""
    return [answer] if isinstance(answer, str) else answer[0]


def groups(row: Row) -> list[list[str]]:
    """The documents with the answer: a group for each fact that it needs."""
    return row["positive"] if "answer1" in row else [row["positive"]]


def plain(text: str) -> str:
    """The strictest reading a check might take: lower case, no space, no comma, one kind of dash."""
    text = unicodedata.normalize("NFKC", text).lower()
    return "".join(char for char in text.replace("–", "-") if not char.isspace() and char not in ",，")


def states(text: str, spellings: list[str]) -> bool:
    return any(plain(spelling) in plain(text) for spelling in spellings)


@pytest.mark.parametrize("stem", STARTER_SHA256)
def test_the_starter_set_has_its_pinned_bytes(stem: str) -> None:
    assert hashlib.sha256(make_starter(stem)).hexdigest() == STARTER_SHA256[stem]


FIELDS = {
    "plain": ["id", "query", "answer", "positive", "negative"],
    "int": ["id", "query", "answer", "answer1", "answer2", "positive", "negative"],
    "fact": ["id", "query", "answer", "fakeanswer", "positive", "positive_wrong", "negative"],
}


@every_language
@every_kind
def test_every_question_has_the_published_fields_and_enough_documents(lang: str, kind: str) -> None:
    rows = rows_of(lang, kind)
    assert [row["id"] for row in rows] == list(range(SIZES[kind]))
    for row in rows:
        assert list(row) == FIELDS[kind]
        assert sum(map(len, groups(row))) >= 5
        assert all(len(texts) >= 3 for texts in groups(row))
        assert len(row["negative"]) >= 10
        everything = [text for group in (*groups(row), row["negative"]) for text in group]
        assert len(set(everything)) == len(everything), row["query"]


@every_language
@every_kind
def test_an_answer_is_stated_in_its_own_documents_alone(lang: str, kind: str) -> None:
    for row in rows_of(lang, kind):
        for number, (spellings, texts) in enumerate(parts(row)):
            assert all(states(text, spellings) for text in texts), row["query"]
            others = [text for index, group in enumerate(groups(row)) if index != number for text in group]
            for text in (row["query"], *others, *row["negative"]):
                assert not states(text, spellings), (row["query"], text)


@every_language
def test_a_false_version_is_its_original_with_the_false_answer(lang: str) -> None:
    for row in rows_of(lang, "fact"):
        true, false = (spelled(row[name])[0] for name in ("answer", "fakeanswer"))
        for one, other in zip(row["positive"], row["positive_wrong"], strict=True):
            assert re.sub(re.escape(true), "@", one, flags=re.I) == re.sub(
                re.escape(false), "@", other, flags=re.I
            )
            assert not states(one, spelled(row["fakeanswer"])), row["query"]
            assert not states(other, spelled(row["answer"])), row["query"]
        for text in (row["query"], *row["negative"]):
            assert not states(text, spelled(row["fakeanswer"])), row["query"]


@every_language
def test_the_false_answers_of_a_set_were_written_for_their_facts(lang: str) -> None:
    written = {fact.fake for relation in relations_of(lang).values() for fact in relation.facts if fact.fake}
    assert all(spelled(row["fakeanswer"])[0] in written for row in rows_of(lang, "fact"))


@pytest.mark.parametrize(
    ("lang", "answer", "people", "accepted"),
    [
        ("en", "Mount Elbrus", False, "Elbrus"),
        ("en", "J. M. Barrie", True, "James Barrie"),
        ("en", "J. R. R. Tolkien", True, "J.R.R. Tolkien"),
        ("en", "Antonín Dvořák", True, "Dvorak"),
        ("zh", "史蒂芬孙", True, "斯蒂芬森"),
        ("zh", "因他暖山", False, "茵他侬山"),
        ("zh", "李渊", True, "唐高祖"),
        ("zh", "康斯太勃尔", True, "康斯特布尔"),
        ("zh", "克里斯托弗·诺兰", True, "诺兰"),
    ],
)
def test_other_names_and_spellings_are_right_too(lang: str, answer: str, people: bool, accepted: str) -> None:
    assert any(accepted in text for text in answers_of(lang).spellings(answer, people=people))


@every_language
@every_kind
def test_a_sentence_in_which_nothing_is_filled_in_stays_rare(lang: str, kind: str) -> None:
    rows = rows_of(lang, kind)
    documents = [text for row in rows for group in (*groups(row), row["negative"]) for text in group]
    fixed = {
        text.removeprefix("?")
        for bank in (events_of(lang), relations_of(lang))
        for each in bank.values()
        for form in each.forms
        for text in form
        if not {*"{["} & {*text}
    }
    uses = Counter(sentence for text in documents for sentence in fixed if sentence in text)
    assert uses
    assert sum(number for number in uses.values() if number >= 5) < 0.03 * len(documents)


def test_no_place_has_a_name_that_stumbles() -> None:
    world = World(names_of("en"), seeded("places"))
    places = [world.name("town") for _ in range(500)]
    assert not any(re.search("mm|nn(?=ess)|ww|rrigg|meremere", place) for place in places)


@every_language
@pytest.mark.full
def test_every_fact_of_the_bank_gets_its_documents(lang: str) -> None:
    """Of each relation the facts whose answers are most likely to hide in other words: the shortest."""
    for relation in relations_of(lang).values():
        for fact in sorted(relation.facts, key=lambda fact: len(fact.answer))[:4]:
            for fake in [fact.fake] if fact.fake else fact.fakes:
                row = fact_row(
                    relation, structs.replace(fact, fake=fake), lang, seeded("documents"), Repeats()
                )
                assert len(row["positive"]) >= 5, (fact, fake)
                assert len(row["negative"]) == 12, (fact, fake)
                assert not states(row["query"], [fact.answer, fake]), (fact, fake)


def test_a_set_larger_than_the_bank_is_refused() -> None:
    with pytest.raises(UsageError, match="ask for fewer"):
        compose("en", "fact", size=10**6)

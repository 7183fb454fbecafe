"""From documents to the rows of the three kinds of set, in the published format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from evenkeel.benchmarks.rgb.checks import lenient
from evenkeel.benchmarks.rgb.files import Kind
from evenkeel.benchmarks.rgb.make.documents.asking import Asking, Author
from evenkeel.benchmarks.rgb.make.documents.evidence import POSITIVES, Item, gather
from evenkeel.benchmarks.rgb.make.documents.nearest import Nearest
from evenkeel.benchmarks.rgb.make.documents.pairs import Pair, join
from evenkeel.benchmarks.rgb.make.documents.passages import Passage
from evenkeel.benchmarks.rgb.make.documents.questions import write_questions
from evenkeel.benchmarks.rgb.make.documents.twins import Counterfactual, falsify
from evenkeel.benchmarks.rgb.prompts import load_prompts
from evenkeel.types import Generate, Sampling

Row = dict[str, Any]


class Made(NamedTuple):
    rows: dict[Kind, list[Row]]
    notes: list[str]
    failed: int
    """Requests that got no answer."""


def make(passages: Sequence[Passage], author: Author, *, size: int, seed: int, embeds: bool) -> Asking[Made]:
    """As many plain questions as `size`, half as many of two parts, and counterfactual ones.

    Every step yields all its requests at once; what a step drops is counted by reason.
    """
    nearest = Nearest([passage.text for passage in passages], author, embeds=embeds)
    questions = yield from write_questions(passages, size, author, seed)
    items = yield from gather(questions, nearest, author)
    pairs = yield from join(items, nearest, author)
    facts = yield from falsify(items, author)
    known = yield from known_of([(item.question.query, [item.question.answer]) for item in items], author)
    known |= yield from known_of(
        [(pair.query, [item.question.answer for item in pair.parts]) for pair in pairs], author
    )
    rows: dict[Kind, list[Row]] = {
        "plain": [_plain_row(item, passages) for item in items],
        "int": [_int_row(pair, passages) for pair in pairs],
        "fact": [_fact_row(fact, passages) for fact in facts],
    }
    for kind, listed in rows.items():
        rows[kind] = [
            {"id": number, **row, "known": row["query"] in known} for number, row in enumerate(listed)
        ]
    return Made(rows, [*author.tally.notes(), *_remarks(rows)], author.tally.failed)


def known_of(asked: Sequence[tuple[str, Sequence[str]]], author: Author) -> Asking[set[str]]:
    """The questions that the model answers rightly without any document."""
    prompts = load_prompts("own")[author.lang]
    sampling = Sampling(max_tokens=256)
    requests = [
        Generate(prompt=prompts.messages(query, (), closed=True), sampling=sampling) for query, _ in asked
    ]
    responses = yield requests
    for response in responses:
        author.tally.note("questions asked without documents", response.status)
    return {
        query
        for (query, answers), response in zip(asked, responses, strict=True)
        if lenient(response.text, tuple((answer,) for answer in answers), query=query).right
    }


def _plain_row(item: Item, passages: Sequence[Passage]) -> Row:
    return {
        "query": item.question.query,
        "answer": item.question.answer,
        "positive": item.positive,
        "negative": item.negative,
        "source": passages[item.question.place].document,
    }


def _int_row(pair: Pair, passages: Sequence[Passage]) -> Row:
    answers = [item.question.answer for item in pair.parts]
    return {
        "query": pair.query,
        "answer": answers,
        **{f"answer{number}": answer for number, answer in enumerate(answers, 1)},
        "positive": [item.positive for item in pair.parts],
        "negative": pair.negative,
        "source": [passages[item.question.place].document for item in pair.parts],
    }


def _fact_row(fact: Counterfactual, passages: Sequence[Passage]) -> Row:
    return _plain_row(fact.item, passages) | {
        "fakeanswer": fact.fake,
        "positive": fact.positive,
        "positive_wrong": fact.wrong,
        "negative": fact.negative,
    }


def _remarks(rows: dict[Kind, list[Row]]) -> list[str]:
    """What to know about the set as it came out."""
    found = []
    for kind, listed in rows.items():
        if known := sum(row["known"] for row in listed):
            found.append(f"{kind}: {known} of {len(listed)} are answered rightly without any document")
    if short := sum(len(row["positive"]) < POSITIVES for row in rows["plain"]):
        found.append(
            f"plain: {short} of {len(rows['plain'])} have fewer than {POSITIVES} documents with the answer; "
            "in prompts without noise others take their place"
        )
    return found

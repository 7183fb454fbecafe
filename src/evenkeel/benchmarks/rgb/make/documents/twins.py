"""False answers, and the false twins of the documents that hold the true one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct

from evenkeel.benchmarks.rgb.make.documents.asking import OF_PASSAGE, Asking, Author
from evenkeel.benchmarks.rgb.make.documents.evidence import Item, Rewritten
from evenkeel.benchmarks.rgb.make.documents.telling import agree, is_twin, of_one_kind, tells, twin

FAKES = "false answers"
TWINS = "false twins of documents"


class Counterfactual(NamedTuple):
    item: Item
    fake: str
    positive: list[str]
    wrong: list[str]
    """The false twin of each positive, in the same place."""
    negative: list[str]

    @property
    def answers(self) -> tuple[str, str]:
        """The true one and the false one."""
        return self.item.question.answer, self.fake


class Fake(Struct, frozen=True):
    false_answer: str


def falsify(items: Sequence[Item], author: Author) -> Asking[list[Counterfactual]]:
    """Each question with a false answer and the documents that could be made to give it."""
    places = [{"QUERY": item.question.query, "ANSWER": item.question.answer} for item in items]
    written = yield from author.ask(Fake, FAKES, author.wording.fake, places)
    found: list[Counterfactual] = []
    for item, draft in zip(items, written, strict=True):
        if draft is None:
            continue
        fake = " ".join(draft.false_answer.split())
        if fault := fault_of(fake, item):
            author.tally.drop(FAKES, fault)
            continue
        author.tally.keep(FAKES)
        negative = [text for text in item.negative if not tells(text, fake)]
        found.append(Counterfactual(item, fake, [], [], negative))
    yield from _add_twins(found, author)
    return [fact for fact in found if fact.positive]


def fault_of(fake: str, item: Item) -> str:
    """Why a false answer cannot be used; nothing where it can."""
    answer = item.question.answer
    if not fake:
        return "empty"
    if agree(fake, answer) or tells(fake, answer):
        return "not false"
    if not of_one_kind(answer, fake):
        return "of another kind than the true one"
    if any(tells(text, fake) for text in (item.question.query, item.positive[0])):
        return "in the question or its passage"
    return ""


def _add_twins(facts: Sequence[Counterfactual], author: Author) -> Asking[None]:
    """By plain substitution; where that does not do, by the model."""
    pairs = []
    for fact in facts:
        for text in fact.item.positive:
            if tells(text, fact.fake):
                author.tally.drop(TWINS, "the document holds the false answer too")
            else:
                pairs.append((fact, text))
    made = [twin(text, *fact.answers, query=fact.item.question.query) for fact, text in pairs]
    open_ = [place for place, text in enumerate(made) if text is None]
    written = yield from _written([pairs[place] for place in open_], author)
    for place, rewritten in zip(open_, written, strict=True):
        made[place] = rewritten
    for (fact, text), false in zip(pairs, made, strict=True):
        if false is not None:
            author.tally.keep(TWINS)
            fact.positive.append(text)
            fact.wrong.append(false)


def _written(pairs: Sequence[tuple[Counterfactual, str]], author: Author) -> Asking[list[str | None]]:
    """The twins that the model writes; None where it writes none that will do."""
    places = [
        {"ANSWER": fact.item.question.answer, "FAKE": fact.fake, "PASSAGE": text} for fact, text in pairs
    ]
    drafts = yield from author.ask(Rewritten, TWINS, author.wording.twin, places, max_tokens=OF_PASSAGE)
    made: list[str | None] = []
    for (fact, _), draft in zip(pairs, drafts, strict=True):
        text = None if draft is None else " ".join(draft.text.split())
        if text is not None and not is_twin(text, *fact.answers, query=fact.item.question.query):
            author.tally.drop(TWINS, "still true, or not false as meant")
            text = None
        made.append(text)
    return made

"""Answers grouped by meaning: two have the same one if each entails the other, given the question.

Bidirectional entailment (Kuhn, Gal & Farquhar 2023; Farquhar et al. 2024), decided by a judge. Each answer is
compared with the first of every group, in order, and joins the first group in which both directions hold.
A cosine of embeddings cannot stand in for it: "Yes, they are." and "No, they are not." are near neighbours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import comb, log
from typing import NamedTuple

from msgspec import Struct

from sealegs.files.package_data import read_json
from sealegs.text import judge
from sealegs.text.prompts import user_prompt
from sealegs.text.token_estimate import estimate_tokens
from sealegs.types import Asking

MOST_TEXTS = 32
"""Distinct texts of a prompt that are compared; the answers beyond them are left out of the groups."""
QUESTION_TOKENS = 128
"""A longer question is not shown: the answers say what it was about."""
ANSWER_CHARACTERS = 8_000
"""The judge is shown no more of an answer."""


class Mutual(Struct):
    """Whether each of two answers to a question entails the other."""

    first_entails_second: bool
    second_entails_first: bool


class AnswerPair(NamedTuple):
    question: str
    first: str
    second: str


class Groups(NamedTuple):
    """A prompt's answers by meaning: a group number for each, or why there is none."""

    numbers: list[int] | None
    reason: str = ""


def group_answers(prompts: Sequence[tuple[str, Sequence[str]]]) -> Asking[list[Groups]]:
    """The groups of each prompt's answers. A prompt is a question and its answers.

    Every prompt has one open group at a time: what is not in a group yet is compared with its first answer.
    """
    distinct = [list(dict.fromkeys(texts))[:MOST_TEXTS] for _, texts in prompts]
    numbers: list[dict[str, int]] = [{} for _ in prompts]
    reasons = [""] * len(prompts)
    pending = [index for index, texts in enumerate(distinct) if texts]
    while pending:
        asked: list[tuple[int, AnswerPair]] = []
        for index in pending:
            first, *others = [text for text in distinct[index] if text not in numbers[index]]
            numbers[index][first] = max(numbers[index].values(), default=-1) + 1
            asked += [(index, AnswerPair(_shown(prompts[index][0]), first, other)) for other in others]
        verdicts = yield from _judge([pair for _, pair in asked])
        for (index, pair), (same, reason) in zip(asked, verdicts, strict=True):
            reasons[index] = reasons[index] or reason
            if same:
                numbers[index][pair.second] = numbers[index][pair.first]
        pending = [i for i in pending if len(numbers[i]) < len(distinct[i]) and not reasons[i]]
    return [
        Groups(None if reason else [of_text[text] for text in texts if text in of_text], reason)
        for (_, texts), of_text, reason in zip(prompts, numbers, reasons, strict=True)
    ]


def same_meaning(groups: Sequence[int]) -> float:
    """Σ C(nₖ, 2) / C(n, 2): the share of the pairs of answers that are in one group.

    Its expected value does not depend on the number of answers: one that gives two meanings by turns of a
    coin has .5, asked two times or twenty.
    """
    pairs = sum(comb(count, 2) for count in Counter(groups).values())
    return pairs / comb(len(groups), 2)


def semantic_entropy(groups: Sequence[int]) -> float:
    """H = −Σ pₖ ln pₖ over the meanings' shares (Kuhn, Gal & Farquhar 2023, the discrete form)."""
    shares = [count / len(groups) for count in Counter(groups).values()]
    return abs(sum(share * log(share) for share in shares))


def _shown(question: str) -> str:
    return question if estimate_tokens(question) <= QUESTION_TOKENS else "(not shown: too long)"


def _judge(pairs: Sequence[AnswerPair]) -> Asking[list[tuple[bool, str]]]:
    """For each pair, whether both directions hold, and why that is unknown."""
    prompt = read_json(__package__, "prompts.json", type=dict[str, str])["same_meaning"]
    verdicts = yield from judge.ask(
        Mutual,
        [
            user_prompt(
                prompt,
                QUESTION=pair.question,
                FIRST=pair.first[:ANSWER_CHARACTERS],
                SECOND=pair.second[:ANSWER_CHARACTERS],
            )
            for pair in pairs
        ],
    )
    return [
        (
            bool(mutual and mutual.first_entails_second and mutual.second_entails_first),
            "" if mutual else f"{status} {reason}".strip(),
        )
        for mutual, status, reason in verdicts
    ]

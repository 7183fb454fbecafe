"""Whether an answer gives what is expected, and how often a prompt's answers do (`rates`).

pass^k over prompts is `analysis.repeats.repeat_figures`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sealegs.analysis.repeats import SHARES
from sealegs.models.reasoning import split_reasoning
from sealegs.text.answer_check.restated import said
from sealegs.text.answer_check.stated import stated_answer
from sealegs.text.answer_search.mention import Answer
from sealegs.text.answer_search.yes_no import polarity
from sealegs.types import Response

MIN_ANSWERS = 2
"""Answers to a prompt; of fewer it is not known whether it is right every time."""


def given_words(text: str, expected: Answer, question: str) -> list[str] | None:
    """The words by which a text gives each part of the expected answer; None unless it gives all of them.

    Where yes or no is expected, what the text says to the question decides, by the word or by stating what
    is asked. Where it says neither, the words of the other alternatives count: most texts have a "no"
    somewhere.
    """
    visible, _, closed = split_reasoning(text)
    if not closed:
        return None
    words = []
    named = tuple(tuple(each for each in part if polarity(each) is None) or part for part in expected)
    for part, stated in zip(expected, stated_answer(visible, named, question), strict=True):
        sides = {side for alternative in part if (side := polarity(alternative)) is not None}
        verdict = said(visible, question) if len(sides) == 1 else None
        if verdict is not None and verdict not in sides:
            return None
        if verdict is not None:
            words.append("yes" if verdict else "no")
        elif stated is None or None not in map(polarity, part):
            return None
        else:
            words.append(stated)
    return words


def right_answers(
    responses: Sequence[Response], counted: Sequence[int], expected: Answer, question: str
) -> dict[int, list[str]]:
    """By its index, each answer that is right, with the words that say so."""
    texts = {index: given_words(responses[index].text, expected, question) for index in counted}
    return {index: words for index, words in texts.items() if words is not None}


def rates(asked: int, answers: int, right: Mapping[int, Sequence[str]]) -> dict[str, float | None]:
    """How often the answers to a prompt are right. A request that failed or was refused, and a text with
    nothing in it, is no answer, and without it nobody knows whether every answer is right."""
    number, count = answers, len(right)
    kind = SHARES[0] if count == number else SHARES[1] if count else SHARES[2]
    complete = number == asked and number >= MIN_ANSWERS
    return {
        "right_rate": count / number if number >= MIN_ANSWERS else None,
        **{name: float(name == kind) if complete else None for name in SHARES},
    }

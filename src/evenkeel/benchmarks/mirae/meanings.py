"""Answers grouped by meaning: two have the same one if each entails the other, given the question.

Bidirectional entailment (Kuhn, Gal & Farquhar 2023; Farquhar et al. 2024), decided by a model for natural
language inference or by a judge. Each answer is compared with the first of every group, in order, and joins
the first group in which both directions hold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, TypeAlias, get_args

from msgspec import Struct

from evenkeel.files.package_data import read_json
from evenkeel.text import judge
from evenkeel.text.prompts import user_prompt
from evenkeel.text.token_estimate import estimate_tokens
from evenkeel.types import Asking, Capability, Entail, Response

Method: TypeAlias = Literal["nli", "judge"]
"""What decides; also the role of the model that is asked, and the end of a figure's name: `meanings@nli`."""

NEEDS: dict[Method, Capability] = {"nli": "entail", "judge": "generate"}

MOST_TEXTS = 32
"""Distinct texts of a prompt that are compared; the answers beyond them are left out of the groups."""
QUESTION_TOKENS = 128
"""A longer question is not put before an answer: it would fill what a model for inference reads."""
ANSWER_CHARACTERS = 8_000
"""A judge is shown no more of an answer."""


class Mutual(Struct):
    """Whether each of two answers to a question entails the other."""

    first_entails_second: bool
    second_entails_first: bool


class Pair(NamedTuple):
    question: str
    first: str
    second: str


class Comparison(NamedTuple):
    """Whether two answers have the same meaning: None, with the reason, where that is unknown."""

    same: bool | None
    cut: bool
    reason: str = ""


class Groups(NamedTuple):
    """A prompt's answers by meaning: a group number for each, or why there is none."""

    numbers: list[int] | None
    pairs: int = 0
    cut: int = 0
    """Pairs of which something was not read."""
    reason: str = ""


def parse_methods(values: Sequence[str]) -> dict[Method, str]:
    """`cosine`, `nli:SPEC` and `judge:SPEC` as the models to ask, by method; the cosine needs none."""
    models: dict[Method, str] = {}
    for value in values:
        name, _, spec = value.partition(":")
        method = next((each for each in NEEDS if each == name and spec), None)
        if method is None and value != "cosine":
            forms = ", ".join(["cosine", *(f"{each}:SPEC" for each in get_args(Method))])
            raise ValueError(f"--meanings: unknown method '{value}'. Available: {forms}.")
        if method in models:
            raise ValueError(f"--meanings: {method}:SPEC is there twice; give it once.")
        if method is not None:
            models[method] = spec
    return models


def group_answers(prompts: Sequence[tuple[str, Sequence[str]]], method: Method) -> Asking[list[Groups]]:
    """The groups of each prompt's answers. A prompt is a question and its answers.

    Every prompt has one open group at a time: what is not in a group yet is compared with its first answer.
    """
    distinct = [list(dict.fromkeys(texts))[:MOST_TEXTS] for _, texts in prompts]
    numbers: list[dict[str, int]] = [{} for _ in prompts]
    known: list[dict[Pair, Comparison]] = [{} for _ in prompts]
    pending = [index for index, texts in enumerate(distinct) if texts]
    while pending:
        asked: list[tuple[int, Pair]] = []
        for index in pending:
            first, *others = [text for text in distinct[index] if text not in numbers[index]]
            numbers[index][first] = max(numbers[index].values(), default=-1) + 1
            asked += [(index, Pair(_context(prompts[index][0]), first, other)) for other in others]
        comparisons = yield from COMPARE[method]([pair for _, pair in asked])
        for (index, pair), comparison in zip(asked, comparisons, strict=True):
            known[index][pair] = comparison
            if comparison.same:
                numbers[index][pair.second] = numbers[index][pair.first]
        pending = [i for i in pending if len(numbers[i]) < len(distinct[i]) and not _fault(known[i])]
    return [
        Groups(
            None if _fault(compared) else [of_text[text] for text in texts if text in of_text],
            pairs=len(compared),
            cut=sum(each.cut for each in compared.values()),
            reason=_fault(compared),
        )
        for (_, texts), of_text, compared in zip(prompts, numbers, known, strict=True)
    ]


def _fault(compared: dict[Pair, Comparison]) -> str:
    return next((each.reason for each in compared.values() if each.same is None), "")


def _context(question: str) -> str:
    return question if estimate_tokens(question) <= QUESTION_TOKENS else ""


def compare_by_inference(pairs: Sequence[Pair]) -> Asking[list[Comparison]]:
    """Both directions of each pair, with the question before either answer; the likeliest label decides."""
    directions = [
        Entail(premise=f"{question} {a}".strip(), hypothesis=f"{question} {b}".strip())
        for question, first, second in pairs
        for a, b in ((first, second), (second, first))
    ]
    distinct = list(dict.fromkeys(directions))
    responses = dict(zip(distinct, (yield distinct), strict=True)) if distinct else {}
    both = zip(directions[::2], directions[1::2], strict=True)
    return [_mutual(responses[forth], responses[back]) for forth, back in both]


def _mutual(*responses: Response) -> Comparison:
    for response in responses:
        if response.status != "ok" or not response.labels:
            return Comparison(None, cut=False, reason=response.reason or response.status)
    entailed = [max(r.labels, key=r.labels.__getitem__) == "entailment" for r in responses if r.labels]
    return Comparison(all(entailed), cut=any(response.cut for response in responses))


def compare_by_judge(pairs: Sequence[Pair]) -> Asking[list[Comparison]]:
    """One verdict on both directions of each pair."""
    if not pairs:
        return []
    prompt = read_json(__package__, "judge.json", type=dict[str, str])["same_meaning"]
    distinct = list(dict.fromkeys(pairs))
    verdicts = yield from judge.ask(
        Mutual,
        [
            user_prompt(
                prompt,
                QUESTION=pair.question or "(not shown: too long)",
                FIRST=pair.first[:ANSWER_CHARACTERS],
                SECOND=pair.second[:ANSWER_CHARACTERS],
            )
            for pair in distinct
        ],
    )
    comparisons = {}
    for pair, (mutual, status, reason) in zip(distinct, verdicts, strict=True):
        same = mutual.first_entails_second and mutual.second_entails_first if mutual else None
        cut = max(len(pair.first), len(pair.second)) > ANSWER_CHARACTERS
        comparisons[pair] = Comparison(same, cut, "" if mutual else f"{status} {reason}".strip())
    return [comparisons[pair] for pair in pairs]


COMPARE: dict[Method, Callable[[Sequence[Pair]], Asking[list[Comparison]]]] = {
    "nli": compare_by_inference,
    "judge": compare_by_judge,
}

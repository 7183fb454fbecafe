"""Which documents a question is asked with, and in which order.

The published script seeds Python's `random` with 2333 anew for every question, so a question's documents
depend on nothing but the question and the setting. It shuffles the groups of integration sets in place,
but reads its file afresh for every setting, so that leaves no trace either.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from itertools import zip_longest
from math import ceil
from typing import Literal, NamedTuple, TypeAlias

from msgspec import Struct

from evenkeel.benchmarks.rgb.files import Instance
from evenkeel.errors import UsageError

SEED = 2333

DocKind: TypeAlias = Literal["positive", "negative", "wrong"]
Order: TypeAlias = Literal["published", "balanced"]


class Selection(Struct, frozen=True):
    """The documents of one prompt, in order."""

    docs: tuple[str, ...]
    kinds: tuple[DocKind, ...]
    """Of each document: it holds the answer, does not, or holds the false one."""
    truth: int | None
    """The place of the first document that holds the answer; None where none was chosen."""
    short: bool
    """Fewer documents than asked for, since the question has no more of the kinds."""
    note: str
    """What is amiss with the choice, in words, with the question's id; empty where nothing is."""


class _Doc(NamedTuple):
    text: str
    kind: DocKind


def select(
    instance: Instance,
    *,
    noise: float,
    passages: int,
    correct: float = 0.0,
    order: Order = "published",
    index: int = 0,
) -> Selection:
    """The documents for `passages` at a noise rate and (counterfactual sets) a rate of correct documents.

    `published` is the published selection, element for element. `balanced` takes the same documents, but
    the first true one stands at place `index mod (others + 1)`, where `others` counts the documents that
    are not true: with one true document of n that is `index mod n`. The rest is shuffled with a seed of
    the question's own.
    """
    _check(noise, passages, correct)
    if passages == 0:
        return Selection((), (), None, False, "")
    rng = random.Random(SEED)
    docs = _CHOOSE[instance.kind](instance, noise, passages, correct, rng)
    if order == "balanced":
        docs = _balanced(docs, index, random.Random(f"{SEED}:{instance.id}"))
    else:
        rng.shuffle(docs)
    truth = next((place for place, doc in enumerate(docs) if doc.kind == "positive"), None)
    expected = correct > 0 if instance.kind == "fact" else noise < 1
    note = _note(instance, len(docs), passages, untrue=expected and truth is None)
    return Selection(
        tuple(doc.text for doc in docs), tuple(doc.kind for doc in docs), truth, len(docs) < passages, note
    )


def _check(noise: float, passages: int, correct: float) -> None:
    if passages < 0:
        raise UsageError(f"{passages} passages cannot be chosen: give 0 or more.")
    for name, rate in (("noise", noise), ("correct", correct)):
        if not 0 <= rate <= 1:
            raise UsageError(f"the {name} rate {rate} is not between 0 and 1.")


def _note(instance: Instance, chosen: int, passages: int, *, untrue: bool) -> str:
    found = []
    if chosen < passages:
        found.append(f"{chosen} of {passages} documents")
    if untrue:
        found.append("no document that holds the answer")
    return f"question {instance.id}: {', '.join(found)}" if found else ""


def _plain(instance: Instance, noise: float, passages: int, correct: float, rng: random.Random) -> list[_Doc]:
    """The first positives and negatives; where one kind has too few, the other fills up, save at noise 1."""
    negatives = ceil(passages * noise)
    if noise == 1:
        negatives = passages
    elif negatives > len(instance.negative):
        negatives = len(instance.negative)
    elif passages - negatives > len(instance.positive):
        negatives = passages - len(instance.positive)
    return _docs("positive", instance.positive[: passages - negatives]) + _docs(
        "negative", instance.negative[:negatives]
    )


def _integration(
    instance: Instance, noise: float, passages: int, correct: float, rng: random.Random
) -> list[_Doc]:
    """One document of each shuffled group whatever the noise, then their second, third… ones, then noise.

    So seven groups give seven documents even where five were asked for.
    """
    groups = [list(group) for group in instance.groups]
    for group in groups:
        rng.shuffle(group)
    in_turn = [doc for rank in zip_longest(*groups) for doc in rank if doc is not None]
    positives = in_turn[: max(len(groups), passages - ceil(passages * noise))]
    negatives = instance.negative[: max(0, passages - len(positives))]
    return _docs("positive", positives) + _docs("negative", negatives)


def _counterfactual(
    instance: Instance, noise: float, passages: int, correct: float, rng: random.Random
) -> list[_Doc]:
    """A random sample of false documents, true ones from the places left, and the first negatives."""
    negatives, trues = ceil(passages * noise), ceil(passages * correct)
    wrongs = passages - negatives - trues
    if wrongs < 0:
        raise UsageError(
            f"noise rate {noise} and correct rate {correct} ask for {negatives} + {trues} of {passages} "
            f"passages: lower one of the rates."
        )
    places = list(range(len(instance.positive)))
    false = rng.sample(places, min(len(places), wrongs))
    left = [place for place in places if place not in false]
    true = rng.sample(left, min(len(left), trues)) if trues and left else []
    return (
        _docs("wrong", (instance.positive_wrong[place] for place in false))
        + _docs("positive", (instance.positive[place] for place in true))
        + _docs("negative", instance.negative[:negatives])
    )


_CHOOSE = {"plain": _plain, "int": _integration, "fact": _counterfactual}


def _docs(kind: DocKind, texts: Iterable[str]) -> list[_Doc]:
    return [_Doc(text, kind) for text in texts]


def _balanced(docs: list[_Doc], index: int, rng: random.Random) -> list[_Doc]:
    others = [doc for doc in docs if doc.kind != "positive"]
    trues = [doc for doc in docs if doc.kind == "positive"]
    rng.shuffle(others)
    rng.shuffle(trues)
    place = index % (len(others) + 1)
    after = others[place:] + trues[1:]
    rng.shuffle(after)
    return others[:place] + trues[:1] + after

"""What chance gives: the cosine of answers to different questions, and the consistency beyond it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from evenkeel.benchmarks.mirae.page import MIN_QUESTIONS
from evenkeel.types import MIXED, Sample, Score, Tag

BASES = (("lang", "domain", "level", "padding"), ("lang", "level", "padding"), ("lang",))
"""The tags that prompts have in common whose answers give the floor, the preferred ones first."""
MIN_ANSWERED = 3
"""Questions of a stratum that have a figure; with fewer its floor is unknown."""
SAME_ANSWERS = 1e-4
"""A floor nearer to 1 than this leaves nothing to correct: all questions have the same answer."""

Basis: TypeAlias = tuple[str, ...]


def bases(samples: Iterable[Sample | Score]) -> dict[str, Basis]:
    """By language, the first of BASES of which every stratum has enough questions; none where none has.

    What was asked decides, not what was answered: runs over the same prompts have the same basis.
    """
    by_lang: defaultdict[str, list[Sample | Score]] = defaultdict(list)
    for sample in samples:
        by_lang[str(sample.tags["lang"])].append(sample)
    return {
        lang: basis
        for lang, members in by_lang.items()
        if (basis := next((each for each in BASES if _enough(members, each)), None))
    }


def bases_taken(scores: Iterable[Score]) -> dict[str, set[Basis]]:
    """By language, over what the floors of its prompts were taken: several where portions of a run differ."""
    by_lang: defaultdict[str, set[Basis]] = defaultdict(set)
    for score in scores:
        if score.basis or score.answered:  # one that could not be scored beside the others has neither
            by_lang[str(score.tags["lang"])].add(tuple(score.basis.split()))
    return dict(by_lang)


def _enough(samples: Iterable[Sample | Score], basis: Basis) -> bool:
    questions: defaultdict[Hashable, set[str]] = defaultdict(set)
    for sample in samples:
        if (key := stratum(sample.tags, basis)) is not None:
            questions[key].add(sample.group)
    return min(map(len, questions.values()), default=0) >= MIN_QUESTIONS


def stratum(tags: Mapping[str, Tag], basis: Basis) -> Hashable | None:
    """The prompts whose answers give one floor; None for a prompt of unknown domain, where that decides.

    Padding is a matter of its own where a data set has it.
    """
    if any(tag not in tags for tag in basis if tag != "padding"):
        return None
    return tuple(tags.get(tag) for tag in basis)


def described(by_lang: Mapping[str, set[Basis]]) -> str:
    """What the floors of some prompts were taken over, in words."""
    words = {"lang": "language", "domain": "domain", "level": "level"}
    phrases = []
    for basis in sorted({basis for each in by_lang.values() for basis in each if basis}, key=BASES.index):
        *first, last = [words[tag] for tag in basis if tag in words]
        phrases.append(" and ".join(filter(None, (", ".join(first), last))))
    mixed = f"{MIXED} " if any(len(each) > 1 for each in by_lang.values()) else ""
    return f"{mixed}chance floor: other questions of the same {' or '.join(phrases)}" if phrases else ""


class Corrected(NamedTuple):
    """A stratum's floor, and for each prompt what it adds to the mean floor and to the corrected mean."""

    floor: float
    floors: NDArray[np.float64]
    similarity: NDArray[np.float64] | None
    """None where the floor is 1."""


def corrected_for_chance(
    questions: Sequence[Hashable], means: NDArray[np.float64], similarity: NDArray[np.float64]
) -> Corrected | None:
    """The floor F, and 1 − (1 − s)/(1 − F), of the prompts of one stratum; None for too few questions.

    With m the mean unit vector of a prompt's answers (a row of `means`), mᵢ·mⱼ is the mean cosine of the
    answers to two prompts, and F its mean over all pairs of different questions. It takes one pass: with
    xᵢ = mᵢ·Σⱼ mⱼ over the cᵢ prompts of other questions, F = Σ xᵢ / Σ cᵢ.

    A prompt is also one of the "other questions" of the others, so that the error of F is shared by all of
    them. Leaving out a question moves F, and each prompt's share of that is in its values: of N prompts to Q
    questions, prompt i has the floor F + aᵢ with aᵢ = 2 (xᵢ − F cᵢ) · N/Σ cⱼ · (Q − 1)/(Q − 2), and the
    corrected value 1 − (1 − sᵢ)/(1 − F) − aᵢ · mean(1 − s)/(1 − F)². The aᵢ add up to zero: over the stratum
    the values have the mean F and 1 − (1 − mean s)/(1 − F), and their spread over questions is that of a
    jackknife which estimates F anew without each question.
    """
    numbers = {question: number for number, question in enumerate(dict.fromkeys(questions))}
    count = len(numbers)
    if count < MIN_ANSWERED:
        return None
    groups = np.array([numbers[question] for question in questions], dtype=np.intp)
    by_question = np.zeros((count, means.shape[1]))
    np.add.at(by_question, groups, means)
    others = means.sum(axis=0) - by_question[groups]
    cosines, pairs = np.einsum("ij,ij->i", means, others), len(groups) - np.bincount(groups)[groups]
    floor = float(cosines.sum() / pairs.sum())
    moves = 2 * (cosines - floor * pairs) * len(groups) / pairs.sum() * (count - 1) / (count - 2)
    corrected = None
    if 1 - floor > SAME_ANSWERS:
        distance = 1 - similarity
        corrected = 1 - distance / (1 - floor) - moves * distance.mean() / (1 - floor) ** 2
    return Corrected(floor, floor + moves, corrected)

"""What chance gives: the cosine of answers to different questions, and the consistency beyond it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sealegs.types import Sample

STRATUM = ("lang", "domain", "level", "padding", "wording")
"""The tags that prompts have in common whose answers give one floor."""
MIN_QUESTIONS = 3
"""Questions of a stratum with answers; with fewer its floor is unknown."""
SAME_ANSWERS = 1e-4
"""A floor nearer to 1 than this leaves nothing to correct: all questions have the same answer."""


def stratum(sample: Sample) -> Hashable:
    return tuple(sample.tags.get(tag) for tag in STRATUM)


class Corrected(NamedTuple):
    """For each prompt of a stratum what it adds to the mean floor and to the corrected mean."""

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
    if count < MIN_QUESTIONS:
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
    return Corrected(floor + moves, corrected)

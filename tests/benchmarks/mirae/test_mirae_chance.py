"""Consistency beyond chance: the floor from answers to other questions, and what is corrected by it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import Any, TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.mirae.test_mirae_scoring import answered, of_source, scored
from present import present
from sealegs.benchmarks.mirae.benchmark import Mirae, MiraeOptions
from sealegs.benchmarks.mirae.floor import corrected_for_chance
from sealegs.benchmarks.mirae.page import notes
from sealegs.types import Response, Summary

Vectors: TypeAlias = NDArray[np.float64]
Prompts: TypeAlias = Mapping[tuple[int, str, int], Vectors | None]
"""By question, domain and level the vectors of the answers; None where they failed."""


def unit(vectors: Vectors) -> Vectors:
    scaled: Vectors = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    return scaled


def answers(questions: int, seed: int, *, common: float = 1.0, spread: float = 0.4) -> Vectors:
    """Unit vectors of five answers to each question, which have a direction in common."""
    rng = np.random.default_rng(seed)
    centres = unit(rng.normal(size=(questions, 1, 6)) + common * np.eye(6)[0])
    return unit(centres + spread * rng.normal(size=(questions, 5, 6)))


def mean_cosine(vectors: Vectors) -> float:
    return float(np.mean([a @ b for a, b in permutations(vectors, 2)]))


def floor_by_hand(vectors: Sequence[Vectors], questions: Sequence[Any]) -> float:
    """The mean over all pairs of prompts of different questions, answer by answer."""
    pairs = [
        np.mean([x @ y for x in a for y in b])
        for (a, first), (b, second) in permutations(zip(vectors, questions, strict=True), 2)
        if first != second
    ]
    return float(np.mean(pairs))


# The formula


def test_the_floor_is_the_mean_cosine_of_answers_to_different_questions() -> None:
    questions, vectors = [0, 0, 1, 2, 2, 2, 3], answers(7, seed=1)
    similarity = np.array([mean_cosine(each) for each in vectors])
    result = present(corrected_for_chance(questions, vectors.mean(axis=1), similarity))
    floor = floor_by_hand(list(vectors), questions)
    assert result.floors.mean() == pytest.approx(floor)
    assert present(result.similarity).mean() == pytest.approx(1 - (1 - similarity.mean()) / (1 - floor))


def test_two_questions_have_no_floor_and_equal_answers_no_correction() -> None:
    assert corrected_for_chance([1, 1, 2, 2], answers(4, seed=3).mean(axis=1), np.ones(4)) is None
    result = present(corrected_for_chance(range(4), np.tile([1.0, 0.0], (4, 1)), np.ones(4)))
    assert result.floors == pytest.approx(1)
    assert result.similarity is None


# Scores and figures


def summary_of(prompts: Prompts, *, lang: str = "en") -> Summary:
    items = []
    embed: dict[str, Vectors] = {}
    for (number, domain, level), vectors in prompts.items():
        texts = [f"{number} {level} {index}" for index in range(5)]
        embed |= dict(zip(texts, vectors if vectors is not None else (), strict=False))
        responses = texts if vectors is not None else [Response(status="error")] * 5
        items.append(answered(level, responses, lang=lang, question=str(number), domain=domain))
    return Mirae(MiraeOptions()).summarise(scored(items, embed))


def by_hand(prompts: Prompts, **scope: Any) -> tuple[float, float]:
    """The mean floor and the mean corrected similarity of the prompts in a scope."""
    floors, corrected = [], []
    for (_, domain, level), vectors in prompts.items():
        tags = {"domain": domain, "level": level}
        if vectors is None or any(tags[tag] != value for tag, value in scope.items()):
            continue
        others = {key: v for key, v in prompts.items() if key[1:] == (domain, level) and v is not None}
        floors.append(floor_by_hand(list(others.values()), [key[0] for key in others]))
        corrected.append(1 - (1 - mean_cosine(vectors)) / (1 - floors[-1]))
    return float(np.mean(floors)), float(np.mean(corrected))


def test_figures_are_corrected_by_the_floor_of_their_domain_and_level() -> None:
    prompts: dict[tuple[int, str, int], Vectors | None] = {
        (5 * place + number, domain, level): vectors
        for level in (1, 7)
        for place, domain in enumerate(("FACTUAL", "OPINION"))
        for number, vectors in enumerate(answers(5, seed=4 + 10 * level + place, common=1.0 + 2 * place))
    }
    prompts[2, "FACTUAL", 7] = None
    summary = summary_of(prompts)
    scopes: dict[str, dict[str, Any]] = {
        "": {},
        "/level=7": {"level": 7},
        "/level=7,domain=FACTUAL": {"level": 7, "domain": "FACTUAL"},
    }
    for name, scope in scopes.items():
        floor, corrected = by_hand(prompts, **scope)
        figure = summary[f"corrected_similarity{name}"]
        assert summary[f"chance_floor{name}"].value == pytest.approx(floor, abs=1e-6)
        assert figure.value == pytest.approx(corrected, abs=1e-6)
        assert (figure.low or 1) < corrected < (figure.high or 0)
    assert summary["corrected_similarity"].coverage == pytest.approx(0.95)
    assert summary["chance_floor"].basis.startswith("chance floor: other questions of the same language")


def test_each_domain_needs_three_questions_for_a_floor_of_its_own() -> None:
    enough = {(n, "FACTUAL", 1): vectors for n, vectors in enumerate(answers(3, seed=5))}
    scarce = {(n + 9, "OPINION", 1): vectors for n, vectors in enumerate(answers(2, seed=6))}
    summary = summary_of({**enough, **scarce})
    assert summary["corrected_similarity"].n == 3
    assert summary["corrected_similarity/domain=OPINION"].value is None
    alone = summary_of(scarce)
    assert alone["mean_similarity"].value is not None
    assert alone["chance_floor"].value is None
    warnings = notes(of_source("starter"), alone)
    assert any("three answered questions of a domain" in note.text for note in warnings)


def test_a_language_whose_cosines_begin_high_is_warned_of() -> None:
    high = answers(6, seed=6, common=9, spread=0.1)
    summary = summary_of({(n, "F", 1): vectors for n, vectors in enumerate(high)}, lang="xx")
    (note,) = [note for note in notes(of_source("starter"), summary) if note.warning]
    assert "In 'xx' even answers to different questions have a cosine of 0.89" in note.text

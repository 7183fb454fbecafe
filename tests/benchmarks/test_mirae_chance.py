"""Consistency beyond chance: the floor from answers to other questions, and what is corrected by it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from evenkeel.benchmarks.mirae.benchmark import Mirae, MiraeOptions
from evenkeel.benchmarks.mirae.chance import corrected_for_chance
from evenkeel.benchmarks.mirae.files import Question, make_samples
from evenkeel.benchmarks.mirae.page import notes
from evenkeel.types import Answered, Embed, Response, RunSpec, Score, Summary

DOMAINS = ("FACTUAL", "OPINION")
Vectors = NDArray[np.float64]


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


@pytest.mark.parametrize("questions", [list(range(7)), [0, 0, 1, 2, 2, 2, 3]])
def test_the_floor_is_the_mean_cosine_of_answers_to_different_questions(questions: list[int]) -> None:
    vectors = answers(7, seed=1)
    similarity = np.array([mean_cosine(each) for each in vectors])
    result = corrected_for_chance(questions, vectors.mean(axis=1), similarity)
    assert result is not None
    assert result.similarity is not None
    floor = floor_by_hand(list(vectors), questions)
    assert result.floor == pytest.approx(floor)
    assert result.floors.mean() == pytest.approx(floor)
    assert result.similarity.mean() == pytest.approx(1 - (1 - similarity.mean()) / (1 - floor))


def test_fewer_than_three_questions_have_no_floor() -> None:
    vectors = answers(4, seed=3).mean(axis=1)
    assert corrected_for_chance([1, 1, 2, 2], vectors, np.ones(4)) is None
    assert corrected_for_chance([1, 1, 2, 3], vectors, np.ones(4)) is not None


def test_where_all_questions_have_the_same_answer_nothing_can_be_corrected() -> None:
    result = corrected_for_chance(range(4), np.tile([1.0, 0.0], (4, 1)), np.ones(4))
    assert result is not None
    assert result.floor == pytest.approx(1)
    assert result.similarity is None


# Scores and figures


def scored(
    vectors: Mapping[tuple[int, str, int], Vectors | None], *, lang: str = "en", **options: Any
) -> list[Score]:
    """Prompts by question, domain and level with the vectors of their answers; None: they failed."""
    items: list[Answered] = []
    embed: dict[str, Vectors] = {}
    for (number, domain, level), rows in vectors.items():
        (made,) = make_samples([Question(str(number), domain, lang, {level: f"{number} {level}?"})], 5)
        texts = [f"{number} {level} {index}" for index in range(5)]
        embed |= dict(zip(texts, rows if rows is not None else np.eye(5), strict=True))
        responses = tuple(
            Response(status="ok", text=text) if rows is not None else Response(status="error")
            for text in texts
        )
        items.append(Answered(made, (), responses))
    asking = Mirae(MiraeOptions(**options)).score(items)
    requests = next(asking)
    with pytest.raises(StopIteration) as done:
        asking.send([_embedded(request, embed) for request in requests])
    scores: list[Score] = done.value.value
    return scores


def _embedded(request: Any, embed: Mapping[str, Vectors]) -> Response:
    assert isinstance(request, Embed)
    vector = embed.get(request.text, np.eye(6)[0])
    return Response(status="ok", vector=vector.astype("<f4").tobytes(), cut=False)


def prompts(
    seed: int = 4, levels: Iterable[int] = (1, 7), *, each: int = 5
) -> dict[tuple[int, str, int], Vectors | None]:
    """Questions of two domains at some levels; one domain's answers have more in common."""
    return {
        (number, domain, level): rows
        for level in levels
        for place, domain in enumerate(DOMAINS)
        for number, rows in enumerate(
            answers(each, seed=seed + 10 * level + place, common=1.0 + 2 * place), place * each
        )
    }


def summary_of(scores: Sequence[Score], **options: Any) -> Summary:
    return Mirae(MiraeOptions(**options)).summarise(scores)


def by_hand(vectors: Mapping[tuple[int, str, int], Vectors | None], **scope: Any) -> tuple[float, float]:
    """The mean floor and the mean corrected similarity of the prompts in a scope."""
    floors, corrected = [], []
    for number, domain, level in vectors:
        tags = {"domain": domain, "level": level}
        rows = vectors[number, domain, level]
        if rows is None or any(tags[tag] != value for tag, value in scope.items()):
            continue
        others = {key: v for key, v in vectors.items() if key[1:] == (domain, level) and v is not None}
        floor = floor_by_hand(list(others.values()), [key[0] for key in others])
        floors.append(floor)
        corrected.append(1 - (1 - mean_cosine(rows)) / (1 - floor))
    return float(np.mean(floors)), float(np.mean(corrected))


def test_figures_are_corrected_by_the_floor_of_their_domain_and_level() -> None:
    vectors = prompts()
    vectors[2, "FACTUAL", 7] = None
    summary = summary_of(scored(vectors))
    scopes: dict[str, dict[str, Any]] = {
        "": {},
        "/level=1": {"level": 1},
        "/level=7": {"level": 7},
        "/domain=OPINION": {"domain": "OPINION"},
        "/level=7,domain=FACTUAL": {"level": 7, "domain": "FACTUAL"},
    }
    for name, scope in scopes.items():
        floor, corrected = by_hand(vectors, **scope)
        figure = summary[f"corrected_similarity{name}"]
        assert summary[f"chance_floor{name}"].value == pytest.approx(floor, abs=1e-6)
        assert figure.value == pytest.approx(corrected, abs=1e-6)
        assert figure.low is not None
        assert figure.high is not None
        assert figure.low < corrected < figure.high
    assert summary["corrected_similarity"].coverage == pytest.approx(0.95)
    assert summary["chance_floor"].basis == (
        "chance floor: other questions of the same language, domain and level"
    )


def spec(**fields: Any) -> RunSpec:
    usual: dict[str, Any] = {
        "format": 1, "benchmark": "mirae", "options": {}, "models": {}, "data": {}, "seed": 0, "limit": None,
        "provenance": {}, "subjects": ("m",),
    }  # fmt: skip
    return RunSpec(**{**usual, **fields})


def test_each_domain_needs_three_questions_for_a_floor_of_its_own() -> None:
    enough = {(n, "FACTUAL", 1): rows for n, rows in enumerate(answers(3, seed=5))}
    scarce = {(n + 9, "OPINION", 1): rows for n, rows in enumerate(answers(2, seed=6))}
    summary = summary_of(scored({**enough, **scarce}))
    assert summary["corrected_similarity"].n == 3
    assert summary["corrected_similarity/domain=OPINION"].value is None
    alone = summary_of(scored(scarce))
    assert alone["mean_similarity"].value is not None
    assert (alone["corrected_similarity"].value, alone["chance_floor"].value) == (None, None)
    assert any("three answered questions of a domain" in note.text for note in notes(spec(), alone))


def test_a_language_whose_cosines_begin_high_is_warned_of() -> None:
    high = answers(6, seed=6, common=9, spread=0.1)
    scores = scored({(n, "F", 1): rows for n, rows in enumerate(high)}, lang="xx")
    (note,) = [note for note in notes(spec(), summary_of(scores)) if note.warning]
    assert "In 'xx' even answers to different questions have a cosine of 0.89" in note.text

"""Consistency beyond chance: the floor from answers to other questions, and what is corrected by it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

import evenkeel as ek
from evenkeel.analysis import over_clusters
from evenkeel.benchmarks.mirae.benchmark import Mirae, MiraeOptions
from evenkeel.benchmarks.mirae.chance import BASES, bases, corrected_for_chance
from evenkeel.benchmarks.mirae.files import Question, make_samples
from evenkeel.benchmarks.mirae.page import notes
from evenkeel.errors import UsageError
from evenkeel.harness import runner
from evenkeel.types import Answered, Embed, Generate, Response, RunSpec, Sample, Score, Summary
from loopback import Loopback

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


def test_the_spread_over_questions_is_that_of_a_jackknife() -> None:
    """Without each question in turn, floor and mean are computed anew from the vectors."""
    vectors = answers(30, seed=2, common=2.0)
    similarity = np.array([mean_cosine(each) for each in vectors])
    means = vectors.mean(axis=1)
    result = corrected_for_chance(range(30), means, similarity)
    assert result is not None
    assert result.similarity is not None
    floors, corrected = [], []
    for left_out in range(30):
        rest = np.arange(30) != left_out
        total = means[rest].sum(axis=0)
        floor = float(total @ total - (means[rest] ** 2).sum()) / (29 * 28)
        floors.append(floor)
        corrected.append(1 - (1 - similarity[rest].mean()) / (1 - floor))
    for values, without, tolerance in (
        (result.floors, floors, 1e-9),
        (result.similarity, corrected, 0.05),
    ):
        error = over_clusters(values, np.ones(30)).error
        jackknife = float(np.sqrt(29 * np.var(without)))
        assert error == pytest.approx(jackknife, rel=tolerance)


def test_fewer_than_three_questions_have_no_floor() -> None:
    vectors = answers(4, seed=3).mean(axis=1)
    assert corrected_for_chance([1, 1, 2, 2], vectors, np.ones(4)) is None
    assert corrected_for_chance([1, 1, 2, 3], vectors, np.ones(4)) is not None


def test_where_all_questions_have_the_same_answer_nothing_can_be_corrected() -> None:
    result = corrected_for_chance(range(4), np.tile([1.0, 0.0], (4, 1)), np.ones(4))
    assert result is not None
    assert result.floor == pytest.approx(1)
    assert result.similarity is None


# Which questions give the floor


def sample(question: int, **tags: str | int) -> Sample:
    every = {"lang": "en", "domain": "FACTUAL", "level": 1, **tags}
    return Sample(id=f"{question}{tags}", group=str(question), tags=every, inputs=None)


def test_the_floor_is_taken_in_the_smallest_scope_with_enough_questions() -> None:
    in_domains = [sample(n, domain=DOMAINS[n % 2], level=level) for n in range(8) for level in (1, 7)]
    assert bases(in_domains) == {"en": BASES[0]}
    assert bases(in_domains[:-2]) == {"en": BASES[1]}  # three questions of the second domain
    spread_out = [sample(n, level=level) for n, level in enumerate((1, 1, 2, 2, 3, 3))]
    assert bases(spread_out) == {"en": ("lang",)}
    assert bases(spread_out[:3]) == {}


def test_each_language_has_a_basis_of_its_own() -> None:
    english = [sample(n) for n in range(4)]
    korean = [sample(n, lang="ko", domain=str(n)) for n in range(4)]
    assert bases([*english, *korean]) == {"en": BASES[0], "ko": BASES[1]}


def test_an_entry_of_unknown_domain_does_not_change_the_basis_of_the_others() -> None:
    unknown = Sample(id="x", group="x", tags={"lang": "en", "level": 1}, inputs=None)
    assert bases([*(sample(n) for n in range(4)), unknown]) == {"en": BASES[0]}
    assert bases([unknown]) == {}


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
    if request.role == "embedder-2":  # everything moves towards one direction
        vector = unit(vector + 2 * np.eye(len(vector))[0])
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


def test_a_record_has_the_floor_that_it_is_corrected_by() -> None:
    vectors = prompts(levels=(1,))
    first = scored(vectors)[0]
    others = {key[0]: rows for key, rows in vectors.items() if key[1] == "FACTUAL" and rows is not None}
    floor = floor_by_hand(list(others.values()), list(others))
    assert first.detail.floors == {"embedder": pytest.approx(floor, abs=1e-6)}
    assert first.detail.floor_over == BASES[0]
    similarity = first.values["mean_similarity"]
    assert similarity is not None
    corrected = 1 - (1 - similarity) / (1 - floor)
    assert first.detail.corrected == {"embedder": pytest.approx(corrected, abs=1e-6)}


def test_a_floor_over_several_domains_gives_no_figure_of_one_of_them() -> None:
    summary = summary_of(scored(prompts(each=2)))
    assert summary["corrected_similarity/level=7"].basis == (
        "chance floor: other questions of the same language and level"
    )
    assert "corrected_similarity/domain=FACTUAL" not in summary
    assert "mean_similarity/domain=FACTUAL" in summary


def spec(**fields: Any) -> RunSpec:
    usual: dict[str, Any] = {
        "format": 1, "benchmark": "mirae", "options": {}, "models": {}, "data": {}, "seed": 0, "limit": None,
        "provenance": {}, "subjects": ("m",),
    }  # fmt: skip
    return RunSpec(**{**usual, **fields})


def test_with_few_questions_the_floor_is_unknown_and_the_run_says_why() -> None:
    scores = scored({(n, "FACTUAL", 1): rows for n, rows in enumerate(answers(3, seed=5))})
    summary = summary_of(scores)
    assert summary["mean_similarity"].value is not None
    assert (summary["corrected_similarity"].value, summary["chance_floor"].value) == (None, None)
    assert any("it takes at least 4 questions" in note.text for note in notes(spec(), summary))


def test_every_embedder_has_a_floor_of_its_own() -> None:
    vectors = prompts(levels=(1,))
    two: dict[str, Any] = {"embedder": ("openai:x", "openai:y")}
    summary = summary_of(scored(vectors, **two), **two)
    moved = {
        key: unit(rows + 2 * np.eye(6)[0]) if rows is not None else None for key, rows in vectors.items()
    }
    for suffix, rows_of in (("", vectors), ("@embedder-2", moved)):
        floor, corrected = by_hand(rows_of)
        assert summary[f"chance_floor{suffix}"].value == pytest.approx(floor, abs=1e-6)
        assert summary[f"corrected_similarity{suffix}"].value == pytest.approx(corrected, abs=1e-6)


def test_a_language_whose_cosines_begin_high_is_warned_of_and_an_embedder_recommended() -> None:
    high = answers(6, seed=6, common=9, spread=0.1)
    scores = scored({(n, "F", 1): rows for n, rows in enumerate(high)}, lang="xx")
    (note,) = [note for note in notes(spec(), summary_of(scores)) if note.warning]
    assert "In 'xx' even answers to different questions have a cosine of 0.89" in note.text
    assert "--embedder sbert:sentence-transformers/paraphrase-multilingual" in note.text
    with_two = notes(spec(options={"embedder": ["a", "b"]}), summary_of(scores))
    assert not any("paraphrase-multilingual" in note.text for note in with_two)


# Runs compared


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ek.Run]:
    """Two runs over eight questions of two domains, and one over four of the same."""
    folder = tmp_path_factory.mktemp("chance")
    content = {
        "metadata": {"language": "English"},
        "questions": [
            {"question_id": n, "domain": DOMAINS[n % 2], "level_1_text": f"What is thing {n}?"}
            for n in range(8)
        ],
    }
    path = folder / "questions.json"
    path.write_bytes(msgspec.json.encode(content))
    settings = {"a": ("openai:x", None), "b": ("openai:z", None), "few": ("openai:x", 4)}
    with Loopback() as server:
        return {
            name: ek.run(
                "mirae", model=model, base_url=server.url, data=path, limit=limit, out=folder / name,
                embedder=("openai:e",), samples=3, progress=False,
            )
            for name, (model, limit) in settings.items()
        }  # fmt: skip


def test_the_difference_of_corrected_figures_is_that_of_the_runs(runs: dict[str, ek.Run]) -> None:
    (difference,) = ek.compare(runs["a"], runs["b"], metrics="corrected_similarity").differences
    a, b = (runs[name].summary["corrected_similarity"].value for name in "ab")
    assert a is not None
    assert b is not None
    assert difference.difference == pytest.approx(b - a)
    assert difference.clusters == 8


def test_figures_over_different_floors_are_not_compared(runs: dict[str, ek.Run]) -> None:
    metrics = ek.compare(runs["a"], runs["few"]).metrics
    assert "mean_similarity" in metrics
    assert not {"corrected_similarity", "chance_floor"} & set(metrics)
    with pytest.raises(
        UsageError, match="differ in kind: chance floor: other questions of the same language"
    ):
        ek.compare(runs["a"], runs["few"], metrics="corrected_similarity")


def test_floors_that_differ_in_kind_from_portion_to_portion_are_named_and_not_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second half has one question of the first domain, too few for a floor of its own."""
    questions = [
        {"question_id": n, "domain": DOMAINS[n > 5], "level_1_text": f"What is {n}?"} for n in range(10)
    ]
    path = tmp_path / "questions.json"
    path.write_bytes(msgspec.json.encode({"metadata": {"language": "English"}, "questions": questions}))
    monkeypatch.setattr(runner, "CHUNK", 28)
    with Loopback() as server:
        runs = [
            ek.run(
                "mirae", model=f"openai:{name}", base_url=server.url, data=path, out=tmp_path / name,
                embedder=("openai:e",), samples=3, progress=False,
            )
            for name in "ab"
        ]  # fmt: skip
    taken = [record.score.detail.floor_over for record in runs[0].records()]
    assert taken == [BASES[0]] * 5 + [BASES[1]] * 5
    figure = runs[0].summary["corrected_similarity"]
    assert figure.basis == (
        "mixed chance floor: other questions of the same language, domain and level or language and level"
    )
    assert figure.coverage == 1
    assert any("floors of different kinds" in note.text for note in notes(runs[0].spec, runs[0].summary))
    assert "corrected_similarity" not in ek.compare(*runs).metrics
    with pytest.raises(UsageError, match="differ in kind: mixed chance floor"):
        ek.compare(*runs, metrics="corrected_similarity")


def test_nothing_that_is_asked_before_scoring_is_one_portion() -> None:
    class Silent(Mirae):
        def requests(self, sample: Sample) -> list[Generate]:
            return []

    questions = [Question(str(n), "F", "en", {1: f"{n}?"}) for n in range(5)]
    silent, asking = Silent(MiraeOptions()), Mirae(MiraeOptions())
    samples = make_samples(questions, 5)
    assert [len(portion) for portion in runner.in_chunks(silent, samples)] == [5]
    assert [len(portion) for portion in runner.in_chunks(asking, samples)] == [5]


def test_a_scope_that_cuts_through_a_floor_is_not_compared(runs: dict[str, ek.Run]) -> None:
    with pytest.raises(UsageError, match="cannot be compared sample by sample"):
        ek.compare(runs["a"], runs["b"], metrics="corrected_similarity/level=1,domain=FACTUAL,lang=en")


def test_summary_json_says_what_a_figure_depends_on(runs: dict[str, ek.Run]) -> None:
    stored = msgspec.json.decode((runs["a"].path / "summary.json").read_bytes())
    assert stored["corrected_similarity"]["basis"].startswith("chance floor")
    assert "basis" not in stored["mean_similarity"]

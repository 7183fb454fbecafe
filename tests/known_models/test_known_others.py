"""MIRAE, MIRON and multiview with models of known behaviour: figures and sentences are true."""

from __future__ import annotations

import re
from math import comb
from pathlib import Path

import pytest

from known_models import mirae, miron, multiview
from present import holds
from sealegs import api

DIALS = (0.0, 0.25, 0.5, 0.75, 1.0)


# MIRAE: how often a model is right when it is asked again


@pytest.mark.parametrize("right", [0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
def test_repeated_answers_are_right_as_often_as_they_are(right: float, tmp_path: Path) -> None:
    summary = mirae.play(tmp_path, right).summary
    count = round(right * mirae.REPEATS)
    assert summary["right_rate"].value == pytest.approx(right)
    assert summary["right_every_time"].value == float(count == mirae.REPEATS)
    assert summary["right_never"].value == float(count == 0)
    for k in range(1, mirae.REPEATS + 1):
        figure, truth = summary[f"pass_hat_k/k={k}"], comb(count, k) / comb(mirae.REPEATS, k)
        assert figure.value == pytest.approx(truth)
        assert holds(figure, truth)


def test_a_coin_and_a_steady_model_differ_in_meaning_and_hardly_in_wording(tmp_path: Path) -> None:
    runs = {}
    for name, right in (("steady", 1.0), ("coin", 0.6)):
        (tmp_path / name).mkdir()
        runs[name] = mirae.play(tmp_path / name, right, judged=True)
    same = {name: run.summary["same_meaning"].value for name, run in runs.items()}
    # Of 5 answers 3 say one thing and 2 the other: 4 of 10 pairs agree.
    assert same == {"steady": pytest.approx(1.0), "coin": pytest.approx(0.4)}
    assert runs["coin"].headline.value == pytest.approx(0.4)
    assert "mean the same" in runs["coin"].verdict
    pass5 = {name: run.summary["pass_hat_k/k=5"].value for name, run in runs.items()}
    assert pass5 == {"steady": 1.0, "coin": 0.0}


def test_without_a_judge_the_verdict_speaks_of_texts_alone(tmp_path: Path) -> None:
    verdict = mirae.play(tmp_path, 0.6).verdict
    assert "similarity" in verdict
    assert "a run with a judge finds them" in verdict
    assert "Contradictions between answers were not looked for" in verdict


# multiview: whether a judge follows the criterion or the surface


@pytest.fixture(scope="module")
def triplets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("known") / "multiview"
    api.build("multiview", folder, seed=5)
    return folder


@pytest.mark.parametrize("surface", DIALS)
def test_both_ways_accuracy_is_the_share_that_follows_the_criterion(
    surface: float, triplets: Path, tmp_path: Path
) -> None:
    run = multiview.play(triplets, tmp_path / "run", surface)
    (headline,) = run.headlines.values()
    (accuracy,) = run.figures_of("accuracy").values()
    assert headline.metric == "both_ways"
    assert headline.value == pytest.approx(1 - surface)
    assert accuracy.value == pytest.approx(1 - surface / 2)
    assert holds(headline, 1 - surface)
    right, total = map(int, re.findall(r"in (\d+) of (\d+) pairs", run.verdict)[0])
    assert right / total == pytest.approx(1 - surface)


# MIRON: how often a text is continued as it truly goes on


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("known") / "miron"
    api.build("miron", folder, seed=5, per_category=8, lang="en")
    return folder / "miron_en.jsonl"


@pytest.mark.parametrize("right", DIALS)
def test_continuations_are_as_right_as_they_are(right: float, examples: Path, tmp_path: Path) -> None:
    run, given = miron.play(examples, tmp_path / "run", right)
    records = list(run.records())
    exact = run.summary["exact_match"]
    assert exact.value == pytest.approx(right)
    assert holds(exact, right)
    exactly = [record for record in records if given[record.sample.id] == record.sample.inputs.target]
    assert all(record.score.values["lev_score"] == 100 for record in exactly)
    assert len(exactly) == round(right * len(records))

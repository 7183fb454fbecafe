"""RGB's figures over several values: false alarms, agreement, and what is compared within questions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.analysis.agreement import kappa_interval
from evenkeel.analysis.within import sampling_share
from evenkeel.benchmarks.rgb.benchmark import Rgb
from evenkeel.benchmarks.rgb.figures import summarise
from evenkeel.types import Score
from rgb_rules import (
    Item,
    ask,
    exported,
    false,
    misled,
    plain,
    reporting,
    right,
    samples,
    scattered,
    table,
    write,
)
from stored import undeclared


def score(question: int, values: Mapping[str, float | None], *, number: int = 0, **tags: str | int) -> Score:
    answered = all(value is not None for value in values.values())
    return Score(
        sample_id=f"{question}-{number}-{sorted(tags.items())}",
        group=f"q{question}",
        tags={"lang": "en", **tags},
        values=dict(values),
        statuses={"ok" if answered else "error": 1},
        answered=int(answered),
    )


def facing(question: int, name: str, value: float) -> Score:
    return score(question, {name: value}, ability="counterfactual", setting="x")


# Detection and false alarms


def z(count: int, n: int) -> float:
    return NormalDist().inv_cdf((count + 0.5) / (n + 1))


def test_detection_is_hits_and_false_alarms_with_youden_and_d_prime() -> None:
    """166 of 800 prompts with a false document, 39 of 200 without one: 205 of 1000 is neither."""
    hits = [facing(n % 200, "detected_published", float(n < 166)) for n in range(800)]
    alarms = [facing(n, "false_alarms_published", float(n < 39)) for n in range(200)]
    summary = summarise(hits + alarms)
    assert (summary["detected_published"].value, summary["detected_published"].n) == (166 / 800, 800)
    assert (summary["false_alarms_published"].value, summary["false_alarms_published"].n) == (39 / 200, 200)
    youden, dprime = summary["youden_published"], summary["dprime_published"]
    assert youden.value == pytest.approx(166 / 800 - 39 / 200)
    assert dprime.value == pytest.approx(z(166, 800) - z(39, 200))
    for figure in (youden, dprime):
        assert figure.value is not None
        assert figure.low is not None
        assert figure.high is not None
        assert figure.low < figure.value < figure.high
        assert (figure.n, figure.clusters, figure.coverage) == (1000, 200, 1.0)


def test_d_prime_is_finite_where_all_is_detected_and_no_alarm_is_false() -> None:
    hits = [facing(n, "detected_lenient", 1.0) for n in range(9)]
    alarms = [facing(n, "false_alarms_lenient", 0.0) for n in range(9)]
    figure = summarise(hits + alarms)["dprime_lenient"]
    assert figure.value == pytest.approx(2 * NormalDist().inv_cdf(9.5 / 10))
    assert figure.low is not None
    assert 0 < figure.low < (figure.value or 0)
    assert math.isfinite(figure.high or math.inf)


def test_without_a_prompt_of_either_kind_there_is_no_discrimination() -> None:
    summary = summarise([facing(n, "detected_published", 1.0) for n in range(9)])
    assert not {"youden_published", "dprime_published", "false_alarms_published"} & summary.keys()


def test_reports_that_go_together_are_told_apart_better_than_those_of_strangers() -> None:
    rng = np.random.default_rng(1)
    values = (rng.random(60) < 0.5).astype(float)
    others = np.where(rng.random(60) < 0.1, 1 - values, values)
    hits = [facing(n, "detected_published", value) for n, value in enumerate(values)]
    same, apart = (
        summarise(hits + [facing(n + far, "false_alarms_published", value) for n, value in enumerate(others)])
        for far in (0, 60)
    )
    for name in ("youden_published", "dprime_published"):
        together, alone = (figures[name] for figures in (same, apart))
        assert together.value == alone.value
        assert (together.high or 0) - (together.low or 0) < 0.7 * ((alone.high or 0) - (alone.low or 0))
        assert (together.clusters, alone.clusters) == (60, 120)
    # Of strangers it is Newcombe's interval: square and add the arms of Wilson's.
    first, second = apart["detected_published"], apart["false_alarms_published"]
    arms = (first.value or 0) - (first.low or 0), (second.high or 0) - (second.value or 0)
    youden = apart["youden_published"]
    assert youden.low == pytest.approx((youden.value or 0) - math.hypot(*arms))


def test_a_run_counts_reports_on_true_documents_as_false_alarms(tmp_path: Path) -> None:
    data = write(tmp_path / "en_fact.json", map(false, range(6)))

    def rule(item: Item, prompt: str) -> str:
        suspicious = item["id"] < (3 if "Wrongford" in prompt else 1)
        return (reporting if suspicious else right)(item, prompt)

    run = ask(data, tmp_path / "run", rule, ability="counterfactual", correct_rate="0,0.4,1")
    hits, alarms = run.summary["detected_published"], run.summary["false_alarms_published"]
    assert (hits.value, hits.n) == (0.5, 12)
    assert alarms.value == pytest.approx(1 / 6)
    assert alarms.n == 6
    rows = table(run)
    assert rows["false documents, 1 of them true: false alarms"]["published"].value == pytest.approx(1 / 6)
    assert "false documents, 1 of them true: error detection" not in rows
    assert "false documents, 1 of them true: error correction" not in rows
    assert undeclared(run) == []
    shown = {group.title: group.items for group in Rgb.examples(run.records)}
    assert len(shown["Reported an error though no document is false"]) == 1
    # The published file of this setting pools nothing, and keeps its published name for the rate.
    rates = exported(run)["prediction_en_fact_loop_temp0.2_noise0.0_passage5_correct1.0_result"]
    assert rates["fact_check_rate"] == pytest.approx(1 / 6)
    recorded = run.path / "export/prediction_en_fact_loop_temp0.2_noise0.0_passage5_correct1.0.json"
    again = ek.score("rgb", recorded, out=tmp_path / "again")
    assert again.summary["false_alarms_published"].value == pytest.approx(1 / 6)
    assert "detected_published" not in again.summary
    assert again.agreement() == "12 published figures, largest difference from ours 0.0e+00"


# Agreement with a judge


def test_kappa_has_an_interval_over_questions() -> None:
    rng = np.random.default_rng(3)
    pairs = [(float(a), float(a if rng.random() < 0.8 else 1 - a)) for a in rng.integers(0, 2, 80)]
    alone = kappa_interval((*pair, number) for number, pair in enumerate(pairs))
    assert alone.value is not None
    assert -1 < (alone.low or -1) < alone.value < (alone.high or 1) < 1
    assert (alone.n, alone.clusters) == (80, 80)
    # Eight copies of each question say no more than ten questions do.
    copies = kappa_interval((*pair, number) for number, pair in enumerate(pairs[:10]) for _ in range(8))
    ten = kappa_interval((*pair, number) for number, pair in enumerate(pairs[:10]))
    assert (copies.value, copies.low, copies.high) == pytest.approx((ten.value, ten.low, ten.high))
    assert (copies.n, copies.clusters) == (80, 10)


@pytest.mark.parametrize(
    ("pairs", "value", "method"),
    [
        ([], None, "none: nothing to count"),
        ([(None, 1.0)] * 3, None, "none: nothing to count"),
        ([(1.0, 1.0)] * 3, None, "none: chance alone explains it"),
        ([(1.0, 1.0), (0.0, 0.0)], 1.0, "none: it hangs on one group"),
    ],
)
def test_a_kappa_that_nothing_supports_has_no_interval(
    pairs: list[tuple[float | None, float | None]], value: float | None, method: str
) -> None:
    interval = kappa_interval((*pair, number) for number, pair in enumerate(pairs))
    assert (interval.value, interval.low, interval.method) == (value, None, method)


def judged(question: int, kind: str, ours: float, judge: float, lang: str = "en") -> Score:
    ability = "rejection" if kind == "rejected" else "counterfactual"
    name = "judge" if kind == "rejected" else f"{kind}_judge"
    values = {f"{kind}_published": ours, name: judge, "judge_agrees_published": float(ours == judge)}
    return score(question, values, ability=ability, setting=ability, lang=lang)


def test_kappa_is_broken_down_by_what_was_judged_language_and_setting() -> None:
    scores = [judged(n, "rejected", n % 2, n % 2) for n in range(20)]
    scores += [judged(20 + n, "detected", n % 2, (n + 1) % 2, lang="zh") for n in range(20)]
    scores += [judged(40 + n, "false_alarms", n % 2, (n + 1) % 2, lang="zh") for n in range(4)]
    summary = summarise(scores)
    expected = {"ability=rejection": 1, "ability=counterfactual": -1, "lang=en": 1, "lang=zh": -1}
    for scope, value in expected.items():
        figure = summary[f"judge_kappa_published/{scope}"]
        assert figure.value == pytest.approx(value)
        assert figure.low is not None
    assert summary["judge_kappa_published"].n == 44
    assert summary["judge_kappa_published/setting=rejection"].n == 20


# Along noise and positions


def test_the_fall_with_noise_is_paired_by_question_and_corrected(tmp_path: Path) -> None:
    """Of ten questions two are wrong always, four more at 0.4, and two more at 0.8."""
    wrong = {"0": 2, "0.4": 6, "0.8": 8}
    scores = [
        score(n, {"published": float(n >= lost)}, ability="noise", setting=f"noise {rate}", noise=rate)
        for rate, lost in wrong.items()
        for n in range(10)
    ]
    summary = summarise(scores)
    fall = summary["noise_change_published/noise=0.8"]
    assert fall.value == pytest.approx(-0.6)
    assert (fall.n, fall.tests) == (10, 2)
    assert fall.low is not None
    assert fall.high is not None
    assert fall.high < 0
    assert fall.p is not None
    assert fall.p < 0.05
    assert summary["noise_change_published/noise=0.4"].value == pytest.approx(-0.4)
    assert summary["noise_change_published"] == fall
    assert "noise_change_published/noise=0" not in summary
    # A question that failed at one rate is in neither mean.
    failed = [*scores[:-1], score(9, {"published": None}, ability="noise", setting="noise 0.8", noise="0.8")]
    fall = summarise(failed)["noise_change_published"]
    assert fall.value == pytest.approx(-6 / 9)
    assert (fall.n, fall.coverage) == (9, 0.9)


def test_noise_1_where_a_rejection_is_right_is_no_fall() -> None:
    scores = [
        score(n, {"published": 1.0}, ability="noise", setting=f"noise {rate}", noise=rate)
        for rate in ("0.8", "1")
        for n in range(4)
    ]
    assert not [name for name in summarise(scores) if name.startswith("noise_change")]


def test_every_position_of_the_one_true_document_is_asked_and_paired(tmp_path: Path) -> None:
    data = write(tmp_path / "en.json", map(plain, range(12)))
    asked = samples(data, ability="noise", noise_rates="0.4,0.8", doc_order="all")
    published = {sample.id: sample for sample in samples(data, ability="noise", noise_rates="0.4,0.8")}
    assert len(asked) == 12 + 12 * 5
    assert len({sample.id for sample in asked}) == len(asked)
    for sample in asked:
        if not sample.inputs.variant:  # the published prompt, under its usual name
            assert sample == published.pop(sample.id)
        assert sample.inputs.kinds.count("positive") == (1 if "position" in sample.tags else 3)
    assert not published
    of_one = [s for s in asked if s.group == "en-3" and "position" in s.tags]
    assert [sample.tags["position"] for sample in of_one] == [1, 2, 3, 4, 5]
    others = {
        tuple(d for d, k in zip(s.inputs.docs, s.inputs.kinds, strict=True) if k == "negative")
        for s in of_one
    }
    assert len(others) == 1  # in the same order: nothing but the position differs

    def first_or_last(item: Item, prompt: str) -> str:
        docs = prompt.partition("Documents:\n")[2].partition("\n\n")[0].splitlines()
        at = next(n for n, doc in enumerate(docs, 1) if "is kept by" in doc)
        return (right if at == 1 or (at == 5 and item["id"] % 2) else misled)(item, prompt)

    run = ask(data, tmp_path / "run", first_or_last, ability="noise", noise_rates="0.8", doc_order="all")
    values = {n: run.summary[f"published/position={n}"].value for n in range(1, 6)}
    assert values == {1: 1, 2: 0, 3: 0, 4: 0, 5: 0.5}
    change = {n: run.summary[f"position_change_published/position={n}"] for n in range(2, 6)}
    assert {n: figure.value for n, figure in change.items()} == {2: -1, 3: -1, 4: -1, 5: -0.5}
    assert {(figure.n, figure.tests) for figure in change.values()} == {(12, 4)}
    assert all(figure.p is not None and figure.p < 0.05 for figure in change.values())
    assert undeclared(run) == []
    files = exported(run)
    for n in range(1, 5):
        assert len(files[f"prediction_en_loop_position{n}_temp0.2_noise0.8_passage5_correct0.0"]) == 12
    assert files["prediction_en_loop_temp0.2_noise0.8_passage5_correct0.0_result"]["all_rate"] == 0.5


# With and without documents


def test_what_is_known_is_told_from_what_is_read(tmp_path: Path) -> None:
    """Even questions are known. Documents teach the odd ones; noise makes it forget question 0."""
    data = write(tmp_path / "en.json", map(plain, range(8)))

    def rule(item: Item, prompt: str) -> str:
        if "Documents:" not in prompt:
            return (misled if item["id"] % 2 else right)(item, prompt)
        forgets = prompt.count("was painted") == 4 and item["id"] == 0
        return (misled if forgets else right)(item, prompt)

    options = {"ability": "noise", "noise_rates": "0,0.8", "closed_book": True}
    run = ask(data, tmp_path / "run", rule, **options)
    assert run.summary["known_published"].value == 0.5
    assert table(run)["no documents, plain questions"]["published"].value == 0.5
    learned, retained = (
        run.summary[f"{name}_published/setting=noise 0.8"] for name in ("learned", "retained")
    )
    assert (learned.value, learned.n, retained.value, retained.n) == (1.0, 4, 0.75, 4)
    assert run.summary["retained_published/setting=noise 0"].value == 1.0
    assert run.headline.value == 7 / 8  # the closed book is no setting of the headline
    assert undeclared(run) == []


def test_no_passages_ask_plain_questions_for_what_is_known(tmp_path: Path) -> None:
    write(tmp_path / "en.json", map(plain, range(3)))
    write(tmp_path / "en_int.json", map(scattered, range(2)))
    run = ask(tmp_path, tmp_path / "run", right, passages=0)
    assert set(table(run)) == {"no documents, plain questions", "no documents, integration"}
    assert (run.summary["known_published"].value, run.summary["known_published"].n) == (1.0, 5)
    assert "published" not in run.summary
    assert run.headline.value == 1.0
    prompts = {sample.inputs.docs for sample in samples(tmp_path / "en.json", passages=0)}
    assert prompts == {()}
    path = run.path / "export/prediction_en_loop_temp0.2_noise0.0_passage0_correct0.0.json"
    again = ek.score("rgb", path, out=tmp_path / "again")
    assert again.summary["known_published"].value == 1.0


# Between repeats


def repeated(rows: Iterable[tuple[int, str, list[float]]]) -> list[Score]:
    return [
        score(q, {"published": value}, number=n, ability="noise", setting=f"noise {rate}", noise=rate)
        for q, rate, values in rows
        for n, value in enumerate(values)
    ]


def test_sampling_noise_is_separated_from_retrieval_noise() -> None:
    """By hand: question 0 varies between repeats alone, question 1 between settings alone."""
    scores = repeated(
        [
            (0, "0", [1, 0]),
            (0, "0.8", [1, 0]),
            (1, "0", [1, 1]),
            (1, "0.8", [0, 0]),
            (2, "0", [1, 1]),
            (2, "0.8", [1, 0]),
        ]
    )
    summary = summarise(scores)
    # s² = 1/2 for a prompt answered both ways. Between: 0 - 1/4; 1/2 - 0; var(1, 1/2) - (0 + 1/4)/2 = 0.
    within, between = [0.5, 0.0, 0.25], [-0.25, 0.5, 0.0]
    assert summary["sampling_variance_published/ability=noise"].value == pytest.approx(np.mean(within))
    assert summary["retrieval_variance_published/ability=noise"].value == pytest.approx(np.mean(between))
    share = summary["sampling_share_published/ability=noise"]
    assert share.value == pytest.approx(sum(within) / (sum(within) + sum(between)))
    assert (share.n, share.clusters) == (3, 3)
    once = summarise([each for each in scores if "-0-" in each.sample_id])
    assert not [name for name in once if "variance" in name or "sampling" in name]
    alone = summarise([each for each in scores if each.tags["noise"] == "0"])
    assert "sampling_variance_published/ability=noise" in alone
    assert "retrieval_variance_published/ability=noise" not in alone


def test_a_share_of_sampling_stays_a_share() -> None:
    rng = np.random.default_rng(5)
    interval = sampling_share(np.full(30, 0.25), rng.normal(-0.01, 0.05, 30))
    assert interval.value == 1.0
    assert interval.high == 1.0
    assert 0 < (interval.low or 0) <= 1
    assert sampling_share(np.zeros(5), np.zeros(5)).value is None


def test_repeats_are_asked_apart_and_the_headline_is_their_mean(tmp_path: Path) -> None:
    data = write(tmp_path / "en.json", map(plain, range(4)))
    options: dict[str, Any] = {"ability": "noise", "noise_rates": "0.8", "repeats": 3}
    asked = samples(data, **options)
    assert len({sample.id for sample in asked}) == len(asked) == 12
    assert [sample.inputs.repeat for sample in asked[:3]] == [0, 1, 2]
    requests = [Rgb(Rgb.Options(**options)).requests(sample)[0] for sample in asked]
    assert [request.repeat for request in requests] == [0, 1, 2] * 4
    calls: dict[int, int] = {}

    def rule(item: Item, prompt: str) -> str:
        calls[item["id"]] = calls.get(item["id"], 0) + 1
        return (right if calls[item["id"]] == 1 else misled)(item, prompt)

    run = ask(data, tmp_path / "run", rule, **options)
    assert run.headline.value == pytest.approx(1 / 3)
    assert (run.headline.n, run.headline.clusters) == (12, 4)
    assert run.summary["sampling_variance_published/ability=noise"].value == pytest.approx(1 / 3)
    rates = [part["tt"] for name, part in exported(run).items() if name.endswith("_result")]
    assert (len(rates), sum(rates)) == (3, 4)
    assert {part["nums"] for name, part in exported(run).items() if name.endswith("_result")} == {4}


def test_integration_questions_have_their_answer_at_noise_one_too(tmp_path: Path) -> None:
    """Their documents are in every prompt: a right answer is right, and the rate is no point of a curve."""
    data = write(tmp_path / "en_int.json", [scattered(n) for n in range(4)])
    run = ask(data, tmp_path / "run", right, ability="integration", integration_rates="0,1")
    assert run.summary["lenient/integration_noise=1"].value == 1.0
    assert run.summary["published/integration_noise=1"].value == 1.0
    assert not [name for name in run.summary if name.startswith("noise_change") and "=1" in name]


def test_rejections_at_noise_one_are_not_learned_from_documents() -> None:
    scores = [score(n, {"known_published": 0.0}, ability="noise", setting="no documents") for n in range(6)]
    for rate, value in (("0", 0.0), ("1", 1.0)):
        scores += [
            score(n, {"published": value}, ability="noise", setting=f"noise {rate}", noise=rate)
            for n in range(6)
        ]
    assert summarise(scores)["learned_published/ability=noise"].value == 0.0

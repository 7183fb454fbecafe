"""RGB's figures over several values: the headline, corrections, false alarms, noise, repeats."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

import records
import sealegs as sl
from jsonlines import write_lines
from present import limits
from rgb_rules import (
    Item,
    Rule,
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
    troubled,
)
from sealegs.analysis.gate import gate
from sealegs.benchmarks.rgb.added import summarise
from sealegs.types import Score
from stored import undeclared

pytestmark = pytest.mark.slow

EACH = 12


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., sl.Run]:
    """A run by a rule, each made once."""
    made: dict[str, sl.Run] = {}
    folder = tmp_path_factory.mktemp("rgb")
    for name, item in (("en", plain), ("en_int", scattered), ("en_fact", false)):
        write_lines(folder / f"{name}.json", map(item, range(EACH)))
    runs = tmp_path_factory.mktemp("runs")

    def run(name: str, rule: Rule, **options: str) -> sl.Run:
        if name not in made:
            made[name] = ask(folder, runs / name, rule, **options)
        return made[name]

    return run


# The headline


def test_the_headline_does_not_move_with_the_rates_that_are_asked(asked: Callable[..., sl.Run]) -> None:
    """Half of the questions are lost at a rate of 0.8 and none at a lower one."""
    many, few = asked("many", troubled), asked("few", troubled, noise_rates="0.8")
    for run in (many, few):
        assert run.headline.value == (0.5 + 0 + 1 + 1) / 4  # where no document has the answer: from memory
        assert run.summary["macro_published"].value == (0.5 + 1 + 1 + 1) / 4
        assert (run.headline.low, run.headline.high) == (many.headline.low, many.headline.high)
        assert run.summary["macro_lenient/ability=noise"].value == 0.5
        assert run.summary["macro_lenient/lang=en"].value == run.headline.value
    assert many.summary["published"].value != few.summary["published"].value
    assert undeclared(many) == []


def test_one_ability_alone_is_not_called_a_mean(asked: Callable[..., sl.Run]) -> None:
    run = asked("noise", troubled, ability="noise")
    part = run.summary["lenient/setting=noise 0.8"]
    assert (run.headline.value, run.headline.low, run.headline.high) == (part.value, part.low, part.high)
    assert run.headline.method == part.method


def test_an_ability_without_an_answer_leaves_the_headline_unknown(asked: Callable[..., sl.Run]) -> None:
    scores = [
        msgspec.structs.replace(score, values=dict.fromkeys(score.values), statuses={"error": 1}, answered=0)
        if score.tags["ability"] == "integration"
        else score
        for score in (record.score for record in asked("many", troubled).records())
    ]
    figure = summarise(scores)["macro_published"]
    assert (figure.value, figure.low, figure.high) == (None, None, None)
    assert figure.coverage == pytest.approx(1 - 36 / 132)


def test_runs_are_compared_and_gated_by_the_mean_of_the_abilities(asked: Callable[..., sl.Run]) -> None:
    good, bad = asked("good", right), asked("many", troubled)
    differences = {difference.metric: difference for difference in sl.compare(good, bad).differences}
    assert next(iter(differences)) == "macro_lenient"
    first = differences["macro_lenient"]
    assert (first.value_a, first.value_b, first.difference) == (0.75, 0.625, -0.125)
    assert (first.n, first.clusters) == (4 * EACH, 3 * EACH)
    assert differences["macro_lenient/ability=noise"].value_b == 0.5
    assert [check.name for check in gate(bad, good).checks if not check.passed] == ["macro_lenient"]
    assert gate(good, bad).passed


# Errors in the documents


def test_reports_on_true_documents_are_false_alarms(tmp_path: Path) -> None:
    data = write_lines(tmp_path / "en_fact.json", map(false, range(6)))

    def rule(item: Item, prompt: str) -> str:
        suspicious = item["id"] < (3 if "Wrongford" in prompt else 1)
        return (reporting if suspicious else right)(item, prompt)

    run = ask(data, tmp_path / "run", rule, ability="counterfactual", correct_rate="0,0.4,1")
    hits, alarms = run.summary["detected_published"], run.summary["false_alarms_published"]
    assert (hits.value, hits.n) == (0.5, 12)
    assert alarms.value == pytest.approx(1 / 6)
    assert alarms.n == 6
    rows = table(run)
    assert rows["no false documents: false alarms"]["published"].value == pytest.approx(1 / 6)
    assert "no false documents: error detection" not in rows
    assert undeclared(run) == []
    # The published file of this setting keeps its published name for the rate.
    name = "prediction_en_fact_loop_temp0.2_noise0.0_passage5_correct1.0"
    assert exported(run)[f"{name}_result"]["fact_check_rate"] == pytest.approx(1 / 6)
    again = sl.score("rgb", run.path / f"export/{name}.json", out=tmp_path / "again")
    assert again.summary["false_alarms_published"].value == pytest.approx(1 / 6)


# Along noise, without documents, repeated


def score(question: int, values: Mapping[str, float | None], rate: str) -> Score:
    ok = None not in values.values()
    tags = {"lang": "en", "ability": "noise", "setting": f"noise {rate}", "noise": rate}
    return records.score(
        f"{question}-{rate}", values, group=f"q{question}", tags=tags, answered=int(ok),
        statuses={"ok" if ok else "error": 1},
    )  # fmt: skip


def test_the_fall_with_noise_is_paired_by_question() -> None:
    """Of ten questions two are wrong always, four more at 0.4, and two more at 0.8."""
    wrong = {"0": 2, "0.4": 6, "0.8": 8}
    scores = [
        score(n, {"published": float(n >= lost)}, rate) for rate, lost in wrong.items() for n in range(10)
    ]
    summary = summarise([*scores, *(score(n, {"published": 1.0}, "1") for n in range(10))])
    fall = summary["noise_change_published/noise=0.8"]
    assert fall.value == pytest.approx(-0.6)
    assert (fall.n, fall.tests) == (10, 2)
    assert limits(fall)[1] < 0
    assert summary["noise_change_published/noise=0.4"].value == pytest.approx(-0.4)
    assert summary["noise_change_published"] == fall
    assert "noise_change_published/noise=1" not in summary  # where a rejection is right
    # A question that failed at one rate is in neither mean.
    fall = summarise([*scores[:-1], score(9, {"published": None}, "0.8")])["noise_change_published"]
    assert fall.value == pytest.approx(-6 / 9)
    assert (fall.n, fall.coverage) == (9, 0.9)


def test_integration_questions_have_their_answer_at_noise_one_too(tmp_path: Path) -> None:
    data = write_lines(tmp_path / "en_int.json", map(scattered, range(4)))
    run = ask(data, tmp_path / "run", right, ability="integration", noise_rates="0,1")
    assert run.summary["lenient/integration_noise=1"].value == 1.0


def test_no_passages_ask_plain_questions_for_what_is_known(tmp_path: Path) -> None:
    write_lines(tmp_path / "en.json", map(plain, range(3)))
    write_lines(tmp_path / "en_int.json", map(scattered, range(2)))
    run = ask(tmp_path, tmp_path / "run", right, passages=0)
    assert (run.summary["known_published"].value, run.summary["known_published"].n) == (1.0, 5)
    assert "published" not in run.summary
    assert run.headline.value == 1.0
    path = run.path / "export/prediction_en_loop_temp0.2_noise0.0_passage0_correct0.0.json"
    assert sl.score("rgb", path, out=tmp_path / "again").summary["known_published"].value == 1.0


def test_repeats_are_asked_apart_and_the_headline_is_their_mean(tmp_path: Path) -> None:
    data = write_lines(tmp_path / "en.json", map(plain, range(4)))
    options: dict[str, Any] = {"ability": "noise", "noise_rates": "0.8", "repeats": 3}
    listed = samples(data, **options)
    assert len({sample.id for sample in listed}) == len(listed) == 12
    calls: dict[int, int] = {}

    def rule(item: Item, prompt: str) -> str:
        calls[item["id"]] = calls.get(item["id"], 0) + 1
        return (right if calls[item["id"]] == 1 else misled)(item, prompt)

    run = ask(data, tmp_path / "run", rule, **options)
    assert run.headline.value == pytest.approx(1 / 3)
    assert (run.headline.n, run.headline.clusters) == (12, 4)
    assert "12 answers from 4 questions" in run.verdict
    again = ask(data, tmp_path / "again", rule, **options)
    assert "Compared on 12 answers from 4 questions" in repr(sl.compare(run, again))
    # One answer of three is right: 1/3, C(1, 2) / C(3, 2) = 0, and never all.
    passes = [run.summary[f"pass_hat_k/k={k}"] for k in (1, 2, 3)]
    assert [figure.value for figure in passes] == pytest.approx([1 / 3, 0, 0])
    assert {(figure.n, figure.clusters, figure.coverage) for figure in passes} == {(4, 4, 1.0)}
    assert run.summary["pass_hat_k/k=1,setting=noise 0.8"].value == pytest.approx(1 / 3)
    often = [run.summary[f"right_{name}"].value for name in ("every_time", "sometimes", "never")]
    assert often == [0, 1, 0]
    assert undeclared(run) == []
    rates = [part for name, part in exported(run).items() if name.endswith("_result")]
    assert (len(rates), sum(part["tt"] for part in rates)) == (3, 4)
    assert {part["nums"] for part in rates} == {4}

"""RGB's headline, the mean of its abilities, and the shares of the detected: in a run, compared and gated."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

import evenkeel as ek
from commandline import evenkeel
from evenkeel.analysis.gate import gate
from evenkeel.benchmarks.rgb.benchmark import Rgb
from evenkeel.errors import UsageError
from rgb_rules import Item, Rule, ask, false, misled, plain, reporting, right, scattered, troubled, write
from stored import rewrite_records, undeclared

EACH = 12


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rgb")
    write(folder / "en.json", map(plain, range(EACH)))
    write(folder / "en_int.json", map(scattered, range(EACH)))
    write(folder / "en_fact.json", map(false, range(EACH)))
    return folder


@pytest.fixture(scope="module")
def asked(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., ek.Run]:
    """A run by a rule, each made once."""
    made: dict[str, ek.Run] = {}
    folder = tmp_path_factory.mktemp("runs")

    def run(name: str, rule: Rule, **options: str) -> ek.Run:
        if name not in made:
            made[name] = ask(files, folder / name, rule, **options)
        return made[name]

    return run


def detecting(some: Callable[[int], bool], corrected: Callable[[int], bool]) -> Rule:
    """Right on all else; of false documents it reports some, and corrects some of these."""

    def rule(item: Item, prompt: str) -> str:
        if "fakeanswer" not in item or not some(item["id"]):
            return right(item, prompt)
        wrong = misled(item, prompt)
        return reporting(item, prompt) if corrected(item["id"]) else f"There are factual errors. {wrong}"

    return rule


# The headline


def test_the_headline_does_not_move_with_the_rates_that_are_asked(asked: Callable[..., ek.Run]) -> None:
    """Half of the questions are lost at a rate of 0.8 and none at a lower one."""
    many = asked("many", troubled)
    few = asked("few", troubled, noise_rates="0.8", integration_rates="0.4")
    more = asked("more", troubled, noise_rates="0.1,0.8", integration_rates="0,0.1,0.2,0.3,0.4")
    for run in (many, few, more):
        assert run.headline.value == (0.5 + 1 + 1 + 1) / 4
        assert (run.headline.low, run.headline.high) == (many.headline.low, many.headline.high)
        assert run.summary["macro_published/ability=noise"].value == 0.5
        assert run.summary["macro_published/lang=en"].value == run.headline.value
    assert len({run.summary["published"].value for run in (many, few, more)}) == 3
    assert undeclared(many) == []


def test_another_rate_stands_in_where_the_usual_one_was_not_asked_and_it_is_said(
    asked: Callable[..., ek.Run],
) -> None:
    run = asked("elsewhere", troubled, noise_rates="0,0.6", integration_rates="0", correct_rate="0.2")
    assert run.headline.value == 1.0
    listed, missing = [note.text for note in Rgb.notes(run.spec, run.summary)][:2]
    assert "noise robustness (noise 0.6)" in listed
    assert "counterfactual robustness (false documents, 0.2 of them true)" in listed
    assert missing.endswith("not all asked: noise 0.8; integration, noise 0.4; false documents.")


def test_one_ability_alone_is_its_own_headline(asked: Callable[..., ek.Run]) -> None:
    run = asked("noise", troubled, ability="noise")
    part = run.summary["published/setting=noise 0.8"]
    assert (run.headline.value, run.headline.low, run.headline.high) == (part.value, part.low, part.high)
    assert run.headline.method == part.method


def test_an_ability_without_an_answer_leaves_the_headline_unknown(
    asked: Callable[..., ek.Run], tmp_path: Path
) -> None:
    from evenkeel.benchmarks.rgb.figures import summarise

    scores = [
        msgspec.structs.replace(score, values=dict.fromkeys(score.values), statuses={"error": 1}, answered=0)
        if score.tags["ability"] == "integration"
        else score
        for score in (record.score for record in asked("many", troubled).records())
    ]
    figure = summarise(scores)["macro_published"]
    assert (figure.value, figure.low, figure.high) == (None, None, None)
    assert figure.method == "none: nothing answered for integration"
    assert figure.coverage == pytest.approx(1 - 36 / 132)


def test_runs_are_compared_and_gated_by_the_mean_of_the_abilities(asked: Callable[..., ek.Run]) -> None:
    good, bad = asked("good", right), asked("many", troubled)
    first = ek.compare(good, bad).differences[0]
    assert first.metric == "macro_published"
    assert (first.value_a, first.value_b, first.difference) == (1.0, 0.875, -0.125)
    assert (first.n, first.clusters) == (4 * EACH, 3 * EACH)
    # The noise of twelve questions, of which six are lost, counts for a quarter.
    error = 0.25 * (0.25 / (EACH - 1)) ** 0.5
    assert first.low is not None
    assert first.high is not None
    assert (first.high - first.low) / 2 == pytest.approx(2.2 * error, rel=0.1)
    assert first.different
    found = gate(bad, good)
    assert [check.name for check in found.checks if not check.passed] == ["macro_published"]
    assert gate(good, bad).passed
    assert ek.compare(good, bad, asked("reporting", reporting)).ranking[-1].name == "many"


def test_parts_of_the_headline_are_compared_beside_it(asked: Callable[..., ek.Run]) -> None:
    found = {d.metric: d for d in ek.compare(asked("good", right), asked("many", troubled)).differences}
    assert found["macro_published/ability=noise"].value_b == 0.5
    assert found["macro_published/ability=rejection"].difference == 0
    assert "macro_lenient" in found
    assert "published" not in found  # whose mix depends on the rates


def test_runs_of_one_ability_are_compared_by_what_they_have(asked: Callable[..., ek.Run]) -> None:
    one, other = (asked(name, rule, ability="noise") for name, rule in (("noise", troubled), ("calm", right)))
    metrics = [difference.metric for difference in ek.compare(one, other).differences]
    assert "macro_published/ability=noise" in metrics
    assert "macro_published/ability=rejection" not in metrics
    with pytest.raises(UsageError, match="no sample of these runs has ability=rejection"):
        ek.compare(one, other, metrics="macro_published/ability=rejection")


# Shares of the detected


def test_a_correction_that_a_run_does_not_know_is_not_compared_as_none(
    asked: Callable[..., ek.Run], tmp_path: Path
) -> None:
    unknown, known = asked("good", right), asked("reporting", reporting)
    assert unknown.summary["corrected_published"].value is None
    for pair, values in (((unknown, known), (None, 1.0)), ((known, unknown), (1.0, None))):
        found = {d.metric: d for d in ek.compare(*pair).differences}["corrected_published"]
        assert (found.value_a, found.value_b, found.difference, found.p) == (*values, None, None)
    done = evenkeel("compare", unknown.path, known.path)
    (line,) = [line for line in done.output.splitlines() if line.startswith("corrected_published")]
    assert line.split() == ["corrected_published", "–", "100%", "–", "–", "–", "no"]
    checked = gate(known, unknown, metrics=["corrected_published"]).checks[1]
    assert not checked.passed
    assert "no sample with a value in both runs" in checked.reason


def test_a_sample_outside_the_denominator_has_no_value(asked: Callable[..., ek.Run]) -> None:
    run = asked("good", right)
    values = [record.score.values for record in run.records() if "corrected_published" in record.score.values]
    assert len(values) == EACH
    assert all(each["corrected_published"] is None and each["detected_published"] == 0 for each in values)


def test_an_older_run_that_counts_them_as_wrong_is_read_as_unknown(
    asked: Callable[..., ek.Run], tmp_path: Path
) -> None:
    import shutil

    run = asked("good", right)
    old = tmp_path / "old"
    shutil.copytree(run.path, old)
    records = []
    for record in run.records():
        values = record.score.values
        zeroed = {name: 0.0 if name.startswith("corrected_") else value for name, value in values.items()}
        score = msgspec.structs.replace(record.score, values=zeroed)
        records.append(msgspec.structs.replace(record, score=score))
    rewrite_records(old, b"".join(msgspec.json.encode(r) + b"\n" for r in records))
    found = {d.metric: d for d in ek.compare(old, asked("reporting", reporting)).differences}
    assert found["corrected_published"].value_a is None


def test_correction_is_compared_over_what_each_run_detected(asked: Callable[..., ek.Run]) -> None:
    """One detects the even questions and corrects half of them, the other all and corrects a quarter."""
    first = asked("even", detecting(lambda n: n % 2 == 0, lambda n: n % 4 == 0), ability="counterfactual")
    second = asked("all", detecting(lambda n: True, lambda n: n % 4 == 0), ability="counterfactual")
    [found] = ek.compare(first, second, metrics=["corrected_published"]).differences
    assert [run.summary["corrected_published"].value for run in (first, second)] == [0.5, 0.25]
    assert (found.value_a, found.value_b, found.difference) == (0.5, 0.25, -0.25)
    assert (found.n, found.clusters) == (6, 6)
    assert found.p is not None
    assert found.p > 0.05

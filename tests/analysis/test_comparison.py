"""Runs compared with each other: what is paired, what is refused, what differs significantly."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import sealegs as sl
from loopback import Loopback
from records import macro_run, record, store
from runs import run_small
from sealegs.analysis import Interval, figure
from sealegs.analysis.significance import holm
from sealegs.benchmarks.miron.data import MironInputs
from sealegs.benchmarks.rgb.prompts import load_prompts
from sealegs.errors import UsageError
from stored import NUMBERS, headline, noisy, store_pair, store_run

MIRON = MironInputs(prefix="The", target=" end", category="Facts", kind="fact", clean_id="")


def test_two_runs_are_paired_by_sample_and_tested_over_questions(tmp_path: Path) -> None:
    from scipy.stats import ttest_rel

    before, after = noisy(seed=1), noisy(0.01, seed=2)
    values = ({**headline(tokens), "estimated_tokens": tokens} for tokens in (before, after))
    a, b = store_pair(tmp_path, *values, names=("a", "b"))
    [found] = sl.compare(a, b, metrics=["estimated_tokens"]).differences
    known = ttest_rel(after.mean(axis=1), before.mean(axis=1))
    low, high = known.confidence_interval(0.95)
    assert found.difference == pytest.approx(after.mean() - before.mean())
    assert (found.low, found.high, found.p) == pytest.approx((low, high, known.pvalue))
    assert (found.value_a, found.value_b) == pytest.approx((before.mean(), after.mean()))
    assert (found.n, found.clusters, found.method) == (60, 20, "paired t over groups")
    assert (found.a, found.b) == ("a", "b")
    [cosine] = sl.compare(a, b, metrics=["mean_similarity"]).differences
    assert cosine.method == "paired logit t over groups"
    assert (cosine.low, cosine.high) == pytest.approx((low, high), abs=0.1 * (high - low))


def test_a_difference_covers_the_samples_that_have_a_value_in_both_runs(tmp_path: Path) -> None:
    """Of 60 samples one run lacks 12 and the other 15, three of them the same: 36 have both."""
    before, after = noisy(seed=1), noisy(seed=2)
    before.flat[:12] = np.nan
    after.flat[9:24] = np.nan
    before.flat[12:24] = 9.0  # were they counted, a would be far above
    comparison = sl.compare(*store_pair(tmp_path, before, after))
    assert (
        ", both over the 36 prompts from 12 questions that both answered; "
        in comparison.overview().verdicts[0]
    )
    [found] = comparison.differences
    assert (found.n, found.coverage_a, found.coverage_b) == (36, 0.8, 0.75)
    assert found.coverage == pytest.approx(0.6)
    assert found.value_a == pytest.approx(before.flat[24:].mean())
    more, fewer = store_pair(tmp_path / "other", noisy(seed=3), noisy(seed=4)[:15])
    assert sl.compare(more, fewer).differences[0].coverage == 1.0


def test_all_shown_metrics_are_compared_and_corrected_together(tmp_path: Path) -> None:
    def values(seed: int, shift: float) -> dict[str, NUMBERS]:
        names = ("identical_answers", "drift", "private")
        made = {name: noisy(seed=seed + n) for n, name in enumerate(names)}
        return {**made, "mean_similarity": noisy(shift, seed=seed + 2)}

    a, b = store_pair(tmp_path, values(10, 0.0), values(20, 0.012))
    comparison = sl.compare(a, b)
    found = {d.metric: d for d in comparison.differences}
    assert next(iter(found)) == "mean_similarity"  # the headline first; not the private one
    assert set(found) == {"mean_similarity", "drift", "identical_answers"}
    p = {name: each.p or 0.0 for name, each in found.items()}
    # The headline is tested by itself: its row is what the first sentence says.
    assert (comparison.alone, found["mean_similarity"].p_holm) == ("mean_similarity", p["mean_similarity"])
    assert comparison.leading == (found["mean_similarity"],)
    assert [each.p_holm for each in comparison.differences[1:]] == holm([*p.values()])[1:]
    assert "for all rows (Holm) but the first, which is tested alone" in " ".join(repr(comparison).split())
    # Metrics that are named are one family, as in a gate.
    named = sl.compare(a, b, metrics=[*found])
    assert named.alone == ""
    assert named.differences[0].p_holm == pytest.approx(3 * p["mean_similarity"])
    assert "tested alone" not in repr(named)
    assert found["identical_answers"].unit == "share"
    # The level of the first of three tests is 0.05/3: (2.63 + 0.86) / (2.09 + 0.86) for 19 degrees.
    detectable = named.differences[0].detectable or 0
    assert 1.1 < detectable / (found["mean_similarity"].detectable or 1) < 1.25


def test_a_metric_can_be_confined_to_a_scope(tmp_path: Path) -> None:
    before, after = noisy(seed=1), noisy(seed=2)
    runs = store_pair(tmp_path, before, after)
    [found] = sl.compare(*runs, metrics=["mean_similarity/level=2,lang=en"]).differences
    assert found.difference == pytest.approx((after - before)[:, 2].mean())
    assert found.n == 20


def test_a_figure_that_is_not_a_mean_of_samples_is_not_compared(tmp_path: Path) -> None:
    """`corrected` is a share of the detected in the summary, and of all samples in the samples."""
    values = {**headline(noisy()), "drift": np.eye(20, 3)}
    old, new = store_pair(tmp_path, values, values)
    ratio = msgspec.structs.replace(new.summary["drift"], value=0.7)
    (new.path / "summary.json").write_bytes(msgspec.json.encode({**new.summary, "drift": ratio}))
    assert sl.compare(old, new.path).metrics == ("mean_similarity",)
    with pytest.raises(UsageError, match="'drift' cannot be compared"):
        sl.compare(old, new.path, metrics=["drift"])


# What may not be paired


def test_a_figure_that_a_run_withholds_is_not_compared(tmp_path: Path) -> None:
    """As the cosine over languages that the embedder does not read: its samples have values."""
    runs = store_pair(tmp_path, noisy(seed=1), noisy(seed=2))
    path = runs[1].path / "summary.json"
    summary = msgspec.json.decode(path.read_bytes())
    summary["mean_similarity"] |= {"value": None, "low": None, "high": None, "reason": "by language"}
    path.write_bytes(msgspec.json.encode(summary))
    [found] = sl.compare(runs[0], runs[1].path, metrics=["mean_similarity"]).differences
    assert (found.difference, found.p) == (None, None)
    assert (found.outcome, found.reason) == ("not compared", "B has no value (by language)")


def test_where_the_headline_is_unknown_the_next_main_figure_leads(tmp_path: Path) -> None:
    unknown, right = np.full((20, 3), np.nan), np.zeros((20, 3))
    right[:10] = 1
    runs = [
        store_run(tmp_path / str(share), {**headline(unknown), "right_every_time": right * share})
        for share in (0, 0.5, 1)
    ]
    found = sl.compare(*runs[:2])
    assert found.metrics[:2] == ("right_every_time", "mean_similarity")
    assert "Right every time: B is better (B 25%, A 0%, " in repr(found)
    assert "Compared on 60 prompts" in repr(found)
    assert sl.compare(*runs).metrics == ("right_every_time",)


def test_a_mean_with_a_part_of_few_questions_has_no_verdict(tmp_path: Path) -> None:
    """Though its value is the same in both runs."""
    runs = [macro_run(tmp_path / name, noise=[1.0, 0.0] * 6, integration=[1.0] * 5) for name in "ab"]
    found = sl.compare(*runs, metrics="macro_lenient")
    [same] = found.differences
    assert (same.difference, same.low, same.outcome) == (0, None, "too few to tell")
    assert "too few questions" in repr(found)


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"embedder": "other"}, "differently: Embedder: A openai:embed, B openai:other. Compare"),
        (
            {"options": {"temperature": None, "words": "0123456789abcdef" * 4}},
            "Words: A none, B 0123456789abcdef",
        ),
        ({"lang": "ko"}, "they have no sample in common"),
        (
            {"embedder": f"e?base_url={'x' * 60}", "options": {"temperature": 0.5}},
            "differently: Embedder: A openai:embed, B openai:e; Temperature: A 0.7, B 0.5. Compare",
        ),
    ],
)
def test_runs_that_were_asked_different_things_are_refused(
    tmp_path: Path, changed: dict[str, Any], named: str
) -> None:
    a, b = store_pair(tmp_path, noisy(seed=1), noisy(seed=2), **changed)
    for runs_in_order in (lambda: sl.compare(a, b), lambda: sl.gate(b, a)):
        with pytest.raises(UsageError, match="were asked differently") as caught:
            runs_in_order()
        assert named in str(caught.value)


def test_an_option_that_was_not_given_is_said_to_be_the_default(tmp_path: Path) -> None:
    with Loopback() as server:
        usual, one = (
            run_small("rgb", tmp_path / name, server, limit=2, noise_rates=rates)
            for name, rates in (("usual", None), ("one", "0.4"))
        )
    assert "Noise rates: A default, B 0.4" in sl.compare(usual, one).differs


def test_another_prompt_around_the_same_question_and_documents_is_the_same_question(tmp_path: Path) -> None:
    run = macro_run(tmp_path / "run", noise=[1.0])
    [inputs] = [each.sample.inputs for each in run.records()]
    reworded = msgspec.structs.replace(inputs, prompts=load_prompts("own")["en"])
    assert reworded.fingerprint() == inputs.fingerprint()
    assert msgspec.structs.replace(inputs, docs=("other",)).fingerprint() != inputs.fingerprint()


def test_why_there_is_no_test_is_said(tmp_path: Path) -> None:
    values = noisy(seed=1)
    same, one, other, none = (
        store_run(tmp_path / name, headline(cells))
        for name, cells in (("s", values), ("1", values[:1]), ("2", values[:1] - 0.1), ("n", values * np.nan))
    )
    again = store_run(tmp_path / "again", headline(values))
    assert "There is nothing to test: no value differs." in repr(sl.compare(same, again))
    assert "No test was possible: there are too few samples." in repr(sl.compare(one, other))
    missing = " ".join(repr(sl.compare(same, none)).split())
    assert "not compared: B has no value (nothing to count)" in missing
    assert "Nothing was compared." in missing


def test_another_temperature_is_compared_and_noted(tmp_path: Path) -> None:
    a, b = store_pair(tmp_path, noisy(seed=1), noisy(seed=2), options={"temperature": 1.0})
    found = sl.compare(a, b)
    assert found.differs == ("Temperature: A 0.7, B 1.0",)
    assert found.differences[0].n == 60
    assert sl.gate(b, baseline=a).notes[:2] == ("A is the baseline, B the run.", "Temperature: A 0.7, B 1.0")


def test_a_temperature_that_a_server_refused_is_noted(tmp_path: Path) -> None:
    refused = {"refused": {"model": ["temperature"]}}
    b, a = store_pair(tmp_path, noisy(seed=1), noisy(seed=2), provenance=refused, model="two")
    found = sl.compare(a, b)
    assert found.differs == ()  # that of the server is not known
    assert "not sent in two, whose server refused it: temperature" in found.notes


@pytest.mark.parametrize(
    "changed",
    [
        {"model": "other"},
        {"seed": 7},
        {"limit": 20},
        {"data": {"source": "recorded", "sha256": ["1"]}},
        {"options": {"temperature": 0.7, "levels": "1-3"}},  # which the samples show
    ],
)
def test_runs_of_another_model_seed_or_file_are_paired_by_samples(
    tmp_path: Path, changed: dict[str, Any]
) -> None:
    found = sl.compare(*store_pair(tmp_path, noisy(seed=1), noisy(seed=2)[:15], **changed))
    assert found.differences[0].n == 45
    assert bool(found.differs) == ("model" not in changed)


def test_runs_that_ask_a_few_prompts_differently_are_refused(tmp_path: Path) -> None:
    a, b = store_pair(tmp_path, noisy(seed=1), noisy(seed=2))
    lines = (b.path / "records.jsonl").read_bytes().splitlines(keepends=True)
    changed = [line.replace(b"Question", b"Quiz") for line in lines[:3]]
    (b.path / "records.jsonl").write_bytes(b"".join([*changed, *lines[3:]]))
    with pytest.raises(UsageError, match="3 of 60 shared prompts ask different things: en-0-L0"):
        sl.compare(a, b)


def test_samples_with_other_numbers_of_answers_are_left_out(tmp_path: Path) -> None:
    """`max_similarity` depends on how many answers there are; of three prompts one run has fewer."""
    runs = [store_run(tmp_path / name, {"max_similarity": noisy(seed=ord(name))}) for name in "abc"]
    records = runs[1].path / "records.jsonl"
    lines = records.read_bytes().splitlines(keepends=True)
    more = [line.replace(b'"answered":1', b'"answered":2') for line in lines[:3]]
    records.write_bytes(b"".join([*more, *lines[3:]]))
    found = sl.compare(*runs, metrics="max_similarity")
    assert [each.n for each in found.differences] == [57, 60, 57]
    assert any("3 prompts left out, because each run has another number" in note for note in found.notes)


def test_what_depends_on_all_questions_is_compared_over_the_same_ones(tmp_path: Path) -> None:
    """The floor of chance, and with it the corrected similarity, is that of a run's other questions."""
    whole, alike, part = (
        store_run(tmp_path / name, {"corrected_similarity": noisy(seed=seed)[:questions]})
        for name, seed, questions in (("a", 1, 20), ("b", 2, 20), ("c", 3, 15))
    )
    assert sl.compare(whole, alike, metrics="corrected_similarity").differences[0].n == 60
    found = sl.compare(whole, part, metrics="corrected_similarity")
    assert found.differences[0].n == 0
    assert "45 prompts left out, because they depend on the other samples" in " ".join(found.notes)


@pytest.mark.parametrize(
    ("rejections", "method", "reason"),
    [
        ([1.0, 0.0] * 4, "paired logit t over groups", ""),
        ([1.0, 0.0], "", "a part has fewer than 6 groups"),  # which the other part cannot make up for
        # Without a part the mean of parts is unknown.
        ([None, None], "", "A has no value (one has none)"),
    ],
)
def test_a_macro_average_is_compared_by_all_of_its_parts(
    tmp_path: Path, rejections: list[float | None], method: str, reason: str
) -> None:
    a = macro_run(tmp_path / "a", noise=[1.0, 1.0, 0.0] * 4, rejection=rejections)
    b = macro_run(tmp_path / "b", noise=[0.0, 1.0, 1.0] * 4, rejection=[0.0] * len(rejections))
    [difference] = sl.compare(a, b, metrics="macro_lenient").differences
    assert (difference.method, difference.reason) == (method, reason)
    assert (difference.value_a is None) == (None in rejections)
    assert (difference.outcome == "not compared") == (None in rejections)


@pytest.mark.parametrize(
    ("detected", "corrected", "of_many", "outcome"),
    [
        (2, 2, 20, "too few to tell"),
        (6, 6, 20, "too few to tell"),
        (2, 2, 40, "too few to tell"),  # the same share in both, of two questions in one
        (6, 0, 40, "better"),
        (6, 3, 20, "too few to tell"),
    ],
)
def test_a_ratio_of_which_one_run_has_few_that_agree_is_uncertain(
    detected: int, corrected: int, of_many: int, outcome: str, tmp_path: Path
) -> None:
    """All corrected of two detected errors: half of equal models differed significantly from 20 of 40."""
    runs = []
    for name, count, right in (("few", detected, corrected), ("many", 40, of_many)):
        columns = (np.arange(40)[:, None] < number for number in (count, right))
        names = ("detected_lenient", "corrected_lenient")
        values = {name: column.astype(float) for name, column in zip(names, columns, strict=True)}
        run = store_run(tmp_path / name, values, benchmark="rgb")
        known = {"detected_lenient": run.summary["detected_lenient"]}
        (run.path / "summary.json").write_bytes(msgspec.json.encode(known))
        runs.append(run)
    [found] = sl.compare(*(run.path for run in runs), metrics="corrected_lenient").differences
    assert (found.value_a, found.value_b) == (corrected / detected, of_many / 40)
    assert found.outcome == outcome


def test_wrong_usage_is_named(tmp_path: Path) -> None:
    a, b = store_pair(tmp_path, noisy(), noisy())
    with pytest.raises(UsageError, match="at least two runs"):
        sl.compare(a)
    with pytest.raises(UsageError, match="given twice"):
        sl.compare(a, str(tmp_path / "." / "old"))
    for ask in (sl.compare, sl.gate):
        with pytest.raises(UsageError, match="Did you mean 'mean_similarity'. Available: mean_similarity"):
            ask(a, b, metrics=["mean_similarty"])
    for scope in ("lang=kr", "method=bm25", "level=7"):
        with pytest.raises(UsageError, match="cannot be compared .* lang: en; level: 0, 1, 2"):
            sl.compare(a, b, metrics=[f"mean_similarity/{scope}"])
    other = store_run(tmp_path / "c", headline(noisy()), benchmark="rgb")
    with pytest.raises(UsageError, match="runs of mirae and rgb cannot be compared"):
        sl.compare(a, other)


# Several runs


def test_of_several_runs_each_pair_is_compared(tmp_path: Path) -> None:
    shifts = {"low": -0.1, "middling": 0.0, "alike": 0.001, "high": 0.1}
    runs = [
        store_run(tmp_path / name, {**headline(noisy(shift, seed=n)), "drift": noisy(seed=n)}, model=name)
        for n, (name, shift) in enumerate(shifts.items())
    ]
    found = sl.compare(*runs)
    assert found.metrics == ("mean_similarity",)
    assert [(d.a, d.b) for d in found.differences] == list(combinations(shifts, 2))
    assert [(d.a, d.b) for d in found.differences if not d.different] == [("middling", "alike")]
    more = sl.compare(*runs, metrics=["mean_similarity", "drift"])
    assert len(more.differences) == 12
    assert more.differences[1].p_holm > (found.differences[1].p_holm or 0)  # type: ignore[operator]


def test_a_weighted_mean_is_compared_by_its_weights(tmp_path: Path) -> None:
    """Bits per byte: Σ bits / Σ bytes in both runs, and in their difference."""
    sizes = [1.0, 3.0] * 6
    runs = []
    for name, ratios in (("a", [2.0, 1.0] * 6), ("b", [2.5, 0.5] * 6)):
        records = [
            record(2 * n, inputs=MIRON, tags={"category": "Facts", "lang": "en"},
                   values={"bits_per_byte": ratio, "target_bytes": size})
            for n, (ratio, size) in enumerate(zip(ratios, sizes, strict=True))
        ]  # fmt: skip
        run = store(tmp_path / name, records, "miron")
        mean = float(np.average(ratios, weights=sizes))
        figures = {"bits_per_byte": figure([], "", Interval(mean, None, None, "", 0, 0), unit="bits")}
        (run.path / "summary.json").write_bytes(msgspec.json.encode(figures))
        runs.append(run)
    [found] = sl.compare(*runs, metrics="bits_per_byte").differences
    assert (found.value_a, found.value_b) == pytest.approx((5 / 4, 1.0))
    assert found.difference == pytest.approx(-1 / 4)  # each counted once it would be 0
    assert found.method == "paired t over groups"

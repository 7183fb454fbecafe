"""A run compared with a baseline: directions, overlap, and decisions over several metrics."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sealegs as sl
from commandline import sealegs
from present import limits, present
from records import macro_run
from sealegs.analysis.gate import Gate, gate
from sealegs.errors import UsageError
from stored import NUMBERS, store_pair, store_run
from stored import noisy as noisy_values

noisy = partial(noisy_values, questions=40)


def shares(mean: float, seed: int) -> NUMBERS:
    """How many of five answers are something, in each cell."""
    return np.random.default_rng(seed).binomial(5, mean, (40, 3)) / 5


def held(tmp_path: Path, old: dict[str, NUMBERS], new: dict[str, NUMBERS], **options: Any) -> Gate:
    return gate(*reversed(store_pair(tmp_path, old, new)), **options)


# Directions


def test_a_scope_and_an_embedder_do_not_hide_the_direction(tmp_path: Path) -> None:
    old = {"mean_similarity@embedder-2": noisy(seed=1), "refusals": shares(0.04, 1)}
    new = {"mean_similarity@embedder-2": noisy(-0.05, seed=2), "refusals": shares(0.3, 2)}
    names = ["mean_similarity@embedder-2", "refusals/level=1"]
    found = held(tmp_path, old, new, metrics=names)
    assert [check.worse for check in found.checks[1:]] == ["drop", "rise"]
    assert [check.passed for check in found.checks] == [True, False, False]


def test_max_drop_is_how_far_a_metric_may_rise_where_lower_is_better(tmp_path: Path) -> None:
    old, new = {"drift": noisy(seed=1)}, {"drift": noisy(0.05, seed=2)}
    assert not held(tmp_path, old, new, metrics=["drift"], max_drop=0.03).passed
    found = gate(tmp_path / "new", tmp_path / "old", metrics=["drift"], max_drop=0.07)
    assert found.passed
    assert "no significant rise of more than 0.070" in found.checks[1].reason
    assert gate(tmp_path / "old", tmp_path / "new", metrics=["drift"]).passed  # a fall is for the better


def test_a_metric_without_a_direction_is_refused_unless_one_is_given(tmp_path: Path) -> None:
    old, new = {"identical_answers": shares(0.1, 1)}, {"identical_answers": shares(0.5, 2)}
    with pytest.raises(UsageError, match="of 'identical_answers' is better in itself"):
        held(tmp_path, old, new, metrics=["identical_answers"])
    runs = tmp_path / "new", tmp_path / "old"
    assert not gate(*runs, metrics=["identical_answers"], higher_is_worse=True).passed
    assert gate(*reversed(runs), metrics=["identical_answers"], higher_is_worse=True).passed


# Intervals and coverage


def test_a_gate_fails_where_too_little_was_answered(tmp_path: Path) -> None:
    values = noisy(seed=2)
    values[:4] = np.nan
    old, new = store_pair(tmp_path, noisy(seed=1), values)
    found = gate(new, old)
    assert [check.passed for check in found.checks] == [False, True]
    assert found.checks[0].reason == "coverage 90% is under the floor of 95%"
    assert gate(new, old, min_coverage=0.9).passed
    assert gate(old, new).checks[0].reason == (
        "coverage 100% reaches the floor of 95%; the baseline's, 90%, is under it"
    )


def test_a_gate_looks_at_the_coverage_of_what_it_gates(tmp_path: Path) -> None:
    """Four answers of 120 are missing, all of them among the forty of one level."""
    values = noisy(seed=2)
    values[:4, 1] = np.nan
    old, new = store_pair(tmp_path, noisy(seed=1), values)
    assert gate(new, old).checks[0].passed
    assert gate(new, old, metrics=["mean_similarity/level=2"]).checks[0].passed
    both = ["mean_similarity", "mean_similarity/level=1"]
    assert gate(new, old, metrics=both).checks[0].reason == (
        "coverage 90% (of Similarity of the answers' texts (SBERT cosine), level 1) is under the floor of 95%"
    )


def test_a_gate_fails_where_there_is_nothing_to_compare(tmp_path: Path) -> None:
    old, new = store_pair(tmp_path, noisy(seed=1), np.full((40, 3), np.nan))
    found = gate(new, old, min_coverage=0)
    assert not found.passed
    assert (
        found.checks[1].reason
        == "Similarity of the answers' texts (SBERT cosine) has no sample with a value in both runs"
    )


def test_a_headline_that_neither_run_has_is_refused_and_another_figure_named(tmp_path: Path) -> None:
    values = {"mean_similarity": np.full((40, 3), np.nan), "right_every_time": shares(0.5, 1)}
    old, new = store_pair(tmp_path, values, values)
    done = sealegs("gate", new.path, "--baseline", old.path, "--min-coverage", "0")
    assert done.code == 2
    assert (
        "no value in either run (nothing to count). Name the figure to gate: --metric right_every_time"
        in (" ".join(done.stderr.split()))
    )
    assert gate(new, old, metrics="right_every_time", min_coverage=0).passed


# What both runs have


def test_ten_questions_are_not_compared_with_forty(tmp_path: Path) -> None:
    old, new = store_pair(tmp_path, noisy(seed=1), noisy(seed=2)[:10])
    with pytest.raises(UsageError, match="30 of 120 from 10 questions. The gate needs 80%"):
        gate(new, old)
    with pytest.raises(UsageError, match="The gate needs 80%"):
        gate(old, new)  # the larger run counts, whichever it is


def test_fewer_groups_than_could_tell_anything_are_refused(tmp_path: Path) -> None:
    values = np.array([0.9, 0.8, 0.9, 0.8, 0.9, 0.8]).reshape(6, 1)
    for groups in (1, 5):
        old, new = store_pair(tmp_path / str(groups), values[:groups], values[:groups] - 0.5)
        with pytest.raises(UsageError, match=rf"from {groups} questions. The gate needs 80% and 6"):
            gate(new, old)
    assert not held(tmp_path, {"mean_similarity": values}, {"mean_similarity": values * 0.4}).passed


def test_a_scope_that_one_run_lacks_is_too_little_in_common(tmp_path: Path) -> None:
    old, new = store_pair(tmp_path, noisy(seed=1), noisy(seed=2)[:, :2])
    with pytest.raises(UsageError, match="'mean_similarity/level=2': .* 0 of 40"):
        gate(new, old, metrics=["mean_similarity/level=2"])


def test_a_baseline_that_mostly_failed_does_not_let_a_run_pass(tmp_path: Path) -> None:
    """Both were asked forty questions; the baseline has answers to ten of them."""
    before = noisy(seed=1)
    before[10:] = np.nan
    found = held(tmp_path, {"mean_similarity": before}, {"mean_similarity": noisy(seed=2)})
    assert [check.passed for check in found.checks] == [True, False]
    assert found.checks[1].reason == (
        "Similarity of the answers' texts (SBERT cosine) has a value in both runs for only 30 prompts from "
        "10 questions, of 120: the gate needs 80% and 6 questions"
    )


def test_a_gate_lists_what_a_recorded_baseline_does_not_state(tmp_path: Path) -> None:
    recorded = {"source": "recorded", "sha256": ["1"], "lang": None}
    old = store_run(tmp_path / "old", {"mean_similarity": noisy(seed=1)}, options={}, data=recorded)
    new = store_run(tmp_path / "new", {"mean_similarity": noisy(seed=2)})
    found = gate(new, old)
    assert found.passed
    assert any("not recorded in old: " in note and "temperature" in note for note in found.notes)
    assert "not recorded in old: " in repr(found)


# Several metrics


def near(tmp_path: Path, count: int) -> tuple[list[str], Gate]:
    """One metric whose drop is significant by itself, and others in which nothing happens."""
    names = ["mean_similarity", "std_similarity", "min_similarity", "max_similarity"][:count]
    old = {name: noisy(seed=place) for place, name in enumerate(names)}
    new = {name: noisy(seed=10 + place) for place, name in enumerate(names)}
    # A shift of every question by the noise's own error gives a t of about 2.3.
    change = new["mean_similarity"] - old["mean_similarity"]
    error = change.mean(axis=1).std(ddof=1) / np.sqrt(40)
    new["mean_similarity"] = new["mean_similarity"] - change.mean() - 2.3 * error
    return names, held(tmp_path, old, new, metrics=names)


def test_decisions_over_several_metrics_are_corrected_as_in_compare(tmp_path: Path) -> None:
    _, alone = near(tmp_path, 1)
    assert (alone.passed, alone.correction) == (False, "")
    names, several = near(tmp_path, 4)
    assert (several.passed, several.correction) == (True, "Holm, over 4 metrics")
    comparison = sl.compare(tmp_path / "old", tmp_path / "new", metrics=names)
    compared = comparison.differences
    assert present(several.checks[1].p_holm) >= 0.05 > (compared[0].p or 1)
    assert [d.different for d in compared] == [not check.passed for check in several.checks[1:]]
    # What the first sentence says is what the row says.
    assert comparison.leading == compared[:1]
    assert "(SBERT cosine): no clear difference" in repr(comparison)
    shown = sl.compare(tmp_path / "old", tmp_path / "new")
    assert [(each.outcome, each.p_holm) for each in shown.leading] == [("worse", compared[0].p)]
    assert "(SBERT cosine): B is worse" in repr(shown)


def test_one_metric_fails_exactly_where_its_interval_lies_beyond(tmp_path: Path) -> None:
    found = held(tmp_path, {"mean_similarity": noisy(seed=1)}, {"mean_similarity": noisy(-0.05, seed=2)})
    _, high = limits(present(found.checks[1].difference))
    for allowed, passed in ((-high - 1e-9, False), (-high + 1e-9, True)):
        again = gate(tmp_path / "new", tmp_path / "old", max_drop=allowed)
        assert again.passed is passed
        assert again.checks[1].p_holm == pytest.approx(0.05, abs=1e-6)


def test_the_same_in_every_sample_passes_and_says_so(tmp_path: Path) -> None:
    values = {"mean_similarity": noisy(seed=1)}
    found = held(tmp_path, values, values)
    assert found.passed
    assert "it is the same in every sample" in found.checks[1].reason


@pytest.mark.parametrize(
    ("option", "limit"),
    [
        ("max_drop", float("nan")), ("max_drop", float("inf")), ("max_drop", -0.1),
        ("min_coverage", float("nan")), ("min_coverage", 1.5),
    ],
)  # fmt: skip
def test_a_limit_that_nothing_could_fail_is_refused(tmp_path: Path, option: str, limit: float) -> None:
    with pytest.raises(UsageError, match=f"--{option.replace('_', '-')} is "):
        gate(tmp_path, tmp_path, **{option: limit})  # type: ignore[arg-type]


# Means over parts


def test_an_ability_of_five_questions_is_refused_by_its_name(tmp_path: Path) -> None:
    """Its change has no test: the sign of the change would decide."""
    for name in ("old", "new"):
        macro_run(tmp_path / name, noise=[1.0, 0.0] * 6, integration=[1.0, 0.0, 1.0, 0.0, 1.0])
    done = sealegs("gate", tmp_path / "new", "--baseline", tmp_path / "old", "--metric", "macro_lenient")
    assert done.code == 2
    assert "integration has 5. The gate needs 6 questions of each ability" in " ".join(done.stderr.split())


def test_an_ability_with_few_answers_in_common_does_not_pass(tmp_path: Path) -> None:
    old = macro_run(tmp_path / "old", noise=[1.0, 0.0] * 6, integration=[0.0] * 8)
    new = macro_run(tmp_path / "new", noise=[1.0, 0.0] * 6, integration=[1.0] * 5 + [None] * 3)
    summary = (new.path / "summary.json").read_text().replace('"value":null', '"value":0.75')
    (new.path / "summary.json").write_text(summary)
    found = gate(new, old, metrics="macro_lenient", min_coverage=0)
    assert not found.passed
    assert "too few values in both runs for one ability" in found.checks[1].reason


def test_a_pass_says_how_many_questions_would_show_the_allowed_drop(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    old, new = (
        macro_run(tmp_path / name, noise=random.binomial(1, 0.6, 40).astype(float).tolist(),
                  rejection=random.binomial(1, 0.6, 40).astype(float).tolist())
        for name in ("old", "new")
    )  # fmt: skip
    reasons = [gate(new, old, metrics="macro_lenient", max_drop=drop).checks[1].reason for drop in (0.0, 0.1)]
    said = re.findall(
        r"about ([0-9,]+) questions would tell a drop of (\d+) points from none", " ".join(reasons)
    )
    (many, few), drops = zip(*said, strict=True)
    many, few = (int(count.replace(",", "")) for count in (many, few))
    assert drops == ("5", "10")
    assert many == pytest.approx(4 * few, rel=0.1)  # half the drop, four times the questions


@pytest.mark.full
def test_equal_models_pass_and_twice_the_detectable_drop_fails(tmp_path: Path) -> None:
    """200 pairs of models that are right equally often, and 200 of which one lost twice what can be seen."""
    random = np.random.default_rng(38)
    easy = np.clip(random.normal(0.65, 0.25, (4, 15)), 0.02, 0.98)  # how often a question is answered right

    def answered(name: str, lost: float = 0.0) -> sl.Run:
        right = random.random((4, 15)) < easy - lost
        parts = zip(("noise", "rejection", "integration", "counterfactual"), right, strict=True)
        return macro_run(tmp_path / name, **{part: row.astype(float).tolist() for part, row in parts})

    def outcomes(lost: float = 0.0) -> list[Gate]:
        pairs = ((answered("new", lost), answered("old")) for _ in range(200))
        return [gate(new, old, metrics="macro_lenient") for new, old in pairs]

    equal = outcomes()
    assert sum(not each.passed for each in equal) <= 0.05 * 200
    sizes = [each.checks[1].difference.detectable for each in equal if each.checks[1].difference]
    detectable = float(np.median([size for size in sizes if size]))
    assert sum(not each.passed for each in outcomes(2 * detectable)) >= 0.95 * 200
    assert 0.7 * 200 <= sum(not each.passed for each in outcomes(detectable)) <= 0.9 * 200

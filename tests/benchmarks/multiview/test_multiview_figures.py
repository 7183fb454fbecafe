"""multiview's figures over tasks, against guessing, by difficulty, by instruction and both ways."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from random import Random

import pytest
from msgspec.structs import replace

import records
import sealegs as sl
from loopback import Loopback
from present import limits, present
from scripted import Scripted
from sealegs.benchmarks.multiview.added import both_ways, difficulties, opposite_pairs, summarise
from sealegs.benchmarks.multiview.data import Triplet
from sealegs.benchmarks.multiview.methods import Outcome
from sealegs.benchmarks.multiview.published import Pick
from sealegs.errors import UsageError
from sealegs.harness.registry import load_benchmark
from sealegs.report.describe import describe
from sealegs.types import Score, Status
from triplets import named, store, triplet

pytestmark = pytest.mark.slow

JUDGE = "judge:openai:loop"


def score(number: int, *, task: str = "tools__use", **picked: str | None) -> Score:
    """A triplet of its own documents, and the pick of each method; None where the request failed."""
    values: dict[str, float | None] = {}
    ends: dict[str, Status] = {}
    for method, pick in picked.items():
        for metric, kind in (("accuracy", "positive"), ("ties", "tie")):
            values[f"{metric}@{method}"] = None if pick is None else float(pick == kind)
        ends[f"{method}/0"] = "error" if pick is None else "ok"
    links = tuple(f"{number}{role}" for role in "apn")
    return records.score(number, values, tags={"task": task, "difficulty": "easy"}, parts=ends, links=links)


def picked(right: bool) -> str:
    return "positive" if right else "negative"


# Over tasks, and against guessing


def test_the_macro_average_counts_each_task_once() -> None:
    scores = [score(n, task="a", m=picked(n % 10 < 9)) for n in range(100)]
    scores += [score(n, task="b", m=picked(n % 2 == 0)) for n in range(100, 120)]
    summary = summarise(scores, ["m"])
    assert summary[named("accuracy", "m")].value == pytest.approx(100 / 120)
    macro = summary[named("accuracy_macro", "m")]
    assert macro.value == pytest.approx((0.9 + 0.5) / 2)
    # The interval is that of the two means together: √(arm² + arm²) / 2.
    arms = [
        mean - limits(summary[named("accuracy", "m", task)])[0] for task, mean in (("a", 0.9), ("b", 0.5))
    ]
    assert 0.7 - limits(macro)[0] == pytest.approx(math.hypot(*arms) / 2)
    unanswered = [*scores, *(score(n, task="c", m=None) for n in range(200, 203))]
    unknown = summarise(unanswered, ["m"])[named("accuracy_macro", "m")]
    assert (unknown.value, unknown.reason) == (None, "a task has no answer")
    assert named("accuracy_macro", "m") not in summarise(scores[:100], ["m"])


def test_guessing_is_right_in_half_of_the_picks_that_are_no_tie() -> None:
    picks = ["positive"] * 50 + ["negative"] * 10 + ["tie"] * 40 + [None] * 5
    summary = summarise(
        [score(n, m=pick, sure=picked(n < 60)) for n, pick in enumerate(picks)], ["m", "sure"]
    )
    level, above = summary[named("chance", "m")], summary[named("minus_chance", "m")]
    assert level.value == pytest.approx(0.3)
    assert limits(level) == pytest.approx((0.25, 0.35), abs=0.01)
    assert above.value == pytest.approx(0.5 - 0.3)
    assert present(above.p) < 1e-6
    always = summary[named("chance", "sure")]
    assert (always.value, always.high) == (0.5, 0.5)


# Methods against each other


def test_a_difference_of_methods_covers_what_both_of_them_answered() -> None:
    """The third method fails for two triplets of five; that is nothing to the other two."""
    scores = [
        score(n, a=picked(n % 2 == 0), b=picked(n % 3 == 0), c=None if n % 5 < 2 else "positive")
        for n in range(30)
    ]
    summary = summarise(scores, ["a", "b", "c"])
    assert summary["minus_first/method=b"].coverage == 1.0
    assert summary["minus_first/method=b"].statuses == {"ok": 60}
    assert summary["minus_first/method=c"].coverage == pytest.approx(0.6)
    assert summary["minus_first/method=c"].statuses == {"ok": 48, "error": 12}  # 0.8 of each by itself
    for method in "bc":  # corrected for both differences, over the only task as over all
        first = summary[f"minus_first/method={method}"]
        assert first.tests == 2
        assert summary[f"minus_first/task=tools__use,method={method}"].p == first.p


# Linked triplets


def test_shared_documents_widen_figures_and_comparisons_alike(tmp_path: Path) -> None:
    """Twelve documents that decide all picks: 60 triplets, and two judges compared across runs."""
    texts = [f"text {letter}" for letter in "abcdefghijkl"]
    chosen = Random(3).sample(list(combinations(texts, 3)), 60)
    triplets = [triplet(n, anchor=a, positive=p, negative=q) for n, (a, p, q) in enumerate(chosen)]
    data = store(tmp_path / "triplets.jsonl", triplets)
    runs = []
    for name, favourites in {"good": texts[:6], "bad": texts[3:9]}.items():

        def rule(prompt: str, favourites: list[str] = favourites) -> str:
            first = re.search(r"First candidate:\n(.*)", prompt)
            assert first
            return json.dumps({"more_alike": "first" if first[1] in favourites else "second"})

        with Scripted(rule) as server:
            run = sl.run("multiview", data=data, method=[JUDGE], base_url=server.url, out=tmp_path / name)
        runs.append(run)
    figure = runs[0].summary[named("accuracy", JUDGE)]
    assert figure.n == 60
    assert 2 <= figure.clusters <= 4  # twelve documents make four triplets
    assert figure.linked
    low, high = limits(figure)
    assert high - low > 0.35  # of 60 independent triplets: 0.25
    difference = sl.compare(*runs).differences[0]
    assert (difference.clusters, difference.method) == (figure.clusters, "paired logit t over linked groups")
    with pytest.raises(UsageError, match="from [234] independent triplets. The gate needs"):
        sl.gate(runs[1], runs[0])


# Easy and hard, with and without the instruction


def test_triplets_that_bm25_orders_correctly_are_easy(tmp_path: Path) -> None:
    words = {"anchor": "saw wood plank", "positive": "saw wood beam", "negative": "stir soup pot"}
    swapped = {"anchor": "bake bread loaf", "positive": "sail boat mast", "negative": "bake bread crust"}
    neither = {**words, "positive": "boil rice bowl", "negative": "stir soup pot"}
    triplets = [triplet(0, **words), triplet(1, **swapped), triplet(2, **neither)]
    assert difficulties(triplets) == ["easy", "hard", "hard"]
    data = store(tmp_path / "t.jsonl", triplets)
    with Loopback() as server:
        methods = ["bm25", "embed:openai:x"]
        run = sl.run("multiview", data=data, method=methods, base_url=server.url, out=tmp_path / "run")
    parts = {
        (f.scope["difficulty"], f.scope["method"]): f.n
        for f in run.summary.values()
        if "difficulty" in f.scope
    }
    assert parts == {("easy", "embed:openai:x"): 1, ("hard", "embed:openai:x"): 2}


def test_an_instruction_is_measured_beside_the_same_embedder_without_it() -> None:
    methods = {
        "embed:openai:x": 0,
        "embed:openai:x+instruct": 5,
        "rewrite:openai:lm+embed:openai:x": 10,
        "embed:openai:y+instruct": 0,
    }
    scores = [
        score(n, **{name: picked(n % 2 == 0 or n < changed) for name, changed in methods.items()})
        for n in range(40)
    ]
    summary = load_benchmark("multiview", {"method": list(methods)}).summarise(scores)
    gain = summary[named("instruction_gain", "rewrite:openai:lm+embed:openai:x")]
    assert gain.value == pytest.approx(5 / 40)
    assert (gain.n, gain.tests) == (40, 2)
    assert named("instruction_gain", "embed:openai:y+instruct") not in summary  # no embed:openai:y in the run


# Both ways


def asked_both_ways(number: int, task: str = "tools__age") -> list[Triplet]:
    """The same documents under two criteria with opposite answers."""
    texts = {"anchor": f"anchor {number}", "positive": f"use {number}", "negative": f"age {number}"}
    swapped = {**texts, "positive": texts["negative"], "negative": texts["positive"]}
    return [triplet(number, **texts), triplet(number, task=task, **swapped)]


def shown(prompt: str) -> tuple[str, str, str]:
    """The criterion and the two candidates that a judge is shown."""
    found = re.search(r"Criterion: (.*)\n[\s\S]*First candidate:\n(.*)[\s\S]*Second candidate:\n(.*)", prompt)
    assert found
    return found[1], found[2], found[3]


def by_criterion(prompt: str) -> str:
    criterion, first, _ = shown(prompt)
    return json.dumps({"more_alike": "first" if first.startswith(criterion) else "second"})


def use_alone(prompt: str) -> str:
    return json.dumps({"more_alike": "first" if shown(prompt)[1].startswith("use") else "second"})


def always_first(prompt: str) -> str:
    return json.dumps({"more_alike": "first"})


def criterion_if_use_is_first(prompt: str) -> str:
    return by_criterion(prompt) if shown(prompt)[1].startswith("use") else json.dumps({"more_alike": "tie"})


@pytest.mark.parametrize(
    ("rule", "both_ways", "accuracy"),
    [
        (by_criterion, 1.0, 1.0),
        (use_alone, 0.0, 0.5),
        (always_first, 0.0, 0.5),
        (criterion_if_use_is_first, 0.5, 0.5),
    ],
)
def test_only_a_judge_that_reads_the_criterion_is_right_both_ways(
    rule: Callable[[str], str], both_ways: float, accuracy: float, tmp_path: Path
) -> None:
    data = store(tmp_path / "t.jsonl", [each for n in range(8) for each in asked_both_ways(n)])
    with Scripted(rule) as server:
        run = sl.run("multiview", data=data, method=[JUDGE], base_url=server.url, out=tmp_path / "run")
    figure = run.summary["both_ways"]
    assert (figure.value, figure.n, figure.coverage) == (both_ways, 8, 1.0)
    assert run.headline == figure
    assert run.summary[named("both_ways", JUDGE)].statuses == {"ok": 32}
    assert run.summary[f"both_ways/docset=tools,method={JUDGE}"].value == both_ways
    assert run.summary["accuracy"].value == accuracy
    values = [record.score.values for record in run.records()]
    assert sum("both_ways" in each for each in values) == 8  # one of each pair
    assert run.verdict.startswith(f"Right under both criteria in {8 * both_ways:.0f} of 8 pairs, where guess")
    results = json.loads((run.path / "export" / "results.json").read_text())
    assert list(results["methods"][JUDGE]) == ["correct", "ties", "total", "accuracy"]


def unreadable_under_age(prompt: str) -> str:
    return "Well." if shown(prompt)[0] == "age" and re.search("use [012]", prompt) else by_criterion(prompt)


def test_the_coverage_of_both_ways_is_that_of_pairs(tmp_path: Path) -> None:
    data = store(tmp_path / "t.jsonl", [each for n in range(10) for each in asked_both_ways(n)])
    with Scripted(unreadable_under_age) as server:
        alone, beside = (
            sl.run("multiview", data=data, method=methods, base_url=server.url, out=tmp_path / str(number))
            for number, methods in enumerate(([JUDGE], [JUDGE, "bm25"]))
        )
    with Scripted(by_criterion) as server:
        whole = sl.run("multiview", data=data, method=[JUDGE], base_url=server.url, out=tmp_path / "whole")
    assert (alone.headline.value, alone.headline.n, alone.headline.coverage) == (1.0, 7, 7 / 10)
    assert alone.summary["accuracy"].coverage == 17 / 20
    assert beside.headline.coverage == beside.coverages[""] == 7 / 10
    for run in (alone, beside):
        assert "coverage is only 70% and there are only 7 pairs" in run.verdict
    lines = describe(beside).overview().lines
    assert any(line.startswith("over 7 to 10 pairs, coverage ⚠ 70% (") for line in lines)
    assert sl.gate(alone, whole).checks[0].reason.startswith("coverage 70% is under the floor of 95%")


def test_a_triplet_that_is_in_no_pair_is_covered_too(tmp_path: Path) -> None:
    pairs = [each for n in range(3, 7) for each in asked_both_ways(n)]
    triplets = [*pairs, *(asked_both_ways(n)[1] for n in range(3))]
    with Scripted(unreadable_under_age) as server:
        data = store(tmp_path / "t.jsonl", triplets)
        run = sl.run("multiview", data=data, method=[JUDGE], base_url=server.url, out=tmp_path / "run")
    assert run.coverages == {"": 1.0, "accuracy": 8 / 11}


def outcome(*picks: Pick | None) -> Outcome:
    ok: Status = "ok"
    return Outcome(picks, (ok,) * len(picks))


def test_a_pair_is_right_where_both_criteria_are_in_the_same_order() -> None:
    right, wrong, tie = (outcome(pick) for pick in ("positive", "negative", "tie"))
    assert [both_ways([right, each], [(0, 1)]) for each in (right, wrong, tie)] == [1, 0, 0]
    assert both_ways([right, outcome(None)], [(0, 1)]) is None
    # Under the other criterion the candidate that is shown first here is shown last.
    half = outcome("positive", "negative")
    assert both_ways([half, outcome("negative", "positive")], [(0, 1)]) == 0.5
    assert both_ways([half, half], [(0, 1)]) == 0
    assert both_ways([right, right, wrong], [(0, 1), (0, 2)]) == 0.5


def test_pairs_have_two_criteria_and_opposite_answers() -> None:
    first, second = asked_both_ways(1)
    assert opposite_pairs([first, triplet(2), second]) == {0: [(0, 2)]}
    assert opposite_pairs([second, first, replace(second, task="t__size", criterion="size")]) == {
        0: [(0, 1), (1, 2)]
    }
    assert opposite_pairs([first, replace(first, criterion="age")]) == {}
    assert opposite_pairs([first, replace(second, criterion=first.criterion)]) == {}
    assert opposite_pairs([first, replace(second, anchor="another")]) == {}


def test_flips_are_covered_as_far_as_the_accuracy() -> None:
    """A tie is an answer, though it leaves a triplet without a flip."""
    values: dict[str, float | None] = {"accuracy@m": 0.0, "ties@m": 1.0, "flips@m": None}
    tied = [replace(score(n, m="tie"), values=values) for n in range(2)]
    picked_twice = [replace(score(n, m="positive"), values={**values, "flips@m": 0.0}) for n in range(2, 6)]
    flips = summarise([*tied, *picked_twice], ["m"])[named("flips", "m")]
    assert (flips.n, flips.coverage) == (4, 1.0)


def test_a_judge_that_built_the_triplets_is_not_put_first(tmp_path: Path) -> None:
    data = store(tmp_path / "t.jsonl", [triplet(n, built_by="openai:loop") for n in range(4)])
    with Scripted(
        lambda prompt: json.dumps({"more_alike": "first" if "good" in shown(prompt)[1] else "second"})
    ) as server:
        run = sl.run(
            "multiview", data=data, method=["bm25", JUDGE], base_url=server.url, out=tmp_path / "run"
        )
    assert run.summary[named("accuracy", JUDGE)].value == 1
    without = f"Highest of 2 methods (without {JUDGE}, which helped to make the data): bm25, right in 0 of 4"
    assert run.verdict.startswith(without)

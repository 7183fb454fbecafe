"""multiview's figures over tasks, against guessing, by difficulty and by instruction; and its pictures."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from random import Random

import numpy as np
import pytest
from msgspec.structs import replace

import evenkeel as ek
from evenkeel.benchmarks.multiview import projection
from evenkeel.benchmarks.multiview.files import PlacedDocument, Triplet
from evenkeel.benchmarks.multiview.scoring import difficulties, summarise
from evenkeel.errors import UsageError
from evenkeel.harness.registry import load_benchmark
from evenkeel.types import Embed, Response, Score, Status
from loopback import Loopback
from scripted import Scripted
from triplets import interval, named, store, triplet

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
    return Score(
        sample_id=str(number), group=str(number), tags={"task": task, "difficulty": "easy"}, values=values,
        statuses={"ok": 1}, answered=1, parts=ends, links=tuple(f"{number}{role}" for role in "apn"),
    )  # fmt: skip


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
        mean - interval(summary[named("accuracy", "m", task)])[0] for task, mean in (("a", 0.9), ("b", 0.5))
    ]
    assert 0.7 - interval(macro)[0] == pytest.approx(math.hypot(*arms) / 2)
    unanswered = [*scores, *(score(n, task="c", m=None) for n in range(200, 203))]
    unknown = summarise(unanswered, ["m"])[named("accuracy_macro", "m")]
    assert (unknown.value, unknown.method) == (None, "none: a task has no answer")
    assert named("accuracy_macro", "m") not in summarise(scores[:100], ["m"])


def test_guessing_is_right_in_half_of_the_picks_that_are_no_tie() -> None:
    picks = ["positive"] * 50 + ["negative"] * 10 + ["tie"] * 40 + [None] * 5
    summary = summarise(
        [score(n, m=pick, sure=picked(n < 60)) for n, pick in enumerate(picks)], ["m", "sure"]
    )
    level, above = summary[named("chance", "m")], summary[named("minus_chance", "m")]
    assert level.value == pytest.approx(0.3)
    assert interval(level) == pytest.approx((0.25, 0.35), abs=0.01)
    assert above.value == pytest.approx(0.5 - 0.3)
    assert above.p is not None
    assert above.p < 1e-6
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
            run = ek.run("multiview", data=data, method=[JUDGE], base_url=server.url, out=tmp_path / name)
        runs.append(run)
    figure = runs[0].summary[named("accuracy", JUDGE)]
    assert figure.n == 60
    assert 2 <= figure.clusters <= 4  # twelve documents make four triplets
    assert "over linked groups" in figure.method
    low, high = interval(figure)
    assert high - low > 0.35  # of 60 independent triplets: 0.25
    difference = ek.compare(*runs).differences[0]
    assert (difference.clusters, difference.method) == (figure.clusters, "paired logit t over linked groups")
    with pytest.raises(UsageError, match="from [234] independent triplets. The gate needs"):
        ek.gate(runs[1], runs[0])


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
        run = ek.run("multiview", data=data, method=methods, base_url=server.url, out=tmp_path / "run")
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


# Pictures


def labelled(number: int, category: str = "") -> Triplet:
    roles = ("anchor", "positive", "negative")
    labels = {role: {"use": category or f"{role} use", "age": "old"} for role in roles}
    return triplet(number, labels=labels)


def placed(triplets: Sequence[Triplet]) -> list[tuple[PlacedDocument, ...]]:
    """The documents in the plane, by random vectors."""
    steps = projection.place("embed:x", triplets)
    requests = next(steps)
    rng = np.random.default_rng(0)
    vectors = (rng.normal(size=8).astype("<f4").tobytes() for _ in requests)
    assert all(isinstance(request, Embed) for request in requests)
    with pytest.raises(StopIteration) as stopped:
        steps.send([Response(status="ok", vector=vector) for vector in vectors])
    documents: list[tuple[PlacedDocument, ...]] = stopped.value.value
    return documents


def test_every_labelled_document_is_placed_once() -> None:
    triplets = [labelled(0), labelled(1), replace(labelled(1), task="tools__age"), triplet(2), labelled(3)]
    documents = placed(triplets)
    assert [len(each) for each in documents] == [3, 3, 0, 0, 3]
    assert documents[0][1].views == {"use": "positive use", "age": "old"}
    assert placed(triplets) == documents

"""From outcomes to scores and figures: accuracy, ties, unparsed verdicts and flips, by method."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Generator, Iterator, Mapping, Sequence
from itertools import combinations
from typing import TypeAlias

import numpy as np
from msgspec.structs import replace

from evenkeel import analysis as stats
from evenkeel.benchmarks.multiview.files import MultiviewDetail, Triplet
from evenkeel.benchmarks.multiview.methods import STATUSES, Outcome
from evenkeel.benchmarks.multiview.page import UNITS
from evenkeel.models.vectors import unit_vector, usable
from evenkeel.types import Embed, Figure, Request, Response, Sample, Score, Summary

ORDERS = ("straight_", "swapped_")
"""How a triplet is put to a judge: the positive first, then last. Other methods do not depend on it."""
COUNTED = {"accuracy": "positive", "ties": "tie", "unparsed": "unparsed"}
"""The pick that each metric counts."""

Positions: TypeAlias = dict[str, tuple[float, float]]
"""Where documents lie in a plane, by their texts."""


def values_of(outcome: Outcome) -> dict[str, float | None]:
    """The share of each kind of pick over the orders in which a method was asked, and in each order.

    A tie or an unparsed verdict is not correct; a request that failed is neither right nor wrong. A triplet
    that a judge did not answer in both orders has no mean: one order alone shows its bias to a position.
    """
    values: dict[str, float | None] = {}
    picks = outcome.picks
    orders = ORDERS if len(picks) > 1 else ("",)
    for metric, kind in COUNTED.items():
        values[metric] = picks.count(kind) / len(picks) if None not in picks else None
        if len(picks) > 1:
            for order, pick in zip(orders, picks, strict=True):
                values[f"{order}{metric}"] = None if pick is None else float(pick == kind)
    values |= {f"{order}ended_{end}": 1.0 for order, end in zip(orders, outcome.ends, strict=True)}
    if outcome.both_orders:
        values["flips"] = outcome.flips
    return values


def measure(
    sample: Sample[Triplet], outcomes: Mapping[str, Outcome], positions: Positions
) -> Score[MultiviewDetail]:
    """The score of a triplet: `accuracy@METHOD` and so on; `accuracy` alone where there is one method."""
    triplet = sample.inputs
    values: dict[str, float | None] = {"built_against_bm25": float(triplet.hard_for == "bm25")}
    for name, outcome in outcomes.items():
        metrics = values_of(outcome)
        if len(outcomes) == 1:
            values["accuracy"] = metrics["accuracy"]
        values |= {f"{metric}@{name}": value for metric, value in metrics.items()}
    ended = [(name, status) for name, outcome in outcomes.items() for status in outcome.statuses]
    statuses = Counter(status for _, status in ended)
    views = triplet.labels.get("anchor", {})
    x, y = positions.get(triplet.anchor, (None, None)) if views else (None, None)
    return Score(
        sample_id=sample.id,
        group=sample.group,
        tags=sample.tags,
        values=values,
        statuses=statuses,
        answered=statuses["ok"] + statuses["truncated"],
        requests={name: (_covered(outcome), len(outcome.picks)) for name, outcome in outcomes.items()},
        # With the name of the method, as there is no answer of a model under test to show.
        failures=tuple(f"{status} ({name})" for name, status in ended if status not in ("ok", "truncated")),
        detail=MultiviewDetail(
            picks={name: outcome.picks for name, outcome in outcomes.items()},
            orders={name: outcome.orders for name, outcome in outcomes.items() if outcome.orders},
            margins={name: o.margin for name, o in outcomes.items() if o.margin is not None},
            x=x,
            y=y,
            views=views if x is not None else {},
        ),
    )


def _covered(outcome: Outcome) -> int:
    """How many picks count as answered: those that could be read, where no order failed."""
    return 0 if None in outcome.picks else sum(end != "unparsed" for end in outcome.ends)


def summarise(scores: Sequence[Score], methods: Sequence[str]) -> Summary:
    """Each metric by method and task; both orders in which a judge was asked count, clustered by triplet."""
    by_order = [each for method in methods for score in scores for each in _by_order(score, method)]
    dimensions = [("method",), ("task", "method")]
    summary = {
        **stats.summarise(by_order, dict.fromkeys((*COUNTED, "flips"), dimensions), units=UNITS),
        **stats.summarise(scores, {"built_against_bm25": [("task",)]}, units=UNITS),
        **differences(scores, methods),
    }
    return {"accuracy": _headline(by_order, summary, methods), **summary}


def differences(scores: Sequence[Score], methods: Sequence[str]) -> Summary:
    """How much more often a method is right than another, paired by triplet.

    `minus_first` is of every method and the first, also by task; `minus` is of all pairs, where there are
    three methods or more. Each p-value is corrected by Holm for all pairs of methods in its scope, so that
    one comparison has one p-value wherever it is shown.
    """
    tasks: defaultdict[str, list[Score]] = defaultdict(list)
    for score in scores:
        tasks[str(score.tags["task"])].append(score)
    overall = _pairs(scores, methods)
    by_task = {task: _pairs(members, methods) for task, members in tasks.items()}
    summary: Summary = {}
    for method in methods[1:]:
        pair = methods[0], method
        summary[stats.scope_name("minus_first", {"method": method})] = overall[pair]
        for task, pairs in by_task.items():
            summary[stats.scope_name("minus_first", {"task": task, "method": method})] = pairs[pair]
    if len(methods) > 2:
        for (other, method), figure in overall.items():
            summary[stats.scope_name("minus", {"method": method, "other": other})] = figure
    return summary


def _pairs(scores: Sequence[Score], methods: Sequence[str]) -> dict[tuple[str, str], Figure]:
    """Each later method minus each earlier one, with p-values corrected for all of them."""
    figures = {}
    for other, method in combinations(methods, 2):
        both = [_of_method(score, name) for name in (other, method) for score in scores]
        figures[other, method] = stats.difference(both, "accuracy", "method", other, method, unit="share")
    corrected = stats.holm([figure.p for figure in figures.values()])
    tests = max(1, sum(p is not None for p in corrected))
    return {
        pair: replace(figure, p=p, tests=tests)
        for (pair, figure), p in zip(figures.items(), corrected, strict=True)
    }


def _headline(by_order: Sequence[Score], summary: Summary, methods: Sequence[str]) -> Figure:
    """The method's accuracy, and no value where there are several methods: they have no figure in common.

    The coverage is that of all methods, so that a failure of any of them is seen.
    """
    statuses: Counter[str] = Counter()
    for score in by_order:
        statuses.update(score.statuses)
    coverage = sum(score.answered for score in by_order) / statuses.total()
    figures = [summary[stats.scope_name("accuracy", {"method": method})] for method in methods]
    figure = figures[0]
    if len(figures) > 1:
        figure = replace(
            figure, value=None, low=None, high=None, method="none: each method has its own figure",
            n=sum(each.n for each in figures), clusters=max(each.clusters for each in figures),
        )  # fmt: skip
    return replace(figure, coverage=coverage, statuses=dict(statuses))


def _by_order(score: Score, method: str) -> Iterator[Score]:
    """A method's values on a triplet, as a score for each order in which it was asked.

    They are known where all orders are, so that their mean is that of the triplets.
    """
    known = score.values[f"accuracy@{method}"] is not None
    for order in [order for order in ORDERS if f"{order}accuracy@{method}" in score.values] or [""]:
        values = {name: score.values[f"{order}{name}@{method}"] if known else None for name in COUNTED}
        if order != ORDERS[1] and f"flips@{method}" in score.values:
            values["flips"] = score.values[f"flips@{method}"]
        end = next((end for end in STATUSES if score.values.get(f"{order}ended_{end}@{method}")), "error")
        yield replace(
            score,
            tags={**score.tags, "method": method},
            values=values,
            statuses={end: 1},
            # A verdict that could not be read is not correct, and not covered.
            answered=int(known and end != "unparsed"),
        )


def _of_method(score: Score, method: str) -> Score:
    """A method's accuracy on a triplet, over the orders in which it was asked, and how its requests ended."""
    orders = list(_by_order(score, method))
    return replace(
        orders[0],
        values={"accuracy": score.values[f"accuracy@{method}"]},
        statuses=dict(Counter(status for order in orders for status in order.statuses)),
        answered=sum(order.answered for order in orders),
    )


def project(
    role: str, triplets: Sequence[Triplet]
) -> Generator[Sequence[Request], Sequence[Response], Positions]:
    """The anchors of each set of documents on the two principal components of their embeddings."""
    docsets: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for triplet in triplets:
        if triplet.labels:
            docsets[triplet.docset][triplet.anchor] = None
    positions: Positions = {}
    for texts in docsets.values():
        responses = usable((yield [Embed(text=text, role=role) for text in texts]))
        vectors = {text: r.vector for text, r in zip(texts, responses, strict=True) if r.vector}
        if len(vectors) > 2:
            units = np.stack([unit_vector(vector) for vector in vectors.values()])
            left, sizes, _ = np.linalg.svd(units - units.mean(axis=0), full_matrices=False)
            plane = np.round(left[:, :2] * sizes[:2], 4)
            plane *= np.where(plane.sum(axis=0) < 0, -1, 1)  # the sign of a component is arbitrary
            positions.update(zip(vectors, map(tuple, plane.tolist()), strict=True))
    return positions

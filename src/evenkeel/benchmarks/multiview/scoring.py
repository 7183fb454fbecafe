"""From outcomes to scores, figures and results: accuracy, ties, unparsed verdicts and flips, by method."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Generator, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, TypeAlias

import msgspec

from evenkeel import analysis as stats
from evenkeel.benchmarks.multiview.files import Triplet
from evenkeel.benchmarks.multiview.ordering import ENDS, Outcome, unit_vector
from evenkeel.models.vectors import usable
from evenkeel.types import Embed, Figure, Records, Request, Response, Sample, Score, Summary

ORDERS = ("straight_", "swapped_")
"""How a triplet is put to a judge: the positive first, then last. Other methods know no order."""
COUNTED = {"accuracy": "positive", "ties": "tie", "unparsed": "unparsed"}
"""What is counted of a method's picks."""
METRICS = (*COUNTED, "flips")

Places: TypeAlias = dict[str, tuple[float, float]]
"""Where documents lie in a plane, by their texts."""


def measure(
    samples: Sequence[Sample],
    triplets: Sequence[Triplet],
    outcomes: Mapping[str, Sequence[Outcome]],
    places: Places,
) -> list[Score]:
    """The scores of every triplet: `accuracy@METHOD` and so on; `accuracy` alone where one is under test."""
    scores = []
    for number, (sample, triplet) in enumerate(zip(samples, triplets, strict=True)):
        own = {name: found[number] for name, found in outcomes.items()}
        values: dict[str, float | None] = {"built_against_bm25": float(triplet.hard_for == "bm25")}
        if len(own) == 1:
            values["accuracy"] = of_outcome(*own.values())["accuracy"]
        statuses: Counter[str] = Counter()
        for name, outcome in own.items():
            values |= {f"{key}@{name}": value for key, value in of_outcome(outcome).items()}
            statuses.update(outcome.statuses)
        detail: dict[str, Any] = {"picks": {name: outcome.picks for name, outcome in own.items()}}
        # A failure is told by how it ended and of which method: it is no answer of a model under test.
        failures = [
            f"{status} ({name})"
            for name, outcome in own.items()
            for status in outcome.statuses
            if status in ("error", "refused", "unparsed")
        ]
        detail["orders"] = {name: outcome.orders for name, outcome in own.items() if outcome.orders}
        detail["margins"] = {name: o.margin for name, o in own.items() if o.margin is not None}
        if triplet.anchor in places and "anchor" in triplet.labels:
            x, y = places[triplet.anchor]
            detail |= {"x": x, "y": y, "views": triplet.labels["anchor"]}
        score = Score(
            sample_id=sample.id,
            group=sample.group,
            tags=sample.tags,
            values=values,
            statuses=dict(statuses),
            answered=statuses["ok"] + statuses["truncated"],
            failures=tuple(failures),
            detail=detail,
        )
        # Runs are compared method by method, by what was asked for each.
        requests = {
            name: (one.answered, sum(one.statuses.values())) for name in own for one in [_as_one(score, name)]
        }
        scores.append(msgspec.structs.replace(score, requests=requests))
    return scores


def of_outcome(outcome: Outcome) -> dict[str, float | None]:
    """The mean of each metric over the orders in which a method was asked, and of a judge each order's own.

    A tie or an unparsed verdict is not correct; a request that failed is neither right nor wrong. A triplet
    that a judge did not answer in both orders has no mean: one order alone tells of its leaning to a place.
    """
    values: dict[str, float | None] = {}
    picks = outcome.picks
    for metric, kind in COUNTED.items():
        values[metric] = picks.count(kind) / len(picks) if None not in picks else None
        if len(picks) > 1:
            each = (None if pick is None else float(pick == kind) for pick in picks)
            values |= {f"{order}{metric}": own for order, own in zip(ORDERS, each, strict=True)}
    orders = ORDERS if len(picks) > 1 else ("",)
    values |= {f"{order}ended_{end}": 1.0 for order, end in zip(orders, outcome.ends, strict=True)}
    if outcome.in_orders:
        values["flips"] = outcome.flips
    return values


def summarise(scores: Sequence[Score], methods: Sequence[str]) -> Summary:
    """Each metric by method and task; both orders in which a judge was asked count, clustered by triplet."""
    asked = [one for method in methods for score in scores for one in _by_order(score, method)]
    dimensions: list[tuple[str, ...]] = [("method",), ("task", "method")]
    units = dict.fromkeys(METRICS, "share")
    summary = stats.summarise(asked, dict.fromkeys(METRICS, dimensions), units=units)  # type: ignore[arg-type]
    against = {"built_against_bm25": [("task",)]}
    summary |= stats.summarise(scores, against, units={"built_against_bm25": "share"})
    summary |= differences(scores, methods)
    return {"accuracy": _headline(asked, summary, methods), **summary}


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
    by_task = {task: _pairs(own, methods) for task, own in tasks.items()}
    found: Summary = {}
    for method in methods[1:]:
        pair = methods[0], method
        found[stats.scope_name("minus_first", {"method": method})] = overall[pair]
        for task, pairs in by_task.items():
            found[stats.scope_name("minus_first", {"task": task, "method": method})] = pairs[pair]
    if len(methods) > 2:
        for (other, method), figure in overall.items():
            found[stats.scope_name("minus", {"method": method, "other": other})] = figure
    return found


def _pairs(scores: Sequence[Score], methods: Sequence[str]) -> dict[tuple[str, str], Figure]:
    """Each later method minus each earlier one, with p-values corrected for all of them."""
    figures = {}
    for other, method in combinations(methods, 2):
        both = [_as_one(score, name) for name in (other, method) for score in scores]
        figures[other, method] = stats.difference(both, "accuracy", "method", other, method, unit="share")
    corrected = stats.holm([figure.p for figure in figures.values()])
    tests = max(1, sum(p is not None for p in corrected))
    return {
        pair: msgspec.structs.replace(figure, p=p, tests=tests)
        for (pair, figure), p in zip(figures.items(), corrected, strict=True)
    }


def _headline(asked: Sequence[Score], summary: Summary, methods: Sequence[str]) -> Figure:
    """The method's accuracy, and no value where there are several: they are not one figure.

    The coverage is that of all, so that what any method lacked does not go unseen.
    """
    statuses: Counter[str] = Counter()
    for score in asked:
        statuses.update(score.statuses)
    covered = sum(score.answered for score in asked) / statuses.total()
    figures = [summary[stats.scope_name("accuracy", {"method": method})] for method in methods]
    figure = figures[0]
    if len(figures) > 1:
        figure = msgspec.structs.replace(
            figure, value=None, low=None, high=None, method="none: each method has its own figure",
            n=sum(each.n for each in figures), clusters=max(each.clusters for each in figures),
        )  # fmt: skip
    return msgspec.structs.replace(figure, coverage=covered, statuses=dict(statuses))


def _by_order(score: Score, method: str) -> Iterator[Score]:
    """A method's values on a triplet, as a score for each order in which it was asked.

    They are known where all orders are, so that their mean is that of the triplets.
    """
    own = score.values
    whole = own[f"accuracy@{method}"] is not None
    orders = [order for order in ORDERS if f"{order}accuracy@{method}" in own] or [""]
    for order in orders:
        values = {name: own[f"{order}{name}@{method}"] if whole else None for name in COUNTED}
        if order != ORDERS[1] and f"flips@{method}" in own:
            values["flips"] = own[f"flips@{method}"]
        ended = next((end for end in ENDS if own.get(f"{order}ended_{end}@{method}")), "error")
        yield msgspec.structs.replace(
            score,
            tags={**score.tags, "method": method},
            values=values,
            statuses={ended: 1},
            # A verdict that could not be read is not correct; it does not cover anything either.
            answered=int(whole and ended != "unparsed"),
        )


def _as_one(score: Score, method: str) -> Score:
    """A method's accuracy on a triplet, over the orders in which it was asked, and how its requests ended."""
    orders = list(_by_order(score, method))
    return msgspec.structs.replace(
        score,
        tags={**score.tags, "method": method},
        values={"accuracy": score.values[f"accuracy@{method}"]},
        statuses=dict(Counter(status for order in orders for status in order.statuses)),
        answered=sum(order.answered for order in orders),
    )


def results(records: Records, methods: Sequence[str]) -> Iterator[bytes]:
    """The published results: correct, ties, total and accuracy for every method, by task and in all.

    As in the summary, a triplet counts where it was answered in all orders.
    """
    tallies: defaultdict[str, defaultdict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for record in records():
        for method, picks in record.score.detail["picks"].items():
            for scope in ("all", str(record.sample.tags["task"])):
                tallies[scope][method].update(picks if None not in picks else ())
    found = {
        scope: {method: _result(by_method[method]) for method in methods}
        for scope, by_method in tallies.items()
    }
    content = {"methods": found.pop("all", {}), "tasks": found}
    yield msgspec.json.format(msgspec.json.encode(content), indent=2)


def _result(tally: Counter[str]) -> dict[str, float | None]:
    total = tally.total()
    return {
        "correct": tally["positive"],
        "ties": tally["tie"],
        "unparsed": tally["unparsed"],
        "total": total,
        "accuracy": tally["positive"] / total if total else None,
    }


def project(
    role: str, triplets: Sequence[Triplet]
) -> Generator[Sequence[Request], Sequence[Response], Places]:
    """The documents of each set on its two principal components, by their embeddings."""
    import numpy as np

    sets: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for triplet in triplets:
        if triplet.labels:
            sets[triplet.task.partition("__")[0]][triplet.anchor] = None
    places: Places = {}
    for texts in sets.values():
        responses = usable((yield [Embed(text=text, role=role) for text in texts]))
        known = [(text, r.vector) for text, r in zip(texts, responses, strict=True) if r.vector]
        if len(known) > 2:
            vectors = np.stack([unit_vector(vector) for _, vector in known])
            centred = vectors - vectors.mean(axis=0)
            left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
            plane = np.round(left[:, :2] * sizes[:2], 4)
            plane *= np.where(plane.sum(axis=0) < 0, -1, 1)  # a component's sign is nobody's choice
            places.update(
                {text: (float(x), float(y)) for (text, _), (x, y) in zip(known, plane, strict=True)}
            )
    return places

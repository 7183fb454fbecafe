"""From outcomes to scores, figures and results: accuracy, ties, unparsed verdicts and flips, by method."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from evenkeel import stats
from evenkeel.benchmarks.multiview.ordering import Outcome, unit_vector
from evenkeel.benchmarks.multiview.triplets import Triplet
from evenkeel.types import Embed, Figure, Records, Request, Response, Sample, Score, Summary

ORDERS = ("", "swapped_")
"""How a triplet is put to a method: the positive first, or (to judges) also swapped."""
METRICS = ("accuracy", "ties", "unparsed", "flips")

Places: TypeAlias = dict[str, tuple[float, float]]
"""Where documents lie in a plane, by their texts."""


def measure(
    samples: Sequence[Sample],
    triplets: Sequence[Triplet],
    outcomes: Mapping[str, Sequence[Outcome]],
    places: Places,
) -> list[Score]:
    """The scores of every triplet. `accuracy` is the first method's, as the headline is."""
    scores = []
    for number, (sample, triplet) in enumerate(zip(samples, triplets, strict=True)):
        own = {name: found[number] for name, found in outcomes.items()}
        values: dict[str, float | None] = {"accuracy": accuracy(next(iter(own.values())))}
        values["built_against_bm25"] = float(triplet.hard_for == "bm25")
        statuses: Counter[str] = Counter()
        for name, outcome in own.items():
            values |= {f"{key}@{name}": value for key, value in of_outcome(outcome).items()}
            statuses.update(outcome.statuses)
        detail: dict[str, Any] = {"picks": {name: outcome.picks for name, outcome in own.items()}}
        # A failure is told by how it ended and of which method: it is no answer of a model under test.
        detail["failures"] = [
            f"{status} ({name})"
            for name, outcome in own.items()
            for status in outcome.statuses
            if status in ("error", "refused")
        ]
        detail["margins"] = {name: o.margin for name, o in own.items() if o.margin is not None}
        if triplet.anchor in places and "anchor" in triplet.labels:
            x, y = places[triplet.anchor]
            detail |= {"x": x, "y": y, "views": triplet.labels["anchor"]}
        scores.append(
            Score(
                sample_id=sample.id,
                group=sample.group,
                tags=sample.tags,
                values=values,
                statuses=dict(statuses),
                answered=statuses["ok"] + statuses["truncated"] + statuses["unparsed"],
                detail=detail,
            )
        )
    return scores


def of_outcome(outcome: Outcome) -> dict[str, float | None]:
    """A tie or an unparsed verdict is not correct; a request that failed is neither right nor wrong."""
    values: dict[str, float | None] = {}
    for order, pick in zip(ORDERS, outcome.picks, strict=False):
        failed = pick is None
        values[f"{order}accuracy"] = None if failed else float(pick == "positive")
        values[f"{order}ties"] = None if failed else float(pick == "tie")
        values[f"{order}unparsed"] = None if failed else float(pick == "unparsed")
    if len(outcome.picks) > 1:
        values["flips"] = outcome.flips
    return values


def accuracy(outcome: Outcome) -> float | None:
    known = [pick == "positive" for pick in outcome.picks if pick is not None]
    return sum(known) / len(known) if known else None


def summarise(scores: Sequence[Score], methods: Sequence[str]) -> Summary:
    """Each metric by method and task; every order in which a judge was asked counts, clustered by triplet."""
    asked = [one for method in methods for score in scores for one in _by_order(score, method)]
    dimensions: list[tuple[str, ...]] = [("method",), ("task", "method")]
    units = dict.fromkeys(METRICS, "share")
    summary = stats.summarise(asked, dict.fromkeys(METRICS, dimensions), units=units)  # type: ignore[arg-type]
    against = {"built_against_bm25": [("task",)]}
    summary |= stats.summarise(scores, against, units={"built_against_bm25": "share"})
    if len(methods) > 1:
        pairs = [_as_one(score, method) for method in methods for score in scores]
        for method in methods[1:]:
            figure = stats.difference(pairs, "accuracy", "method", methods[0], method)
            name = stats.scope_name("minus_first", {"method": method})
            summary[name] = msgspec.structs.replace(figure, unit="share")
    return {"accuracy": _headline(asked, summary, methods[0]), **summary}


def _headline(asked: Sequence[Score], summary: Summary, first: str) -> Figure:
    """The first method's accuracy, with the coverage of all: what any method lacked must not go unseen."""
    statuses: Counter[str] = Counter()
    for score in asked:
        statuses.update(score.statuses)
    covered = statuses["ok"] / statuses.total()
    figure = summary[stats.scope_name("accuracy", {"method": first})]
    return msgspec.structs.replace(figure, coverage=covered, statuses=dict(statuses))


def _by_order(score: Score, method: str) -> Iterator[Score]:
    """A method's values on a triplet, as a score for each order in which it was asked."""
    for order in ORDERS:
        if f"{order}accuracy@{method}" not in score.values:
            continue
        values = {name: score.values.get(f"{order}{name}@{method}") for name in METRICS[:3]}
        if not order and f"flips@{method}" in score.values:
            values["flips"] = score.values[f"flips@{method}"]
        known = values["accuracy"] is not None
        yield msgspec.structs.replace(
            score,
            tags={**score.tags, "method": method},
            values=values,
            statuses={"ok" if known else "error": 1},
            answered=int(known),
        )


def _as_one(score: Score, method: str) -> Score:
    """A method's accuracy on a triplet, over the orders in which it was asked."""
    known = [
        value for order in ORDERS if (value := score.values.get(f"{order}accuracy@{method}")) is not None
    ]
    mean = sum(known) / len(known) if known else None
    return msgspec.structs.replace(score, tags={**score.tags, "method": method}, values={"accuracy": mean})


def results(records: Records, methods: Sequence[str]) -> Iterator[bytes]:
    """The published results: correct, ties, total and accuracy for every method, by task and in all."""
    tallies: defaultdict[str, defaultdict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for record in records():
        for method, picks in record.score.detail["picks"].items():
            for scope in ("all", str(record.sample.tags["task"])):
                tallies[scope][method].update(str(pick) for pick in picks if pick is not None)
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
        responses = yield [Embed(text=text, role=role) for text in texts]
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

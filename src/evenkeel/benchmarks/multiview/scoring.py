"""From outcomes to scores and figures: accuracy, ties, unparsed verdicts and flips, by method.

Triplets that share a document are linked, so that intervals and tests allow for it (`analysis.links`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import combinations
from typing import Literal, TypeAlias, TypeVar

import numpy as np
from msgspec.structs import replace

from evenkeel import analysis as stats
from evenkeel.analysis import combined
from evenkeel.analysis.links import group_of
from evenkeel.benchmarks.multiview.files import MultiviewDetail, Triplet
from evenkeel.benchmarks.multiview.methods import STATUSES, Outcome, by_bm25
from evenkeel.benchmarks.multiview.page import UNITS
from evenkeel.benchmarks.multiview.projection import NOWHERE, Placement
from evenkeel.types import Figure, Sample, Score, Summary, Tag

ORDERS = ("straight_", "swapped_")
"""How a triplet is put to a judge: the positive first, then last. Other methods do not depend on it."""
COUNTED = {"accuracy": "positive", "ties": "tie", "unparsed": "unparsed"}
"""The pick that each metric counts."""

Difficulty: TypeAlias = Literal["easy", "hard"]
Key = TypeVar("Key")


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


def difficulties(triplets: Sequence[Triplet]) -> list[Difficulty]:
    """`easy` where BM25 orders a triplet correctly, `hard` where it does not or finds both documents alike.

    BM25 has the word counts of the triplets of the run, as the method `bm25` has.
    """
    return ["easy" if outcome.picks == ("positive",) else "hard" for outcome in by_bm25(triplets)]


def measure(
    sample: Sample[Triplet],
    outcomes: Mapping[str, Outcome],
    difficulty: Difficulty,
    placement: Placement = NOWHERE,
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
    return Score(
        sample_id=sample.id,
        group=sample.group,
        tags={**sample.tags, "difficulty": difficulty},
        values=values,
        statuses=statuses,
        answered=statuses["ok"] + statuses["truncated"],
        requests={name: (_covered(outcome), len(outcome.picks)) for name, outcome in outcomes.items()},
        links=tuple(map(_document, triplet.documents)),
        # With the name of the method, as there is no answer of a model under test to show.
        failures=tuple(f"{failure} ({name})" for name, o in outcomes.items() for failure in o.failures),
        detail=MultiviewDetail(
            picks={name: outcome.picks for name, outcome in outcomes.items()},
            orders={name: outcome.orders for name, outcome in outcomes.items() if outcome.orders},
            margins={name: o.margin for name, o in outcomes.items() if o.margin is not None},
            scores={name: o.scores for name, o in outcomes.items() if o.scores is not None},
            documents=placement.documents,
            positions=placement.positions,
        ),
    )


def _document(text: str) -> str:
    """The same for texts that differ in white space only: triplets with such a text share a document."""
    return sha256(" ".join(text.split()).encode()).hexdigest()[:16]


def _covered(outcome: Outcome) -> int:
    """How many picks count as answered: those that could be read, where no order failed."""
    return 0 if None in outcome.picks else sum(end != "unparsed" for end in outcome.ends)


def summarise(
    scores: Sequence[Score],
    methods: Sequence[str],
    blind: Mapping[str, str] | None = None,
    bm25: Collection[str] = ("bm25",),
) -> Summary:
    """Each metric by method and task; both orders in which a judge was asked count, clustered by triplet.

    `blind` maps a method to the one that does the same without reading the criterion; `bm25` are the names of
    the one by which triplets are easy or hard.
    """
    by_order = [each for method in methods for score in scores for each in _by_order(score, method)]
    dimensions = [("method",), ("task", "method")]
    # BM25 itself is right on every easy triplet and on no hard one.
    not_bm25 = [score for score in by_order if score.tags["method"] not in bm25]
    summary = {
        **stats.summarise(by_order, dict.fromkeys((*COUNTED, "flips"), dimensions), units=UNITS),
        **stats.summarise(not_bm25, {"accuracy": [("difficulty", "method")]}, units=UNITS),
        **stats.summarise(scores, {"built_against_bm25": [("task",)]}, units=UNITS),
        **macro_averages(scores, methods),
        **against_chance(scores, methods),
        **instruction_sensitivity(scores, methods, blind or {}),
        **differences(scores, methods),
    }
    return {"accuracy": _headline(by_order, summary, methods), **summary}


def macro_averages(scores: Sequence[Score], methods: Sequence[str]) -> Summary:
    """`accuracy_macro`: the mean of the tasks' accuracies, (1/K) Σ accuracy(task), each task counted once.

    It is unknown where a task has no answer. Tasks over the same documents are not independent: their errors
    are added up by document. With one task it would be the accuracy, and is left out.
    """
    tasks = {score.sample_id: score.tags["task"] for score in scores}
    if len(set(tasks.values())) < 2:
        return {}
    groups = {score.sample_id: group_of(score) for score in scores}
    summary: Summary = {}
    for method in methods:
        members = [_of_method(score, method) for score in scores]
        values = {m.sample_id: value for m in members if (value := m.values["accuracy"]) is not None}
        interval = stats.Interval(None, None, None, "none: a task has no answer", 0, 0)
        if {tasks[sample] for sample in values} == set(tasks.values()):
            interval = combined.interval(combined.macro_terms(values, groups, tasks), "share")
        name = stats.scope_name("accuracy_macro", {"method": method})
        summary[name] = stats.figure(members, "accuracy", interval, unit="share")
    return summary


def against_chance(scores: Sequence[Score], methods: Sequence[str]) -> Summary:
    """What guessing gives, and how far a method is above it.

    A method that picks a document at random is right in one half of its picks, and a tie or an unparsed
    verdict is never right. So a method's level is `chance` = (1 − ties − unparsed) / 2, one half where it
    always picks. `minus_chance` = accuracy − chance = (share correct − share wrong) / 2, paired by triplet,
    tested against zero, with p-values corrected by Holm for the methods.
    """
    summary: Summary = {}
    above: Summary = {}
    for method in methods:
        name = stats.scope_name("chance", {"method": method})
        members = [_of_method(score, method) for score in scores]
        levels = [_chance(score, method) for score in scores]
        # The interval is that of the share of orders without a pick, so that it ends at one half.
        unpicked = [
            _with(each, "unpicked", None if level is None else 1 - 2 * level)
            for each, level in zip(members, levels, strict=True)
        ]
        figure = stats.summarise(unpicked, {"unpicked": [()]}, units={"unpicked": "share"})["unpicked"]
        value, low, high = (
            (1 - x) / 2 if x is not None else None for x in (figure.value, figure.high, figure.low)
        )
        summary[name] = replace(figure, value=value, low=low, high=high)
        guessing = [
            _with(each, "accuracy", level, "chance") for each, level in zip(members, levels, strict=True)
        ]
        above[stats.scope_name("minus_chance", {"method": method})] = stats.difference(
            [*guessing, *members], "accuracy", "method", "chance", method, unit="share"
        )
    return {**summary, **_corrected(above)}


def instruction_sensitivity(
    scores: Sequence[Score], methods: Sequence[str], blind: Mapping[str, str]
) -> Summary:
    """How much the picks depend on the criterion.

    `instruction_changes` and `instruction_gain` are of a method that reads the criterion and embeds in the
    end (`embed:SPEC+instruct`, `rewrite:LM+embed:SPEC`), beside `embed:SPEC`, which does not, where both are
    in the run: in how many triplets the pick is another one, and accuracy minus that of `embed:SPEC`, paired.

    `criterion_changes` and `criterion_both` are of any method, over pairs of triplets that have the same
    anchor and the same two documents to choose from under two criteria: in how many pairs the other document
    is picked under the other criterion and, of the pairs whose criteria want different documents, in how many
    both picks are correct. A method that does not read the criterion has 0 of both; guessing gives 1/2 and
    1/4. The pick of a judge is the document that it picks in more of its orders; equally many are a tie.
    """
    summary: Summary = {}
    gains: Summary = {}
    for method, without in blind.items():
        changes = [
            _with(_of_method(score, method), "instruction_changes", _changed(score, without, method))
            for score in scores
        ]
        summary |= stats.summarise(changes, {"instruction_changes": [("method",)]}, units=UNITS)
        both = [_of_method(score, name) for name in (without, method) for score in scores]
        gain = stats.difference(both, "accuracy", "method", without, method, unit="share")
        gains[stats.scope_name("instruction_gain", {"method": method})] = gain
    pairs = list(_same_documents(scores))
    breakdown = {metric: [("method",)] for metric in ("criterion_changes", "criterion_both")}
    of_pairs = [_of_pair(*pair, method) for method in methods for pair in pairs]
    return {**summary, **_corrected(gains), **stats.summarise(of_pairs, breakdown, units=UNITS)}


def _same_documents(scores: Sequence[Score]) -> Iterator[tuple[Score, Score]]:
    """Pairs of triplets of two tasks with the same anchor and the same two documents to choose from."""
    by_documents: defaultdict[tuple[str, frozenset[str]], dict[Tag, Score]] = defaultdict(dict)
    for score in scores:
        if score.links:
            by_documents[score.links[0], frozenset(score.links[1:])].setdefault(score.tags["task"], score)
    for by_task in by_documents.values():
        yield from combinations(by_task.values(), 2)


def _of_pair(first: Score, second: Score, method: str) -> Score:
    """A method's picks on the same documents under two criteria, as one score."""
    a, b = _of_method(first, method), _of_method(second, method)
    opposed = first.links != second.links
    pick, other = _lean(first, method), _lean(second, method)
    known = pick is not None and other is not None
    # A lean is towards the positive, which is another document where the criteria want different ones.
    changed = float(pick != (-other if opposed else other)) if known and other is not None else None
    values: dict[str, float | None] = {"criterion_changes": changed}
    if opposed:
        values["criterion_both"] = float(pick == other == 1) if known else None
    return replace(
        a,
        sample_id=f"{a.sample_id}, {b.sample_id}",
        group=f"{a.group}, {b.group}",
        values=values,
        statuses=dict(Counter(a.statuses) + Counter(b.statuses)),
        answered=a.answered + b.answered if known else 0,
    )


def _lean(score: Score, method: str) -> int | None:
    """1 where a method picks the positive in more orders than the negative, −1 where in fewer, 0: a tie."""
    correct, chance = _value(score, "accuracy", method), _chance(score, method)
    return None if correct is None or chance is None else int(np.sign(round(correct - chance, 9)))


def _changed(score: Score, without: str, method: str) -> float | None:
    """Whether two methods pick different documents."""
    first, second = _lean(score, without), _lean(score, method)
    return None if first is None or second is None else float(first != second)


def _chance(score: Score, method: str) -> float | None:
    """What guessing gives: one half of the orders in which the method picks a document."""
    ties, unparsed = (_value(score, metric, method) for metric in ("ties", "unparsed"))
    return None if ties is None or unparsed is None else (1 - ties - unparsed) / 2


def _value(score: Score, metric: str, method: str) -> float | None:
    return score.values[f"{metric}@{method}"]


def _with(score: Score, metric: str, value: float | None, method: str = "") -> Score:
    """A method's score of a triplet with another value, under another method's name where there is one."""
    tags = {**score.tags, "method": method} if method else score.tags
    return replace(score, tags=tags, values={metric: value})


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
    return _corrected(figures)


def _corrected(figures: dict[Key, Figure]) -> dict[Key, Figure]:
    """The same figures, with p-values corrected by Holm for all of them."""
    corrected = stats.holm([figure.p for figure in figures.values()])
    tests = max(1, sum(p is not None for p in corrected))
    return {
        key: replace(figure, p=p, tests=tests)
        for (key, figure), p in zip(figures.items(), corrected, strict=True)
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

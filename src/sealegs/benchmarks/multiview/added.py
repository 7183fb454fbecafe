"""What multiview adds to the accuracy of a triplet: figures by method and task, accuracy both ways, chance,
difficulty, gains and differences, with their intervals.

Triplets that share a document are linked, so that intervals and tests allow for it (`analysis.links`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from hashlib import sha256
from itertools import chain, combinations
from typing import Literal, TypeAlias, TypeVar

from msgspec.structs import replace

from sealegs import analysis as stats
from sealegs.analysis import combined
from sealegs.analysis.links import group_of
from sealegs.benchmarks.multiview import published
from sealegs.benchmarks.multiview.data import ROLES, MultiviewDetail, Triplet
from sealegs.benchmarks.multiview.methods import Outcome, by_bm25
from sealegs.benchmarks.multiview.metrics import UNITS
from sealegs.benchmarks.multiview.published import Pick
from sealegs.types import Figure, Sample, Score, Summary

BY_TRIPLET = ("accuracy", "ties", "flips", "cut_by_model")
"""The metrics that are means over triplets."""
HEADLINES = ("both_ways", "accuracy")
"""The metrics that can lead, the second where no documents are asked about both ways."""

Difficulty: TypeAlias = Literal["easy", "hard"]
Pairs: TypeAlias = Sequence[tuple[int, int]]
Members: TypeAlias = Mapping[str, Sequence[Score]]
"""By method, its values on each triplet under the names of the metrics."""
Key = TypeVar("Key")


# Scores per triplet


def values_of(outcome: Outcome) -> dict[str, float | None]:
    """The accuracy of one triplet, ties = ties / picks beside it, and what a judge's orders and cut texts
    add."""
    picks = outcome.picks
    values: dict[str, float | None] = {
        "accuracy": accuracy(picks),
        "ties": None if None in picks else picks.count("tie") / len(picks),
    }
    if outcome.both_orders:
        values["flips"] = outcome.flips
    if outcome.cut is not None:
        values["cut_by_model"] = outcome.cut
    return values


def accuracy(picks: Sequence[Pick | None]) -> float | None:
    """The published accuracy of one triplet, averaged over the orders in which its documents were shown: of a
    judge, which is asked in two, ½ where it is right in one of them.

    A triplet that was not answered in every order has no value: a failure or an answer that cannot be read is
    neither right nor wrong, and one order alone shows a judge's bias to a position.
    """
    return None if None in picks else sum(map(published.accuracy, picks)) / len(picks)


def difficulties(triplets: Sequence[Triplet]) -> list[Difficulty]:
    """`easy` where BM25 orders a triplet correctly, `hard` where it does not or finds both documents alike.

    BM25 has the word counts of the triplets of the run, as the method `bm25` has.
    """
    return ["easy" if outcome.picks == ("positive",) else "hard" for outcome in by_bm25(triplets)]


def opposite_pairs(triplets: Sequence[Triplet]) -> dict[int, Pairs]:
    """The triplets that ask about the same documents under two criteria with opposite answers, in pairs.

    Of one such pair the anchor is the same, and the positive of either is the negative of the other. The
    pairs are listed by the first triplet about their documents.
    """
    same_documents: defaultdict[Hashable, list[int]] = defaultdict(list)
    links = [tuple(map(_document, triplet.documents)) for triplet in triplets]
    for index, of_triplet in enumerate(links):
        same_documents[_asked_about(of_triplet)].append(index)
    pairs = {
        indices[0]: [
            (first, second)
            for first, second in combinations(indices, 2)
            if links[first][1] == links[second][2] and triplets[first].criterion != triplets[second].criterion
        ]
        for indices in same_documents.values()
    }
    return {index: of_documents for index, of_documents in pairs.items() if of_documents}


def _asked_about(documents: Sequence[str]) -> Hashable:
    """The same for triplets with the same anchor and the same two candidates, whichever is the positive."""
    return documents[0], frozenset(documents[1:])


def both_ways(outcomes: Sequence[Outcome], pairs: Pairs) -> float | None:
    """How often a method is right under both criteria of a pair: 1 or 0 for a method with one pick.

    A judge has two picks for a triplet. What it was shown in one order under one criterion is compared with
    what it was shown in the same order under the other, and the two orders count one half each:

        both_ways = ½ Σ over the orders of [right under the first criterion and under the second]

    Such two prompts differ in the criterion alone. So whoever does not read it answers both alike, is right
    in one of them at most, and has 0, also where it always picks the candidate that is shown first. A tie is
    not right. There is no value where any of the answers is missing. With more than two criteria it is the
    mean over the pairs.
    """
    values = []
    for first, second in pairs:
        picks, others = outcomes[first].picks, outcomes[second].picks
        if None in picks or None in others:
            return None
        # The first pick of a judge is that with the positive shown first, which is the other's negative.
        same_order = list(zip(picks, reversed(others), strict=True))
        values.append(same_order.count(("positive", "positive")) / len(same_order))
    return sum(values) / len(values)


def measure(
    sample: Sample[Triplet],
    outcomes: Mapping[str, Outcome],
    difficulty: Difficulty,
    right_both_ways: Mapping[str, float | None],
) -> Score[MultiviewDetail]:
    """The score of a triplet: `accuracy@METHOD` and so on; `accuracy` alone where there is one method.

    `right_both_ways` has `both_ways` by method, of the first triplet of each pair.
    """
    triplet = sample.inputs
    values: dict[str, float | None] = {"built_against_bm25": float(triplet.hard_for == "bm25")}
    for name, outcome in outcomes.items():
        metrics = values_of(outcome)
        if name in right_both_ways:
            metrics["both_ways"] = right_both_ways[name]
        if len(outcomes) == 1:
            values |= {metric: metrics[metric] for metric in HEADLINES if metric in metrics}
        values |= {f"{metric}@{name}": value for metric, value in metrics.items()}
    statuses: Counter[str] = Counter(chain.from_iterable(each.statuses for each in outcomes.values()))
    return Score(
        sample_id=sample.id,
        group=sample.group,
        tags={**sample.tags, "difficulty": difficulty},
        values=values,
        statuses=statuses,
        answered=statuses["ok"] + statuses["truncated"],
        parts={f"{name}/{n}": end for name, o in outcomes.items() for n, end in enumerate(o.ends)},
        # A triplet counts as answered where none of its picks failed or cannot be read.
        requests={n: (0 if None in o.picks else len(o.picks), len(o.picks)) for n, o in outcomes.items()},
        links=tuple(map(_document, triplet.documents)),
        # With the name of the method, as there is no answer of a model under test to show.
        failures=tuple(f"{failure} ({name})" for name, o in outcomes.items() for failure in o.failures),
        detail=MultiviewDetail(
            picks={name: outcome.picks for name, outcome in outcomes.items()},
            margins={name: o.margin for name, o in outcomes.items() if o.margin is not None},
            scores={name: o.scores for name, o in outcomes.items() if o.scores is not None},
        ),
    )


def _document(text: str) -> str:
    """The same for texts that differ in white space only: triplets with such a text share a document."""
    return sha256(" ".join(text.split()).encode()).hexdigest()[:16]


def summarise(
    scores: Sequence[Score],
    methods: Sequence[str],
    blind: Mapping[str, str] | None = None,
    bm25: Collection[str] = ("bm25",),
) -> Summary:
    """Each metric by method and task, over triplets.

    `blind` maps a method to the one that does the same without reading the criterion; `bm25` are the names of
    the one by which triplets are easy or hard.
    """
    members = {method: [_of_method(score, method) for score in scores] for method in methods}
    by_method = list(chain.from_iterable(members.values()))
    dimensions = [("method",), ("task", "method")]
    # BM25 itself is right on every easy triplet and on no hard one.
    not_bm25 = [score for score in by_method if score.tags["method"] not in bm25]
    summary = {
        **_with_coverage_of_flips(
            stats.summarise(by_method, dict.fromkeys(BY_TRIPLET, dimensions), units=UNITS)
        ),
        **stats.summarise(not_bm25, {"accuracy": [("difficulty", "method")]}, units=UNITS),
        **stats.summarise(scores, {"built_against_bm25": [("task",)]}, units=UNITS),
        **stats.summarise(
            list(chain.from_iterable(map(_pair_scores, members.values()))),
            {"both_ways": [("method",), ("docset", "method")]},
            units=UNITS,
        ),
        **macro_averages(members),
        **against_chance(members),
        **instruction_gains(members, blind or {}),
        **differences(members),
    }
    names = {stats.scope_name(metric, {"method": methods[0]}): metric for metric in HEADLINES}
    headlines = [metric for name, metric in names.items() if name in summary]
    return {
        **{metric: _headline(metric, summary, methods) for metric in headlines},
        **summary,
    }


def _with_coverage_of_flips(summary: Summary) -> Summary:
    """Flips have the coverage of the accuracy: a tie leaves a triplet without a flip, but it is answered."""
    return {
        name: replace(figure, coverage=summary[stats.scope_name("accuracy", figure.scope)].coverage)
        if figure.metric == "flips"
        else figure
        for name, figure in summary.items()
    }


def _pair_scores(scores: Iterable[Score]) -> list[Score]:
    """For each pair of criteria, both ways, what a method was asked and answered under both."""
    about: defaultdict[Hashable, list[Score]] = defaultdict(list)
    for score in scores:
        if len(score.links) == len(ROLES):
            about[_asked_about(score.links)].append(score)
    pairs = []
    for of_documents in about.values():
        statuses: Counter[str] = Counter()
        for score in of_documents:
            statuses.update(score.statuses)
        answered = sum(score.answered for score in of_documents)
        pairs += [
            replace(score, statuses=dict(statuses), answered=answered)
            for score in of_documents
            if "both_ways" in score.values
        ]
    return pairs


def _headline(metric: str, summary: Summary, methods: Sequence[str]) -> Figure:
    """The method's figure, and no value where there are several methods: they have no figure in common.

    The coverage is then the lowest of them, so that a failure of any method is seen.
    """
    figures = [summary[stats.scope_name(metric, {"method": method})] for method in methods]
    if len(figures) == 1:
        return figures[0]
    statuses: Counter[str] = Counter()
    for figure in figures:
        statuses.update(figure.statuses)
    return replace(
        figures[0], value=None, low=None, high=None, method="", reason="each method has its own figure",
        n=max(each.n for each in figures), clusters=max(each.clusters for each in figures),
        coverage=min(each.coverage for each in figures), statuses=dict(statuses),
    )  # fmt: skip


def _of_method(score: Score, method: str) -> Score:
    """A method's values on a triplet under the names of the metrics, and how its picks ended."""
    values = {
        metric: value
        for name, value in score.values.items()
        for metric, _, subject in [name.partition("@")]
        if subject == method
    }
    ends = [status for name, status in score.parts.items() if name.rpartition("/")[0] == method]
    return replace(
        score,
        tags={**score.tags, "method": method},
        values=values,
        statuses=dict(Counter(ends)) if ends else score.statuses,  # none: it could not be scored at all
        answered=len(ends) if values["accuracy"] is not None else 0,
    )


# Over tasks, against guessing, with and without the criterion, methods against each other


def macro_averages(members: Members) -> Summary:
    """`accuracy_macro`: the mean of the tasks' accuracies, (1/K) Σ accuracy(task), each task counted once.

    It is unknown where a task has no answer. Tasks over the same documents are not independent: their errors
    are added up by document. With one task it would be the accuracy, and is left out.
    """
    summary: Summary = {}
    for method, scores in members.items():
        tasks = {score.tags["task"] for score in scores}
        if len(tasks) < 2:
            return {}
        known = [(score, v) for score in scores if (v := score.values["accuracy"]) is not None]
        answered = [score.tags["task"] for score, _ in known]
        interval = stats.Interval.unknown("a task has no answer", 0, 0)
        if set(answered) == tasks:
            groups = [group_of(score) for score, _ in known]
            terms = combined.macro_terms([value for _, value in known], groups, answered)
            interval = combined.interval(terms, "share")
        name = stats.scope_name("accuracy_macro", {"method": method})
        summary[name] = stats.figure(scores, "accuracy", interval, unit="share")
    return summary


def against_chance(members: Members) -> Summary:
    """What guessing gives, and how far a method is above it.

    A method that picks a document at random is right in one half of its picks, and a tie is never right. So a
    method's level is `chance` = (1 − ties) / 2, one half where it always picks. `minus_chance` = accuracy −
    chance = (share correct − share wrong) / 2, paired by triplet, tested against zero, with p-values
    corrected by Holm for the methods.
    """
    summary: Summary = {}
    above: Summary = {}
    for method, scores in members.items():
        # The interval is that of the ties, so that it ends at one half.
        ties = stats.summarise(scores, {"ties": [()]}, units=UNITS)["ties"]
        value, low, high = ((1 - x) / 2 if x is not None else None for x in (ties.value, ties.high, ties.low))
        name = stats.scope_name("chance", {"method": method})
        summary[name] = replace(ties, value=value, low=low, high=high)
        guessing = [
            replace(score, tags={**score.tags, "method": "chance"}, values={"accuracy": _chance(score)})
            for score in scores
        ]
        above[stats.scope_name("minus_chance", {"method": method})] = stats.difference(
            [*guessing, *scores], "accuracy", "method", "chance", method, unit="share"
        )
    return {**summary, **_corrected(above)}


def _chance(score: Score) -> float | None:
    ties = score.values["ties"]
    return None if ties is None else (1 - ties) / 2


def instruction_gains(members: Members, blind: Mapping[str, str]) -> Summary:
    """`instruction_gain`: the accuracy of a method that reads the criterion and embeds in the end
    (`embed:SPEC+instruct`, `rewrite:LM+embed:SPEC`) minus that of `embed:SPEC`, which does not, paired."""
    return _corrected(
        {
            stats.scope_name("instruction_gain", {"method": method}): stats.difference(
                [*members[without], *members[method]], "accuracy", "method", without, method, unit="share"
            )
            for method, without in blind.items()
        }
    )


def differences(members: Members) -> Summary:
    """`minus_first`: how much more often a method is right than the first, paired by triplet, also by task.

    Each p-value is corrected by Holm for all methods in its scope.
    """
    first, *others = members
    scopes: dict[str, Members] = {"": members}
    for task in dict.fromkeys(str(score.tags["task"]) for score in members[first]):
        scopes[task] = {
            method: [score for score in scores if score.tags["task"] == task]
            for method, scores in members.items()
        }
    summary: Summary = {}
    for task, of_task in scopes.items():
        scope = {"task": task} if task else {}
        summary |= _corrected(
            {
                stats.scope_name("minus_first", {**scope, "method": method}): stats.difference(
                    [*of_task[first], *of_task[method]], "accuracy", "method", first, method, unit="share"
                )
                for method in others
            }
        )
    return summary


def _corrected(figures: dict[Key, Figure]) -> dict[Key, Figure]:
    """The same figures, with p-values corrected by Holm for all of them."""
    corrected = stats.holm([figure.p for figure in figures.values()])
    tests = max(1, sum(p is not None for p in corrected))
    return {
        key: replace(figure, p=p, tests=tests)
        for (key, figure), p in zip(figures.items(), corrected, strict=True)
    }

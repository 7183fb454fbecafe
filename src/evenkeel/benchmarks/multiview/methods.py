"""How each kind of method orders triplets.

Like scoring, a method yields requests where it needs a model, and is sent their responses. Most methods score
each document against the anchor, and the margin between positive and negative gives the pick: from vectors of
the three documents (`by_vectors`), or from a score for each pair (`by_pairs`). A judge that sees both
candidates at once gives a pick for each order.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

from evenkeel.benchmarks.multiview.files import Pick, Triplet
from evenkeel.benchmarks.multiview.names import Method, parse_methods
from evenkeel.benchmarks.multiview.questions import (
    STATUSES,
    Choice,
    Reading,
    Readings,
    ReasonedChoice,
    Scoring,
    ask_judge,
    embed_template,
    embed_texts,
    instruct_template,
    instructed,
    judge_prompt,
    rank_pairs,
    rate_pairs,
    relevance_vectors,
    write_summaries,
)
from evenkeel.errors import UsageError
from evenkeel.text import judge
from evenkeel.text.prompts import user_prompt
from evenkeel.types import Asking, LogLikelihood

__all__ = ["STATUSES", "Method", "instruct_template", "judge_prompt", "parse_methods"]

TIE = 1e-9
"""Scores closer than this are equal: sums in another order differ in their last bits."""
LETTERS = (" A", " B")
Ordering: TypeAlias = Asking["list[Outcome]"]


class Outcome(NamedTuple):
    """How a method ordered one triplet: one pick, or of a judge one for each of the two orders."""

    picks: tuple[Pick | None, ...]
    """None where a request failed: that is not a wrong answer."""
    statuses: tuple[str, ...]
    margin: float | None = None
    """Score of the positive minus that of the negative, of methods that have scores."""
    scores: tuple[float, float] | None = None
    """Of the positive and of the negative, whose difference the margin is."""
    orders: tuple[Pick | None, ...] = ()
    """What each order alone would pick, where both orders together give one pick."""
    reasons: tuple[str, ...] = ()
    """Why each request ended as it did, in the order of the statuses; empty where nothing is known."""

    @property
    def failures(self) -> list[str]:
        """`error: HTTP 400: …` for each request that did not end well."""
        reasons = self.reasons if len(self.reasons) == len(self.statuses) else ("",) * len(self.statuses)
        return [
            f"{status}: {reason}" if reason else status
            for status, reason in zip(self.statuses, reasons, strict=True)
            if status not in ("ok", "truncated")
        ]

    @property
    def both_orders(self) -> tuple[Pick | None, ...]:
        """The pick in each order; empty of a method that does not depend on the order."""
        return self.orders or (self.picks if len(self.picks) > 1 else ())

    @property
    def flips(self) -> float | None:
        """Whether another document was picked in the other order; None where it did not pick twice."""
        documents = [pick for pick in self.both_orders if pick in ("positive", "negative")]
        return float(documents[0] != documents[1]) if len(documents) == 2 else None

    @property
    def ends(self) -> tuple[str, ...]:
        """How each pick ended: as the worst of the requests behind it."""
        if len(self.picks) == len(self.statuses):
            return self.statuses
        return (max(self.statuses, key=STATUSES.index),)


def check_annotations(methods: Iterable[Method], triplets: Iterable[Triplet]) -> None:
    """Refuse triplets that lack the summaries a method reads, before any request."""
    reader = next((method.name for method in methods if "annotations" in method.options), None)
    for triplet in triplets if reader else ():
        if not (triplet.anchor_summary and triplet.positive_summary and triplet.negative_summary):
            raise UsageError(
                f"{reader}: the triplets of {triplet.task} carry no annotations; "
                "`evenkeel build multiview` writes them."
            )


# Orderings


def order(method: Method, triplets: Sequence[Triplet], *, instruct: str = "") -> Ordering:
    """The outcome of a method for each triplet. `instruct` replaces the instruction template of the model."""
    match method.kind:
        case "bm25":
            return by_bm25(triplets, okapi=method.spec == "okapi")
        case "embed":
            template = embed_template(method, instruct)
            texts = [instructed(template, triplet) for triplet in triplets]
            return by_vectors(
                (yield from embed_texts(method, [[[text] for text in three] for three in texts]))
            )
        case "rewrite":
            summaries = yield from write_summaries(method, triplets)
            return by_vectors((yield from embed_texts(method, summaries)), pool=method.settings.pool)
        case "queries":
            return by_vectors((yield from relevance_vectors(method, triplets)))
        case "rerank" | "late":
            return (yield from by_pairs(triplets, rank_pairs(method, instruct)))
        case "pairs":
            return (yield from by_pairs(triplets, rate_pairs(method), judged=True))
        case _ if "logprobs" in method.options:
            return (yield from by_logprobs(method, triplets))
        case _:
            return (yield from by_verdicts(method, triplets))


def by_bm25(triplets: Sequence[Triplet], *, okapi: bool = False) -> list[Outcome]:
    """BM25 of the anchor against both documents, with the word counts of the documents of its task.

    The variant `okapi` has those of the whole document set, where the data holds the scores.
    """
    from evenkeel.text.bm25 import bm25_scores

    tasks: defaultdict[str, list[int]] = defaultdict(list)
    for index, triplet in enumerate(triplets):
        tasks[triplet.task].append(index)
    margins: dict[int, float] = {}
    scores: dict[int, tuple[float, float]] = {}
    for indices in tasks.values():
        anchors, positives, negatives = zip(*(triplets[index].documents for index in indices), strict=True)
        positive_scores, negative_scores = bm25_scores(
            anchors, positives, negatives, variant="okapi" if okapi else "lucene"
        )
        margins.update(zip(indices, (positive_scores - negative_scores).tolist(), strict=True))
        pairs = zip(positive_scores.tolist(), negative_scores.tolist(), strict=True)
        scores.update(zip(indices, pairs, strict=True))
    if okapi:
        known = {index: triplet.okapi_margin for index, triplet in enumerate(triplets)}
        margins |= {index: margin for index, margin in known.items() if margin is not None}
        scores |= {index: triplet.okapi for index, triplet in enumerate(triplets) if triplet.okapi}
    return [
        _by_margin(margins[index], ("ok",))._replace(scores=scores[index]) for index in range(len(triplets))
    ]


def by_vectors(readings: Readings, *, pool: str = "mean") -> list[Outcome]:
    """Cosine of the anchor with both documents. Where documents have several vectors, all pairs are pooled:

    s(a, d) = mean or max over i, j of cos(a_i, d_j)
    """

    def score(one: Reading, other: Reading) -> float:
        cosines = [float(a @ b) for a in one.vectors for b in other.vectors]
        return max(cosines) if pool == "max" else sum(cosines) / len(cosines)

    outcomes = []
    for three in readings:
        anchor, positive, negative = three
        whole = all(reading.vectors for reading in three)
        scores = (score(anchor, positive), score(anchor, negative)) if whole else (math.nan, math.nan)
        statuses, reasons = zip(*((reading.status, reading.reason) for reading in three), strict=True)
        outcomes.append(_by_scores(scores, statuses, reasons))
    return outcomes


def by_pairs(
    triplets: Sequence[Triplet],
    scored: Scoring,
    *,
    judged: bool = False,
) -> Ordering:
    """The score of each pair of anchor and candidate, asked on its own. What a judge wrote and cannot be read
    is `unparsed`, as in a verdict on a triplet."""
    scores = yield from scored([(t, document) for t in triplets for document in (t.positive, t.negative)])
    outcomes = []
    for pair in zip(scores[::2], scores[1::2], strict=True):
        positive, negative = pair
        statuses = positive.status, negative.status
        outcome = _by_scores((positive.value, negative.value), statuses, (positive.reason, negative.reason))
        if judged and outcome.picks == (None,) and outcome.ends == ("unparsed",):
            outcome = outcome._replace(picks=("unparsed",))
        outcomes.append(outcome)
    return outcomes


def by_verdicts(method: Method, triplets: Sequence[Triplet]) -> Ordering:
    """A language model names the document that is more alike, asked in both orders."""
    kind: type[Choice] | type[ReasonedChoice] = ReasonedChoice if "reason" in method.options else Choice
    questions = [
        user_prompt(judge_prompt(method, triplet, swapped=swapped))
        for triplet in triplets
        for swapped in (False, True)
    ]
    verdicts = yield from ask_judge(method, kind, questions)
    return [
        Outcome(
            (_picked(straight, "positive", "negative"), _picked(swapped, "negative", "positive")),
            (straight.status, swapped.status),
            reasons=(straight.reason, swapped.reason),
        )
        for straight, swapped in zip(verdicts[::2], verdicts[1::2], strict=True)
    ]


def by_logprobs(method: Method, triplets: Sequence[Triplet]) -> Ordering:
    """How likely either letter is after a text that ends where the choice is to come, over both orders.

        margin = (lp(A) − lp(B) | the positive is A) − (lp(A) − lp(B) | the positive is B)

    A small model is biased towards one letter whatever the texts are. The bias is the same in both orders, so
    it cancels in the margin, which gives one pick; what each order alone would pick is kept for the flips.
    """
    responses = yield [
        LogLikelihood(
            prefix=judge_prompt(method, triplet, swapped=swapped), continuation=letter, role=method.role
        )
        for triplet in triplets
        for swapped in (False, True)
        for letter in LETTERS
    ]
    outcomes = []
    for four in zip(*(responses[start::4] for start in range(4)), strict=True):
        a, b, swapped_a, swapped_b = (sum(r.logprobs.values) if r.logprobs else math.nan for r in four)
        straight, swapped = a - b, swapped_b - swapped_a
        statuses, reasons = zip(*((response.status, response.reason) for response in four), strict=True)
        outcome = _by_margin(straight + swapped, statuses, reasons)
        scores = None if outcome.margin is None else (a + swapped_b, b + swapped_a)
        outcomes.append(outcome._replace(orders=(_pick(straight), _pick(swapped)), scores=scores))
    return outcomes


# Picks


def _picked(verdict: judge.Verdict[Choice | ReasonedChoice], first: Pick, second: Pick) -> Pick | None:
    if verdict.value is None:
        return "unparsed" if verdict.status == "unparsed" else None
    picks: dict[str, Pick] = {"first": first, "second": second, "tie": "tie"}
    return picks[verdict.value.more_alike]


def _by_scores(
    scores: tuple[float, float], statuses: tuple[str, ...], reasons: tuple[str, ...] = ()
) -> Outcome:
    outcome = _by_margin(scores[0] - scores[1], statuses, reasons)
    return outcome if outcome.margin is None else outcome._replace(scores=scores)


def _by_margin(margin: float, statuses: tuple[str, ...], reasons: tuple[str, ...] = ()) -> Outcome:
    """A margin that is not a number comes from a failed answer, even if its status says ok."""
    if math.isnan(margin):
        failed = any(status not in ("ok", "truncated") for status in statuses)
        return Outcome((None,), statuses, reasons=reasons) if failed else Outcome((None,), ("error",))
    return Outcome((_pick(margin),), statuses, margin, reasons=reasons)


def _pick(margin: float) -> Pick | None:
    if math.isnan(margin):
        return None
    return "tie" if abs(margin) < TIE else "positive" if margin > 0 else "negative"

"""How each kind of method orders triplets: what it asks of models, and how it reads the answers.

Like scoring, a method yields requests where it needs a model, and is sent their responses. Most methods score
each document against the anchor, and the margin between positive and negative gives the pick. A judge that
sees both candidates at once gives a pick for each order.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, TypeAlias

from msgspec import Struct

from sealegs.benchmarks.multiview.data import Triplet
from sealegs.benchmarks.multiview.names import Method
from sealegs.benchmarks.multiview.prompts import family_template, instructed, judge_prompt, prompts
from sealegs.benchmarks.multiview.published import Pick
from sealegs.errors import UsageError
from sealegs.models.vectors import unit_vector, usable
from sealegs.text import judge
from sealegs.text.answers import Rule
from sealegs.text.bm25 import bm25_scores
from sealegs.text.prompts import user_prompt
from sealegs.types import Asking, Embed, Generate, LogLikelihood, Rank, Response, Sampling, Status

TIE = 1e-9
"""Scores closer than this are equal: sums in another order differ in their last bits."""
LETTERS = (" A", " B")
SUMMARY_TOKENS = 96
SUMMARIES = Rule(truncated=True)
"""A summary that was cut off is embedded as far as it goes."""
STATUSES: tuple[Status, ...] = ("ok", "truncated", "unparsed", "refused", "error")
"""How a request may end, the worst last."""
FAILURES = STATUSES[2:]

Ordering: TypeAlias = Asking["list[Outcome]"]


class Outcome(NamedTuple):
    """How a method ordered one triplet: one pick, or of a judge one for each of the two orders."""

    picks: tuple[Pick | None, ...]
    """None where a request failed or its answer cannot be read: that is not a wrong answer."""
    statuses: tuple[Status, ...]
    margin: float | None = None
    """Score of the positive minus that of the negative, of methods that have scores."""
    scores: tuple[float, float] | None = None
    """Of the positive and of the negative, whose difference the margin is."""
    orders: tuple[Pick | None, ...] = ()
    """What each order alone would pick, where both orders together give one pick."""
    reasons: tuple[str, ...] = ()
    """Why each request ended as it did, in the order of the statuses; empty where nothing is known."""
    cut: float | None = None
    """The share of its texts of which the model did not read the end; None where it does not tell."""

    @property
    def failures(self) -> list[str]:
        """`error: HTTP 400: …` for each request that did not end well."""
        reasons = self.reasons if len(self.reasons) == len(self.statuses) else ("",) * len(self.statuses)
        return [
            f"{status}: {reason}" if reason else status
            for status, reason in zip(self.statuses, reasons, strict=True)
            if status in FAILURES
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
    def ends(self) -> tuple[Status, ...]:
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
                "`sealegs build multiview` writes them."
            )


def order(method: Method, triplets: Sequence[Triplet]) -> Ordering:
    """The outcome of a method for each triplet."""
    match method.kind:
        case "bm25":
            return by_bm25(triplets)
        case "embed":
            template = (
                family_template(prompts().instruct, method.spec) if "instruct" in method.options else "{TEXT}"
            )
            return (yield from by_vectors(method, [instructed(template, triplet) for triplet in triplets]))
        case "rewrite":
            return (yield from by_vectors(method, (yield from write_summaries(method, triplets))))
        case "rerank":
            return (yield from by_ranks(method, triplets))
        case _ if "logprobs" in method.options:
            return (yield from by_logprobs(method, triplets))
        case _:
            return (yield from by_verdicts(method, triplets))


# Words and vectors


def by_bm25(triplets: Sequence[Triplet]) -> list[Outcome]:
    """BM25 of the anchor against both documents, with the word counts of the documents of its task."""
    tasks: defaultdict[str, list[int]] = defaultdict(list)
    for index, triplet in enumerate(triplets):
        tasks[triplet.task].append(index)
    outcomes: dict[int, Outcome] = {}
    for indices in tasks.values():
        anchors, positives, negatives = zip(*(triplets[index].documents for index in indices), strict=True)
        scores = (part.tolist() for part in bm25_scores(anchors, positives, negatives))
        for index, pair in zip(indices, zip(*scores, strict=True), strict=True):
            outcomes[index] = _by_scores(pair)
    return [outcomes[index] for index in range(len(triplets))]


def by_vectors(method: Method, texts: Sequence[Sequence[str | Response]]) -> Ordering:
    """The cosine of the anchor with both documents, of the three texts of each triplet.

    A response in place of a text says why there is none.
    """
    distinct = dict.fromkeys(text for three in texts for text in three if isinstance(text, str))
    embedded = usable((yield [Embed(text=text, role=method.role) for text in distinct]))
    responses = dict(zip(distinct, embedded, strict=True))
    outcomes = []
    for three in texts:
        ends = [responses[text] if isinstance(text, str) else text for text in three]
        scores = (math.nan, math.nan)
        if all(end.vector for end in ends):
            anchor, positive, negative = (unit_vector(end.vector or b"") for end in ends)
            scores = float(anchor @ positive), float(anchor @ negative)
        outcomes.append(_by_scores(scores, ends))
    return outcomes


def write_summaries(method: Method, triplets: Sequence[Triplet]) -> Asking[list[list[str | Response]]]:
    """What a language model wrote of each document of each triplet under the criterion."""
    settings = method.settings
    views = dict.fromkeys((t.criterion, t.description, text) for t in triplets for text in t.documents)
    sampling = Sampling(max_tokens=settings.max_tokens or SUMMARY_TOKENS, temperature=settings.temperature)
    responses = yield [
        Generate(
            prompt=user_prompt(prompts().rewrite, CRITERION=criterion, DESCRIPTION=description, TEXT=text),
            sampling=sampling,
            role=method.writer_role,
        )
        for criterion, description, text in views
    ]
    written = dict(zip(views, map(_summary, responses), strict=True))
    return [[written[t.criterion, t.description, text] for text in t.documents] for t in triplets]


def _summary(response: Response) -> str | Response:
    """What was written, or why nothing was."""
    if SUMMARIES.counts(response):
        return response.text
    # What was cut off before it began is as unreadable as what is empty.
    truncated = response.status == "truncated"
    status = "unparsed" if truncated else SUMMARIES.status(response)
    return Response(status=status, reason=response.reason)


def by_ranks(method: Method, triplets: Sequence[Triplet]) -> Ordering:
    """A reranker's score of each candidate, for a query of criterion and anchor."""
    template = family_template(prompts().rerank, method.spec)
    responses = yield [
        Rank(query=instructed(template, triplet)[0], document=document, role=method.role)
        for triplet in triplets
        for document in (triplet.positive, triplet.negative)
    ]
    outcomes = []
    for pair in zip(responses[::2], responses[1::2], strict=True):
        positive, negative = (math.nan if end.rank is None else end.rank for end in pair)
        outcomes.append(_by_scores((positive, negative), pair))
    return outcomes


# Judges


# They read the name, the field and the docstring of this struct.
class Choice(Struct):
    """A judge's verdict on a triplet."""

    more_alike: Literal["first", "second", "tie"]


def by_verdicts(method: Method, triplets: Sequence[Triplet]) -> Ordering:
    """A language model names the document that is more alike, asked in both orders."""
    verdicts = yield from judge.ask(
        Choice,
        [
            user_prompt(judge_prompt(method, triplet, swapped=swapped))
            for triplet in triplets
            for swapped in (False, True)
        ],
        role=method.role,
        max_tokens=method.settings.max_tokens or judge.MAX_TOKENS,
        temperature=method.settings.temperature,
    )
    return [
        Outcome(
            (_picked(straight, "positive", "negative"), _picked(swapped, "negative", "positive")),
            (straight.status, swapped.status),
            reasons=(straight.reason, swapped.reason),
        )
        for straight, swapped in zip(verdicts[::2], verdicts[1::2], strict=True)
    ]


def _picked(verdict: judge.JudgeVerdict[Choice], first: Pick, second: Pick) -> Pick | None:
    if verdict.value is None:
        return None
    picks: dict[str, Pick] = {"first": first, "second": second, "tie": "tie"}
    return picks[verdict.value.more_alike]


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
        outcome = _by_scores((a + swapped_b, b + swapped_a), four, margin=straight + swapped)
        outcomes.append(outcome._replace(orders=(_pick(straight), _pick(swapped))))
    return outcomes


# Picks


def _by_scores(
    scores: tuple[float, float], ends: Sequence[Response] = (), margin: float | None = None
) -> Outcome:
    """A pick by the scores that these responses gave.

    A margin that is not a number comes from a failed answer, even if its status says ok.
    """
    statuses: tuple[Status, ...] = tuple(end.status for end in ends) or ("ok",)
    reasons = tuple(end.reason for end in ends)
    margin = scores[0] - scores[1] if margin is None else margin
    if math.isnan(margin):
        failed = any(status in FAILURES for status in statuses)
        return Outcome((None,), statuses, reasons=reasons) if failed else Outcome((None,), ("error",))
    cuts = [end.cut for end in ends if end.cut is not None]
    cut = sum(cuts) / len(cuts) if cuts else None
    return Outcome((_pick(margin),), statuses, margin, scores, reasons=reasons, cut=cut)


def _pick(margin: float) -> Pick | None:
    if math.isnan(margin):
        return None
    return "tie" if abs(margin) < TIE else "positive" if margin > 0 else "negative"

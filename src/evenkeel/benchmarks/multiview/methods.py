"""The methods that are compared: what each is called, which models it needs, and how it orders triplets.

Like scoring, a method yields requests where it needs a model, and is sent their responses.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Generator, Iterable, Sequence
from typing import Literal, NamedTuple, TypeAlias

from msgspec import Struct

from evenkeel.benchmarks.multiview.files import Pick, Triplet
from evenkeel.errors import UsageError, suggestion
from evenkeel.files.package_data import read_json
from evenkeel.models.vectors import unit_vector, usable
from evenkeel.text import judge
from evenkeel.text.answers import Rule
from evenkeel.text.prompts import fill, user_prompt
from evenkeel.types import Capability, Embed, Generate, LogLikelihood, Rank, Request, Response, Sampling

FORMS = (
    "bm25, embed:SPEC, embed:SPEC+instruct, rerank:SPEC, rewrite:LM+embed:SPEC, "
    "judge:SPEC, judge:SPEC+annotations, judge:SPEC+logprobs"
)
KINDS = ("bm25", "embed", "rerank", "rewrite", "judge")
OPTIONS = {"embed": {"instruct"}, "judge": {"annotations", "logprobs"}}
CAPABILITIES: dict[str, Capability] = {
    "embed": "embed", "rerank": "rank", "rewrite": "embed", "judge": "generate",
}  # fmt: skip
TIE = 1e-9
"""Scores closer than this are equal: sums in another order differ in their last bits."""
SUMMARY_TOKENS = 96
SUMMARIES = Rule(truncated=True)
"""A summary that was cut off is embedded as far as it goes."""
LETTERS = (" A", " B")
STATUSES = ("ok", "truncated", "unparsed", "refused", "error")
"""How a request may end, the worst last."""

Ordering: TypeAlias = Generator[Sequence[Request], Sequence[Response], "list[Outcome]"]


class Method(Struct, frozen=True):
    """A method's name, taken apart."""

    name: str
    kind: str
    spec: str = ""
    """The model that embeds, ranks or judges."""
    writer: str = ""
    """The model that writes the summaries, of `rewrite`."""
    options: frozenset[str] = frozenset()

    @property
    def role(self) -> str:
        """The role of the model `spec`: what it does, and the spec. Methods of one role share its answers."""
        return f"{'embed' if self.kind == 'rewrite' else self.kind}:{self.spec}"

    @property
    def roles(self) -> dict[str, Capability]:
        """What the model in each role must be able to do."""
        roles: dict[str, Capability] = {f"rewrite:{self.writer}": "generate"} if self.writer else {}
        if self.spec:
            roles[self.role] = "loglikelihood" if "logprobs" in self.options else CAPABILITIES[self.kind]
        return roles


class Outcome(NamedTuple):
    """How a method ordered one triplet: one pick, or of a judge one for each of the two orders."""

    picks: tuple[Pick | None, ...]
    """None where a request failed: that is not a wrong answer."""
    statuses: tuple[str, ...]
    margin: float | None = None
    """Score of the positive minus that of the negative, of methods that have scores."""
    orders: tuple[Pick | None, ...] = ()
    """What each order alone would pick, where both orders together give one pick."""

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


class Prompts(Struct, frozen=True):
    """The templates of all prompts, with slots in capitals."""

    judge: str
    summaries: str
    logprobs: str
    rewrite: str
    rerank: str
    instruct: dict[str, str]


class Choice(Struct):
    """A judge's verdict on a triplet."""

    more_alike: Literal["first", "second", "tie"]


# Names


def parse_methods(texts: Sequence[str]) -> list[Method]:
    """Methods by their names, or an error that lists the forms."""
    methods = [_parse_method(text.strip()) for text in texts]
    if not methods:
        raise ValueError(f"--method: give at least one. Available: {FORMS}")
    names = [method.name for method in methods]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"--method: '{name}' is given twice")
    return methods


def _parse_method(text: str) -> Method:
    head, *options = text.split("+")
    kind, _, spec = head.partition(":")
    writer = ""
    if kind == "rewrite" and len(options) == 1 and options[0].startswith("embed:"):
        writer, spec, options = spec, options[0].removeprefix("embed:"), []
    complete = head == "bm25" or (kind != "bm25" and spec and (writer or kind != "rewrite"))
    known = kind in KINDS and len(set(options) & OPTIONS.get(kind, set())) == len(options)
    if not (complete and known):
        hint = "" if kind in KINDS else suggestion(kind, KINDS)
        raise ValueError(f"--method: '{text}' is not a method.{hint} Available: {FORMS}")
    return Method(text, kind, spec, writer, frozenset(options))


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
            return by_bm25(triplets)
        case "embed":
            template = (instruct or instruct_template(method.spec)) if method.options else "{TEXT}"
            readings = [
                [Response(status="ok", text=text) for text in _instructed(template, triplet)]
                for triplet in triplets
            ]
            return (yield from by_cosine(method, readings))
        case "rewrite":
            return (yield from by_cosine(method, (yield from _summaries(method, triplets))))
        case "rerank":
            return (yield from by_rank(method, triplets))
        case _ if "logprobs" in method.options:
            return (yield from by_logprobs(method, triplets))
        case _:
            return (yield from by_verdicts(method, triplets))


def by_bm25(triplets: Sequence[Triplet]) -> list[Outcome]:
    """BM25 of the anchor against both documents, with the word counts of the documents of its task."""
    from evenkeel.text.bm25 import bm25_scores

    tasks: defaultdict[str, list[int]] = defaultdict(list)
    for index, triplet in enumerate(triplets):
        tasks[triplet.task].append(index)
    margins: dict[int, float] = {}
    for indices in tasks.values():
        anchors, positives, negatives = zip(*(triplets[index].documents for index in indices), strict=True)
        positive_scores, negative_scores = bm25_scores(anchors, positives, negatives)
        margins.update(zip(indices, (positive_scores - negative_scores).tolist(), strict=True))
    return [_by_margin(margins[index], ("ok",)) for index in range(len(triplets))]


def by_cosine(method: Method, readings: Sequence[Sequence[Response]]) -> Ordering:
    """Cosine of the anchor with both documents, each by its text in `readings`; empty: it failed."""
    texts = list(dict.fromkeys(reading.text for three in readings for reading in three if reading.text))
    embedded = usable((yield [Embed(text=text, role=method.role) for text in texts]))
    responses = dict(zip(texts, embedded, strict=True))
    vectors = {text: unit_vector(response.vector) for text, response in responses.items() if response.vector}
    outcomes = []
    for three in readings:
        statuses = tuple(responses.get(reading.text, reading).status for reading in three)
        margin = math.nan
        if all(reading.text in vectors for reading in three):
            anchor, positive, negative = (vectors[reading.text] for reading in three)
            margin = float(anchor @ positive - anchor @ negative)
        outcomes.append(_by_margin(margin, statuses))
    return outcomes


def by_rank(method: Method, triplets: Sequence[Triplet]) -> Ordering:
    """A cross-encoder's score of both documents for a query that holds the criterion and the anchor."""
    responses = yield [
        Rank(
            query=_instructed(prompts().rerank, triplet)[0],
            document=document,
            role=method.role,
        )
        for triplet in triplets
        for document in (triplet.positive, triplet.negative)
    ]
    outcomes = []
    for pair in zip(responses[::2], responses[1::2], strict=True):
        positive, negative = (math.nan if response.rank is None else response.rank for response in pair)
        outcomes.append(_by_margin(positive - negative, tuple(response.status for response in pair)))
    return outcomes


def by_verdicts(method: Method, triplets: Sequence[Triplet]) -> Ordering:
    """A language model names the document that is more alike, asked in both orders."""
    questions = [
        user_prompt(judge_prompt(method, triplet, swapped=swapped))
        for triplet in triplets
        for swapped in (False, True)
    ]
    verdicts = yield from judge.ask(Choice, questions, role=method.role)
    return [
        Outcome(
            (_picked(straight, "positive", "negative"), _picked(swapped, "negative", "positive")),
            (straight.status, swapped.status),
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
        outcome = _by_margin(straight + swapped, tuple(response.status for response in four))
        outcomes.append(outcome._replace(orders=(_pick(straight), _pick(swapped))))
    return outcomes


# Prompts


def prompts() -> Prompts:
    return read_json(__package__, "prompts.json", type=Prompts)


def judge_prompt(method: Method, triplet: Triplet, *, swapped: bool) -> str:
    """What a judge reads of a triplet: the positive first, or swapped."""
    pairs = [(triplet.positive, triplet.positive_summary), (triplet.negative, triplet.negative_summary)]
    (first, first_summary), (second, second_summary) = reversed(pairs) if swapped else pairs
    summaries = ""
    if "annotations" in method.options:
        summaries = fill(
            prompts().summaries,
            ANCHOR_SUMMARY=triplet.anchor_summary,
            FIRST_SUMMARY=first_summary,
            SECOND_SUMMARY=second_summary,
        )
    slots = {
        "CRITERION": triplet.criterion,
        "DESCRIPTION": triplet.description,
        "ANCHOR": triplet.anchor,
        "FIRST": first,
        "SECOND": second,
    }
    if "logprobs" in method.options:
        return fill(prompts().logprobs, **slots, SUMMARIES=summaries)
    return fill(prompts().judge, **slots) + summaries


def instruct_template(spec: str) -> str:
    """The instruction template of a model's family: the first that begins a word of the model's name."""
    name = re.split(r"[/:]", spec.lower().rstrip("/"))[-1]
    templates = prompts().instruct
    return next(text for family, text in templates.items() if re.search(rf"(?<![a-z0-9]){family}", name))


def _instructed(template: str, triplet: Triplet) -> list[str]:
    """Anchor, positive and negative in an instruction template."""
    instruction = triplet.instruction or triplet.description
    return [fill(template, INSTRUCTION=instruction, TEXT=text) for text in triplet.documents]


def _summaries(
    method: Method, triplets: Sequence[Triplet]
) -> Generator[Sequence[Request], Sequence[Response], list[list[Response]]]:
    """What a language model wrote of each document of each triplet under the criterion."""
    views = dict.fromkeys((t.criterion, t.description, text) for t in triplets for text in t.documents)
    requests = [
        Generate(
            prompt=user_prompt(prompts().rewrite, CRITERION=criterion, DESCRIPTION=description, TEXT=text),
            sampling=Sampling(max_tokens=SUMMARY_TOKENS),
            role=f"rewrite:{method.writer}",
        )
        for criterion, description, text in views
    ]
    responses = dict(zip(views, (yield requests), strict=True))
    return [[_summary(responses[t.criterion, t.description, text]) for text in t.documents] for t in triplets]


def _summary(response: Response) -> Response:
    if SUMMARIES.counts(response):
        return response
    # What was cut off before it began is as unreadable as what is empty.
    truncated = response.status == "truncated"
    return Response(status="unparsed" if truncated else SUMMARIES.status(response))


# Picks


def _picked(verdict: judge.Verdict[Choice], first: Pick, second: Pick) -> Pick | None:
    if verdict.value is None:
        return "unparsed" if verdict.status == "unparsed" else None
    picks: dict[str, Pick] = {"first": first, "second": second, "tie": "tie"}
    return picks[verdict.value.more_alike]


def _by_margin(margin: float, statuses: tuple[str, ...]) -> Outcome:
    """A margin that is not a number comes from a failed answer, even if its status says ok."""
    if math.isnan(margin):
        failed = any(status not in ("ok", "truncated") for status in statuses)
        return Outcome((None,), statuses if failed else ("error",))
    return Outcome((_pick(margin),), statuses, margin)


def _pick(margin: float) -> Pick | None:
    if math.isnan(margin):
        return None
    return "tie" if abs(margin) < TIE else "positive" if margin > 0 else "negative"

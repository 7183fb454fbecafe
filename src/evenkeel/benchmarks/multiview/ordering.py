"""How each method orders a triplet. Like scoring, a method yields requests where it needs a model."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from msgspec import Struct

from evenkeel.benchmarks.multiview.files import Triplet
from evenkeel.benchmarks.multiview.methods import Method
from evenkeel.errors import UsageError
from evenkeel.files.package_data import read_json
from evenkeel.models.vectors import usable
from evenkeel.run import judge
from evenkeel.run.answers import Rule
from evenkeel.text.prompts import fill
from evenkeel.types import Embed, Generate, LogLikelihood, Message, Rank, Request, Response, Sampling

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TIE = 1e-9
"""Scores closer than this are equal: sums in another order differ in their last bits."""
SUMMARY_TOKENS = 96
SUMMARIES = Rule(truncated=True)
"""A summary that was cut off is embedded as far as it goes."""
LOGPROBS = (" A", " B")
ENDS = ("ok", "truncated", "unparsed", "refused", "error")
"""How a request may end, the worst last."""

Pick: TypeAlias = Literal["positive", "negative", "tie", "unparsed"]
Asking: TypeAlias = Generator[Sequence[Request], Sequence[Response], "list[Outcome]"]


class Outcome(NamedTuple):
    """How a method ordered one triplet: a pick for each verdict. A judge gives one in each of both orders."""

    picks: tuple[Pick | None, ...]
    """None where a request failed: that is no wrong answer, it is none."""
    statuses: tuple[str, ...]
    margin: float | None = None
    """Score of the positive minus that of the negative, of methods that have scores."""
    orders: tuple[Pick | None, ...] = ()
    """What each order alone would pick, where both orders together give one pick."""

    @property
    def in_orders(self) -> bool:
        """Whether the triplet was put to the method in both orders."""
        return len(self.orders or self.picks) > 1

    @property
    def flips(self) -> float | None:
        """Whether another document was picked in the other order; None where it did not pick twice."""
        picked = [pick for pick in self.orders or self.picks if pick in ("positive", "negative")]
        return float(picked[0] != picked[1]) if len(picked) == 2 else None

    @property
    def ends(self) -> tuple[str, ...]:
        """How each pick ended: as the worst of the requests that it came from."""
        each = len(self.statuses) // len(self.picks)
        parts = (self.statuses[at : at + each] for at in range(0, len(self.statuses), each))
        return tuple(max(part, key=ENDS.index) for part in parts)


class Templates(Struct, frozen=True):
    """The words of all prompts, with places in capitals."""

    judge: str
    summaries: str
    logprobs: str
    rewrite: str
    rerank: str
    instruct: dict[str, str]


def templates() -> Templates:
    return read_json(__package__, "prompts.json", type=Templates)


def order(method: Method, triplets: Sequence[Triplet], *, instruct: str = "") -> Asking:
    """The outcome of a method for each triplet."""
    match method.kind:
        case "bm25":
            yield from ()
            return by_words(triplets)
        case "embed":
            texts = {text: text for triplet in triplets for text in triplet.documents}
            if "instruct" not in method.options:
                return (yield from by_vectors(method, triplets, [texts] * len(triplets)))
            template = instruct or template_for(method.spec)
            read = [
                {text: fill(template, INSTRUCTION=instruction(t), TEXT=text) for text in t.documents}
                for t in triplets
            ]
            return (yield from by_vectors(method, triplets, read))
        case "rewrite":
            read, failed = yield from _rewritten(method, triplets)
            return (yield from by_vectors(method, triplets, read, failed))
        case "rerank":
            return (yield from by_ranks(method, triplets))
        case "judge":
            return (
                yield from (by_weights if "logprobs" in method.options else by_verdicts)(method, triplets)
            )


def by_words(triplets: Sequence[Triplet]) -> list[Outcome]:
    """BM25 of the anchor against both documents, with the word counts of each task's own documents."""
    from evenkeel.text.bm25 import bm25_scores

    tasks: defaultdict[str, list[int]] = defaultdict(list)
    for place, triplet in enumerate(triplets):
        tasks[triplet.task].append(place)
    margins: dict[int, float] = {}
    for places in tasks.values():
        own = [triplets[place] for place in places]
        positives, negatives = bm25_scores(*zip(*(triplet.documents for triplet in own), strict=True))
        margins.update(zip(places, (positives - negatives).tolist(), strict=True))
    return [_by_margin(margins[place], ("ok",)) for place in range(len(triplets))]


def by_vectors(
    method: Method,
    triplets: Sequence[Triplet],
    read: Sequence[Mapping[str, str]],
    failed: Sequence[Mapping[str, str]] | None = None,
) -> Asking:
    """Cosine of the anchor with both documents, each embedded as `read` has it; one that is absent failed,
    and `failed` says how."""
    role = f"embed:{method.spec}"
    texts = list(
        dict.fromkeys(
            own[t] for own, triplet in zip(read, triplets, strict=True) for t in triplet.documents if t in own
        )
    )
    found = usable((yield [Embed(text=text, role=role) for text in texts]))
    responses = dict(zip(texts, found, strict=True))
    vectors = {text: unit_vector(response.vector) for text, response in responses.items() if response.vector}
    outcomes = []
    for triplet, own, ended in zip(triplets, read, failed or [{}] * len(triplets), strict=True):
        statuses = tuple(
            responses[own[text]].status if text in own else ended[text] for text in triplet.documents
        )
        anchor, positive, negative = (vectors.get(own.get(text, "")) for text in triplet.documents)
        margin = math.nan
        if anchor is not None and positive is not None and negative is not None:
            margin = float(anchor @ positive - anchor @ negative)
        outcomes.append(_by_margin(margin, statuses))
    return outcomes


def by_ranks(method: Method, triplets: Sequence[Triplet]) -> Asking:
    """A cross-encoder's score of both documents for a query that holds the criterion and the anchor."""
    role = f"rerank:{method.spec}"
    asked = [
        Rank(
            query=fill(templates().rerank, INSTRUCTION=instruction(triplet), TEXT=triplet.anchor),
            document=document,
            role=role,
        )
        for triplet in triplets
        for document in (triplet.positive, triplet.negative)
    ]
    responses = yield asked
    outcomes = []
    for positive, negative in zip(responses[::2], responses[1::2], strict=True):
        good, bad = (math.nan if answer.rank is None else answer.rank for answer in (positive, negative))
        outcomes.append(_by_margin(good - bad, (positive.status, negative.status)))
    return outcomes


class Choice(Struct):
    """A judge's verdict on a triplet."""

    more_alike: Literal["first", "second", "tie"]


def by_verdicts(method: Method, triplets: Sequence[Triplet]) -> Asking:
    """A language model names the document that is more alike, asked in both orders."""
    asked = [
        (filled_in(method, triplet, swapped=swapped), swapped)
        for triplet in triplets
        for swapped in (False, True)
    ]
    verdicts = yield from judge.ask(
        Choice, [(Message("user", text),) for text, _ in asked], role=f"judge:{method.spec}"
    )
    picks = [_picked(verdict, swapped) for verdict, (_, swapped) in zip(verdicts, asked, strict=True)]
    statuses = [verdict.status for verdict in verdicts]
    return [
        Outcome(tuple(picks[at : at + 2]), tuple(statuses[at : at + 2])) for at in range(0, len(picks), 2)
    ]


def by_weights(method: Method, triplets: Sequence[Triplet]) -> Asking:
    """How likely either letter is after a text that ends where the choice is to come, over both orders.

        margin = (lp(A) − lp(B) | the positive is A) − (lp(A) − lp(B) | the positive is B)

    A small model leans to one letter whatever the texts are. The leaning is the same in both orders, so it
    drops out of the margin, which gives one pick; what each order alone would pick is kept for the flips.
    """
    role = f"judge:{method.spec}"
    asked = [
        LogLikelihood(prefix=filled_in(method, triplet, swapped=swapped), continuation=letter, role=role)
        for triplet in triplets
        for swapped in (False, True)
        for letter in LOGPROBS
    ]
    responses = yield asked
    each = 2 * len(LOGPROBS)
    return [_by_letters(responses[at : at + each]) for at in range(0, len(responses), each)]


def _by_letters(responses: Sequence[Response]) -> Outcome:
    """From the weights of both letters in both orders."""
    first, second, swapped_first, swapped_second = (
        sum(r.logprobs.values) if r.logprobs else math.nan for r in responses
    )
    straight, swapped = first - second, swapped_second - swapped_first
    outcome = _by_margin(straight + swapped, tuple(response.status for response in responses))
    return outcome._replace(orders=(_pick(straight), _pick(swapped)))


def _rewritten(
    method: Method, triplets: Sequence[Triplet]
) -> Generator[Sequence[Request], Sequence[Response], tuple[list[dict[str, str]], list[dict[str, str]]]]:
    """For each triplet, its documents and what a language model wrote of them under the criterion; and those
    of which it wrote nothing, with how that ended."""
    wanted = dict.fromkeys((t.criterion, t.description, text) for t in triplets for text in t.documents)
    asked = [
        Generate(
            prompt=(
                Message(
                    "user",
                    fill(templates().rewrite, CRITERION=name, DESCRIPTION=description, TEXT=text),
                ),
            ),
            sampling=Sampling(max_tokens=SUMMARY_TOKENS),
            role=f"rewrite:{method.writer}",
        )
        for name, description, text in wanted
    ]
    written = dict(zip(wanted, (yield asked), strict=True))
    each = [{text: written[t.criterion, t.description, text] for text in t.documents} for t in triplets]
    return (
        [{text: r.text for text, r in own.items() if SUMMARIES.counts(r)} for own in each],
        [
            {
                # What was cut off before it began can be read no more than what is empty.
                text: "unparsed" if r.status == "truncated" else SUMMARIES.status(r)
                for text, r in own.items()
                if not SUMMARIES.counts(r)
            }
            for own in each
        ],
    )


def filled_in(method: Method, triplet: Triplet, *, swapped: bool) -> str:
    """What a judge reads of a triplet: the positive first, or swapped."""
    pair = (triplet.positive, triplet.negative)
    summaries = (triplet.positive_summary, triplet.negative_summary)
    if swapped:
        pair, summaries = pair[::-1], summaries[::-1]
    told = ""
    if "annotations" in method.options:
        told = fill(
            templates().summaries,
            ANCHOR_SUMMARY=triplet.anchor_summary,
            FIRST_SUMMARY=summaries[0],
            SECOND_SUMMARY=summaries[1],
        )
    places = {
        "CRITERION": triplet.criterion,
        "DESCRIPTION": triplet.description,
        "ANCHOR": triplet.anchor,
        "FIRST": pair[0],
        "SECOND": pair[1],
    }
    if "logprobs" in method.options:
        return fill(templates().logprobs, **places, SUMMARIES=told)
    return fill(templates().judge, **places) + told


def check_annotations(methods: Iterable[Method], triplets: Iterable[Triplet]) -> None:
    """Refuse triplets that lack what a method reads, before anything is asked."""
    reader = next((method.name for method in methods if "annotations" in method.options), None)
    for triplet in triplets if reader else ():
        if not (triplet.anchor_summary and triplet.positive_summary and triplet.negative_summary):
            raise UsageError(
                f"{reader}: the triplets of {triplet.task} carry no annotations; "
                "`evenkeel build multiview` writes them."
            )


def instruction(triplet: Triplet) -> str:
    return triplet.instruction or triplet.description


def template_for(spec: str) -> str:
    """The instruction template of a model's family: the first that begins a word of the model's name."""
    name = re.split(r"[/:]", spec.lower().rstrip("/"))[-1]
    known = templates().instruct
    return next(text for family, text in known.items() if re.search(rf"(?<![a-z0-9]){family}", name))


def unit_vector(data: bytes) -> NDArray[np.float64]:
    import numpy as np

    vector = np.frombuffer(data, dtype="<f4").astype(np.float64)
    length = float(np.linalg.norm(vector))
    return vector / length if length else vector


def _picked(verdict: judge.Verdict[Any], swapped: bool) -> Pick | None:
    if verdict.value is None:
        return "unparsed" if verdict.status == "unparsed" else None
    said = verdict.value.more_alike
    if said == "tie":
        return "tie"
    return "positive" if (said == "first") != swapped else "negative"


def _by_margin(margin: float, statuses: tuple[str, ...]) -> Outcome:
    """A margin that is no number comes of an answer that is none, however it was sent."""
    if math.isnan(margin):
        told = statuses if any(status not in ("ok", "truncated") for status in statuses) else ("error",)
        return Outcome((None,), told)
    return Outcome((_pick(margin),), statuses, margin)


def _pick(margin: float) -> Pick | None:
    if math.isnan(margin):
        return None
    return "tie" if abs(margin) < TIE else "positive" if margin > 0 else "negative"

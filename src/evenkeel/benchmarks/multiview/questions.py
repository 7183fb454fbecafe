"""What the methods ask of models, and how they read the answers: vectors, scores of pairs, verdicts."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from msgspec import Struct

from evenkeel.benchmarks.multiview.files import Triplet
from evenkeel.benchmarks.multiview.names import Method
from evenkeel.files.package_data import read_json
from evenkeel.models.registry import split_spec
from evenkeel.models.vectors import unit_vector, usable
from evenkeel.text import judge
from evenkeel.text.answers import Rule
from evenkeel.text.prompts import fill, user_prompt
from evenkeel.types import Asking, Embed, Generate, Message, Rank, Response, Sampling

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SUMMARY_TOKENS = 96
SEVERAL_TEMPERATURE = 0.8
"""At which several summaries of one document are written: at 0 they would be equal."""
REASON_TOKENS = 2_048
"""For a judge that writes its reasons first."""
SUMMARIES = Rule(truncated=True)
"""A summary that was cut off is embedded as far as it goes."""
STATUSES = ("ok", "truncated", "unparsed", "refused", "error")
"""How a request may end, the worst last."""


View: TypeAlias = tuple[str, str]
"""A criterion and its description."""
Readings: TypeAlias = "list[list[Reading]]"
"""For each triplet: anchor, positive and negative."""
Pair: TypeAlias = tuple[Triplet, str]
"""A triplet, whose anchor is compared, and one of its candidates."""
Scoring: TypeAlias = Callable[[list[Pair]], Asking["list[PairScore]"]]


class Reading(NamedTuple):
    """A document as a method sees it: its unit vectors, or why there are none."""

    vectors: tuple[NDArray[np.float64], ...]
    status: str
    reason: str = ""


class PairScore(NamedTuple):
    """How alike a candidate is to its anchor; not a number where a request failed."""

    value: float
    status: str
    reason: str = ""


# What judges and writers answer. They read the names, fields and docstrings of these structs.


class Choice(Struct):
    """A judge's verdict on a triplet."""

    more_alike: Literal["first", "second", "tie"]


class ReasonedChoice(Struct):
    """A judge's verdict on a triplet, after its reasons."""

    reasons: str
    more_alike: Literal["first", "second", "tie"]


class PairRating(Struct):
    """How alike two texts are, from 1 to 10."""

    rating: Literal[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]


class ReasonedPairRating(Struct):
    """How alike two texts are, from 1 to 10, after the reasons."""

    reasons: str
    rating: Literal[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]


class Queries(Struct):
    """Search queries about a criterion."""

    queries: tuple[str, ...]

    def __post_init__(self) -> None:
        if len({query.strip() for query in self.queries} - {""}) < 2:
            raise ValueError("there are not two different queries in it")


class Prompts(Struct, frozen=True):
    """The templates of all prompts, with slots in capitals."""

    judge: str
    reason: str
    pair: str
    summaries: str
    logprobs: str
    rewrite: str
    queries: str
    oneword: str
    rerank: dict[str, str]
    """By the family of the model, as `instruct`."""
    instruct: dict[str, str]


# Asking


def ask_judge(
    method: Method, kind: type[judge.T], questions: Sequence[tuple[Message, ...]]
) -> Asking[list[judge.Verdict[judge.T]]]:
    """Verdicts at the method's temperature, with room for its reasons."""
    settings = method.settings
    default = REASON_TOKENS if "reason" in method.options else judge.MAX_TOKENS
    return judge.ask(
        kind,
        questions,
        role=method.role,
        max_tokens=settings.max_tokens or default,
        temperature=settings.temperature or 0.0,
    )


def embed_texts(method: Method, texts: Sequence[Sequence[Sequence[str | Response]]]) -> Asking[Readings]:
    """The vectors of each document's texts. A response in place of a text says why there is none."""
    distinct = dict.fromkeys(t for three in texts for each in three for t in each if isinstance(t, str))
    embedded = usable((yield [Embed(text=text, role=method.role) for text in distinct]))
    responses = dict(zip(distinct, embedded, strict=True))

    def reading(each: Sequence[str | Response]) -> Reading:
        ends = [responses[text] if isinstance(text, str) else text for text in each]
        vectors = tuple(unit_vector(response.vector) for response in ends if response.vector)
        end = next((response for response in ends if bool(response.vector) == bool(vectors)), ends[0])
        return Reading(vectors, end.status, end.reason)

    return [[reading(each) for each in three] for three in texts]


def write_summaries(method: Method, triplets: Sequence[Triplet]) -> Asking[list[list[list[str | Response]]]]:
    """What a language model wrote of each document of each triplet under the criterion, once or several
    times."""
    settings = method.settings
    views = dict.fromkeys((t.criterion, t.description, text) for t in triplets for text in t.documents)
    default = SEVERAL_TEMPERATURE if settings.summaries > 1 else 0.0
    sampling = Sampling(
        max_tokens=settings.max_tokens or SUMMARY_TOKENS,
        temperature=default if settings.temperature is None else settings.temperature,
    )
    requests = [
        Generate(
            prompt=user_prompt(prompts().rewrite, CRITERION=criterion, DESCRIPTION=description, TEXT=text),
            sampling=sampling,
            repeat=repeat,
            role=method.writer_role,
        )
        for criterion, description, text in views
        for repeat in range(settings.summaries)
    ]
    responses = [_summary(response) for response in (yield requests)]
    size = settings.summaries
    written = {view: responses[size * n : size * (n + 1)] for n, view in enumerate(views)}
    return [[written[t.criterion, t.description, text] for text in t.documents] for t in triplets]


def _summary(response: Response) -> str | Response:
    """What was written, or why nothing was."""
    if SUMMARIES.counts(response):
        return response.text
    # What was cut off before it began is as unreadable as what is empty.
    truncated = response.status == "truncated"
    status = "unparsed" if truncated else SUMMARIES.status(response)
    return Response(status=status, reason=response.reason)


def relevance_vectors(method: Method, triplets: Sequence[Triplet]) -> Asking[Readings]:
    """Each document as the vector of its relevance to queries that a writer wrote once for the criterion:

    v_d = (r(q_1, d), …, r(q_n, d)), r: the cosine of the embeddings, or a reranker's score
    """
    import numpy as np

    settings = method.settings
    views = list(dict.fromkeys((t.criterion, t.description) for t in triplets))
    verdicts = yield from judge.ask(
        Queries,
        [
            user_prompt(prompts().queries, CRITERION=name, DESCRIPTION=about, NUMBER=str(settings.queries))
            for name, about in views
        ],
        role=method.writer_role,
        max_tokens=settings.max_tokens or REASON_TOKENS,
        temperature=settings.temperature or 0.0,
    )
    written = dict(zip(views, verdicts, strict=True))
    queries: dict[View, list[str]] = {
        view: list(dict.fromkeys(query.strip() for query in verdict.value.queries if query.strip()))
        if verdict.value
        else []
        for view, verdict in written.items()
    }
    queries = {view: texts[: settings.queries] for view, texts in queries.items()}
    relevance = yield from _relevance(method, triplets, queries)

    def reading(view: View, document: str) -> Reading:
        verdict, scores = written[view], [relevance[query, document] for query in queries[view]]
        if verdict.value is None:
            return Reading((), verdict.status, f"no queries: {verdict.reason}")
        worst = max(scores, key=lambda score: STATUSES.index(score.status))
        numbers = np.array([score.value for score in scores])
        length = float(np.linalg.norm(numbers))
        if not math.isfinite(length) or not length:
            failed = worst.status not in ("ok", "truncated")
            return Reading(
                (), worst.status if failed else "error", worst.reason or "no relevance to any query"
            )
        return Reading((numbers / length,), worst.status, worst.reason)

    return [[reading((t.criterion, t.description), text) for text in t.documents] for t in triplets]


def _relevance(
    method: Method, triplets: Sequence[Triplet], queries: dict[View, list[str]]
) -> Asking[dict[tuple[str, str], PairScore]]:
    """How relevant each document is to each query of its criterion."""
    pairs = list(
        dict.fromkeys(
            (query, text)
            for t in triplets
            for query in queries[t.criterion, t.description]
            for text in t.documents
        )
    )
    if method.then == "rerank":
        ranks = yield [Rank(query=query, document=text, role=method.role) for query, text in pairs]
        return {pair: _ranked(response) for pair, response in zip(pairs, ranks, strict=True)}
    texts = list(dict.fromkeys(text for pair in pairs for text in pair))
    embedded = usable((yield [Embed(text=text, role=method.role) for text in texts]))
    responses = dict(zip(texts, embedded, strict=True))
    vectors = {text: unit_vector(response.vector) for text, response in responses.items() if response.vector}

    def cosine(query: str, text: str) -> PairScore:
        if query in vectors and text in vectors:
            return PairScore(float(vectors[query] @ vectors[text]), "ok")
        failed = responses[text if query in vectors else query]
        return PairScore(math.nan, failed.status, failed.reason)

    return {pair: cosine(*pair) for pair in pairs}


def rank_pairs(method: Method, instruct: str) -> Scoring:
    """A reranker's score, for a query of criterion and anchor; of late interaction, for the anchor."""
    template = _family(prompts().rerank, method.spec)
    if method.kind == "late":
        template = embed_template(method, instruct)

    def scored(pairs: list[Pair]) -> Asking[list[PairScore]]:
        responses = yield [
            Rank(query=instructed(template, triplet)[0], document=document, role=method.role)
            for triplet, document in pairs
        ]
        return [_ranked(response) for response in responses]

    return scored


def _ranked(response: Response) -> PairScore:
    value = math.nan if response.rank is None else response.rank
    return PairScore(value, response.status, response.reason)


def rate_pairs(method: Method) -> Scoring:
    """A judge's rating of a pair, which it sees without the other candidate."""
    kind: type[PairRating] | type[ReasonedPairRating] = PairRating
    if "reason" in method.options:
        kind = ReasonedPairRating

    def scored(pairs: list[Pair]) -> Asking[list[PairScore]]:
        verdicts = yield from ask_judge(
            method, kind, [user_prompt(pair_prompt(method, *pair)) for pair in pairs]
        )
        return [PairScore(v.value.rating if v.value else math.nan, v.status, v.reason) for v in verdicts]

    return scored


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
    reason = prompts().reason if "reason" in method.options else ""
    return fill(prompts().judge, **slots) + summaries + reason


def pair_prompt(method: Method, triplet: Triplet, candidate: str) -> str:
    """What a judge reads of an anchor and one candidate."""
    slots = {"CRITERION": triplet.criterion, "DESCRIPTION": triplet.description}
    reason = prompts().reason if "reason" in method.options else ""
    return fill(prompts().pair, **slots, ANCHOR=triplet.anchor, CANDIDATE=candidate) + reason


def instruct_template(spec: str) -> str:
    """The instruction template of a model's family: the first that begins a word of the model's name."""
    return _family(prompts().instruct, spec)


def _family(templates: dict[str, str], spec: str) -> str:
    name = re.split(r"[/:]", split_spec(spec)[0].lower().rstrip("/"))[-1]
    return next(text for family, text in templates.items() if re.search(rf"(?<![a-z0-9]){family}", name))


def embed_template(method: Method, instruct: str) -> str:
    if "oneword" in method.options:
        return instruct or prompts().oneword
    return (instruct or instruct_template(method.spec)) if "instruct" in method.options else "{TEXT}"


def instructed(template: str, triplet: Triplet) -> list[str]:
    """Anchor, positive and negative in an instruction template."""
    instruction = triplet.instruction or triplet.description
    return [fill(template, INSTRUCTION=instruction, TEXT=text) for text in triplet.documents]

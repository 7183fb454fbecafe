"""The frozen records that flow from a data set to a summary.

They are msgspec structs: immutable, hashable where their fields are, and encoded to JSON in C.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, Generic, Literal, TypeAlias

import msgspec
from msgspec import Struct
from typing_extensions import TypeVar

InputsT = TypeVar("InputsT", default=Any)
"""The struct of a benchmark's sample inputs."""
DetailT = TypeVar("DetailT", default=Any)
"""The struct of what a benchmark keeps with a score to be shown."""

Status: TypeAlias = Literal["ok", "refused", "truncated", "unparsed", "error"]

Capability: TypeAlias = Literal["generate", "loglikelihood", "stringlikelihood", "embed", "rank"]

Tag: TypeAlias = str | int

LARGE_RESPONSE_CHARACTERS = 2**18

Unit: TypeAlias = Literal[
    "cosine", "share", "score", "points", "tokens", "count", "nats", "bits", "signed_bits", "correlation",
    "value",
]  # fmt: skip
"""What a figure counts; it decides how the figure is written and which interval it has. Points are a
difference of scores, signed bits one of bits, a correlation is Spearman's ρ, and a value is a number of any
scale."""


class Message(Struct, frozen=True):
    """One turn of a chat."""

    role: str
    content: str


class Sampling(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a text is to be generated. Temperature 0 is greedy."""

    temperature: float = 0.0
    max_tokens: int = 256
    top_p: float = 1.0
    stop: tuple[str, ...] = ()
    words: int = 0
    """Stop when the text has so many whole words, where the backend sees each token as it comes."""
    seed: int = 0
    """Together with the prompt and the repeat it decides the text, where the backend can promise that."""


class Generate(Struct, frozen=True, kw_only=True, tag="generate", tag_field="kind"):
    """Write a text: an answer to `messages`, or the continuation of a plain `prompt`."""

    prompt: str | tuple[Message, ...]
    sampling: Sampling
    schema: str = ""
    """A JSON schema that the text is to follow, where the backend can see to that."""
    repeat: int = 0
    role: str = "model"


class LogLikelihood(Struct, frozen=True, kw_only=True, tag="loglikelihood", tag_field="kind"):
    """Give the log-probability of every token of `continuation` after `prefix`."""

    prefix: str
    continuation: str
    repeat: int = 0
    role: str = "model"


class StringLikelihood(Struct, frozen=True, kw_only=True, tag="stringlikelihood", tag_field="kind"):
    """Give the log-probability that the text after `prefix` begins with `continuation`, in any tokens."""

    prefix: str
    continuation: str
    repeat: int = 0
    role: str = "model"


class Embed(Struct, frozen=True, kw_only=True, tag="embed", tag_field="kind"):
    """Turn a text into a vector."""

    text: str
    repeat: int = 0
    role: str = "embedder"


class Rank(Struct, frozen=True, kw_only=True, tag="rank", tag_field="kind"):
    """Score how well a document fits a query: what a cross-encoder does."""

    query: str
    document: str
    repeat: int = 0
    role: str = "ranker"


Request: TypeAlias = Generate | LogLikelihood | StringLikelihood | Embed | Rank
KIND_NEEDS: dict[type[Request], Capability] = {
    Generate: "generate",
    LogLikelihood: "loglikelihood",
    StringLikelihood: "stringlikelihood",
    Embed: "embed",
    Rank: "rank",
}


class Logprobs(Struct, frozen=True, omit_defaults=True):
    """What a model gave to a continuation, token by token."""

    tokens: tuple[str, ...]
    values: tuple[float, ...]
    merged: bool = False
    """True where the prefix alone is tokenised otherwise than inside prefix + continuation."""
    last_word: int = 0
    """Into how many tokens the prefix's last word falls."""
    start: str = ""
    """The start token that the tokenizer puts before the prefix, if it puts one."""


class StringProbability(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Natural logarithms of what a model gives to a string, over the token sequences that spell it."""

    own: float | None = None
    """The tokenizer's own tokens of the string; None where tokens merge across the boundary."""
    low: float
    """All sequences after the prefix's tokens that begin with the string: at least this,"""
    high: float
    """and at most this."""
    healed_low: float | None = None
    """The same after the prefix as text, whatever its last token: at least this,"""
    healed_high: float | None = None
    """and at most this. None where the prefix has no token that could be taken back."""


class Response(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How one request ended. Only the part that the request asked for is filled in."""

    status: Status
    text: str = ""
    reasoning: str = ""
    """What the model thought aloud; never part of the answer."""
    logprobs: Logprobs | None = None
    string: StringProbability | None = None
    vector: bytes | None = None
    """An embedding: little-endian float32."""
    rank: float | None = None
    """How well a document fits a query; only the order of such scores means something."""
    cut: bool | None = None
    """True where the input was longer than the model reads, so that its end was not seen; None: not told."""
    reason: str = ""
    """Why the status is not `ok`, in a few words: `content_filter`, `HTTP 500`, `timeout`."""
    tokens_in: int | None = None
    tokens_out: int | None = None
    model: str = ""
    """The model that answered, as the server's reply names it."""
    fingerprint: str = ""
    """The version of the model's server, as its reply names it (`system_fingerprint`)."""

    @property
    def is_large(self) -> bool:
        """Whether many such responses would fill the memory."""
        return len(self.text) + len(self.reasoning) > LARGE_RESPONSE_CHARACTERS


T = TypeVar("T")

Asking: TypeAlias = Generator[Sequence[Request], Sequence[Response], T]
"""Scoring, building: yields requests, is sent their responses in the same order, and returns a result."""


class Sample(Struct, Generic[InputsT], frozen=True, kw_only=True):
    """One item of a data set."""

    id: str
    group: str
    """What belongs together when intervals are made: all levels of one question, say."""
    tags: dict[str, Tag]
    """The dimensions that a summary is broken down by: language, domain, level."""
    inputs: InputsT
    """What is asked and what is right: a struct of the benchmark (its `Inputs`), or a plain dictionary."""


class Answered(Struct, Generic[InputsT], frozen=True):
    """A sample, what was asked for it, and how each request ended."""

    sample: Sample[InputsT]
    requests: tuple[Request, ...]
    responses: tuple[Response, ...]

    @property
    def text(self) -> str:
        """The text of the first response, without spaces around it; empty where there is none."""
        return self.responses[0].text.strip() if self.responses else ""


class Score(Struct, Generic[DetailT], frozen=True, kw_only=True):
    """The numbers of one sample. A value that could not be computed is None, never zero."""

    sample_id: str
    group: str
    tags: dict[str, Tag]
    values: dict[str, float | None]
    statuses: dict[str, int]
    """How many of the sample's requests ended in which status."""
    answered: int
    """How many of them can be scored: the numerator of coverage."""
    parts: dict[str, Status] = {}
    """How each request ended, in order, by what it is for, where metrics need different ones of them."""
    requests: dict[str, tuple[int, int]] = {}
    """Requests answered and asked by subject, where several share a sample."""
    links: tuple[str, ...] = ()
    """What the sample shares with others beyond its group, such as its documents. Samples that have a link in
    common are not independent; where there are links, they take the place of the group in intervals."""
    failures: tuple[str, ...] = ()
    """What scoring lacked, beyond the statuses of the answers."""
    basis: str = ""
    """What its values depend on beside its own answers, where that may differ from sample to sample."""
    detail: DetailT = None  # type: ignore[assignment]
    """What the page shows of this sample: a struct of the benchmark (its `Detail`), or a plain dictionary."""


class Record(Struct, Generic[InputsT, DetailT], frozen=True, kw_only=True):
    """One line of records.jsonl: a sample with its answers and its scores."""

    sample: Sample[InputsT]
    answers: tuple[Response, ...]
    score: Score[DetailT]


Records: TypeAlias = Callable[[], Iterator[Record[InputsT, DetailT]]]
"""Reads the records of a run from the start, one at a time: a run may be larger than memory."""


class Figure(Struct, frozen=True, kw_only=True):
    """One number of a summary, with its interval and what it is computed from."""

    value: float | None
    low: float | None
    high: float | None
    method: str
    """Of the interval, or of the test where there is none, in words; empty where there is neither."""
    n: int
    """Samples that entered the value."""
    clusters: int
    """Independent groups among them (questions, for instance)."""
    coverage: float
    """Answered requests over requests asked, in the scope of this figure."""
    statuses: dict[str, int]
    unit: Unit
    p: float | None = None
    """The p-value of no difference, for figures that are differences or slopes."""
    tests: int = 1
    """How many tests `p` is corrected for, by Holm."""
    deciding: int = 0
    """How many of the groups decide the interval, where they are few: three quarters of its variance."""
    reason: str = ""
    """Why it has no interval, or no value; empty where it has an interval."""
    linked: bool = False
    """Whether its samples share something: `clusters` is how many independent ones they amount to."""
    basis: str = ""
    """In words, what the value depends on beside the scores: how tokens were counted, say."""
    metric: str = ""
    scope: dict[str, str] = {}
    """The tags that it is confined to. Metric and scope make its key in summary.json, and are not repeated
    there: `page.metrics` writes and reads that key."""

    @property
    def method_or_reason(self) -> str:
        """How its interval was made, or why there is none."""
        return self.method or self.reason


Summary: TypeAlias = dict[str, Figure]


class ModelRef(Struct, frozen=True):
    """A model as a person names it: a spec and the backend's arguments."""

    spec: str
    args: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"ModelRef({self.spec!r}, args of {', '.join(self.args) or 'none'})"  # one may hold a password


class RunSpec(Struct, frozen=True, kw_only=True):
    """What was asked of a run. Two runs with equal specs (provenance aside) ask the same things."""

    format: int
    benchmark: str
    options: dict[str, Any]
    models: dict[str, dict[str, Any]]
    """Per role: the spec as given, and the identity that enters every key of the journal."""
    data: dict[str, Any]
    seed: int
    limit: int | None
    provenance: dict[str, Any]
    """Versions, commit and time: recorded, never compared."""
    subjects: tuple[str, ...]
    """What is under test: the name of the model, or of each subject that is set side by side."""

    @property
    def subject(self) -> str:
        return ", ".join(self.subjects)


def to_jsonable(record: Any) -> Any:
    """Plain dicts, lists and scalars, as they stand in the run's JSON files."""
    return msgspec.json.decode(msgspec.json.encode(record))

"""`hf:ID-or-path`: any causal model of transformers, from a folder, a GGUF file or the Hub, on CPU or GPU."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple, TypeAlias, TypeVar

from msgspec import Meta, Struct

from evenkeel.errors import CapabilityError, UsageError
from evenkeel.files.cache import expanded
from evenkeel.models.local import batching
from evenkeel.models.local.batching import Budget
from evenkeel.models.local.constrained import closed_json
from evenkeel.models.local.weights import (
    Weights,
    first_line,
    locate,
    quiet_transformers,
    require_packages,
    use_expandable_memory,
)
from evenkeel.models.reasoning import THINK, opens_reasoning, split_reasoning
from evenkeel.models.tokenizer_files import Encoded, TextTokenizer, is_alone, needs_conversion, read_tokenizer
from evenkeel.options import RUNTIME, TopK, TopP, identity_options
from evenkeel.text.answers import BEFORE_TEXT, ending
from evenkeel.text.word_splitting import has_whole_words
from evenkeel.types import (
    Capability,
    Embed,
    Generate,
    LogLikelihood,
    Logprobs,
    Rank,
    Request,
    Response,
    Sampling,
    Status,
    StringLikelihood,
)

if TYPE_CHECKING:
    from evenkeel.models.local.causal import Causal
    from evenkeel.models.local.generation import Generation, Prompt
    from evenkeel.models.local.loglikelihood import Pair

T = TypeVar("T")
R = TypeVar("R")

log = logging.getLogger(__name__)

LATER = ("deterministic", "late", "rank_template", "top_p", "top_k")
"""Options that came after the first runs were stored."""

WINDOW = 4096
"""Requests read ahead, so that texts of like length can share a batch."""

TAIL = 16
"""Tokens at the end of a chat's prompt that may hold the tag of an open block of reasoning."""

ROWS = {"cpu": 32, "mps": 32}
TOKENS = {"cpu": 16_384, "mps": 16_384}
"""Padded tokens in one batch, counting what is still to be generated. Where it is too many, it is halved;
on CUDA rows and tokens are as many as the free memory seems to hold, for a step there costs much the same for
any batch."""

FEWEST_ROWS = 16
"""Rows of a batch on a CPU below which a step costs hardly less."""

CPU_TOKENS = 32_768
"""Padded tokens in all batches that run side by side on a CPU."""

Dtype: TypeAlias = Annotated[
    Literal["auto", "float32", "bfloat16", "float16"],
    Meta(description="number format of the weights; auto: as they are stored"),
]
Device: TypeAlias = Annotated[
    str,
    Meta(
        pattern=r"^(auto|cpu|mps|cuda(:\d+)?)$",
        description="auto (a GPU where there is one), cpu, cuda, cuda:N or mps",
        extra=RUNTIME,
    ),
]
Concurrency: TypeAlias = Annotated[
    Annotated[int, Meta(ge=1)] | None,
    Meta(
        description="rows in one batch at most; by default 32 on CPU, on CUDA by the free memory",
        extra=RUNTIME,
    ),
]
BatchTokens: TypeAlias = Annotated[
    Annotated[int, Meta(ge=1)] | None,
    Meta(description="padded tokens in one batch at most; by default chosen by device", extra=RUNTIME),
]
Deterministic: TypeAlias = Annotated[
    bool, Meta(description="read every text alone, so that no answer depends on what else is asked; slower")
]
Revision: TypeAlias = Annotated[str | None, Meta(description="branch, tag or commit of a Hub model")]
RemoteCode: TypeAlias = Annotated[bool, Meta(description="run Python code that comes with the model")]


class HuggingFaceOptions(Struct, frozen=True, kw_only=True):
    """Options of `hf:`."""

    dtype: Dtype = "auto"
    device: Device = "auto"
    revision: Revision = None
    gguf_file: Annotated[str | None, Meta(description="GGUF file to take from a folder or Hub model")] = None
    trust_remote_code: RemoteCode = False
    deterministic: Deterministic = False
    concurrency: Concurrency = None
    batch_tokens: BatchTokens = None
    top_p: TopP = None
    top_k: TopK = None
    rank_template: Annotated[
        str,
        Meta(
            description="prompt of a causal reranker, with {QUERY} and {DOCUMENT}, before yes or no; "
            "default: by the model's family"
        ),
    ] = ""


class HuggingFace:
    """A causal model that generates, gives log-likelihoods, embeds and ranks.

    A text's embedding is the last hidden state at its last token, for prompts that end in "in one word:"
    (Jiang et al. 2023, arXiv 2307.16645). A document's rank is the log-odds of `yes` against `no` after a
    prompt with query and document, as causal rerankers are trained (Qwen3-Reranker, arXiv 2506.05176).

    A plain prompt is continued as it is. A chat goes through the model's own template; a model without one
    gets `User: …` lines and an open `Assistant:`, and stops where a new `User:` line begins; `identity()`
    names which. Nothing but the request's sampling applies: penalties and the like that a model's
    generation config recommends are left out. The same seed gives the same text on the same kind of device.

    In half precision what shares a batch changes how sums are rounded: `notes()` gives by how much.
    """

    Options: ClassVar[type[Struct]] = HuggingFaceOptions
    capabilities: frozenset[Capability] = frozenset(
        {"generate", "loglikelihood", "stringlikelihood", "embed", "rank"}
    )

    def __init__(self, name: str, options: HuggingFaceOptions) -> None:
        require_packages("torch", "transformers", what="hf:", extra="hf")
        if name.endswith(".gguf") or options.gguf_file:
            require_packages("gguf", what="a GGUF file", extra="hf")
        self._spec = f"hf:{name}"
        self._options = options
        self._located: Weights | None = None
        self._loaded: Causal | None = None
        self._budget = Budget(0, 0)
        self._rows = 0
        """The most rows of a batch."""
        self._workers = 0
        """Batches at once on a CPU; 0 on other devices, where they follow one another."""
        self._notes: list[str] = []
        self._schema_problems: list[str] = []

    def identity(self) -> dict[str, Any]:
        weights = self._weights()
        options = chosen_options(self._options)
        return {**options, **weights.identity(), "spec": self._spec, "chat": weights.chat()}

    def probe(self, needs: frozenset[Capability]) -> None:
        """Finds the files; log-probabilities come from the model itself and are sound.

        For the probability of a string the bytes of every token must be known.
        """
        weights = self._weights()
        if "stringlikelihood" in needs:
            from evenkeel.models.local.vocabulary import read_vocabulary

            remote = self._options.trust_remote_code
            loaded = load_tokenizer(self._spec, weights, trust_remote_code=remote)
            backend = getattr(loaded, "backend_tokenizer", None)
            if backend is None or read_vocabulary(backend) is None:
                raise CapabilityError(
                    f"{self._spec} cannot give the probability of a string: the bytes of its tokenizer's "
                    "tokens are not known.",
                    lacking=frozenset({"stringlikelihood"}),
                )

    def answer(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Response]]:
        for window in batching.windows(requests, WINDOW):
            yield from batching.failing_alone(self._answer, window)

    def _answer(self, window: Sequence[Request]) -> Iterator[tuple[Request, Response]]:
        from evenkeel.models.local.loglikelihood import texts_of

        causal = self._causal()
        causal.read_ahead(text for request in window for text in texts_of(request))
        # Read together with another request, a text would depend on which others are asked; on a CPU only
        # where rows cannot be joined.
        joint = causal.joins or causal.device.type != "cpu"
        couples = couples_in(causal, window) if joint and not self._options.deterministic else []
        yield from self._loglikelihood_and_generate(causal, couples)
        coupled = {id(request) for couple in couples for request in couple[:2]}
        single = [request for request in window if id(request) not in coupled]
        yield from self._generate(causal, [r for r in single if isinstance(r, Generate)])
        yield from self._loglikelihood(causal, [r for r in single if isinstance(r, LogLikelihood)])
        yield from self._strings(causal, [r for r in single if isinstance(r, StringLikelihood)])
        yield from self._embed(causal, [r for r in single if isinstance(r, Embed)])
        yield from self._rank(causal, [r for r in single if isinstance(r, Rank)])

    def notes(self) -> list[str]:
        return [*self._notes, *(self._loaded.schema_problems() if self._loaded else self._schema_problems)]

    def close(self) -> None:
        if self._loaded is not None:
            self._schema_problems = self._loaded.schema_problems()
            self._loaded = None
            batching.free_memory()

    @staticmethod
    def tokenizer(name: str) -> TextTokenizer:
        """A model's tokenizer, without its weights; or that of a file or folder that holds nothing else."""
        if is_alone(path := expanded(name)):
            return read_tokenizer(path)
        require_packages("transformers", what="a tokenizer", extra="hf")
        spec = f"hf:{name}"
        located = locate(spec, weights=False)
        try:
            loaded = load_tokenizer(spec, located)
        except UsageError:
            if not needs_conversion(located.path):
                raise
            return read_tokenizer(located.folder)  # transformers needs further packages for it
        fast = getattr(loaded, "is_fast", False)

        def encode(text: str) -> Encoded:
            encoding = loaded(text, verbose=False, return_offsets_mapping=fast)
            return Encoded(list(encoding["input_ids"]), encoding["offset_mapping"] if fast else None)

        return TextTokenizer(encode, backend=loaded.backend_tokenizer if fast else None)

    def _weights(self) -> Weights:
        options = self._options
        self._located = self._located or locate(
            self._spec, revision=options.revision, gguf_file=options.gguf_file
        )
        return self._located

    def _causal(self) -> Causal:
        if self._loaded is None:
            use_expandable_memory()
            from evenkeel.models.local.causal import load

            options = self._options
            self._loaded = causal = load(
                self._spec,
                self._weights(),
                dtype=options.dtype,
                device=options.device,
                trust_remote_code=options.trust_remote_code,
            )
            causal.top_p, causal.top_k = options.top_p, options.top_k
            kind = causal.device.type
            alone = options.deterministic or not causal.pads
            self._notes = [] if alone else precision_notes(causal)
            tokens = TOKENS.get(kind)
            if kind == "cpu":
                self._workers = batching.cpu_workers()
                tokens = min(TOKENS[kind], CPU_TOKENS // self._workers)
            self._rows = 1 if alone else options.concurrency or ROWS.get(kind) or causal.rows_that_fit()
            self._budget = Budget(
                rows=self._rows,
                tokens=options.batch_tokens or tokens or causal.tokens_that_fit(),
            )
            log.info(
                "%s on %s: batches of at most %s rows and %s tokens%s.",
                *(self._spec, causal.device, f"{self._budget.rows:,}", f"{self._budget.tokens:,}"),
                f", {self._workers} at a time with one thread each" if self._workers else "",
            )
        return self._loaded

    def _generate(self, causal: Causal, requests: list[Generate]) -> Iterator[tuple[Request, Response]]:
        from evenkeel.models.local.generation import generate

        groups: dict[tuple[int, ...], list[tuple[Generate, Prompt]]] = {}
        for request in requests:
            prompt = prompt_of(causal, request)
            if isinstance(prompt, Response):
                yield request, prompt
            else:
                groups.setdefault(prompt.ids, []).append((request, prompt))
        for (request, prompt), generation in self._run(
            groups.values(),
            lambda row: len(row[1].ids) + row[1].max_tokens,
            lambda batch: generate(causal, [prompt for _, prompt in batch]),
            kind=lambda row: len(row[1].ids) if self._workers and not causal.joins else 0,
        ):
            yield request, generate_response(request, prompt, generation)

    def _loglikelihood(
        self, causal: Causal, requests: list[LogLikelihood]
    ) -> Iterator[tuple[Request, Response]]:
        from evenkeel.models.local.loglikelihood import loglikelihoods, pair_of

        groups: dict[tuple[int, ...], list[tuple[LogLikelihood, Pair]]] = {}
        for request in requests:
            pair = pair_of(causal, request.prefix, request.continuation)
            if pair is None:
                yield request, failed("an empty prefix, and no start token to condition on")
            elif pair.target == 0:
                empty = Logprobs((), (), merged=pair.merged, last_word=pair.last_word, start=causal.start)
                yield request, logprobs_response(pair, empty)
            elif too_long(causal, len(pair.ids)):
                yield request, too_long_response(causal, len(pair.ids))
            else:
                groups.setdefault(pair.ids[:-1], []).append((request, pair))
        for (request, pair), logprobs in self._run(
            groups.values(),
            lambda row: len(row[1].ids),
            lambda batch: loglikelihoods(causal, [pair for _, pair in batch]),
        ):
            yield request, logprobs_response(pair, logprobs)

    def _strings(
        self, causal: Causal, requests: list[StringLikelihood]
    ) -> Iterator[tuple[Request, Response]]:
        from evenkeel.models.local.strings import string_probabilities, target_of

        rows = []
        for request in requests:
            target = target_of(causal, request.prefix, request.continuation)
            if isinstance(target, str):
                yield request, failed(target)
            elif too_long(causal, target.tokens):
                yield request, too_long_response(causal, target.tokens)
            else:
                rows.append((request, target))
        for (request, target), string in self._run(
            [[row] for row in rows],
            lambda row: row[1].tokens,
            lambda batch: string_probabilities(
                causal, [target for _, target in batch], rows=self._budget.rows
            ),
        ):
            if string is None:
                yield request, does_not_fit(target.tokens)
            elif isinstance(string, str):
                yield request, failed(string)
            else:
                yield request, Response(status="ok", string=string, tokens_in=target.tokens, tokens_out=0)

    def _embed(self, causal: Causal, requests: list[Embed]) -> Iterator[tuple[Request, Response]]:
        rows = []
        for request in requests:
            ids = causal.tokenise(request.text) or ([causal.start_id] if causal.start_id is not None else [])
            if not ids:
                yield request, failed("an empty text, and no start token to embed")
            elif too_long(causal, len(ids)):
                yield request, too_long_response(causal, len(ids))
            else:
                rows.append((request, ids))
        for (request, ids), vector in self._in_batches(rows, causal.last_hidden):
            response = does_not_fit(len(ids))
            if vector is not None:
                response = Response(status="ok", vector=vector, cut=False, tokens_in=len(ids))
            yield request, response

    def _rank(self, causal: Causal, requests: list[Rank]) -> Iterator[tuple[Request, Response]]:
        from evenkeel.models.local.reranking import log_odds, rank_ids

        rows = []
        for request in requests:
            ids = rank_ids(causal, request, self._options.rank_template)
            if isinstance(ids, str):
                yield request, failed(ids)
            elif too_long(causal, len(ids)):
                yield request, too_long_response(causal, len(ids))
            else:
                rows.append((request, ids))
        for (request, ids), odds in self._in_batches(rows, partial(log_odds, causal)):
            if odds is None:
                response = does_not_fit(len(ids))
            elif not math.isfinite(odds):
                response = failed("the model gave a score that is not finite")
            else:
                response = Response(status="ok", rank=odds, tokens_in=len(ids))
            yield request, response

    def _in_batches(
        self, rows: list[tuple[T, list[int]]], work: Callable[[list[list[int]]], list[R]]
    ) -> Iterator[tuple[tuple[T, list[int]], R | None]]:
        """What `work` makes of the ids of each request."""
        return self._run(
            [[row] for row in rows], lambda row: len(row[1]), lambda batch: work([ids for _, ids in batch])
        )

    def _run(
        self,
        groups: Iterable[list[T]],
        size: Callable[[T], int],
        work: Callable[[list[T]], Sequence[R]],
        *,
        kind: Callable[[T], int] | None = None,
    ) -> Iterator[tuple[T, R | None]]:
        """What `work` makes of each row; on a CPU several batches at once, each on one core."""
        if not self._workers:
            yield from batching.run([groups], size, self._budget, work, kind=kind)
            return
        groups = list(groups)
        each = -(-sum(map(len, groups)) // self._workers)  # so that no core is without a batch
        self._budget.rows = min(self._rows, max(FEWEST_ROWS, each))
        with batching.cpu_pool(self._workers) as pool:
            yield from batching.run(
                [groups], size, self._budget, work, pool=pool, ahead=self._workers + 1, kind=kind
            )

    def _loglikelihood_and_generate(
        self, causal: Causal, couples: list[Couple]
    ) -> Iterator[tuple[Request, Response]]:
        from evenkeel.models.local.loglikelihood import loglikelihood_and_generate

        for couple, results in self._run(
            [[couple] for couple in couples],
            lambda couple: len(couple.pair.ids),
            lambda batch: loglikelihood_and_generate(causal, [(c.pair, c.prompt) for c in batch]),
        ):
            logprobs, generation = results or (None, None)
            if couple.loglikelihood is not None:
                yield couple.loglikelihood, logprobs_response(couple.pair, logprobs)
            yield couple.generate, generate_response(couple.generate, couple.prompt, generation)


def load_tokenizer(spec: str, weights: Weights, *, trust_remote_code: bool = False) -> Any:
    """The tokenizer of transformers that comes with a model's files."""
    quiet_transformers()
    from transformers import AutoTokenizer

    from evenkeel.models.local.causal import LOAD_ERRORS

    source: dict[str, Any] = {"gguf_file": weights.gguf_file} if weights.gguf_file else {}
    source |= {"trust_remote_code": True} if trust_remote_code else {}
    try:
        return AutoTokenizer.from_pretrained(weights.folder, local_files_only=True, **source)
    except LOAD_ERRORS as error:
        raise UsageError(f"{spec}: its tokenizer cannot be loaded: {first_line(error)}.") from error


def chosen_options(options: Struct) -> dict[str, Any]:
    """The options that enter a model's identity: later ones only where they are chosen, so that the identity
    of all other runs stays what it was before there was such a choice."""
    values = identity_options(options)
    return {name: value for name, value in values.items() if name not in LATER or value}


def precision_notes(causal: Causal) -> list[str]:
    """What the rows beside a text do to its digits, measured on this model and device.

    In full precision nothing that a figure shows, except on a CPU where rows cannot be joined: experts that
    compute with few rows, say.
    """
    from evenkeel.models.local.loglikelihood import PRECISION_TEXTS, batch_dependence

    dtype = str(causal.model.dtype).removeprefix("torch.")
    on_cpu = causal.device.type == "cpu"
    if dtype not in ("bfloat16", "float16") and not (on_cpu and not causal.joins):
        return []
    if on_cpu:
        with batching.cpu_pool(1) as pool:
            difference = pool.submit(batch_dependence, causal).result()
    else:
        difference = batch_dependence(causal)
    if on_cpu and not difference:
        return []
    return [
        f"Computed in {dtype}: answers depend on what shares a batch. Log-probabilities of "
        f"{PRECISION_TEXTS} short texts differ by up to {difference:.2g} between reading them "
        "alone and together; --model-arg deterministic=true reads every text alone."
    ]


class Couple(NamedTuple):
    """A continuation to score, and a text to generate greedily in its place: one reading serves both."""

    loglikelihood: LogLikelihood | None
    """None where the continuation is not asked for: it then only helps to generate, with the same digits."""
    generate: Generate
    pair: Pair
    prompt: Prompt


def couples_in(causal: Causal, window: Sequence[Request]) -> list[Couple]:
    """What can be scored and generated at once, unless tokens merge across the boundary."""
    from evenkeel.models.local.generation import Prompt
    from evenkeel.models.local.loglikelihood import pair_of

    by_text = {(r.prefix, r.continuation): r for r in window if isinstance(r, LogLikelihood)}
    couples = []
    for request in window:
        if not isinstance(request, Generate) or not isinstance(request.prompt, str):
            continue
        if request.sampling.temperature or request.schema:
            continue
        continuation = request.sampling.length_of or request.sampling.marked
        scored = by_text.pop((request.prompt, continuation), None)
        # Whether both are asked at once must not change a digit: it may be otherwise after a kill.
        alone = causal.joins and bool(continuation)
        pair = pair_of(causal, request.prompt, continuation) if scored or alone else None
        if pair and pair.target and not pair.merged and not too_long(causal, len(pair.ids)):
            prompt = prompt_of(causal, request)
            if isinstance(prompt, Prompt):
                couples.append(Couple(scored, request, pair, prompt))
    return couples


def prompt_of(causal: Causal, request: Generate) -> Prompt | Response:
    """A request as token ids with its sampling, or how it ends before it begins."""
    from jinja2 import TemplateError

    from evenkeel.models.local.causal import FALLBACK_STOP
    from evenkeel.models.local.generation import Prompt, seed_of
    from evenkeel.models.local.loglikelihood import pair_of

    sampling, stop, text = request.sampling, request.sampling.stop, request.prompt
    max_tokens = sampling.max_tokens
    if isinstance(text, str):
        ids = causal.tokenise(text)
    else:
        try:
            ids = causal.chat(text)
        except TemplateError as error:
            return failed(f"the chat template refuses this chat: {error}")
        if causal.tokenizer.chat_template is None:
            stop = (*stop, FALLBACK_STOP)
    if not ids:
        if causal.start_id is None:
            return failed("an empty prompt, and no start token to condition on")
        ids = [causal.start_id]
    if too_long(causal, len(ids) + 1):
        return too_long_response(causal, len(ids))
    mark = 0
    if (counted := sampling.length_of or sampling.marked) and isinstance(text, str):
        pair = pair_of(causal, text, counted)
        length = max(1, pair.target if pair else len(causal.tokenise(counted, special=False)))
        if sampling.length_of:
            mark = min(length, max_tokens) if sampling.beyond else 0
            max_tokens = min(max_tokens, length + sampling.beyond)
        else:
            mark = length if length <= max_tokens else 0
    room = causal.context - len(ids) if causal.context else max_tokens
    return Prompt(
        ids=tuple(ids),
        temperature=sampling.temperature,
        top_p=sampling.top_p if causal.top_p is None else causal.top_p,
        top_k=causal.top_k or 0,
        seed=seed_of(request),
        max_tokens=min(max_tokens, room),
        clipped=room < max_tokens,
        stop=tuple(filter(None, stop)),
        thinking=not isinstance(text, str) and opens_reasoning(causal.text(ids[-TAIL:])),
        schema=request.schema,
        mark=mark,
        words=sampling.words,
    )


def generate_response(request: Generate, prompt: Prompt, generation: Generation | None) -> Response:
    if generation is None:
        return does_not_fit(len(prompt.ids))
    written, other, ended = ends_of(request.sampling, prompt, generation)
    status: Status = "ok" if ended else "truncated"
    if isinstance(request.prompt, str):
        text, reasoning = written, ""
        reason = "" if ended else "length" if text else f"length {BEFORE_TEXT}"
    else:
        opening = THINK if prompt.thinking else ""
        text, reasoning, closed = split_reasoning(opening + generation.text, cut=not ended)
        status, reason = ending(status, text, reasoning, closed=closed, cut="length")
    if status == "truncated" and generation.in_schema:
        text = closed_json(text)
    return Response(
        status=status,
        text=text,
        reasoning=reasoning,
        other=other,
        reason=reason,
        tokens_in=len(prompt.ids),
        tokens_out=generation.tokens,
    )


def ends_of(sampling: Sampling, prompt: Prompt, generation: Generation) -> tuple[str, str | None, bool]:
    """A text, the same to its other end where that is known, and whether the text is complete.

    A text that was to have a certain length, and has it, is complete; one that was cut off before it began is
    none.
    """
    length = prompt.mark or (prompt.max_tokens if sampling.length_of and not prompt.clipped else 0)
    if not length:
        return generation.text, None, generation.ended
    up_to_length = generation.marked_text if prompt.mark else generation.text
    ended_before = generation.ended and generation.tokens <= length
    complete = ended_before or (generation.tokens >= length and bool(up_to_length))
    if sampling.marked:
        return generation.text, up_to_length if complete else None, generation.ended
    whole = generation.ended or has_whole_words(generation.text, prompt.words)
    return up_to_length, generation.text if sampling.beyond and whole else None, complete


def logprobs_response(pair: Pair, logprobs: Logprobs | None) -> Response:
    if logprobs is None:
        return does_not_fit(len(pair.ids))
    if not all(map(math.isfinite, logprobs.values)):  # weights that overflow in half precision, say
        return failed("the model gave a log-probability that is not finite")
    return Response(status="ok", logprobs=logprobs, tokens_in=len(pair.ids), tokens_out=0)


def failed(reason: str) -> Response:
    return Response(status="error", reason=reason)


def too_long(causal: Causal, tokens: int) -> bool:
    return causal.context is not None and tokens > causal.context


def too_long_response(causal: Causal, tokens: int) -> Response:
    return failed(f"{tokens} tokens are more than the model's context of {causal.context} holds")


def does_not_fit(tokens: int) -> Response:
    return failed(f"out of memory: a single text of {tokens} tokens does not fit")

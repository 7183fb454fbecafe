"""`hf:ID-or-path`: any causal model of transformers, from a folder, a GGUF file or the Hub, on CPU or GPU."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar

from msgspec import Meta, Struct

from sealegs.errors import CapabilityError
from sealegs.files.cache import expanded
from sealegs.harness.progress import LOADING, Progress
from sealegs.models.local import batching
from sealegs.models.local.batching import Budget
from sealegs.models.local.options import (
    BatchTokens,
    Concurrency,
    Device,
    Dtype,
    RemoteCode,
    Revision,
    chosen_options,
    precision_notes,
)
from sealegs.models.local.responses import (
    does_not_fit,
    failed,
    generate_response,
    logprobs_response,
    rank_response,
    too_long,
    too_long_response,
)
from sealegs.models.local.weights import (
    Weights,
    locate,
    require_packages,
    use_expandable_memory,
)
from sealegs.models.tokenizer_files import TextTokenizer, is_alone, read_tokenizer
from sealegs.options import TopK, TopP
from sealegs.types import (
    Capability,
    Generate,
    LogLikelihood,
    Logprobs,
    Rank,
    Request,
    Response,
    StringLikelihood,
)

if TYPE_CHECKING:
    from sealegs.models.local.causal import Causal
    from sealegs.models.local.generation import TokenisedPrompt
    from sealegs.models.local.loglikelihood import TokenisedPair
    from sealegs.models.local.prompts import ScoredPrompt

T = TypeVar("T")
R = TypeVar("R")

log = logging.getLogger(__name__)

REQUESTS_PER_WINDOW = 4096
"""Requests read ahead, so that texts of like length can share a batch."""

ROWS = {"cpu": 128, "mps": 32}
"""Rows in one batch. A step on a CPU reads all weights, for few rows as for many."""
TOKENS = {"cpu": 16_384, "mps": 16_384}
"""Padded tokens in one batch, counting what is still to be generated. Where it is too many, it is halved;
on CUDA rows and tokens are as many as the free memory seems to hold, for a step there costs much the same for
any batch."""

FEWEST_ROWS = 16
"""Rows of a batch on a CPU below which a step costs hardly less."""

CPU_TOKENS = 32_768
"""Padded tokens in all batches that run side by side on a CPU."""


class HuggingFaceOptions(Struct, frozen=True, kw_only=True):
    """Options of `hf:`."""

    dtype: Dtype = "auto"
    device: Device = "auto"
    revision: Revision = None
    gguf_file: Annotated[str | None, Meta(description="GGUF file to take from a folder or Hub model")] = None
    trust_remote_code: RemoteCode = False
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
    """A causal model that generates, gives log-likelihoods and ranks.

    A document's rank is the log-odds of `yes` against `no` after a
    prompt with query and document, as causal rerankers are trained (Qwen3-Reranker, arXiv 2506.05176).

    A plain prompt is continued as it is. A chat goes through the model's own template; a model without one
    gets `User: …` lines and an open `Assistant:`, and stops where a new `User:` line begins; `identity()`
    names which. Nothing but the request's sampling applies: penalties and the like that a model's
    generation config recommends are left out. The same seed gives the same text on the same kind of device.

    In half precision what shares a batch changes how sums are rounded, and `notes()` says so.
    """

    Options: ClassVar[type[Struct]] = HuggingFaceOptions
    capabilities: frozenset[Capability] = frozenset({"generate", "loglikelihood", "stringlikelihood", "rank"})

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
        self._progress = Progress()

    def watch(self, progress: Progress) -> None:
        """Say now and then how many tokens were read or written: the first answers may take minutes."""
        self._progress = progress
        if self._loaded is not None:
            self._loaded.report_to(progress.waiting)

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
            from sealegs.models.local.loading import load_tokenizer
            from sealegs.models.local.vocabulary import read_vocabulary

            remote = self._options.trust_remote_code
            loaded = load_tokenizer(weights, trust_remote_code=remote)
            backend = getattr(loaded, "backend_tokenizer", None)
            if backend is None or read_vocabulary(backend) is None:
                raise CapabilityError(
                    f"{self._spec} cannot give the probability of a string: the bytes of its tokenizer's "
                    "tokens are not known.",
                    lacking=frozenset({"stringlikelihood"}),
                )

    def answer(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Response]]:
        for window in batching.windows(requests, REQUESTS_PER_WINDOW):
            yield from batching.failing_alone(self._answer, window)

    def _answer(self, window: Sequence[Request]) -> Iterator[tuple[Request, Response]]:
        causal = self.causal()  # before its libraries are imported, which it says is loading
        from sealegs.models.local.loglikelihood import texts_of
        from sealegs.models.local.prompts import scored_prompts

        causal.read_ahead(text for request in window for text in texts_of(causal, request))
        pairs = scored_prompts(causal, window)
        yield from self._loglikelihood_and_generate(causal, pairs)
        paired = {id(request) for pair in pairs for request in pair[:2]}
        single = [request for request in window if id(request) not in paired]
        yield from self._generate(causal, [r for r in single if isinstance(r, Generate)])
        yield from self._loglikelihood(causal, [r for r in single if isinstance(r, LogLikelihood)])
        yield from self._strings(causal, [r for r in single if isinstance(r, StringLikelihood)])
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
        from sealegs.models.local.loading import text_tokenizer

        return text_tokenizer(locate(f"hf:{name}", weights=False))

    def _weights(self) -> Weights:
        options = self._options
        self._located = self._located or locate(
            self._spec, revision=options.revision, gguf_file=options.gguf_file
        )
        return self._located

    def causal(self) -> Causal:
        if self._loaded is None:
            self._progress.waiting(LOADING)  # first of all its libraries
            use_expandable_memory()
            from sealegs.models.local.loading import load

            options = self._options
            self._loaded = causal = load(
                self._spec,
                self._weights(),
                dtype=options.dtype,
                device=options.device,
                trust_remote_code=options.trust_remote_code,
            )
            causal.top_p, causal.top_k = options.top_p, options.top_k
            self._progress.loaded()
            causal.report_to(self._progress.waiting)
            kind = causal.device.type
            self._notes = precision_notes(causal.model.dtype)
            tokens = TOKENS.get(kind)
            if kind == "cpu":
                self._workers = batching.cpu_workers()
                tokens = min(TOKENS[kind], CPU_TOKENS // self._workers)
            rows = min(causal.rows_that_fit(), ROWS.get(kind, REQUESTS_PER_WINDOW))
            self._rows = options.concurrency or rows if causal.can_pad else 1
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
        from sealegs.models.local.generation import generate, shares_prompts
        from sealegs.models.local.prompts import prompt_of

        groups: dict[tuple[int, ...], list[tuple[Generate, TokenisedPrompt]]] = {}
        for request in requests:
            prompt = prompt_of(causal, request)
            if isinstance(prompt, Response):
                yield request, prompt
            else:
                groups.setdefault(prompt.ids, []).append((request, prompt))
        shared = shares_prompts(causal)

        def size(row: tuple[Generate, TokenisedPrompt]) -> int:
            ids, tokens = row[1].ids, row[1].max_tokens
            return -(-len(ids) // (len(groups[ids]) if shared else 1)) + tokens

        for (request, prompt), generation in self._run(
            groups.values(),
            size,
            lambda batch, emit: generate(causal, [prompt for _, prompt in batch], emit),
        ):
            yield request, generate_response(request, prompt, generation)

    def _loglikelihood(
        self, causal: Causal, requests: list[LogLikelihood]
    ) -> Iterator[tuple[Request, Response]]:
        from sealegs.models.local.loglikelihood import loglikelihoods, pair_of

        groups: dict[tuple[int, ...], list[tuple[LogLikelihood, TokenisedPair]]] = {}
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
            lambda batch, _: loglikelihoods(causal, [pair for _, pair in batch]),
        ):
            yield request, logprobs_response(pair, logprobs)

    def _strings(
        self, causal: Causal, requests: list[StringLikelihood]
    ) -> Iterator[tuple[Request, Response]]:
        from sealegs.models.local.strings import string_probabilities, target_of

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
            lambda batch, _: string_probabilities(
                causal, [target for _, target in batch], rows=self._budget.rows
            ),
        ):
            if string is None:
                yield request, does_not_fit(target.tokens)
            elif isinstance(string, str):
                yield request, failed(string)
            else:
                yield request, Response(status="ok", string=string, tokens_in=target.tokens, tokens_out=0)

    def _rank(self, causal: Causal, requests: list[Rank]) -> Iterator[tuple[Request, Response]]:
        from sealegs.models.local.reranking import log_odds, rank_ids

        rows = []
        for request in requests:
            ids = rank_ids(causal, request, self._options.rank_template)
            if isinstance(ids, str):
                yield request, failed(ids)
            elif too_long(causal, len(ids)):
                yield request, too_long_response(causal, len(ids))
            else:
                rows.append((request, ids))
        for (request, ids), odds in self._run(
            [[row] for row in rows],
            lambda row: len(row[1]),
            lambda batch, _: log_odds(causal, [ids for _, ids in batch]),
        ):
            yield request, does_not_fit(len(ids)) if odds is None else rank_response(odds, len(ids))

    def _run(
        self,
        groups: Iterable[list[T]],
        size: Callable[[T], int],
        work: Callable[[list[T], batching.Emit[R]], Sequence[R]],
    ) -> Iterator[tuple[T, R | None]]:
        """What `work` makes of each row; on a CPU several batches at once, each on one core."""
        if not self._workers:
            yield from batching.run([groups], size, self._budget, work)
            return
        groups = list(groups)
        count = sum(map(len, groups))
        turns = -(-count // (self._workers * self._rows)) or 1  # of each core: none waits for a last batch
        self._budget.rows = min(self._rows, max(FEWEST_ROWS, -(-count // (self._workers * turns))))
        with batching.cpu_pool(self._workers) as pool:
            yield from batching.run([groups], size, self._budget, work, pool=pool, ahead=self._workers + 1)

    def _loglikelihood_and_generate(
        self, causal: Causal, pairs: list[ScoredPrompt]
    ) -> Iterator[tuple[Request, Response]]:
        from sealegs.models.local.loglikelihood import loglikelihood_and_generate

        for pair, results in self._run(
            [[pair] for pair in pairs],
            lambda row: len(row.pair.ids),
            lambda batch, emit: loglikelihood_and_generate(
                causal, [(row.pair, row.prompt) for row in batch], emit
            ),
        ):
            logprobs, generation = results or (None, None)
            yield pair.loglikelihood, logprobs_response(pair.pair, logprobs)
            yield pair.generate, generate_response(pair.generate, pair.prompt, generation)

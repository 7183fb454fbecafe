"""`sbert:ID-or-path`: models of sentence-transformers, to embed or (cross-encoders) to rank."""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractContextManager
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple, TypeAlias, TypeVar

from msgspec import Meta, Struct

from evenkeel.errors import CapabilityError, UsageError
from evenkeel.models.hf import (
    BatchTokens,
    Device,
    Dtype,
    RemoteCode,
    Revision,
    chosen_options,
    does_not_fit,
    failed,
)
from evenkeel.models.local import batching
from evenkeel.models.local.batching import Budget
from evenkeel.models.local.checks import Loading, check_tensors, watched_loading, without_unused_heads
from evenkeel.models.local.weights import (
    Weights,
    first_line,
    locate,
    quiet_transformers,
    read_json,
    require_packages,
)
from evenkeel.options import RUNTIME
from evenkeel.types import Capability, Embed, Rank, Request, Response

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

log = logging.getLogger(__name__)

R = TypeVar("R")

WINDOW = 20_000
"""Texts read ahead, so that those of like length share a batch and equal ones are embedded once."""

PART = 1024
"""Texts that are tokenised at once, while those before are embedded."""

PAIR_WINDOW = 256
"""Pairs that are ranked or classified before they are handed on."""
PAIR_ROWS = 32
LATE_WINDOW = 64
"""Pairs whose token embeddings are in memory at once."""

TOKENS = {"cpu": 512, "mps": 8_192, "cuda": 65_536}
"""Padded tokens in one batch. On a CPU small is fast: the activations stay in the core's own cache."""

Late: TypeAlias = Annotated[
    bool, Meta(description="rank by late interaction: the embeddings of single tokens, as ColBERT does")
]
Rows: TypeAlias = Annotated[int, Meta(ge=1, description="texts in one batch at most", extra=RUNTIME)]


class SentenceTransformerOptions(Struct, frozen=True, kw_only=True):
    """Options of `sbert:`."""

    dtype: Dtype = "auto"
    device: Device = "auto"
    prompt: Annotated[str | None, Meta(description="put before every text; default: the model's own")] = None
    revision: Revision = None
    trust_remote_code: RemoteCode = False
    concurrency: Rows = 1024
    batch_tokens: BatchTokens = None
    late: Late = False


class SentenceTransformer:
    """A model that embeds (the vectors are those of its own `encode`), or a cross-encoder that ranks.

    With `late` an embedding model ranks as well, by its token embeddings.
    """

    Options: ClassVar[type[Struct]] = SentenceTransformerOptions
    capabilities: frozenset[Capability] = frozenset({"embed", "rank"})

    def __init__(self, name: str, options: SentenceTransformerOptions) -> None:
        require_packages("sentence_transformers", what="sbert:", extra="sbert")
        self._spec = f"sbert:{name}"
        self._options = options
        self._located: Weights | None = None
        self._embedder: Embedder | None = None
        self._pair_model: PairModel | None = None

    def identity(self) -> dict[str, Any]:
        return {**chosen_options(self._options), **self._weights().identity(), "spec": self._spec}

    def probe(self, needs: frozenset[Capability]) -> None:
        """Finds the files, and whether what they hold embeds or ranks."""
        folder = self._weights().folder
        config = read_json(folder / "config.json")
        heads = config.get("architectures")
        classifies = any(
            str(head).endswith("ForSequenceClassification")
            for head in (heads if isinstance(heads, list) else ())
        )
        embeds = (folder / "modules.json").is_file() or not classifies
        ranks = embeds if self._options.late else classifies
        abilities = {"embed": embeds, "rank": ranks}
        if lacking := {need for need in needs if not abilities.get(need)}:
            kind = "an embedding model" if embeds else "a cross-encoder"
            raise CapabilityError(
                f"'{self._spec}' is {kind}: it cannot {' or '.join(sorted(lacking))}.",
                lacking=frozenset(lacking),
            )

    def answer(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Response]]:
        for window in batching.windows(requests, WINDOW):
            yield from batching.failing_alone(self._answer, window)

    def _answer(self, window: Sequence[Request]) -> Iterator[tuple[Request, Response]]:
        by_text: dict[str, list[Embed]] = {}
        ranks: list[Rank] = []
        for request in window:
            if isinstance(request, Embed):
                by_text.setdefault(request.text, []).append(request)
            elif isinstance(request, Rank):
                ranks.append(request)
            else:
                yield request, failed(f"{self._spec} cannot generate")
        for part in batching.windows(ranks, LATE_WINDOW) if self._options.late else ():
            yield from self._late(part)
        for part in batching.windows(() if self._options.late else ranks, PAIR_WINDOW):
            yield from zip(part, self._loaded_pair_model().rank(part), strict=True)
        if not by_text:
            return
        embedder = self._loaded_embedder()
        for text, vector in embedder.embed(list(by_text)):
            response = does_not_fit(text.tokens)
            if vector == b"":
                response = failed("a text without tokens")
            elif vector is not None:
                response = Response(status="ok", vector=vector, cut=text.cut, tokens_in=text.tokens)
            yield from ((request, response) for request in by_text[text.text])

    def _late(self, requests: list[Rank]) -> Iterator[tuple[Request, Response]]:
        """Late interaction (Khattab and Zaharia 2020, arXiv 2004.12832), as a mean over the query's tokens:

        s(q, d) = 1/|q| Σ_i max_j cos(q_i, d_j)
        """
        embedder = self._loaded_embedder()
        texts = embedder.measure(list(dict.fromkeys(t for r in requests for t in (r.query, r.document))))
        measured = {text.text: text for text in texts}
        tokens = {text.text: vectors for text, vectors in embedder.embed_tokens(texts)}
        for request in requests:
            query, document = tokens[request.query], tokens[request.document]
            both = measured[request.query], measured[request.document]
            size = sum(text.tokens for text in both)
            if query is None or document is None:
                yield request, does_not_fit(size)
                continue
            score = (
                float((query @ document.T).max(axis=1).mean()) if len(query) and len(document) else math.nan
            )
            if not math.isfinite(score):
                yield request, failed("a text without tokens, or a score that is not finite")
                continue
            cut = any(text.cut for text in both)
            yield request, Response(status="ok", rank=score, cut=cut, tokens_in=size)

    def _loaded_embedder(self) -> Embedder:
        self._embedder = self._embedder or Embedder(self._spec, self._weights(), self._options)
        return self._embedder

    def _loaded_pair_model(self) -> PairModel:
        self._pair_model = self._pair_model or PairModel(self._spec, self._weights(), self._options)
        return self._pair_model

    def notes(self) -> list[str]:
        return self._embedder.notes if self._embedder else []

    def close(self) -> None:
        if self._embedder is not None or self._pair_model is not None:
            self._embedder = self._pair_model = None
            batching.free_memory()

    def _weights(self) -> Weights:
        self._located = self._located or locate(self._spec, revision=self._options.revision)
        return self._located


def _load(
    kind: Literal["SentenceTransformer", "CrossEncoder"],
    spec: str,
    weights: Weights,
    options: SentenceTransformerOptions,
) -> tuple[Any, list[Loading]]:
    """A model of sentence-transformers in memory, and what transformers reports of loading it."""
    quiet_transformers()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import sentence_transformers

        from evenkeel.models.local.causal import LOAD_ERRORS, pick_device

        device = pick_device(options.device, spec)
        try:
            with watched_loading() as loadings:
                model = getattr(sentence_transformers, kind)(
                    str(weights.folder),
                    device=str(device),
                    trust_remote_code=options.trust_remote_code,
                    local_files_only=True,
                    model_kwargs={"dtype": options.dtype, "weights_only": True},
                )
        except LOAD_ERRORS as error:
            purpose = " to rank" if kind == "CrossEncoder" else ""
            reason = first_line(error)
            raise UsageError(f"{spec}: {weights.folder} cannot be loaded{purpose}: {reason}.") from error
    return model, loadings


class Text(NamedTuple):
    text: str
    tokens: int
    """As many as the model reads of it."""
    cut: bool
    ids: NDArray[np.int64] | None = None
    """None where the model's own preprocessing tokenises it."""


def _of_readable(batch: list[Text], work: Callable[[list[Text]], list[R]], none: R) -> list[R]:
    """What `work` makes of each text, and `none` of a text without tokens, on which models raise errors."""
    readable = [text for text in batch if text.tokens]
    results = iter(work(readable) if readable else ())
    return [next(results) if text.tokens else none for text in batch]


class Embedder:
    """An embedding model in memory."""

    def __init__(self, spec: str, weights: Weights, options: SentenceTransformerOptions) -> None:
        import torch

        from evenkeel.models.local.packing import packer_of
        from evenkeel.models.local.steps.rows import fill_products

        self.spec = spec
        self.model, loadings = _load("SentenceTransformer", spec, weights, options)
        self.model.eval()
        self.prompt = options.prompt
        if self.prompt is None and self.model.default_prompt_name:
            self.prompt = self.model.prompts.get(self.model.default_prompt_name)
        kind = self.model.device.type
        self.budget = Budget(options.concurrency, options.batch_tokens or TOKENS[kind])
        # On a GPU a second worker prepares a batch while the first waits for its vectors, and only for them.
        self.workers = batching.cpu_workers() if kind == "cpu" else 2
        self._on_cpu = kind == "cpu"
        if self._on_cpu:
            fill_products(self.model)
        self._streams: list[Any] = []
        if kind == "cuda":
            self._streams = [torch.cuda.Stream(self.model.device) for _ in range(self.workers)]  # type: ignore[no-untyped-call]
        log.info(
            "%s on %s: batches of at most %s texts and %s tokens, %s at a time.",
            *(spec, self.model.device, f"{self.budget.rows:,}", f"{self.budget.tokens:,}", self.workers),
        )
        self._tokenising = Lock()
        self._packer = packer_of(
            self.model.tokenizer,
            self.model.max_seq_length,
            self.prompt or "",
            lambda texts: self.model.preprocess(texts, prompt=self.prompt),
        )
        check_tensors(spec, weights.folder, map(self._without_unused, loadings))
        self.notes = self._precision_notes()

    def _without_unused(self, loading: Loading) -> Loading:
        """A loading's report without a head, and without a pooler that no vector depends on.

        Whether one does is tried out: with other numbers in the pooler, the vector of a text must not move.
        """
        import torch

        loading = without_unused_heads(loading)
        if not loading.missing or not all("pooler" in name.split(".") for name in loading.missing):
            return loading
        probe = Text("A text to embed.", 0, cut=False)
        [before] = self._vectors([probe])
        with torch.no_grad():
            for name in loading.missing:
                loading.model.get_parameter(name).normal_()
        return loading._replace(missing=()) if self._vectors([probe]) == [before] else loading

    def _precision_notes(self) -> list[str]:
        """What half precision does to the vectors, measured on a few texts, alone and together."""
        import numpy as np

        parameter = next(self.model.parameters(), None)
        if parameter is None or parameter.dtype.itemsize != 2:
            return []
        texts = [Text("boats in the harbour " * length, 0, cut=False) for length in range(1, 9)]
        alone = np.frombuffer(b"".join(self._vectors([text])[0] for text in texts), "<f4").reshape(8, -1)
        # On a CPU a batch has texts of equal length.
        batches = [[text] * 8 for text in texts] if self._on_cpu else [texts]
        joint = [self._vectors(batch) for batch in batches]
        vectors = [each[0] for each in joint] if self._on_cpu else joint[0]
        if b"".join(vectors) == alone.tobytes():
            return []
        together = np.frombuffer(b"".join(vectors), "<f4").reshape(8, -1)
        norms = np.linalg.norm(alone, axis=1) * np.linalg.norm(together, axis=1)
        apart = float(np.max(1 - (alone * together).sum(1) / norms))
        dtype = str(parameter.dtype).removeprefix("torch.")
        return [
            f"Embedded in {dtype}: vectors depend on what shares a batch. {len(texts)} short texts embedded "
            f"alone and together have cosines down to 1 − {max(0, apart):.1g}; "
            "--model-arg concurrency=1 embeds every text alone."
        ]

    def measure(self, texts: list[str]) -> list[Text]:
        """Every text with the number of tokens that the model reads, and whether its end is cut off."""
        prompted = [(self.prompt or "") + text for text in texts]
        if self._packer is not None:
            rows, cuts = self._packer.encode(prompted)
            return [Text(text, len(ids), cut, ids) for text, ids, cut in zip(texts, rows, cuts, strict=True)]
        limit = self.model.max_seq_length
        tokenizer = self.model.tokenizer
        with self._tokenising:
            if callable(tokenizer):
                rows = tokenizer(prompted, truncation=False, verbose=False)["input_ids"]
            else:  # static embeddings bring a bare tokenizer
                rows = tokenizer.encode_batch(prompted, add_special_tokens=False)
        lengths = map(len, rows)
        return [
            Text(text, min(length, limit or length), limit is not None and length > limit)
            for text, length in zip(texts, lengths, strict=True)
        ]

    def embed(self, texts: list[str]) -> Iterator[tuple[Text, bytes | None]]:
        """The vectors as `SentenceTransformer.encode` gives them, from its own two steps.

        Texts are tokenised part by part, about the longest first, while those before are embedded. On a CPU
        several batches run side by side, each on one core: that wastes less on waiting for one another than
        all cores on one batch. A batch there has texts of equal length, as padding would change their digits.
        """
        parts = batching.windows(sorted(texts, key=len, reverse=True), PART)
        with ThreadPoolExecutor(1) as tokenising, self._pool() as pool:
            yield from batching.run(
                ([[text] for text in part] for part in tokenising.map(self.measure, parts)),
                lambda text: text.tokens,
                self.budget,
                lambda batch: _of_readable(batch, self._vectors, b""),
                pool=pool,
                ahead=self.workers + 1,
                kind=self._kind,
            )

    def _pool(self) -> AbstractContextManager[Executor]:
        import torch

        if self._on_cpu:
            return batching.cpu_pool(self.workers)
        streams = iter(self._streams)

        def begin() -> None:
            torch.set_num_threads(1)  # for this worker alone; the rest of the process keeps its number
            if self._streams:
                torch.cuda.set_stream(next(streams))

        return ThreadPoolExecutor(self.workers, initializer=begin)

    def _kind(self, text: Text) -> int:
        return text.tokens if self._on_cpu else 0

    def embed_tokens(self, texts: list[Text]) -> Iterator[tuple[Text, NDArray[np.float32] | None]]:
        """The unit vectors of each text's tokens, without special ones."""
        import numpy as np

        none = np.empty((0, 0), np.float32)
        with self._pool() as pool:
            yield from batching.run(
                [[[text] for text in texts]],
                lambda text: text.tokens,
                self.budget,
                lambda batch: _of_readable(batch, self._token_vectors, none),
                pool=pool,
                kind=self._kind,
            )

    def _token_vectors(self, batch: list[Text]) -> list[NDArray[np.float32]]:
        import torch

        with torch.inference_mode():
            features = self._features(batch)
            output = self.model(dict(features))
            if "token_embeddings" not in output or "input_ids" not in features:
                raise UsageError(f"{self.spec}: late interaction needs token embeddings; it gives none.")
            special = torch.tensor(self.model.tokenizer.all_special_ids, device=self.model.device)
            counted = features["attention_mask"].bool() & ~torch.isin(features["input_ids"], special)
            vectors = torch.nn.functional.normalize(output["token_embeddings"].float(), dim=-1)
            return [
                rows[mask].cpu().numpy()
                for rows, mask in zip(vectors[:, : counted.shape[1]], counted, strict=True)
            ]

    def _features(self, batch: list[Text]) -> dict[str, Any]:
        from sentence_transformers.util import batch_to_device

        if self._packer is not None and all(text.ids is not None for text in batch):
            return dict(
                self._packer.pad([text.ids for text in batch if text.ids is not None], self.model.device)
            )
        # A fast tokenizer must not be used by two threads at once ("Already borrowed").
        with self._tokenising:
            features = self.model.preprocess([text.text for text in batch], prompt=self.prompt)
        features = batch_to_device(features, self.model.device)
        return dict(features)

    def _vectors(self, batch: list[Text]) -> list[bytes]:
        import torch

        with torch.inference_mode():
            vectors = self.model(self._features(batch))["sentence_embedding"]
            return [row.tobytes() for row in vectors.float().cpu().numpy().astype("<f4", copy=False)]


class PairModel:
    """A cross-encoder in memory: it scores pairs as `CrossEncoder.predict` does, before any activation."""

    def __init__(self, spec: str, weights: Weights, options: SentenceTransformerOptions) -> None:
        self.spec = spec
        self.model, loadings = _load("CrossEncoder", spec, weights, options)
        inner = self.model.model
        if inner is not None and type(inner).__name__ not in (inner.config.architectures or ()):
            # Any other model is loaded as well, with a head of random weights.
            raise UsageError(
                f"{spec}: {weights.folder} is not a cross-encoder: it has no weights that score a pair."
            )
        check_tensors(spec, weights.folder, loadings)
        self._on_cpu = self.model.device.type == "cpu"
        if self._on_cpu:
            from evenkeel.models.local.steps.rows import fill_products

            fill_products(self.model)
            preprocess, tokenising = self.model.preprocess, Lock()

            def preprocess_alone(*args: Any, **kwargs: Any) -> Any:
                with tokenising:  # a fast tokenizer must not be used by two threads at once
                    return preprocess(*args, **kwargs)

            self.model.preprocess = preprocess_alone

    def rank(self, requests: list[Rank]) -> list[Response]:
        if self.model.num_labels != 1:
            raise UsageError(
                f"{self.spec}: a model that ranks gives one score; this one gives {self.model.num_labels}."
            )
        scores = self._predict([(request.query, request.document) for request in requests])
        return [
            Response(status="ok", rank=float(score))
            if math.isfinite(score)
            else failed("the model gave a score that is not finite")
            for score in scores
        ]

    def _predict(self, pairs: list[tuple[str, str]]) -> NDArray[np.float32]:
        """The scores of pairs; on a CPU those of equal length at a time, as texts are embedded."""
        if not self._on_cpu:
            return self._predict_together(pairs)
        import numpy as np

        lengths = map(len, self.model.tokenizer(pairs, truncation=False, verbose=False)["input_ids"])
        limit = self.model.max_seq_length
        rows = [(at, min(length, limit or length)) for at, length in enumerate(lengths)]
        scores: list[Any] = [None] * len(pairs)
        with batching.cpu_pool(batching.cpu_workers()) as pool:
            for (at, _), score in batching.run(
                [[[row] for row in rows]],
                lambda row: row[1],
                Budget(PAIR_ROWS, PAIR_ROWS * max(length for _, length in rows)),
                lambda batch: list(self._predict_together([pairs[at] for at, _ in batch])),
                pool=pool,
                ahead=batching.cpu_workers() + 1,
                kind=lambda row: row[1],
            ):
                scores[at] = score
        return np.array(scores)

    def _predict_together(self, pairs: list[tuple[str, str]]) -> NDArray[np.float32]:
        import torch

        # As the model gives them: squeezed between 0 and 1, very large scores would become equal.
        scores: NDArray[np.float32] = self.model.predict(
            pairs, batch_size=PAIR_ROWS, show_progress_bar=False, activation_fn=torch.nn.Identity()
        )
        return scores

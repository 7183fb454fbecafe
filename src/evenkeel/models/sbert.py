"""`sbert:ID-or-path`: models of sentence-transformers, to embed or (cross-encoders) to rank."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Lock
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeAlias

from msgspec import Meta, Struct

from evenkeel.errors import CapabilityError, UsageError
from evenkeel.models.hf import BatchTokens, Device, Dtype, RemoteCode, Revision, does_not_fit, failed
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
from evenkeel.options import RUNTIME, identity_options
from evenkeel.types import Capability, Embed, Rank, Request, Response

WINDOW = 20_000
"""Texts read ahead, so that those of like length share a batch and equal ones are embedded once."""

RANK_WINDOW = 256
"""Pairs that are ranked before they are handed on."""
RANK_ROWS = 32

TOKENS = {"cpu": 512, "mps": 8_192, "cuda": 65_536}
"""Padded tokens in one batch. On a CPU small is fast: the activations stay in the core's own cache."""

WORKERS = 8
"""Batches at once on a CPU, at most: beyond that Python's own lock is the limit."""

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


class SentenceTransformer:
    """A model that embeds (the vectors are those of its own `encode`), or a cross-encoder that ranks."""

    Options: ClassVar[type[Struct]] = SentenceTransformerOptions
    capabilities: frozenset[Capability] = frozenset({"embed", "rank"})

    def __init__(self, name: str, options: SentenceTransformerOptions) -> None:
        require_packages("sentence_transformers", what="sbert:", extra="sbert")
        self._spec = f"sbert:{name}"
        self._options = options
        self._located: Weights | None = None
        self._embedder: Embedder | None = None
        self._ranker: Ranker | None = None

    def identity(self) -> dict[str, Any]:
        return {**identity_options(self._options), **self._weights().identity(), "spec": self._spec}

    def probe(self, needs: frozenset[Capability]) -> None:
        """Finds the files, and whether what they hold embeds or ranks."""
        folder = self._weights().folder
        heads = read_json(folder / "config.json").get("architectures") or ()
        ranks = any(str(head).endswith("ForSequenceClassification") for head in heads)
        embeds = (folder / "modules.json").is_file() or not ranks
        if lacking := needs - {*(["rank"] if ranks else []), *(["embed"] if embeds else [])}:
            kind = "a cross-encoder" if ranks else "an embedding model"
            raise CapabilityError(
                f"'{self._spec}' is {kind}: it cannot {' or '.join(sorted(lacking))}.",
                lacking=frozenset(lacking),
            )

    def answer(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Response]]:
        for window in batching.windows(requests, WINDOW):
            by_text: dict[str, list[Embed]] = {}
            ranks: list[Rank] = []
            for request in window:
                if isinstance(request, Embed):
                    by_text.setdefault(request.text, []).append(request)
                elif isinstance(request, Rank):
                    ranks.append(request)
                else:
                    yield request, failed(f"{self._spec} cannot generate")
            for part in batching.windows(ranks, RANK_WINDOW):
                self._ranker = self._ranker or Ranker(self._spec, self._weights(), self._options)
                yield from zip(part, self._ranker.rank(part), strict=True)
            if not by_text:
                continue
            self._embedder = self._embedder or Embedder(self._spec, self._weights(), self._options)
            for text, vector in self._embedder.embed(self._embedder.measure(list(by_text))):
                response = does_not_fit(text.tokens)
                if vector is not None:
                    response = Response(status="ok", vector=vector, cut=text.cut, tokens_in=text.tokens)
                yield from ((request, response) for request in by_text[text.text])

    def notes(self) -> list[str]:
        return self._embedder.notes if self._embedder else []

    def close(self) -> None:
        if self._embedder is not None or self._ranker is not None:
            self._embedder = self._ranker = None
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
                    model_kwargs={"dtype": options.dtype},
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


class Embedder:
    """An embedding model in memory."""

    def __init__(self, spec: str, weights: Weights, options: SentenceTransformerOptions) -> None:
        import torch

        self.model, loadings = _load("SentenceTransformer", spec, weights, options)
        self.model.eval()
        self.prompt = options.prompt
        if self.prompt is None and self.model.default_prompt_name:
            self.prompt = self.model.prompts.get(self.model.default_prompt_name)
        kind = self.model.device.type
        self.budget = Budget(options.concurrency, options.batch_tokens or TOKENS[kind])
        cores = torch.get_num_threads() if kind == "cpu" else 1
        self.workers = min(cores, WORKERS)
        self.threads = max(1, cores // self.workers)
        self._tokenising = Lock()
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
        together = np.frombuffer(b"".join(self._vectors(texts)), "<f4").reshape(8, -1)
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
        limit = self.model.max_seq_length
        tokenizer = self.model.tokenizer
        prompted = [(self.prompt or "") + text for text in texts]
        if callable(tokenizer):
            rows = tokenizer(prompted, truncation=False, verbose=False)["input_ids"]
        else:  # static embeddings bring a bare tokenizer
            rows = tokenizer.encode_batch(prompted, add_special_tokens=False)
        lengths = map(len, rows)
        return [
            Text(text, min(length, limit or length), limit is not None and length > limit)
            for text, length in zip(texts, lengths, strict=True)
        ]

    def embed(self, texts: list[Text]) -> Iterator[tuple[Text, bytes | None]]:
        """The vectors as `SentenceTransformer.encode` gives them, from its own two steps.

        On a CPU several batches run side by side, each on its share of the cores: that wastes less on
        waiting for one another than all cores on one batch.
        """
        import torch

        # The number of threads is set for each worker alone; the rest of the process keeps its own.
        set_threads = partial(torch.set_num_threads, self.threads)
        with ThreadPoolExecutor(self.workers, initializer=set_threads) as pool:
            yield from batching.run(
                ([text] for text in texts),
                lambda text: text.tokens,
                self.budget,
                self._vectors,
                pool=pool,
                ahead=self.workers + 1,
            )

    def _vectors(self, batch: list[Text]) -> list[bytes]:
        import torch
        from sentence_transformers.util import batch_to_device

        with torch.inference_mode():
            # A fast tokenizer must not be used by two threads at once ("Already borrowed").
            with self._tokenising:
                features = self.model.preprocess([text.text for text in batch], prompt=self.prompt)
            vectors = self.model(batch_to_device(features, self.model.device))["sentence_embedding"]
            return [row.tobytes() for row in vectors.float().cpu().numpy().astype("<f4", copy=False)]


class Ranker:
    """A cross-encoder in memory: it scores pairs as `CrossEncoder.predict` does, before any activation."""

    def __init__(self, spec: str, weights: Weights, options: SentenceTransformerOptions) -> None:
        self.model, loadings = _load("CrossEncoder", spec, weights, options)
        inner = self.model.model
        if inner is not None and type(inner).__name__ not in (inner.config.architectures or ()):
            # Any other model is loaded as well, with a head of random weights.
            raise UsageError(
                f"{spec}: {weights.folder} is not a cross-encoder: it has no weights that score a pair."
            )
        check_tensors(spec, weights.folder, loadings)
        if self.model.num_labels != 1:
            raise UsageError(
                f"{spec}: a model that ranks gives one score; this one gives {self.model.num_labels}."
            )

    def rank(self, requests: list[Rank]) -> list[Response]:
        import torch

        pairs = [(request.query, request.document) for request in requests]
        # As the model gives them: squeezed between 0 and 1, very large scores would become equal.
        scores = self.model.predict(
            pairs, batch_size=RANK_ROWS, show_progress_bar=False, activation_fn=torch.nn.Identity()
        )
        return [
            Response(status="ok", rank=float(score))
            if math.isfinite(score)
            else failed("the model gave a score that is not finite")
            for score in scores
        ]

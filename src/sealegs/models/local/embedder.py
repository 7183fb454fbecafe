"""An embedding model of sentence-transformers in memory, and how models of that library are loaded."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractContextManager
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeAlias, TypeVar

from msgspec import Meta, Struct

from sealegs.errors import UsageError
from sealegs.models.local import batching
from sealegs.models.local.batching import Budget
from sealegs.models.local.checks import REPORTED, Loading, check_tensors, loading_of, without_unused_heads
from sealegs.models.local.options import BatchTokens, Device, Dtype, RemoteCode, Revision, precision_notes
from sealegs.models.local.weights import Weights, first_line, quiet_transformers, tokenizer_errors
from sealegs.options import RUNTIME

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

log = logging.getLogger(__name__)

R = TypeVar("R")

PART = 1024
"""Texts that are tokenised at once, while those before are embedded."""

TOKENS = {"cpu": 512, "mps": 8_192, "cuda": 65_536}
"""Padded tokens in one batch. On a CPU small is fast: the activations stay in the core's own cache."""

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


def load_library_model(
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

        from sealegs.models.local.loading import LOAD_ERRORS, pick_device

        device = pick_device(options.device, spec)
        try:
            model = getattr(sentence_transformers, kind)(
                str(weights.folder),
                device=str(device),
                trust_remote_code=options.trust_remote_code,
                local_files_only=True,
                model_kwargs={"dtype": options.dtype, "weights_only": True, "ignore_mismatched_sizes": True},
            )
            return model, [_report(inner) for inner in _transformers_models(model)]
        except LOAD_ERRORS as error:
            purpose = " to rank" if kind == "CrossEncoder" else ""
            reason = first_line(error)
            raise UsageError(f"{spec}: {weights.folder} cannot be loaded{purpose}: {reason}.") from error


def _transformers_models(model: Any) -> list[Any]:
    """The models of transformers that a model of sentence-transformers holds."""
    from transformers import PreTrainedModel

    if isinstance(model, PreTrainedModel):
        return [model]
    return [inner for child in model.children() for inner in _transformers_models(child)]


def _report(model: Any) -> Loading:
    """What transformers reports of loading a model, which sentence-transformers does not pass on: it is asked
    again, without reading a weight."""
    _, info = type(model).from_pretrained(
        model.config.name_or_path, device_map="meta", local_files_only=True, **REPORTED
    )
    return loading_of(model, info)


class TokenisedText(NamedTuple):
    text: str
    tokens: int
    """As many as the model reads of it."""
    cut: bool
    ids: NDArray[np.int64] | None = None
    """None where the model's own preprocessing tokenises it."""


def _of_readable(
    batch: list[TokenisedText], work: Callable[[list[TokenisedText]], list[R]], none: R
) -> list[R]:
    """What `work` makes of each text, and `none` of a text without tokens, on which models raise errors."""
    readable = [text for text in batch if text.tokens]
    results = iter(work(readable) if readable else ())
    return [next(results) if text.tokens else none for text in batch]


class Embedder:
    """An embedding model in memory."""

    def __init__(self, spec: str, weights: Weights, options: SentenceTransformerOptions) -> None:
        import torch

        from sealegs.models.local.packing import packer_of

        self.spec = spec
        self.model, loadings = load_library_model("SentenceTransformer", spec, weights, options)
        self.model.eval()
        self.prompt = options.prompt
        if self.prompt is None and self.model.default_prompt_name:
            self.prompt = self.model.prompts.get(self.model.default_prompt_name)
        kind = self.model.device.type
        self.budget = Budget(options.concurrency, options.batch_tokens or TOKENS[kind])
        # On a GPU a second worker prepares a batch while the first waits for its vectors, and only for them.
        self.workers = batching.cpu_workers() if kind == "cpu" else 2
        self._on_cpu = kind == "cpu"
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
        for loading in loadings:
            check_tensors(spec, weights.folder, self._without_unused(loading))
        parameter = next(self.model.parameters(), None)
        self.notes = precision_notes(parameter.dtype) if parameter is not None else []

    def _without_unused(self, loading: Loading) -> Loading:
        """A loading's report without a head, and without a pooler that no vector depends on.

        Whether one does is tried out: with other numbers in the pooler, the vector of a text must not move.
        """
        import torch

        loading = without_unused_heads(loading)
        if not loading.missing or not all("pooler" in name.split(".") for name in loading.missing):
            return loading
        probe = TokenisedText("A text to embed.", 0, cut=False)
        [before] = self._vectors([probe])
        with torch.no_grad():
            for name in loading.missing:
                loading.model.get_parameter(name).normal_()
        return loading._replace(missing=()) if self._vectors([probe]) == [before] else loading

    def measure(self, texts: list[str]) -> list[TokenisedText]:
        """Every text with the number of tokens that the model reads, and whether its end is cut off."""
        prompted = [(self.prompt or "") + text for text in texts]
        if self._packer is not None:
            with tokenizer_errors(self.model.tokenizer.name_or_path):
                rows, cuts = self._packer.encode(prompted)
            return [
                TokenisedText(text, len(ids), cut, ids)
                for text, ids, cut in zip(texts, rows, cuts, strict=True)
            ]
        limit = self.model.max_seq_length
        tokenizer = self.model.tokenizer
        with self._tokenising:
            if callable(tokenizer):
                rows = tokenizer(prompted, truncation=False, verbose=False)["input_ids"]
            else:  # static embeddings bring a bare tokenizer
                rows = tokenizer.encode_batch(prompted, add_special_tokens=False)
        lengths = map(len, rows)
        return [
            TokenisedText(text, min(length, limit or length), limit is not None and length > limit)
            for text, length in zip(texts, lengths, strict=True)
        ]

    def embed(self, texts: list[str]) -> Iterator[tuple[TokenisedText, bytes | None]]:
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
                lambda batch, _: _of_readable(batch, self._vectors, b""),
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

    def _kind(self, text: TokenisedText) -> int:
        return text.tokens if self._on_cpu else 0

    def _features(self, batch: list[TokenisedText]) -> dict[str, Any]:
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

    def _vectors(self, batch: list[TokenisedText]) -> list[bytes]:
        import torch

        with torch.inference_mode():
            vectors = self.model(self._features(batch))["sentence_embedding"]
            return [row.tobytes() for row in vectors.float().cpu().numpy().astype("<f4", copy=False)]

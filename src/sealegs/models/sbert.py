"""`sbert:ID-or-path`: models of sentence-transformers, to embed or (cross-encoders) to rank."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, TypeVar

from msgspec import Struct

from sealegs.errors import CapabilityError
from sealegs.harness.progress import LOADING, Progress
from sealegs.models.local import batching
from sealegs.models.local.cross_encoder import CrossEncoder
from sealegs.models.local.embedder import Embedder, SentenceTransformerOptions
from sealegs.models.local.options import chosen_options
from sealegs.models.local.responses import does_not_fit, failed
from sealegs.models.local.weights import Weights, locate, read_json, require_packages
from sealegs.types import Capability, Embed, Rank, Request, Response

M = TypeVar("M")

TEXTS_PER_WINDOW = 20_000
"""Texts read ahead, so that those of like length share a batch and equal ones are embedded once."""

PAIR_WINDOW = 256
"""Pairs that are ranked or classified before they are handed on."""


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
        self._pair_model: CrossEncoder | None = None
        self._progress = Progress()

    def watch(self, progress: Progress) -> None:
        """Say when the model is being loaded."""
        self._progress = progress

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
        abilities = {"embed": embeds, "rank": classifies}
        if lacking := {need for need in needs if not abilities.get(need)}:
            kind = "an embedding model" if embeds else "a cross-encoder"
            raise CapabilityError(
                f"'{self._spec}' is {kind}: it cannot {' or '.join(sorted(lacking))}.",
                lacking=frozenset(lacking),
            )

    def answer(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Response]]:
        for window in batching.windows(requests, TEXTS_PER_WINDOW):
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
        for part in batching.windows(ranks, PAIR_WINDOW):
            self._pair_model = self._pair_model or self._loaded(CrossEncoder)
            yield from zip(part, self._pair_model.rank(part), strict=True)
        if not by_text:
            return
        self._embedder = self._embedder or self._loaded(Embedder)
        for text, vector in self._embedder.embed(list(by_text)):
            response = does_not_fit(text.tokens)
            if vector == b"":
                response = failed("a text without tokens")
            elif vector is not None:
                response = Response(status="ok", vector=vector, cut=text.cut, tokens_in=text.tokens)
            yield from ((request, response) for request in by_text[text.text])

    def _loaded(self, kind: Callable[[str, Weights, SentenceTransformerOptions], M]) -> M:
        self._progress.waiting(LOADING)
        model = kind(self._spec, self._weights(), self._options)
        self._progress.loaded()
        return model

    def notes(self) -> list[str]:
        return self._embedder.notes if self._embedder else []

    def close(self) -> None:
        if self._embedder is not None or self._pair_model is not None:
            self._embedder = self._pair_model = None
            batching.free_memory()

    def _weights(self) -> Weights:
        self._located = self._located or locate(self._spec, revision=self._options.revision)
        return self._located

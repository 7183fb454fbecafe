"""A cross-encoder of sentence-transformers in memory."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any

from sealegs.errors import UsageError
from sealegs.models.local import batching
from sealegs.models.local.batching import Budget
from sealegs.models.local.checks import check_tensors
from sealegs.models.local.embedder import SentenceTransformerOptions, load_library_model
from sealegs.models.local.responses import rank_response
from sealegs.models.local.weights import Weights
from sealegs.types import Rank, Response

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PAIR_ROWS = 32


class CrossEncoder:
    """A cross-encoder in memory: it scores pairs as `CrossEncoder.predict` does, before any activation."""

    def __init__(self, spec: str, weights: Weights, options: SentenceTransformerOptions) -> None:
        self.spec = spec
        self.model, loadings = load_library_model("CrossEncoder", spec, weights, options)
        inner = self.model.model
        if inner is not None and type(inner).__name__ not in (inner.config.architectures or ()):
            # Any other model is loaded as well, with a head of random weights.
            raise UsageError(
                f"{spec}: {weights.folder} is not a cross-encoder: it has no weights that score a pair."
            )
        for loading in loadings:
            check_tensors(spec, weights.folder, loading)
        self._on_cpu = self.model.device.type == "cpu"
        if self._on_cpu:
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
        return [rank_response(float(score)) for score in scores]

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
                lambda batch, _: list(self._predict_together([pairs[at] for at, _ in batch])),
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

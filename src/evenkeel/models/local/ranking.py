"""A cross-encoder of sentence-transformers in memory: it reads query and document together."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

import torch

from evenkeel.errors import UsageError
from evenkeel.models.local.tensors import check_tensors, watched_loading
from evenkeel.models.local.weights import Weights, first_line, quiet_transformers
from evenkeel.types import Rank, Response

ROWS = 32


class Ranker:
    """Scores pairs as `CrossEncoder.predict` does, before any activation."""

    def __init__(
        self, spec: str, weights: Weights, *, device: str, dtype: str, trust_remote_code: bool
    ) -> None:
        quiet_transformers()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from sentence_transformers import CrossEncoder

            from evenkeel.models.local.causal import LOAD_ERRORS, pick_device

            try:
                with watched_loading() as loadings:
                    self.model = CrossEncoder(
                        str(weights.folder),
                        device=str(pick_device(device, spec)),
                        trust_remote_code=trust_remote_code,
                        local_files_only=True,
                        model_kwargs={"dtype": dtype},
                    )
            except LOAD_ERRORS as error:
                reason = first_line(error)
                raise UsageError(f"{spec}: {weights.folder} cannot be loaded to rank: {reason}.") from error
        inner = self.model.model
        if inner is not None and type(inner).__name__ not in (inner.config.architectures or ()):
            # Any other model is loaded as well, with a head of random weights.
            raise UsageError(
                f"{spec}: {weights.folder} is no cross-encoder: it has no weights that score a pair."
            )
        check_tensors(spec, weights.folder, loadings)
        if self.model.num_labels != 1:
            raise UsageError(
                f"{spec}: a model that ranks gives one score; this one gives {self.model.num_labels}."
            )

    def rank(self, requests: Sequence[Rank]) -> list[Response]:
        pairs = [(request.query, request.document) for request in requests]
        # As the model gives them: squeezed between 0 and 1, very large scores would become equal.
        scores = self.model.predict(
            pairs, batch_size=ROWS, show_progress_bar=False, activation_fn=torch.nn.Identity()
        )
        return [
            Response(status="ok", rank=float(score))
            if math.isfinite(score)
            else Response(status="error", reason="the model gave a score that is not finite")
            for score in scores
        ]

"""The engine that runs models in this process, each loaded when it is first asked something."""

from __future__ import annotations

from evenkeel.run.model import Model, open_model
from evenkeel.types import ModelRef


class LocalEngine:
    """Opens models by ref, once each, and closes them together."""

    def __init__(self, *, concurrency: int | None = None) -> None:
        self._concurrency = concurrency
        self._open: list[tuple[ModelRef, Model]] = []

    def open(self, ref: ModelRef) -> Model:
        for known, model in self._open:
            if known == ref:
                return model
        model = open_model(ref, concurrency=self._concurrency)
        self._open.append((ref, model))
        return model

    def close(self) -> None:
        while self._open:
            self._open.pop()[1].close()

"""Where models run: in this process."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from evenkeel.errors import UsageError, suggestion
from evenkeel.models.registry import open_model
from evenkeel.run.model import Model
from evenkeel.types import ModelRef

ENGINES = ("local",)


class Engine(Protocol):
    """Turns the name of a model into one that answers, and closes all that it opened."""

    def open(self, ref: ModelRef) -> Model: ...


class LocalEngine(AbstractContextManager["LocalEngine"]):
    """Runs models in this process: each is opened once, and loaded when it is first asked something."""

    def __init__(self, *, concurrency: int | None = None) -> None:
        self._concurrency = concurrency
        self._models: list[tuple[ModelRef, Model]] = []

    def open(self, ref: ModelRef) -> Model:
        for known, model in self._models:
            if known == ref:
                return model
        model = open_model(ref, concurrency=self._concurrency)
        self._models.append((ref, model))
        return model

    def __exit__(self, *error: object) -> None:
        while self._models:
            self._models.pop()[1].close()


def load_engine(name: str, *, concurrency: int | None = None) -> LocalEngine:
    if name not in ENGINES:
        raise UsageError(
            f"unknown engine '{name}'.{suggestion(name, ENGINES)} Available: {', '.join(ENGINES)}."
        )
    return LocalEngine(concurrency=concurrency)

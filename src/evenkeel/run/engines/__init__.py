"""Where models run: so far in this process alone."""

from __future__ import annotations

from typing import Protocol

from evenkeel.errors import UsageError
from evenkeel.messages import suggestion
from evenkeel.run.model import Model
from evenkeel.types import ModelRef

ENGINES = ("local",)


class Engine(Protocol):
    """Turns the name of a model into one that answers."""

    def open(self, ref: ModelRef) -> Model: ...

    def close(self) -> None: ...


def load_engine(name: str, *, concurrency: int | None = None) -> Engine:
    if name not in ENGINES:
        hint = suggestion(name, ENGINES)
        raise UsageError(f"unknown engine '{name}'.{hint} There is: {', '.join(ENGINES)}.")
    from evenkeel.run.engines.local import LocalEngine

    return LocalEngine(concurrency=concurrency)

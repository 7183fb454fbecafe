"""Which engine runs the models, and the one that runs them in this process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Annotated, Protocol, Self

import msgspec
from msgspec import Meta, Struct

from evenkeel.errors import UsageError, suggestion
from evenkeel.harness.model import Model
from evenkeel.models.registry import open_model
from evenkeel.options import parse
from evenkeel.types import ModelRef

ENGINES = ("local", "ray")


class EngineOptions(Struct, frozen=True, kw_only=True):
    """Where models run. It changes how fast, never what is answered."""

    engine: Annotated[str, Meta(description="Where models run: local (this process) or ray.")] = "local"
    ray_address: Annotated[
        str | None,
        Meta(
            description="With --engine ray: the cluster, HOST:PORT or auto.  "
            "[default: RAY_ADDRESS, else a new one on this machine]"
        ),
    ] = None
    workers: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(
            description="With --engine ray: processes that hold each model.  "
            "[default: one for each GPU; of a model on CPU one for each node]"
        ),
    ] = None
    gpus_per_worker: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Meta(
            description="With --engine ray: GPUs of each, for models that use one.  "
            "[default: 1 where the cluster has GPUs]"
        ),
    ] = None

    @classmethod
    def of(cls, *values: str | float | None) -> EngineOptions:
        """The engine of a call, checked; the values come in the order of the fields."""
        known = {
            k: value for k, value in zip(cls.__struct_fields__, values, strict=True) if value is not None
        }
        return parse(cls, known, of="the run")

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            available = f"Available: {', '.join(ENGINES)}."
            raise UsageError(f"unknown engine '{self.engine}'.{suggestion(self.engine, ENGINES)} {available}")
        if self.engine != "ray":
            for name, value in msgspec.structs.asdict(self).items():
                if name != "engine" and value is not None:
                    raise UsageError(f"--{name.replace('_', '-')} goes with --engine ray.")


class Engine(Protocol):
    """Turns the name of a model into one that answers, and closes all that it opened."""

    def open(self, ref: ModelRef) -> Model: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...


Opened = list[tuple[ModelRef, int | None, Model]]
"""Models with their names and how many requests each is sent at once."""

_LENT: ContextVar[Opened | None] = ContextVar("lent", default=None)


@contextmanager
def keep_models() -> Iterator[None]:
    """While the block runs, the models that local engines open stay loaded for those that follow."""
    models: Opened = []
    token = _LENT.set(models)
    try:
        yield
    finally:
        _LENT.reset(token)
        close_all(models)


def close_all(models: Opened) -> None:
    while models:
        models.pop()[-1].close()


class LocalEngine:
    """Runs models in this process: each is opened once, and loaded when it is first asked something."""

    def __init__(self, *, concurrency: int | None = None, lent: Opened | None = None) -> None:
        self._concurrency = concurrency
        self._closes = lent is None
        self._models: Opened = [] if lent is None else lent

    def open(self, ref: ModelRef) -> Model:
        for *known, model in self._models:
            if known == [ref, self._concurrency]:
                return model
        model = self._make(ref)
        self._models.append((ref, self._concurrency, model))
        return model

    def _make(self, ref: ModelRef) -> Model:
        return open_model(ref, concurrency=self._concurrency)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._closes:
            close_all(self._models)


def load_engine(options: EngineOptions, *, concurrency: int | None = None) -> Engine:
    if options.engine == "ray":
        from evenkeel.models.engines.ray import RayEngine

        return RayEngine(options, concurrency=concurrency)
    return LocalEngine(concurrency=concurrency, lent=_LENT.get())

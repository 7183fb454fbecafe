"""Which engine runs the models, and the one that runs them in this process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Annotated, Any, Protocol, Self

from msgspec import Meta, Struct

from sealegs.errors import UsageError, suggestion
from sealegs.harness.model import Model
from sealegs.models.registry import open_model
from sealegs.options import parse
from sealegs.types import ModelRef


class LocalOptions(Struct, frozen=True):
    """The engine of this process has no options."""


class RayOptions(Struct, frozen=True, kw_only=True):
    """Options of `--engine ray`. They change how fast, never what is answered."""

    address: Annotated[
        str | None,
        Meta(
            description="the cluster, HOST:PORT or auto; default: RAY_ADDRESS, else a new one on this machine"
        ),
    ] = None
    workers: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="processes that hold each model; default: one per GPU, on CPU one per node"),
    ] = None
    gpus_per_worker: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Meta(description="GPUs of each, for models that use one; default: 1 where the cluster has GPUs"),
    ] = None


ENGINES: dict[str, type[Struct]] = {"local": LocalOptions, "ray": RayOptions}


def engine_options(engine: str, args: Mapping[str, Any] | None = None) -> Struct:
    """The options of an engine, checked."""
    if engine not in ENGINES:
        available = f"Available: {', '.join(ENGINES)}."
        raise UsageError(f"unknown engine '{engine}'.{suggestion(engine, ENGINES)} {available}")
    return parse(ENGINES[engine], args or {}, of=f"the engine '{engine}'")


class Engine(Protocol):
    """Turns the name of a model into one that answers, and closes all that it opened."""

    def open(self, ref: ModelRef) -> Model: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...


Opened = list[tuple[ModelRef, int | None, Model]]
"""Models with their names and how many requests each is sent at once."""

_SHARED: ContextVar[Opened | None] = ContextVar("shared", default=None)


@contextmanager
def keep_models() -> Iterator[None]:
    """While the block runs, the models that local engines open stay loaded for those that follow."""
    models: Opened = []
    token = _SHARED.set(models)
    try:
        yield
    finally:
        _SHARED.reset(token)
        close_all(models)


def close_all(models: Opened) -> None:
    while models:
        models.pop()[-1].close()


class LocalEngine:
    """Runs models in this process: each is opened once, and loaded when it is first asked something."""

    def __init__(self, *, concurrency: int | None = None, shared: Opened | None = None) -> None:
        self._concurrency = concurrency
        self._closes = shared is None
        self._models: Opened = [] if shared is None else shared

    def open(self, ref: ModelRef) -> Model:
        for *key, model in self._models:
            if key == [ref, self._concurrency]:
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


def load_engine(
    engine: str = "local", args: Mapping[str, Any] | None = None, *, concurrency: int | None = None
) -> Engine:
    options = engine_options(engine, args)
    if isinstance(options, RayOptions):
        from sealegs.models.engines.ray import RayEngine

        return RayEngine(options, concurrency=concurrency)
    return LocalEngine(concurrency=concurrency, shared=_SHARED.get())

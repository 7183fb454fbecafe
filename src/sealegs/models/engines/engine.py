"""Which engine runs the models, and the one that runs them in this process."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Annotated, Any, Self

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


class Engine:
    """Opens each model once, in this process, and closes them all. Loading comes with the first request."""

    def __init__(self, *, concurrency: int | None = None) -> None:
        self._concurrency = concurrency
        self._models: list[tuple[ModelRef, Model]] = []

    def open(self, ref: ModelRef) -> Model:
        for opened, model in self._models:
            if opened == ref:
                return model
        model = self._make(ref)
        self._models.append((ref, model))
        return model

    def _make(self, ref: ModelRef) -> Model:
        return open_model(ref, concurrency=self._concurrency)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        while self._models:
            self._models.pop()[-1].close()


def load_engine(
    engine: str | Engine = "local", args: Mapping[str, Any] | None = None, *, concurrency: int | None = None
) -> AbstractContextManager[Engine]:
    """An engine by its name; one that is open already stays open."""
    if not isinstance(engine, str):
        return nullcontext(engine)
    options = engine_options(engine, args)
    if isinstance(options, RayOptions):
        from sealegs.models.engines.ray import RayEngine

        return RayEngine(options, concurrency=concurrency)
    return Engine(concurrency=concurrency)

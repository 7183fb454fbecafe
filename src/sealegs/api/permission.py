"""Whom a stored run may ask: only models that a person names. A run's folder may come from a stranger.

So nothing that it says opens a path or a connection, sends a key or runs code. What it says is compared with
the model that was named: another model must not answer in its place. The bundled models are an exception:
they have no name, no path and no address that a folder could choose.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from sealegs.api.setup import with_base_url
from sealegs.errors import RunConflict, SealegsError, UsageError
from sealegs.harness.dispatcher import Refusal
from sealegs.harness.folder.spec import served_at
from sealegs.harness.model import Model
from sealegs.models.engines.engine import Engine
from sealegs.models.registry import BACKENDS
from sealegs.types import ModelRef, RunSpec


class Permitted:
    """The models of a stored run that may be asked."""

    def __init__(
        self,
        engine: Engine,
        path: Path,
        spec: RunSpec,
        named: Sequence[str],
        *,
        model_args: Mapping[str, Any],
        base_url: str | None,
    ) -> None:
        self._engine = engine
        self._path = path
        self._models = spec.models
        self._addresses = served_at(spec)
        stored = {role: model["spec"] for role, model in spec.models.items()}
        if unknown := [name for name in named if name not in stored.values()]:
            there = ", ".join(f"{role} {name}" for role, name in stored.items())
            raise UsageError(f"--model {unknown[0]}: the run has no such model. It has: {there or 'none'}.")
        if model_args and len(named) != 1:
            raise UsageError("--model-arg goes with one --model.")
        refs = {name: ModelRef(name, dict(model_args)) for name in named}
        self._refs = with_base_url(refs, base_url)

    @property
    def refusals(self) -> dict[str, Refusal]:
        """For every role that may not be asked: what to say."""
        return {
            role: partial(self._refuse, role)
            for role, model in self._models.items()
            if model["spec"] not in self._refs and not _bundled(model["spec"])
        }

    def open(self, role: str) -> Model:
        """The model of a role, if it is the same here as in the run."""
        stored = self._models[role]
        ref = self._refs.get(stored["spec"]) or ModelRef(stored["spec"])
        opened = self._engine.open(ref)
        identity = opened.identity()
        there = stored["identity"]
        if differences := [
            f"{name}: {there.get(name)} in the run, {identity.get(name)} here"
            for name in {**there, **identity}
            if there.get(name) != identity.get(name)
        ]:
            raise RunConflict(
                f"'{stored['spec']}' is not the same model here as in the run, and more must be asked of it: "
                f"{'; '.join(differences)}. Name it with --model, and its options with --model-arg KEY=VALUE."
            )
        return opened

    def _refuse(self, role: str, number: int) -> SealegsError:
        stored = self._models[role]
        address = ", ".join(self._addresses.get(role, ()))
        command = shlex.join(["sealegs", "rescore", str(self._path), "--model", stored["spec"]])
        return UsageError(
            f"{self._path}: scoring needs {number:,} answers that were never asked for, from the {role} "
            f"'{stored['spec']}'{f' at {address}' if address else ''}. A run's folder may come from anyone: "
            f"nothing is asked of a model that you do not name. To ask this one: {command}, with the "
            "--base-url and --model-arg that the run was made with, if you trust them."
        )


def _bundled(spec: str) -> bool:
    return spec in BACKENDS and not BACKENDS[spec].named

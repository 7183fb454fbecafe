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
from sealegs.harness.dispatcher import Opener, Refusal
from sealegs.harness.folder.spec import served_at
from sealegs.harness.model import Model, identity_differences
from sealegs.models.engines.engine import Engine
from sealegs.models.registry import BACKENDS
from sealegs.types import ModelRef, RunSpec


def permitted(
    engine: Engine,
    path: Path,
    spec: RunSpec,
    named: Sequence[str],
    *,
    model_args: Mapping[str, Any],
    base_url: str | None,
) -> tuple[Opener, dict[str, Refusal]]:
    """What opens the models of a stored run that may be asked, and for every other role what to say."""
    stored = {role: model["spec"] for role, model in spec.models.items()}
    if unknown := [name for name in named if name not in stored.values()]:
        there = ", ".join(f"{role} {name}" for role, name in stored.items())
        raise UsageError(f"--model {unknown[0]}: the run has no such model. It has: {there or 'none'}.")
    if model_args and len(named) != 1:
        raise UsageError("--model-arg goes with one --model.")
    refs = with_base_url({name: ModelRef(name, dict(model_args)) for name in named}, base_url)

    def open_same(role: str) -> Model:
        """The model of a role, if it is the same here as in the run."""
        opened = engine.open(refs.get(stored[role]) or ModelRef(stored[role]))
        recorded = spec.models[role]["identity"]
        if differences := identity_differences(recorded, opened.identity(), "in the run", "here"):
            raise RunConflict(
                f"'{stored[role]}' is not the same model here as in the run, and more must be asked of it: "
                f"{'; '.join(differences)}. Name it with --model, and its options with --model-arg KEY=VALUE."
            )
        return opened

    def refuse(role: str, number: int) -> SealegsError:
        address = ", ".join(served_at(spec).get(role, ()))
        command = shlex.join(["sealegs", "rescore", str(path), "--model", stored[role]])
        return UsageError(
            f"{path}: scoring needs {number:,} answers that were never asked for, from the {role} "
            f"'{stored[role]}'{f' at {address}' if address else ''}. A run's folder may come from anyone: "
            f"nothing is asked of a model that you do not name. To ask this one: {command}, with the "
            "--base-url and --model-arg that the run was made with, if you trust them."
        )

    bundled = {name for name, backend in BACKENDS.items() if not backend.named}
    closed = [role for role, name in stored.items() if name not in {*refs, *bundled}]
    return open_same, {role: partial(refuse, role) for role in closed}

"""How our figures compare with those that a recorded file itself gave."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenkeel.harness.folder import Run

ROUNDED = 1e-4
"""Figures of the same embedder differ by less."""


def agreement(run: Run) -> str | None:
    """The largest difference in a sentence; None where the file gave no figures."""
    differences = [
        abs(value - published[name])
        for record in run.records()
        if (published := _published_figures(record.sample.inputs))
        for name, value in record.score.values.items()
        if name in published and value is not None
    ]
    if not differences:
        return None
    text = f"{len(differences):,} published figures, largest difference from ours {max(differences):.1e}"
    theirs = str(run.spec.data.get("embedder") or "")
    ours = str(run.spec.models.get("embedder", {}).get("name") or "")
    if max(differences) > ROUNDED and theirs and _model_name(theirs) != _model_name(ours):
        return f"{text}: the file's figures are of another embedder ({theirs}; ours is {ours})"
    return text


def _published_figures(inputs: Any) -> Mapping[str, float]:
    figures = inputs.get("published") if isinstance(inputs, Mapping) else getattr(inputs, "published", None)
    return figures or {}


def _model_name(name: str) -> str:
    """A model's name without the folder or the organisation before it, in any case."""
    return name.replace("\\", "/").rstrip("/").rpartition("/")[2].casefold()

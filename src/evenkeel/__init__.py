"""How steady is a language model? Four published reliability benchmarks in one harness.

    import evenkeel as ek

    run = ek.run("mirae", model="embedded", lang=["en"], limit=8)
    run.summary["mean_similarity"]

Nothing heavy is loaded until it is used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenkeel.api import rescore, run, score
    from evenkeel.comparison import compare
    from evenkeel.models import load_model
    from evenkeel.store import Run, load_run

__version__ = "0.1.0"

__all__ = ["Run", "__version__", "compare", "load_model", "load_run", "rescore", "run", "score"]

_HOMES = {
    "run": "evenkeel.api",
    "score": "evenkeel.api",
    "rescore": "evenkeel.api",
    "compare": "evenkeel.comparison",
    "load_model": "evenkeel.models",
    "load_run": "evenkeel.store",
    "Run": "evenkeel.store",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'evenkeel' has no attribute '{name}'")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__

"""How steady is a language model? Four published reliability benchmarks in one harness.

    import evenkeel as ek

    run = ek.run("mirae", model="embedded", lang=["en"], limit=8)
    run.summary["mean_similarity"]

What there is, under the names of the command line:

    run, score, rescore      ask a model; score answers recorded elsewhere; score a run's answers again
    dry_run                  what a run would ask, and what that would cost
    build                    make a data set, from a seed or from your own questions and documents
    compare, gate            runs against each other; a run against a baseline
    scorecard, export        a model's runs side by side; a run as CSV, Parquet or the published files
    Run, load_run            a run's folder: figures, records, a data frame
    load_model               a model by its spec; it answers a stream of Generate and Embed requests
    Generate, Message, Sampling, Embed

Each has an example in its help. Nothing heavy is loaded until it is used.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenkeel.analysis.comparison import compare
    from evenkeel.analysis.gate import gate
    from evenkeel.api.calls import build, dry_run, rescore, run, score
    from evenkeel.report.export import export
    from evenkeel.report.scorecard import scorecard
    from evenkeel.run.folder import Run, load_run
    from evenkeel.run.model import load_model
    from evenkeel.types import Embed, Generate, Message, Sampling

__version__ = "0.1.0"

__all__ = [
    "Embed",
    "Generate",
    "Message",
    "Run",
    "Sampling",
    "__version__",
    "build",
    "compare",
    "dry_run",
    "export",
    "gate",
    "load_model",
    "load_run",
    "rescore",
    "run",
    "score",
    "scorecard",
]

_HOMES = {
    "Embed": "evenkeel.types",
    "Generate": "evenkeel.types",
    "Message": "evenkeel.types",
    "Run": "evenkeel.run.folder",
    "Sampling": "evenkeel.types",
    "build": "evenkeel.api.calls",
    "compare": "evenkeel.analysis.comparison",
    "dry_run": "evenkeel.api.calls",
    "export": "evenkeel.report.export",
    "gate": "evenkeel.analysis.gate",
    "load_model": "evenkeel.run.model",
    "load_run": "evenkeel.run.folder",
    "rescore": "evenkeel.api.calls",
    "run": "evenkeel.api.calls",
    "score": "evenkeel.api.calls",
    "scorecard": "evenkeel.report.scorecard",
}


class _Package(ModuleType):
    """Importing `evenkeel.gate` would put that module in the place of the function `evenkeel.gate`."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'evenkeel' has no attribute '{name}'")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__

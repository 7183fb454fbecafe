"""The figures of many runs as one table: a row for each, under the same columns whatever the benchmark."""

from __future__ import annotations

import glob
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sealegs.errors import SealegsError, UsageError
from sealegs.files.columns import Cell
from sealegs.files.frame import frame_of
from sealegs.harness.folder import Run, load_run
from sealegs.harness.folder.layout import run_file
from sealegs.harness.stored.listing import run_folders
from sealegs.page.metrics import scope_name

if TYPE_CHECKING:
    from sealegs.files.frame import DataFrame

COLUMNS: dict[str, type] = {
    "run": str,
    "benchmark": str,
    "model": str,
    "metric": str,
    "scope": str,
    "value": float,
    "low": float,
    "high": float,
    "interval": str,
    "unit": str,
    "n": int,
    "groups": int,
    "coverage": float,
    "p": float,
    "tests": int,
    "basis": str,
    "seed": int,
    "data": str,
    "created": str,
    "sealegs": str,
}
"""The layout, which docs/integrations.md describes."""
SAME_NAMES = ("value", "low", "high", "unit", "n", "coverage", "p", "tests", "basis")
"""Columns that a figure has by the same name."""


def load_runs(*patterns: str | Path) -> DataFrame:
    """The figures of runs as one polars frame: `sl.load_runs("runs/*").filter(polars.col("scope") == "")`.

    A pattern names run folders, or folders with runs in them, as a shell does. A run that is not finished has
    no figures; one that cannot be read is left out with a warning.
    """
    paths = dict.fromkeys(path for pattern in patterns for path in _folders(str(pattern)))
    if not paths:
        shown = ", ".join(map(str, patterns)) or "nothing"
        raise UsageError(
            f"load_runs: there is no run at {shown}. `sealegs list runs` lists those below a folder."
        )
    rows: list[dict[str, Cell]] = []
    for path in paths:
        try:
            rows += _rows(load_run(path))
        except SealegsError as error:
            warnings.warn(f"left out: {error}", stacklevel=2)
    return frame_of({name: [row[name] for row in rows] for name in COLUMNS}, COLUMNS)


def _folders(pattern: str) -> Iterator[Path]:
    """The run folders at or below what a pattern matches."""
    matches = [pattern] if Path(pattern).exists() else glob.glob(pattern)  # noqa: PTH207  # absolute patterns too
    for match in sorted(matches):
        yield from sorted(run_folders(Path(match)))


def _rows(run: Run) -> Iterator[dict[str, Any]]:
    spec = run.spec
    if run_file(run.path, "summary.json") is None:
        return
    about = {
        "run": str(run.path),
        "benchmark": spec.benchmark,
        "seed": spec.seed if abs(spec.seed) < 1 << 63 else None,
        "data": str(spec.data.get("source", "")),
        "created": str(spec.provenance.get("created", "")),
        "sealegs": str(spec.provenance.get("sealegs", "")),
    }
    for figure in run.summary.values():
        scope = dict(figure.scope)
        model = scope.pop(run.subject, spec.subject) if run.subjects else spec.subject
        yield {
            **about,
            "model": model,
            "metric": figure.metric,
            "scope": scope_name("", scope).removeprefix("/"),
            "interval": figure.method_or_reason,
            "groups": figure.clusters,
            **{name: getattr(figure, name) for name in SAME_NAMES},
        }

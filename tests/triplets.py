"""Small sets of triplets, and how the tests read a run of them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import sealegs as sl
from sealegs.analysis import scope_name
from sealegs.benchmarks.multiview.data import Triplet, encode_triplets


def triplet(number: int, *, task: str = "tools__use", **fields: Any) -> Triplet:
    """A triplet whose positive says "good" and whose negative says "bad"."""
    defaults: dict[str, Any] = {
        "task": task,
        "criterion": task.partition("__")[2],
        "description": f"What it is for, in {task}.",
        "anchor": f"anchor {number} of {task}",
        "positive": f"good {number} of {task}",
        "negative": f"bad {number} of {task}",
        **{f"{role}_id": f"{role[0]}{number}" for role in ("anchor", "positive", "negative")},
    }
    return Triplet(**{**defaults, **fields})


def store(path: Path, triplets: Iterable[Triplet]) -> Path:
    path.write_bytes(encode_triplets(triplets))
    return path


def store_tools(folder: Path) -> Path:
    """Four triplets of one task and two of another."""
    return store(
        folder / "triplets.jsonl",
        [triplet(n, task="tools__use" if n < 4 else "tools__age") for n in range(6)],
    )


def named(metric: str, method: str, task: str = "") -> str:
    """The name of a method's figure."""
    return scope_name(metric, {**({"task": task} if task else {}), "method": method})


def picks(run: sl.Run, method: str) -> dict[str, list[str | None]]:
    return {record.sample.id: list(record.score.detail.picks[method]) for record in run.records()}

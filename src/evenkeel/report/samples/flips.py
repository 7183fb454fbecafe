"""Samples on which two runs differ: the largest changes of a metric, and both answers side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from evenkeel.analysis.comparability import layout_of, run_names
from evenkeel.errors import UsageError
from evenkeel.page.differences import side_by_side
from evenkeel.page.format import known
from evenkeel.page.metrics import declaration
from evenkeel.page.view import Block, Facts, Text, View
from evenkeel.run.folder import Run
from evenkeel.types import Record

if TYPE_CHECKING:
    import polars as pl

LONG = 2_000
"""Characters of an input from which on it is collapsed."""


def flips(a: Run | str | Path, b: Run | str | Path, metric: str = "") -> pl.DataFrame:
    """The samples that have a value in both runs, the largest change first.

    Columns: `sample`, `a`, `b`, `difference` (b − a), and `flipped`: whether it is right or fulfilled (1) in
    one of the runs and not (0) in the other, where the values are such verdicts. `metric` is that of the
    headline by default.

        ek.flips("runs/old", "runs/new").filter(polars.col("flipped"))
    """
    import polars as pl

    first, second = _loaded(a), _loaded(b)
    frames = [run.samples().frame for run in (first, second)]
    common = [name for name in first.samples().values if name in second.samples().values]
    name = metric or next(iter(common), "")
    if name not in common:
        raise UsageError(f"the samples of both runs have no value '{name}'. Available: {', '.join(common)}.")
    left, right = (
        frame.select("sample", pl.col(name).alias(side)) for frame, side in zip(frames, "ab", strict=True)
    )
    paired = left.join(right, on="sample").filter(pl.col("a").is_finite() & pl.col("b").is_finite())
    verdicts = paired.select((pl.col("a").is_in([0.0, 1.0]) & pl.col("b").is_in([0.0, 1.0])).all()).item()
    return paired.with_columns(
        difference=pl.col("b") - pl.col("a"), flipped=pl.lit(verdicts) & (pl.col("a") != pl.col("b"))
    ).sort(pl.col("difference").abs(), descending=True, maintain_order=True)


def both(a: Run | str | Path, b: Run | str | Path, sample: str) -> View:
    """One sample in two runs: what was asked, and the answers side by side with their differences marked.

    `ek.both("runs/old", "runs/new", "en-1-L1")`
    """
    runs = [_loaded(a), _loaded(b)]
    names = run_names(runs)
    records = [_record(run, sample) for run in runs]
    blocks: list[Block] = [
        Text(str(name), text, collapsed=len(text) > LONG)
        for name, text in msgspec.to_builtins(records[1].sample.inputs).items()
        if isinstance(text, str)
    ]
    answers = [record.answers for record in records]
    for number in range(max(map(len, answers))):
        texts = [each[number].text if number < len(each) else "" for each in answers]
        heading = f"answer {number + 1}" if max(map(len, answers)) > 1 else "answer"
        blocks.append(side_by_side(heading, (names[0], texts[0]), (names[1], texts[1])))
    blocks.append(_values(runs, names, records))
    return View(sample, " → ".join(names), tuple(blocks))


def _values(runs: list[Run], names: list[str], records: list[Record]) -> Facts:
    metrics = layout_of(runs).metrics
    rows = []
    for name in dict.fromkeys(name for record in records for name in record.score.values):
        metric = declaration(metrics, name)
        values = [record.score.values.get(name) for record in records]
        shown = [known(value, metric.unit) if metric else str(value) for value in values]
        rows.append((metric.title if metric else name, *shown))
    return Facts("values", tuple(rows), ("metric", *names))


def _record(run: Run, sample: str) -> Record:
    samples = run.samples()
    row = samples.row_of(sample)
    if row is None:
        raise UsageError(f"{run.path} has no sample '{sample}'.")
    return samples.record(row)


def _loaded(run: Run | str | Path) -> Run:
    return run if isinstance(run, Run) else Run(run)

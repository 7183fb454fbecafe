"""Samples on which two runs differ: the largest changes of a metric, and both answers side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from math import isfinite
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from sealegs.analysis.comparability import layout_of, run_names
from sealegs.errors import UsageError
from sealegs.harness.folder import Run, load_run, shared_layout
from sealegs.harness.registry import benchmark_names
from sealegs.page.differences import diff_columns
from sealegs.page.view import Beside, Block, Facts, Text, View, value_rows

VALUES = "all values"
"""The heading of the values in a view of one run: here both runs are in one table."""


class Flip(Struct, frozen=True):
    """A sample that has a value in both of two runs."""

    sample: str
    a: float
    b: float
    difference: float
    """b − a."""
    flipped: bool
    """Whether one of the two values is 1 (right, fulfilled) and the other 0."""


def flips(a: Run | str | Path, b: Run | str | Path, metric: str = "") -> list[Flip]:
    """The samples that have a value in both runs, the largest change first.

    `metric` is the headline by default, or that of the first subject which both runs have.

        [each.sample for each in sl.flips("runs/old", "runs/new") if each.flipped]
    """
    runs = [load_run(a), load_run(b)]
    first, second = (run.samples() for run in runs)
    common = [name for name in first.values if name in set(second.values)]
    if runs[0].spec.benchmark in benchmark_names():
        headline = shared_layout(runs).headline
        common.sort(key=lambda name: name.partition("@")[0] != headline)
    name = metric or next(iter(common), "")
    if name not in common:
        raise UsageError(f"the samples of both runs have no value '{name}'. Available: {', '.join(common)}.")
    before, after = first.cells(name).tolist(), second.cells(name).tolist()
    changes = []
    for sample, value in zip(first.index.ids, before, strict=True):
        row = second.row_of(sample)
        if row is not None and isfinite(value) and isfinite(after[row]):
            flipped = {value, after[row]} == {0.0, 1.0}
            changes.append(Flip(sample, value, after[row], after[row] - value, flipped))
    changes.sort(key=lambda each: -abs(each.difference))
    return changes


def compare_sample(a: Run | str | Path, b: Run | str | Path, sample: str) -> View:
    """One sample in two runs, as its benchmark shows it: what is the same in both once, texts that differ
    side by side with their differences marked, and anything else that differs once for each run.

    `compare_sample("runs/old", "runs/new", "en-1-L1")`
    """
    runs = [load_run(a), load_run(b)]
    layout, names = layout_of(runs), run_names(runs)
    views, values = [], []
    for run in runs:
        samples = run.samples()
        row = samples.row_of(sample)
        if row is None:
            raise UsageError(f"{run.path} has no sample '{sample}'.")
        views.append(samples.view(row))
        values.append(samples.record(row).score.values)
    facts = Facts("values", value_rows(layout.metrics, *values), ("metric", *names))
    blocks = [*_paired(views[0], views[1], names), facts]
    return View(views[1].title, " → ".join(names), tuple(blocks))


def _paired(first: View, second: View, names: list[str]) -> Iterator[Block]:
    """The blocks of two views of one sample, in the order of the second, then what only the first has."""
    shared = [block for block in first.blocks if block in second.blocks]
    lefts, rights = (_by_key(view.blocks, shared) for view in (first, second))
    for key, right in rights.items():
        yield from _block_of_both(lefts.pop(key, None), right, names)
    for left in lefts.values():
        yield from _block_of_both(left, None, names)


def _by_key(blocks: Iterable[Block], shared: list[Block]) -> dict[tuple[type[Block], str, int], Block]:
    """Blocks by what they show: type, heading (of an answer without its ending) and number among the alike.

    Texts side by side that are not the same in both views are taken apart.
    """
    keyed: dict[tuple[type[Block], str, int], Block] = {}
    counts: Counter[tuple[type[Block], str]] = Counter()
    for block in blocks:
        apart = isinstance(block, Beside) and block not in shared
        for part in block.columns if isinstance(block, Beside) and apart else (block,):
            key = (type(part), _topic(part))
            keyed[*key, counts[key]] = part
            counts[key] += 1
    return {key: block for key, block in keyed.items() if key[1] != VALUES}


def _topic(block: Block) -> str:
    """What it shows: the heading, of an answer without how that ended."""
    return f"Answer {block.answer}" if isinstance(block, Text) and block.answer else block.heading


def _block_of_both(left: Block | None, right: Block | None, names: list[str]) -> Iterator[Block]:
    if left is None or right is None:
        only, name = (left, names[0]) if right is None else (right, names[1])
        if only is not None:
            yield replace(only, heading=f"{only.heading} (only {name})")
    elif isinstance(left, Text) and isinstance(right, Text):
        if (left.heading, left.body) == (right.heading, right.body):
            # Marks and a note that are not the same are about something that differs.
            spans, note = (right.spans, right.note) if left == right else ((), "")
            if right.answer:
                note = f"{note} The same in both runs.".strip()
            yield replace(right, spans=spans, note=note)
            return
        topic = _topic(right)
        columns = [
            (f"{name}{each.heading.removeprefix(topic)}", each.body)
            for name, each in zip(names, (left, right), strict=True)
        ]
        yield diff_columns(topic, columns[0], columns[1])
    elif left == right:
        yield right
    else:
        for name, each in zip(names, (left, right), strict=True):
            yield replace(each, heading=f"{each.heading} ({name})")

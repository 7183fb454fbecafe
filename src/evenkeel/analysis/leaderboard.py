"""Runs in order of their headline: those that do not differ significantly share a rank."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations
from pathlib import Path

from msgspec import Struct

from evenkeel.analysis.comparability import paired, path_ends, run_names
from evenkeel.analysis.comparison import SIGNIFICANT, compared
from evenkeel.analysis.sample_values import RunValues
from evenkeel.analysis.significance import holm
from evenkeel.errors import EvenkeelError, UsageError
from evenkeel.harness.folder import Run, load_run, shared_layout
from evenkeel.page.format import interval, value
from evenkeel.page.grid import Cell, Content, Displayed, Grid, Overview, coverage_cell
from evenkeel.page.layout import Layout
from evenkeel.types import Figure

SHARED = "Models share a rank when the data can't separate them (paired tests, corrected by Holm)."


class LeaderboardRow(Struct, frozen=True, kw_only=True):
    """A row of a board: a run, or one method of it."""

    rank: int | None
    """1 + the number of entries that are significantly better; None for one without a value, and where
    neither direction of the metric is better."""
    name: str
    path: str
    figure: Figure
    """Of the run alone, as in its summary; ranks are decided on the samples that two runs have in common."""


class Leaderboard(Displayed, Struct, frozen=True, kw_only=True):
    """Runs of one benchmark that were asked the same, the best first."""

    benchmark: str
    metric: str
    title: str
    rows: tuple[LeaderboardRow, ...]
    note: str
    """Why its runs are not on the first board of their benchmark, or what was left out."""

    def overview(self) -> Overview:
        notes = [*([self.note] if self.note else []), *([SHARED] if len(self.rows) > 1 else [])]
        return Overview(self.title, grids=[self.table()] if self.rows else [], footnotes=notes)

    def table(self) -> Grid:
        """A row for each entry, with its rank: `2`, `1 shared`, or a dash."""
        ranks = [row.rank for row in self.rows]
        rows: list[tuple[str, list[Content]]] = [
            (
                "–" if row.rank is None else f"{row.rank}{' shared' if ranks.count(row.rank) > 1 else ''}",
                [
                    Cell(row.name),
                    Cell(value(row.figure), "strong"),
                    interval(row.figure, short=True) or row.figure.method,
                    coverage_cell(row.figure.coverage),
                    f"{row.figure.n:,}",
                ],
            )
            for row in self.rows
        ]
        return Grid("", "rank", ["name", "value", "95% interval", "coverage", "samples"], rows, left=2)


def leaderboard(runs: Iterable[Run | str | Path]) -> list[Leaderboard]:
    """A board for each benchmark and each set of runs that `compare` takes together.

    All pairs of a board are tested by the headline, paired by sample, with Holm's correction. Methods that a
    run sets side by side are entries of their own. A run that cannot be read is named in the note of a last
    board, which has no rows.

    `ek.leaderboard(["runs/one", "runs/two"])[0].rows[0].rank`
    """
    if isinstance(runs, Run | str | Path):
        raise UsageError("leaderboard takes a list of runs: leaderboard([run, …]).")
    by_benchmark: defaultdict[str, list[RunValues]] = defaultdict(list)
    problems: list[str] = []
    for run in {(run.path if isinstance(run, Run) else Path(run)).resolve(): run for run in runs}.values():
        try:
            values = RunValues(load_run(run))
            if not values.run.headlines or not all(map(values.is_mean, _metrics(values, values.layout))):
                raise UsageError(f"{values.run.path}: the headline is not the mean of its samples.")
            by_benchmark[values.run.spec.benchmark].append(values)
        except (EvenkeelError, OSError) as error:
            problems.append(str(error))
    boards = [board for values in by_benchmark.values() for board in _boards(values)]
    if problems:
        note = f"Left out: {' '.join(problems)}"
        boards.append(Leaderboard(benchmark="", metric="", title="Left out", rows=(), note=note))
    return boards


def _metrics(values: RunValues, layout: Layout) -> list[str]:
    """What the samples' values of each entry of a run are called: `accuracy@bm25`."""
    headline = layout.headline
    return [f"{headline}@{subject}" for subject in values.run.subjects] or [headline]


def _boards(runs: Sequence[RunValues]) -> list[Leaderboard]:
    """The runs in sets in which each can be compared with each, in their order."""
    names = dict(zip(runs, run_names([values.run for values in runs]), strict=True))
    groups: list[list[RunValues]] = []
    notes: list[str] = []
    for run in runs:
        why = ""
        for group in groups:
            try:
                for other in group:
                    paired((names[other], names[run]), (other, run), same_settings=True)
            except UsageError as error:
                why = why or str(error)
            else:
                group.append(run)
                break
        else:
            groups.append([run])
            notes.append(why)
    benchmark = runs[0].run.spec.benchmark
    boards = []
    for number, (group, note) in enumerate(zip(groups, notes, strict=True), 1):
        layout = shared_layout([values.run for values in group])
        title = f"{layout.name or benchmark}: {layout.headline_title}"
        title = ", ".join(filter(None, (title, layout.part(group[0].run.summary))))
        # Why headlines are in doubt: those of a server that always gives the same text, say.
        doubts = [doubt for values in group for doubt in values.doubts(names[values])]
        boards.append(
            Leaderboard(
                benchmark=benchmark,
                metric=layout.headline,
                title=f"{title} ({number})" if len(groups) > 1 else title,
                rows=_rows(group, layout),
                note=" ".join(filter(None, (note, *doubts))),
            )
        )
    return boards


def _rows(group: Sequence[RunValues], layout: Layout) -> tuple[LeaderboardRow, ...]:
    """The entries of a board in their order: every pair tested as `compare` tests it, and ranked."""
    entries = [(values, metric) for values in group for metric in _metrics(values, layout)]
    subjects = [subject for values in group for subject in values.run.spec.subjects]
    figures = [each for values in group for each in values.run.figures_of(layout.headline).values()]
    ends = dict(zip(group, path_ends([values.run.path for values in group]), strict=True))
    better = layout.metrics[0].better
    rows = [
        LeaderboardRow(
            rank=None if figure.value is None or better is None else 1 + count,
            name=subject if subjects.count(subject) == 1 else f"{subject} ({ends[values]})",
            path=str(values.run.path),
            figure=figure,
        )
        for (values, _), subject, figure, count in zip(
            entries, subjects, figures, _count_better(entries, lower=better == "lower"), strict=True
        )
    ]

    def order(row: LeaderboardRow) -> tuple[bool, int, float]:
        value = row.figure.value or 0.0
        return row.figure.value is None, row.rank or 0, value if better == "lower" else -value

    return tuple(sorted(rows, key=order))


def _count_better(entries: Sequence[tuple[RunValues, str]], *, lower: bool) -> list[int]:
    """How many entries are significantly better than each."""
    couples = list(combinations(range(len(entries)), 2))
    differences = []
    for a, b in couples:
        (first, metric), (second, other) = entries[a], entries[b]
        differences.append(compared(paired(("", ""), (first, second)), metric, other).difference)
    better = [0] * len(entries)
    corrected = holm([difference.p for difference in differences])
    for (a, b), difference, p in zip(couples, differences, corrected, strict=True):
        if p is not None and p < SIGNIFICANT and difference.difference:
            better[a if (difference.difference > 0) != lower else b] += 1
    return better

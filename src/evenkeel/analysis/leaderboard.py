"""Runs in order of their headline: those that do not differ significantly share a rank."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from evenkeel.analysis.comparability import Pair, paired
from evenkeel.analysis.comparable_metrics import path_ends, run_names
from evenkeel.analysis.comparison import SIGNIFICANT, compared
from evenkeel.analysis.sample_values import RunValues
from evenkeel.analysis.significance import holm
from evenkeel.errors import EvenkeelError, UsageError, place_of
from evenkeel.harness.folder import Run, load_run
from evenkeel.page.grid import Displayed, Overview
from evenkeel.types import Figure


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
        from evenkeel.analysis.comparison_tables import board_overview

        return board_overview(self)


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
    paths = {(run.path if isinstance(run, Run) else Path(run)).resolve(): run for run in runs}
    for path, run in paths.items():
        try:
            loaded = load_run(run)
            by_benchmark[loaded.spec.benchmark].append(_read(loaded))
        except (EvenkeelError, OSError) as error:
            problems.append(str(error))
        except Exception as error:  # noqa: BLE001  # a folder may hold anything; the others are still ranked
            problems.append(f"{path} is not as Evenkeel writes it ({place_of(error)}).")
    boards = [board for values in by_benchmark.values() for board in _boards(values)]
    if problems:
        note = f"Left out: {' '.join(problems)}"
        boards.append(Leaderboard(benchmark="", metric="", title="Left out", rows=(), note=note))
    return boards


class _Entry(NamedTuple):
    """A run, or one method of it."""

    values: RunValues
    subject: str
    metric: str
    """What the values of its samples are called: `accuracy@bm25`."""
    figure: Figure


def _entries(values: RunValues) -> list[_Entry]:
    run, headline = values.run, values.layout.headline
    metrics = [f"{headline}@{subject}" for subject in run.subjects] or [headline]
    entries = zip(run.spec.subjects, metrics, run.headlines.values(), strict=True)
    return [_Entry(values, *entry) for entry in entries]


def _read(run: Run) -> RunValues:
    values = RunValues(run)
    if not all(values.is_mean(entry.metric) for entry in _entries(values)):
        raise UsageError(f"{run.path}: the headline is not the mean of its samples.")
    return values


def _boards(runs: Sequence[RunValues]) -> list[Leaderboard]:
    """The runs in sets in which each can be compared with each, in their order."""
    groups: list[list[RunValues]] = []
    notes: list[str] = []
    for run in runs:
        why = ""
        for group in groups:
            try:
                for other in group:
                    _pair(other, run)
            except UsageError as error:
                why = why or str(error)
            else:
                group.append(run)
                break
        else:
            groups.append([run])
            notes.append(why)
    name, layout = runs[0].run.spec.benchmark, runs[0].layout
    title = f"{layout.name or name}: {layout.headline_title}"
    return [
        Leaderboard(
            benchmark=name,
            metric=layout.headline,
            title=", ".join(filter(None, (title, layout.part(group[0].run.summary))))
            + (f" ({number})" if len(groups) > 1 else ""),
            rows=_rows(group),
            note=" ".join(filter(None, (note, *_doubts(group)))),
        )
        for number, (group, note) in enumerate(zip(groups, notes, strict=True), 1)
    ]


def _doubts(group: Sequence[RunValues]) -> list[str]:
    """Why headlines of a board are in doubt: those of a server that always gives the same text, say."""
    names = run_names([values.run for values in group])
    return [doubt for name, values in zip(names, group, strict=True) for doubt in values.doubts(name)]


def _pair(first: RunValues, second: RunValues) -> Pair:
    """Two runs, or a run with itself: the methods that it sets side by side."""
    names = run_names([first.run, second.run])
    return paired((names[0], names[1]), (first, second))


def _rows(group: Sequence[RunValues]) -> tuple[LeaderboardRow, ...]:
    """The entries of a board in their order: every pair tested as `compare` tests it, and ranked."""
    entries = [entry for values in group for entry in _entries(values)]
    better = _better(entries)
    ends = dict(zip(group, path_ends([values.run.path for values in group]), strict=True))
    subjects = [entry.subject for entry in entries]
    direction = group[0].layout.metrics[0].better
    rows = []
    for entry, count in zip(entries, better, strict=True):
        only = subjects.count(entry.subject) == 1
        rows.append(
            LeaderboardRow(
                rank=None if entry.figure.value is None or direction is None else 1 + count,
                name=entry.subject if only else f"{entry.subject} ({ends[entry.values]})",
                path=str(entry.values.run.path),
                figure=entry.figure,
            )
        )

    def order(row: LeaderboardRow) -> tuple[bool, int, float]:
        value = row.figure.value or 0.0
        return row.figure.value is None, row.rank or 0, value if direction == "lower" else -value

    return tuple(sorted(rows, key=order))


def _better(entries: Sequence[_Entry]) -> list[int]:
    """How many entries are significantly better than each."""
    pairs: dict[tuple[RunValues, RunValues], Pair] = {}
    couples = list(combinations(range(len(entries)), 2))
    differences = []
    for a, b in couples:
        first, second = entries[a], entries[b]
        runs = first.values, second.values
        pairs[runs] = pairs.get(runs) or _pair(*runs)
        differences.append(compared(pairs[runs], first.metric, second.metric).difference)
    lower = entries[0].values.layout.metrics[0].better == "lower"
    better = [0] * len(entries)
    corrected = holm([difference.p for difference in differences])
    for (a, b), difference, p in zip(couples, differences, corrected, strict=True):
        if p is not None and p < SIGNIFICANT and difference.difference:
            better[a if (difference.difference > 0) != lower else b] += 1
    return better

"""Runs in order of their headline: those that do not differ significantly share a rank."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations, combinations_with_replacement
from pathlib import Path
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from evenkeel import analysis as stats
from evenkeel.analysis.comparability import Pair, paired
from evenkeel.analysis.comparable_metrics import is_mean, path_ends, run_names
from evenkeel.analysis.comparison import SIGNIFICANT, compared
from evenkeel.analysis.sample_values import RunValues, read_values
from evenkeel.errors import EvenkeelError, UsageError, place_of
from evenkeel.harness.folder import Run
from evenkeel.harness.registry import benchmark_class
from evenkeel.page.format import FLOOR, share
from evenkeel.page.grid import Displayed, Overview
from evenkeel.page.layout import Layout
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
    """Which runs are on other boards and why, what was left out, which coverage is low."""

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
    by_benchmark: defaultdict[str, list[_Ranked]] = defaultdict(list)
    problems: list[str] = []
    for path, run in {
        (run.path if isinstance(run, Run) else Path(run)).resolve(): run for run in runs
    }.items():
        try:
            ranked = _read(run if isinstance(run, Run) else Run(run))
            by_benchmark[ranked.run.spec.benchmark].append(ranked)
        except (EvenkeelError, OSError) as error:
            problems.append(str(error))
        except Exception as error:  # noqa: BLE001  # a folder may hold anything; the others are still ranked
            problems.append(f"{path} is not as Evenkeel writes it ({place_of(error)}).")
    boards = [board for ranked in by_benchmark.values() for board in _boards(ranked)]
    if problems:
        note = f"Left out: {' '.join(problems)}"
        boards.append(Leaderboard(benchmark="", metric="", title="Left out", rows=(), note=note))
    return boards


class _Ranked(NamedTuple):
    """A run that is to be ranked: the headline of each of its subjects, and the values of its samples."""

    run: Run
    layout: Layout
    figures: dict[str, Figure]
    """By the name that the samples' values have: `accuracy@bm25`."""
    values: RunValues


def _read(run: Run) -> _Ranked:
    layout = benchmark_class(run.spec.benchmark).layout
    metrics = [f"{layout.headline}@{subject}" for subject in run.subjects] or [layout.headline]
    figures = dict(zip(metrics, run.headlines.values(), strict=True))
    values = read_values(run, metrics, layout.metrics)
    if not all(is_mean(run, metric, values.by_metric[metric]) for metric in metrics):
        raise UsageError(f"{run.path}: the headline is not the mean of its samples.")
    return _Ranked(run, layout, figures, values)


def _boards(runs: Sequence[_Ranked]) -> list[Leaderboard]:
    """The runs in sets in which each can be compared with each, in their order."""
    groups: list[list[_Ranked]] = []
    reasons: list[str] = []
    for run in runs:
        why = [_why_apart(group, run) for group in groups]
        if "" in why:
            groups[why.index("")].append(run)
        else:
            groups.append([run])
            reasons += why[:1] or [""]
    boards = []
    for number, (group, reason) in enumerate(zip(groups, reasons, strict=True), 1):
        layout, name = group[0].layout, group[0].run.spec.benchmark
        which = f" ({number})" if len(groups) > 1 else ""
        rows = _rows(group)
        low = [row.name for row in rows if row.figure.coverage < FLOOR]
        notes = [reason, f"Coverage below {share(FLOOR)}: {', '.join(low)}." if low else ""]
        boards.append(
            Leaderboard(
                benchmark=name,
                metric=layout.headline,
                title=f"{layout.name or name}: {layout.headline_title}{which}",
                rows=rows,
                note=" ".join(filter(None, notes)),
            )
        )
    return boards


def _why_apart(group: Sequence[_Ranked], run: _Ranked) -> str:
    """Why a run cannot be on a board with others; empty where it can."""
    try:
        for other in group:
            _pair(other, run)
    except UsageError as error:
        return str(error)
    return ""


def _pair(first: _Ranked, second: _Ranked) -> Pair:
    """Two runs, or a run with itself: the methods that it sets side by side."""
    if first is second:
        rows = np.arange(len(first.values.samples))
        return Pair(("", ""), (first.values, first.values), rows, rows)
    names = run_names([first.run, second.run])
    return paired((names[0], names[1]), (first.run, second.run), (first.values, second.values), strict=False)


def _rows(group: Sequence[_Ranked]) -> tuple[LeaderboardRow, ...]:
    """The entries of a board in their order: every pair tested as `compare` tests it, and ranked."""
    declared = group[0].layout.metrics[0]
    entries = [(number, metric) for number, ranked in enumerate(group) for metric in ranked.figures]
    pairs = {
        (a, b): _pair(group[a], group[b]) for a, b in combinations_with_replacement(range(len(group)), 2)
    }
    sign = -1 if declared.better == "lower" else 1
    couples = list(combinations(range(len(entries)), 2))
    differences = []
    for first, second in couples:
        (a, metric), (b, other_metric) = entries[first], entries[second]
        differences.append(compared(pairs[a, b], metric, group[a].layout, other_metric).difference)
    better = [0] * len(entries)
    """How many entries are significantly better than each."""
    corrected = stats.holm([difference.p for difference in differences])
    for (a, b), difference, p in zip(couples, differences, corrected, strict=True):
        if p is not None and p < SIGNIFICANT and difference.difference:
            better[a if sign * difference.difference > 0 else b] += 1
    rows = []
    for (number, metric), name, count in zip(entries, _names(group, entries), better, strict=True):
        figure = group[number].figures[metric]
        unranked = figure.value is None or declared.better is None
        path = str(group[number].run.path)
        rows.append(LeaderboardRow(rank=None if unranked else 1 + count, name=name, path=path, figure=figure))

    def order(row: LeaderboardRow) -> tuple[bool, int, float]:
        return row.figure.value is None, row.rank or 0, -sign * (row.figure.value or 0.0)

    return tuple(sorted(rows, key=order))


def _names(group: Sequence[_Ranked], entries: Sequence[tuple[int, str]]) -> list[str]:
    """The subject of each entry, with the end of its run's path where it is not the only one of the name."""
    ends = path_ends([ranked.run for ranked in group])
    subjects = [
        metric.partition("@")[2] if group[number].run.subjects else group[number].run.spec.subject
        for number, metric in entries
    ]
    return [
        subject if subjects.count(subject) == 1 else f"{subject} ({ends[number]})"
        for subject, (number, _) in zip(subjects, entries, strict=True)
    ]

"""Runs in order of their headline, ranked by how many others are significantly better."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, combinations
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from sealegs.analysis.comparability import paired, path_ends, run_names
from sealegs.analysis.comparison import SIGNIFICANT, compared
from sealegs.analysis.sample_values import RunValues
from sealegs.analysis.significance import holm
from sealegs.errors import SealegsError, UsageError
from sealegs.harness.folder import Run, load_run, shared_layout
from sealegs.page.format import value
from sealegs.page.grid import Displayed
from sealegs.page.layout import Layout
from sealegs.page.metrics import declaration, title_of
from sealegs.types import Figure


class LeaderboardRow(Struct, frozen=True, kw_only=True):
    """A row of a board: a run, or one method of it."""

    rank: int | None
    """1 + `better`, but never above an entry with a better value; None for one without a value, and where
    neither direction of the metric is better."""
    better: int = 0
    """How many entries are significantly better."""
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
    counted: str = "samples"
    """The word for what `n` of its figures counts: prompts, pairs."""
    note: str
    """Why its runs are not on the first board of their benchmark, or what was left out."""
    undecided: tuple[tuple[str, str], ...] = ()
    """Entries that differ significantly when compared alone, and not after the correction for all pairs:
    there are too few samples to rank them."""

    @property
    def lead(self) -> str:
        """`a is best (63%).`, `a and b do not differ significantly (63% to 65%).`, `Too few questions to rank
        a and b (63% to 65%).`; empty for a run alone."""
        best = [row for row in self.rows if row.rank and not row.better]
        if len(self.rows) < 2 or not best:
            return ""
        names = " and ".join(filter(None, (", ".join(row.name for row in best[:-1]), best[-1].name)))
        amounts = " to ".join(dict.fromkeys(value(row.figure) for row in (best[-1], best[0])))
        if len(best) == 1:
            return f"{names} is best ({amounts})."
        if any({*pair} <= {row.name for row in best} for pair in self.undecided):
            return f"Too few questions to rank {names} ({amounts})."
        return f"{names} do not differ significantly ({amounts})."

    @property
    def footnotes(self) -> list[str]:
        """What is to be said below the board."""
        listed = "; ".join(f"{first} and {second}" for first, second in self.undecided)
        pairs = len(self.rows) * (len(self.rows) - 1) // 2
        undecided = (
            f"Too few questions to rank: {listed}. They differ significantly when compared alone, and not "
            f"after the correction for {pairs} pairs."
        )
        uneven = ", ".join(row.name for row in self.rows if row.rank and row.rank > 1 + row.better)
        by_value = f"Ranked by value, though not significantly worse than some runs above: {uneven}."
        notes = ((self.note, self.note), (undecided, listed), (by_value, uneven))
        return [note for note, shown in notes if shown]


def leaderboard(
    runs: Iterable[Run | str | Path], *, metric: str | Mapping[str, str] | None = None
) -> list[Leaderboard]:
    """A board for each benchmark and each set of runs that were asked the same with the same settings.

    Rows are in the order of their values. All pairs of a board are tested by the headline, or by `metric`
    (for runs of several benchmarks, a metric by the name of its benchmark), paired by sample, with Holm's
    correction. Methods that a run sets side by side are entries of their own. A run that cannot be read, or
    has no such figure, is named in the note of a last board, which has no rows.

    `sl.leaderboard(["runs/one", "runs/two"], metric="exact_match")[0].rows[0].rank`
    """
    if isinstance(runs, Run | str | Path):
        raise UsageError("leaderboard takes a list of runs: leaderboard([run, …]).")
    by_benchmark: defaultdict[tuple[str, str], list[RunValues]] = defaultdict(list)
    problems: list[str] = []
    for run in {(run.path if isinstance(run, Run) else Path(run)).resolve(): run for run in runs}.values():
        try:
            values = RunValues(load_run(run))
            benchmark = values.run.spec.benchmark
            led_by = metric if isinstance(metric, str) else (metric or {}).get(benchmark, "")
            layout = _led_by(values.layout, led_by, benchmark)
            if not values.run.figures_of(layout.headline) or not all(
                map(values.is_mean, _metrics(values, layout))
            ):
                raise UsageError(f"{values.run.path}: '{layout.headline}' is not the mean of its samples.")
            by_benchmark[benchmark, led_by].append(values)
        except (SealegsError, OSError) as error:
            problems.append(str(error))
    boards = [board for (_, led_by), values in by_benchmark.items() for board in _boards(values, led_by)]
    if problems:
        note = f"Left out: {' '.join(problems)}"
        boards.append(Leaderboard(benchmark="", metric="", title="Left out", rows=(), note=note))
    return boards


def _metrics(values: RunValues, layout: Layout) -> list[str]:
    """What the samples' values of each entry of a run are called: `accuracy@bm25`."""
    headline = layout.headline
    return [f"{headline}@{subject}" for subject in values.run.subjects] or [headline]


def _led_by(layout: Layout, metric: str, benchmark: str) -> Layout:
    """The layout with another metric first, where one is given."""
    if not metric:
        return layout
    declared = declaration(layout.metrics, metric)
    if declared is None or "@" in metric:
        names = ", ".join(each.name for each in layout.metrics)
        raise UsageError(f"{benchmark} has no metric '{metric}'. Available: {names}.")
    first = replace(declared, name=metric, title=title_of(layout.metrics, metric))
    return replace(layout, metrics=(first, *layout.metrics))


def _boards(runs: Sequence[RunValues], metric: str) -> list[Leaderboard]:
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
    for group, note in zip(groups, notes, strict=True):
        layout = _led_by(shared_layout([values.run for values in group]), metric, benchmark)
        title = f"{layout.name or benchmark}: {layout.headline_title}"
        title = ", ".join(filter(None, (title, layout.part(group[0].run.summary))))
        # Why headlines are in doubt: those of a server that always gives the same text, say.
        doubts = [doubt for values in group for doubt in values.doubts(names[values])]
        rows, undecided = _rows(group, layout)
        boards.append(
            Leaderboard(
                benchmark=benchmark,
                metric=layout.headline,
                title=title,
                counted=layout.counted[0],
                rows=rows,
                undecided=undecided,
                note=" ".join(filter(None, (note, *doubts))),
            )
        )
    ranked = [board for board in boards if len(board.rows) > 1]
    if len(ranked) < 2:
        return boards
    return [
        replace(board, title=f"{board.title} ({1 + ranked.index(board)})") if board in ranked else board
        for board in boards
    ]


def _rows(
    group: Sequence[RunValues], layout: Layout
) -> tuple[tuple[LeaderboardRow, ...], tuple[tuple[str, str], ...]]:
    """The entries of a board in their order, every pair tested as `compare` tests it, and ranked; and the
    names of those that only the correction keeps from being ranked."""
    entries = [(values, metric) for values in group for metric in _metrics(values, layout)]
    subjects = [subject for values in group for subject in values.run.spec.subjects]
    figures = [each for values in group for each in values.run.figures_of(layout.headline).values()]
    ends = dict(zip(group, path_ends([values.run.path for values in group]), strict=True))
    better = layout.metrics[0].better
    counts, close = _count_better(entries, lower=better == "lower")

    def order(entry: int) -> tuple[bool, float, int]:
        amount = figures[entry].value
        return amount is None, (amount or 0.0) * (1 if better == "lower" else -1), counts[entry]

    placed = sorted(range(len(entries)), key=order)
    # A pair that is too uncertain to tell does not place a run above those of better values.
    ranks = dict(zip(placed, accumulate((1 + counts[entry] for entry in placed), max), strict=True))
    rows = [
        LeaderboardRow(
            rank=None if figure.value is None or better is None else ranks[entry],
            better=counts[entry],
            name=subject if subjects.count(subject) == 1 else f"{subject} ({ends[values]})",
            path=str(values.run.path),
            figure=figure,
        )
        for entry, ((values, _), subject, figure) in enumerate(zip(entries, subjects, figures, strict=True))
    ]
    undecided = tuple((rows[a].name, rows[b].name) for a, b in close if better is not None)
    return tuple(rows[entry] for entry in placed), undecided


def _count_better(
    entries: Sequence[tuple[RunValues, str]], *, lower: bool
) -> tuple[list[int], list[tuple[int, int]]]:
    """How many entries are significantly better than each, and which pairs would differ without the
    correction."""
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
    close = [
        couple
        for couple, difference, p in zip(couples, differences, corrected, strict=True)
        if p is not None and difference.p is not None and difference.p < SIGNIFICANT <= p
    ]
    return better, close

"""Leaderboards: one for each benchmark and each set of runs that were asked the same."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from evenkeel.analysis.leaderboard.entrants import Entrant
from evenkeel.analysis.leaderboard.grouping import Runs
from evenkeel.analysis.leaderboard.ranks import Standing, rows_of
from evenkeel.errors import EvenkeelError, UsageError, place_of
from evenkeel.harness.folder import Run
from evenkeel.page.format import FLOOR, share
from evenkeel.page.notebook import Displayed


class Leaderboard(Displayed, Struct, frozen=True, kw_only=True):
    """Runs of one benchmark that were asked the same, the best first."""

    benchmark: str
    metric: str
    title: str
    rows: tuple[Standing, ...]
    note: str
    """Which runs are on other boards and why, what was left out, which coverage is low."""


def leaderboard(runs: Iterable[Run | str | Path]) -> list[Leaderboard]:
    """A board for each benchmark and each set of runs that `compare` takes together.

    All pairs of a board are tested by the headline, paired by sample, with Holm's correction. Methods that a
    run sets side by side are entries of their own. A run that cannot be read is named in the note of a last
    board, which has no rows.

    `ek.leaderboard(["runs/one", "runs/two"])[0].rows[0].rank`
    """
    if isinstance(runs, Run | str | Path):
        raise UsageError("leaderboard takes a list of runs: leaderboard([run, …]).")
    by_benchmark: defaultdict[str, list[Entrant]] = defaultdict(list)
    problems: list[str] = []
    paths: set[Path] = set()
    asked: dict[bytes, Any] = {}
    for each in runs:
        path = each.path if isinstance(each, Run) else Path(each)
        try:
            if path.resolve() not in paths:
                paths.add(path.resolve())
                entrant = Entrant(each if isinstance(each, Run) else Run(each), asked)
                by_benchmark[entrant.run.spec.benchmark].append(entrant)
        except (EvenkeelError, OSError) as error:
            problems.append(str(error))
        except Exception as error:  # noqa: BLE001  # a folder may hold anything; the others are still ranked
            problems.append(f"{path} is not as Evenkeel writes it ({place_of(error)}).")
    boards = [board for entrants in by_benchmark.values() for board in _boards(entrants)]
    if problems:
        note = f"Left out: {' '.join(problems)}"
        boards.append(Leaderboard(benchmark="", metric="", title="Left out", rows=(), note=note))
    return boards


def _boards(entrants: Sequence[Entrant]) -> list[Leaderboard]:
    runs = Runs(entrants)
    groups = runs.grouped()
    boards = []
    for number, group in enumerate(groups):
        notes = []
        if number:
            notes.append(runs.apart(groups[0], group[0]))
        layout = entrants[group[0]].layout
        rows, more = rows_of(runs, group)
        few = [row.name for row in rows if row.figure.coverage < FLOOR]
        notes += more
        if few:
            notes.append(f"Coverage below {share(FLOOR)}: {', '.join(few)}.")
        name = entrants[group[0]].run.spec.benchmark
        title = f"{name}: {layout.headline_title}{f' ({number + 1})' if len(groups) > 1 else ''}"
        boards.append(
            Leaderboard(
                benchmark=name, metric=layout.headline, title=title, rows=rows, note=" ".join(notes)
            )
        )  # fmt: skip
    return boards

"""All runs: what each found, how far those are that are not finished, and what can be done with them."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from multidict import MultiMapping

from sealegs.api.launch import Started, started
from sealegs.app.progress import WatchedProcess, watched
from sealegs.app.rendering import render_page
from sealegs.app.settings import AppSettings
from sealegs.harness.folder import load_run
from sealegs.harness.registry import benchmark_title
from sealegs.harness.stored.listing import ListedRun, list_runs
from sealegs.page.format import counts, interval, value


class Finding(NamedTuple):
    """What a finished run found, in words."""

    verdict: str
    metric: str
    headline: str
    interval: str
    based_on: str


class RunRow(NamedTuple):
    """A run in the list."""

    run: ListedRun
    finding: Finding | None = None
    process: WatchedProcess | None = None


def page(settings: AppSettings, query: MultiMapping[str]) -> str:
    rows = _rows(settings)
    wanted = query.get("benchmark", "")
    shown = [row for row in rows if wanted in ("", row.run.benchmark)]
    benchmarks = {each: benchmark_title(each) for row in rows if (each := row.run.benchmark)}
    return render_page(
        settings, "runs.html", "/",
        title="Runs", rows=shown, benchmarks=benchmarks, wanted=wanted, folder=settings.shown_runs,
        count=len(rows),
    )  # fmt: skip


def _rows(settings: AppSettings) -> list[RunRow]:
    """Every run, those that are being written first, then the newest."""
    listed = list_runs(settings.runs)
    processes = {Path(each.path): each for each in ([] if settings.read_only else started(settings.runs))}
    rows = [_row(run, processes.pop(Path(run.path), None)) for run in listed]
    # A process that has written nothing yet has no run to be listed.
    rows += [_row(_begun(process), process) for process in processes.values() if process.kind == "run"]
    return sorted(rows, key=lambda row: row.process is None or not row.process.active)


def _row(run: ListedRun, process: Started | None) -> RunRow:
    if run.state == "finished":
        return RunRow(run, _found(run.path, (Path(run.path) / "summary.json").stat().st_mtime_ns))
    active = run.state in ("running", "unfinished")
    return RunRow(run, process=watched(Path(run.path), process) if active else None)


@lru_cache(maxsize=4096)
def _found(path: str, stamp: int) -> Finding:
    """Kept for as long as its summary is the same."""
    run = load_run(path)
    limits = interval(run.leading, short=True)
    based_on = counts(run.leading, run.layout)
    return Finding(run.verdict, run.layout.headline_title, value(run.leading), limits, based_on)


def _begun(process: Started) -> ListedRun:
    return ListedRun(
        path=process.path, name=process.name, state="unfinished", benchmark=process.task.benchmark,
        model=process.task.subject, created=process.created,
    )  # fmt: skip

"""All runs: what each found, how far those are that are not finished, and what can be done with them."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from msgspec import Struct
from multidict import MultiMapping

from sealegs.api.launch import Started, started
from sealegs.app.progress import WatchedProcess, watched
from sealegs.app.rendering import render_page
from sealegs.app.settings import AppSettings
from sealegs.harness.folder import load_run
from sealegs.harness.registry import benchmark_title
from sealegs.harness.stored.listing import ListedRun, list_runs
from sealegs.page.format import counts, interval, value


class RunRow(Struct, frozen=True, kw_only=True):
    """A run in the list."""

    name: str
    state: str
    benchmark: str
    title: str
    model: str
    created: str
    verdict: str = ""
    headline: str = ""
    interval: str = ""
    based_on: str = ""
    problem: str = ""
    process: WatchedProcess | None = None


def page(settings: AppSettings, query: MultiMapping[str]) -> str:
    rows = _rows(settings)
    wanted = query.get("benchmark", "")
    shown = [row for row in rows if wanted in ("", row.benchmark)]
    benchmarks = {row.benchmark: row.title for row in rows if row.benchmark}
    return render_page(
        settings, "runs.html", "/",
        title="Runs", rows=shown, benchmarks=benchmarks, wanted=wanted, folder=settings.shown_runs,
        count=len(rows),
    )  # fmt: skip


def _rows(settings: AppSettings) -> list[RunRow]:
    """Every run, those that are being written first, then the newest."""
    listed = list_runs(settings.runs) if settings.runs.is_dir() else []
    processes = {Path(each.path): each for each in ([] if settings.read_only else started(settings.runs))}
    rows = [_row(run, processes.pop(Path(run.path), None)) for run in listed]
    # A process that has written nothing yet has no run to be listed.
    rows += [_starting(process) for process in processes.values() if process.kind == "run"]
    return sorted(rows, key=lambda row: row.state not in ("running", "starting"))


def _row(run: ListedRun, process: Started | None) -> RunRow:
    row: dict[str, Any] = {
        "name": run.name,
        "state": run.state,
        "benchmark": run.benchmark,
        "title": benchmark_title(run.benchmark),
        "model": run.model,
        "created": run.created[:16].replace("T", " "),
        "problem": run.problem,
    }
    if run.state == "finished":
        stamp = (Path(run.path) / "summary.json").stat().st_mtime_ns
        return RunRow(**(row | _found(run.path, stamp)))
    if run.state in ("running", "unfinished"):
        return RunRow(**row, process=watched(Path(run.path), process))
    return RunRow(**row)


@lru_cache(maxsize=4096)
def _found(path: str, stamp: int) -> dict[str, str]:
    """What a finished run found, in words; kept for as long as its summary is the same."""
    run = load_run(path)
    return {
        "verdict": run.verdict,
        "headline": value(run.leading),
        "interval": interval(run.leading, short=True),
        "based_on": counts(run.leading, run.layout),
    }


def _starting(process: Started) -> RunRow:
    return RunRow(
        name=process.name,
        state="starting" if process.active else process.state,
        benchmark=process.task.benchmark,
        title=benchmark_title(process.task.benchmark),
        model=process.task.subject,
        created=process.created[:16].replace("T", " "),
        process=watched(Path(process.path), process),
    )

"""What pages read again and again, kept in memory for as long as the files behind it are the same."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

import evenkeel as ek
from evenkeel.app.settings import Settings

if TYPE_CHECKING:
    from evenkeel.analysis.comparison import Comparison
    from evenkeel.analysis.leaderboard import Leaderboard
    from evenkeel.harness.stored.listing import ListedRun
    from evenkeel.harness.stored.samples import Samples
    from evenkeel.report.pictures import Drawn


def list_runs(settings: Settings) -> list[ListedRun]:
    """All runs; empty, with a message on the page, where the folder is not there."""
    if not settings.runs.is_dir():
        return []
    return ek.list_runs(settings.runs)


def finished(settings: Settings) -> list[ListedRun]:
    return [run for run in list_runs(settings) if run.state == "finished"]


def _version(run: ek.Run) -> tuple[object, ...]:
    """Changes with the files that a page reads of a run."""
    files = [run.path / name for name in ("records.jsonl", "summary.json")]
    stats = [file.stat() for file in files if file.is_file()]
    return str(run.path), *((stat.st_mtime_ns, stat.st_size) for stat in stats)


cached = partial(st.cache_resource, max_entries=16, hash_funcs={ek.Run: _version})


@cached(show_spinner="Reading the samples…")
def samples(run: ek.Run) -> Samples:
    return run.samples()


@cached(show_spinner="Comparing the runs…")
def comparison(runs: Sequence[ek.Run]) -> Comparison:
    return ek.compare(*runs)


@cached(show_spinner="Comparing the runs…")
def leaderboards(runs: Sequence[ek.Run]) -> list[Leaderboard]:
    return ek.leaderboard(runs)


@cached(show_spinner="Drawing…")
def charts(run: ek.Run) -> list[Drawn]:
    return ek.charts(run)

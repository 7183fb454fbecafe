"""What pages read again and again, kept in memory for as long as the files behind it are the same."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
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

MOST_RUNS = 8
"""Runs whose samples are kept in memory at a time."""


def list_runs(settings: Settings) -> list[ListedRun]:
    """All runs; empty, with a message on the page, where the folder is not there."""
    if not settings.runs.is_dir():
        return []
    return ek.list_runs(settings.runs)


def finished(settings: Settings) -> list[ListedRun]:
    return [run for run in list_runs(settings) if run.state == "finished"]


def version(path: str | Path) -> tuple[int, ...]:
    """Changes with the files that a page reads of a run."""
    files = [Path(path, name) for name in ("records.jsonl", "summary.json")]
    return tuple(
        part for file in files if file.is_file() for part in (file.stat().st_mtime_ns, file.stat().st_size)
    )


@st.cache_resource(max_entries=MOST_RUNS, show_spinner="Reading the samples…")
def _samples(path: str, version: tuple[int, ...]) -> Samples:
    return ek.load_run(path).samples()


def samples(run: ek.Run) -> Samples:
    return _samples(str(run.path), version(run.path))


@st.cache_resource(max_entries=32, show_spinner="Comparing the runs…")
def _comparison(paths: tuple[str, ...], versions: tuple[tuple[int, ...], ...]) -> Comparison:
    return ek.compare(*paths)


def comparison(paths: Sequence[str]) -> Comparison:
    return _comparison(tuple(paths), tuple(map(version, paths)))


@st.cache_resource(max_entries=32, show_spinner="Comparing the runs…")
def _leaderboards(paths: tuple[str, ...], versions: tuple[tuple[int, ...], ...]) -> list[Leaderboard]:
    return ek.leaderboard([ek.load_run(path) for path in paths])


def leaderboards(runs: Sequence[ListedRun]) -> list[Leaderboard]:
    paths = tuple(run.path for run in runs)
    return _leaderboards(paths, tuple(map(version, paths)))


@st.cache_resource(max_entries=MOST_RUNS, show_spinner="Drawing…")
def _charts(path: str, version: tuple[int, ...]) -> list[Drawn]:
    return ek.charts(path)


def charts(run: ek.Run) -> list[Drawn]:
    return _charts(str(run.path), version(run.path))

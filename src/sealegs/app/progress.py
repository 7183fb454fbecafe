"""How far a process is, in words and numbers for a page."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct

from sealegs.api.launch import Started, own_process
from sealegs.files.lock import is_written
from sealegs.harness.control import RunProgress, read_progress
from sealegs.page.format import duration, nouns, rate

LINES = 12
"""Of the log of a process that ended early."""


class WatchedProcess(Struct, frozen=True, kw_only=True):
    """A run or a build as a page shows it."""

    name: str
    state: str
    active: bool
    share: float | None = None
    """How much of its phase is done, 0 to 1; None while that is not known."""
    words: str = ""
    """`asking: 40 of 200 requests, 3.2/s, about 50 s left`."""
    log: str = ""
    """The last lines that it printed, where it ended early or has not answered yet."""
    known: bool = False
    """Whether it is known which process writes it, so that it can be stopped."""
    own: bool = False
    """Whether this person began it here, so that it can be resumed."""
    command: str = ""
    """What resumes it at a terminal."""


def watched(folder: Path, process: Started | None) -> WatchedProcess:
    """How far the process of a folder is; without `process` only what the folder itself says."""
    active = process.active if process else is_written(folder)
    progress = read_progress(folder) if active else None
    state: str = process.state if process else "running" if active else "unfinished"
    # Whether a run that was begun at a terminal failed or was stopped there, only that terminal says.
    if process and state == "failed" and not process.log_tail(1):
        state = "stopped"
    known = progress is not None and progress.total > 0
    lines = LINES if state == "failed" else 0 if known or state == "stopped" else 1
    return WatchedProcess(
        name=folder.name,
        state=state,
        active=active,
        share=progress.done / max(progress.total, progress.done) if progress and known else None,
        words=_words(process, progress) if active and state != "stopping" else "",
        log=process.log_tail(lines) if process and lines else "",
        known=process is not None,
        own=process is not None and own_process(folder) is not None,
        command=shlex.join(process.command) if process else "",
    )


def _words(process: Started | None, progress: RunProgress | None) -> str:
    """The phase, how far it is, how fast and how long still; without a rate where there is none yet."""
    began = progress.started if progress and progress.started else process.created if process else ""
    elapsed = _elapsed(began)
    if progress is None or not progress.total:
        return ", ".join(filter(None, ["loading", elapsed]))
    parts = [f"{progress.phase}: {progress.done:,} of {nouns(progress.total, 'requests')}"]
    parts += [progress.waiting, rate(progress.rate), elapsed]
    if progress.seconds_left is not None:
        parts.append(f"about {duration(progress.seconds_left)} left")
    parts += [f"{progress.failed:,} failed"] if progress.failed else []
    parts += [f"${progress.usd:,.4f} spent"] if progress.usd else []
    return ", ".join(filter(None, parts))


def _elapsed(began: str) -> str:
    """`12 s so far`; empty where the folder, which may come from anyone, does not say when it began."""
    try:
        seconds = (datetime.now(UTC) - datetime.fromisoformat(began)).total_seconds()
    except (ValueError, TypeError, OverflowError):
        return ""
    return f"{duration(max(0.0, seconds))} so far"

"""The progress of a run: a bar on a terminal, a line in a notebook, a line every few seconds elsewhere."""

from __future__ import annotations

import sys
import time
from collections import Counter
from typing import Any

from sealegs.harness.progress import Pace, Progress
from sealegs.page.format import escape_controls, nouns, rate
from sealegs.types import Response

NOTEBOOK_SECONDS = 0.5
PLAIN_SECONDS = 5.0
BAR_SECONDS = 0.1
"""Between two updates."""
WIDTH = 100
"""Characters of a line in a notebook that is written over."""
KINDS = 3
LONGEST_KIND = 40


def watcher(progress: Progress | bool | None) -> Progress:
    """What `progress=` means: a watcher, True for the usual one, False or None for none.

    The usual one is a line in a notebook and a bar where stderr is a terminal; elsewhere nothing is shown.
    """
    if progress is not None and not isinstance(progress, bool):
        return progress
    return Watcher() if progress and (in_notebook() or _on_terminal()) else Progress()


def _on_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def in_notebook() -> bool:
    """Whether this is a Jupyter kernel, of whatever front end."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None


class Watcher(Progress):
    """Counts what comes back, and shows it now and then: on a terminal as a bar on stderr with rate and time
    left, in a notebook as a line of the cell that is written over, elsewhere as lines on stderr."""

    def __init__(self, *, plain_seconds: float = PLAIN_SECONDS) -> None:
        self._bar: Any = None
        self._task: Any = None
        self._titles: set[str] = set()
        self._notebook = in_notebook()
        self._seconds = self._plain_seconds = NOTEBOOK_SECONDS if self._notebook else plain_seconds
        self._begin("", total=0, done=0)

    def phase(self, title: str, *, total: int, done: int) -> None:
        self.finish()
        terminal = _on_terminal() and not self._notebook
        self._seconds = BAR_SECONDS if terminal else self._plain_seconds
        self._begin(title, total=total, done=done)
        title = self._title
        if self._notebook:
            self._show()
            return
        if done and not (done == total and title in self._titles):
            self.note(f"{title}: {done:,} of {total:,} already answered")
        self._titles.add(title)
        if done == total:
            return
        if terminal:
            self._next = 0.0
            self._draw(title, total=total, done=done)
        else:
            self.note(f"{title}: {nouns(total - done, 'requests')}")

    def _begin(self, title: str, *, total: int, done: int) -> None:
        # A model's address is no part of what is being done: `judge:llamacpp:?base_url=…`.
        self._title = title.partition("?")[0].rstrip(":")
        self._total, self._done = total, done
        self._pace = Pace(done)
        self._next = time.monotonic() + self._seconds
        self._tokens = self._retrying = 0
        self._waiting = ""
        self._usd = 0.0
        self._failures: Counter[str] = Counter()

    def answered(self, response: Response, *, usd: float) -> None:
        self._done += 1
        self._tokens += (response.tokens_in or 0) + (response.tokens_out or 0)
        self._usd = usd
        if response.status != "ok":
            # An error by its kind (HTTP 429, connection lost); its details follow a colon.
            kind = response.reason.partition(":")[0].partition(" after ")[0]
            status = {"truncated": "cut off"}.get(response.status, response.status)
            self._failures[kind if response.status == "error" and kind else status] += 1
        self._update()

    def retrying(self, count: int) -> None:
        self._retrying = count
        self._update()

    def loaded(self) -> None:
        self._pace = Pace(self._done)
        self._waiting = ""

    def waiting(self, text: str) -> None:
        self._waiting = text
        self._update()

    def _update(self) -> None:
        if self._title and time.monotonic() >= self._next:
            self._next = time.monotonic() + self._seconds
            self._show()

    def _show(self) -> None:
        if self._bar is not None:
            self._bar.update(self._task, completed=self._done, counts=self._counts())
        elif self._notebook:
            print(f"\r{escape_controls(self._line()):<{WIDTH}}", end="", flush=True)
        else:
            self.note(self._line())

    def _line(self) -> str:
        """`asking: 20 of 100, 4.0/s, 20 s left`, with the time left once enough was answered."""
        left = self._pace.seconds_left(self._done, self._total)
        parts = [f"{self._title}: {self._done:,} of {self._total:,}", self._counts()]
        if left:
            parts.append(f"{left:,.0f} s left")
        return ", ".join(filter(None, parts))

    def _counts(self) -> str:
        parts = list(filter(None, [rate(self._pace.rate(self._done))]))
        parts += [f"{self._tokens:,} tokens"] if self._tokens else []
        parts += [f"${self._usd:.2f}"] if self._usd else []
        parts += [f"{count:,} {kind[:LONGEST_KIND]}" for kind, count in self._failures.most_common(KINDS)]
        parts += [f"{self._retrying:,} waiting to retry"] if self._retrying else []
        parts += [self._waiting] if self._waiting else []
        return escape_controls(", ".join(parts))

    def _draw(self, title: str, *, total: int, done: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[counts]}", markup=False),
            TimeRemainingColumn(compact=True),
            TextColumn("left"),
            console=Console(stderr=True),
            auto_refresh=True,
            transient=True,
        )
        self._task = self._bar.add_task(escape_controls(title), total=total, completed=done, counts="")
        self._bar.start()

    def note(self, text: str) -> None:
        if self._bar is not None:
            self._bar.console.print(escape_controls(text), style="dim", markup=False, highlight=False)
        elif self._notebook:
            print(f"\r{escape_controls(text):<{WIDTH}}")
        else:
            print(escape_controls(text), file=sys.stderr, flush=True)

    def finish(self) -> None:
        if self._bar is not None:
            self._show()
            self._bar.stop()
            self._bar = None
        elif self._notebook and self._title:
            self.note(self._line())
            self._title = ""

"""Progress on stderr: a bar with rate and time left on a terminal, a line every few seconds elsewhere."""

from __future__ import annotations

import sys
import time
from collections import Counter

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from evenkeel.page.format import visible
from evenkeel.types import Response

PLAIN_SECONDS = 5.0
REDRAW_SECONDS = 0.1
KINDS = 3
LONGEST_KIND = 40


class Watcher:
    """Counts what comes back and shows it, without costing the run anything worth measuring."""

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        self._bar: Progress | None = None
        self._task = TaskID(0)
        self._title = ""
        self._next = 0.0
        self._shown: set[str] = set()
        self._begin("", total=0, done=0)

    def phase(self, title: str, *, total: int, done: int) -> None:
        self.finish()
        self._begin(title, total=total, done=done)
        if done and not (done == total and title in self._shown):
            self.note(f"{title}: {done:,} of {total:,} were answered before")
        self._shown.add(title)
        if done == total:
            return
        if self._console.is_terminal:
            self._bar = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[tally]}", markup=False),
                TimeRemainingColumn(compact=True),
                TextColumn("left"),
                console=self._console,
                auto_refresh=True,
                transient=True,
            )
            self._task = self._bar.add_task(visible(title), total=total, completed=done, tally="")
            self._bar.start()
            self._next = 0.0
        else:
            self.note(f"{title}: {total - done:,} requests")

    def _begin(self, title: str, *, total: int, done: int) -> None:
        self._title, self._total, self._done, self._before = title, total, done, done
        self._start = time.monotonic()
        self._next = self._start + PLAIN_SECONDS
        self._tokens = 0
        self._usd = 0.0
        self._ends: Counter[str] = Counter()
        self._retrying = 0

    def answered(self, response: Response, *, usd: float) -> None:
        self._done += 1
        self._tokens += (response.tokens_in or 0) + (response.tokens_out or 0)
        self._usd = usd
        if response.status != "ok":
            # An error by its kind (HTTP 429, connection lost); its details follow a colon.
            kind = response.reason.partition(":")[0].partition(" after ")[0]
            self._ends[kind if response.status == "error" and kind else response.status] += 1
        self._show()

    def retrying(self, count: int) -> None:
        self._retrying = count
        self._show()

    def _show(self) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        if self._bar is not None:
            self._bar.update(self._task, completed=self._done, tally=self._tally(now))
            self._next = now + REDRAW_SECONDS
        else:
            self.note(
                f"{self._title}: {self._done:,} of {self._total:,}, {self._tally(now)}{self._left(now)}"
            )
            self._next = now + PLAIN_SECONDS

    def _left(self, now: float) -> str:
        """The time left; the first few answers say little of it, since a model may have been loaded first."""
        done = self._done - self._before
        if done < 10:
            return ""
        return f", {(now - self._start) / done * (self._total - self._done):,.0f} s left"

    def _tally(self, now: float) -> str:
        rate = (self._done - self._before) / max(now - self._start, 1e-9)
        parts = [f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.1f}/s"]
        if self._tokens:
            parts.append(f"{self._tokens:,} tokens")
        if self._usd:
            parts.append(f"${self._usd:.2f}")
        parts += [f"{count:,} {kind[:LONGEST_KIND]}" for kind, count in self._ends.most_common(KINDS)]
        if self._retrying:
            parts.append(f"{self._retrying:,} waiting to be tried again")
        return visible(", ".join(parts))

    def note(self, text: str) -> None:
        text = visible(text)
        if self._bar is not None:
            self._console.print(text, style="dim", markup=False, highlight=False)
        else:
            print(text, file=sys.stderr, flush=True)

    def finish(self) -> None:
        if self._bar is not None:
            self._bar.update(self._task, completed=self._done, tally=self._tally(time.monotonic()))
            self._bar.stop()
            self._bar = None

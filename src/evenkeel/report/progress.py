"""Who watches a run that Python began: a line in the notebook, a bar on the terminal, or nobody."""

from __future__ import annotations

import sys
import time
from typing import Any

from evenkeel.run.progress import Progress, Silent
from evenkeel.types import Response

SECONDS = 0.5
"""Between two updates of a notebook's line."""


def watcher(progress: Progress | bool | None) -> Progress:
    """What `progress=` means: one's own watcher, True for the usual one, False or None for none.

    The usual one is a line in a notebook and a bar where stderr is a terminal; elsewhere nothing is shown.
    """
    if progress is None or isinstance(progress, bool):
        return _usual() if progress else Silent()
    return progress


def _usual() -> Progress:
    if in_notebook():
        return NotebookLine()
    if sys.stderr is not None and sys.stderr.isatty():
        from evenkeel.report.progress_bar import Watcher

        return Watcher()
    return Silent()


def in_notebook() -> bool:
    """Whether this is a Jupyter kernel, of whatever front end."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None


class NotebookLine(Silent):
    """One output of the cell, written over as answers come in. It needs no widgets."""

    def __init__(self) -> None:
        self._notes: list[str] = []
        self._line = ""
        self._display: Any = None
        self._next = 0.0
        self._begin("", total=0, done=0)

    def phase(self, title: str, *, total: int, done: int) -> None:
        self._begin(title, total=total, done=done)
        self._count()

    def _begin(self, title: str, *, total: int, done: int) -> None:
        self._title, self._total, self._done = title, total, done
        self._before, self._start = done, time.monotonic()
        self._failed = self._waiting = 0
        self._usd = 0.0

    def answered(self, response: Response, *, usd: float) -> None:
        self._done += 1
        self._failed += response.status == "error"
        self._usd = usd
        if self._done == self._total or time.monotonic() >= self._next:
            self._count()

    def retrying(self, count: int) -> None:
        """How many requests wait to be asked once more."""
        self._waiting = count
        if time.monotonic() >= self._next:
            self._count()

    def note(self, text: str) -> None:
        self._notes.append(text)
        self._show()

    def finish(self) -> None:
        if self._line:
            self._show()

    def _count(self) -> None:
        new, seconds = self._done - self._before, time.monotonic() - self._start
        parts = [f"{self._title}: {self._done:,} of {self._total:,}"] if self._title else []
        if new and seconds > 0:
            parts.append(f"{new / seconds:.1f}/s")
        if new >= 10 and self._done < self._total:  # the first few say little: a model may have been loaded
            parts.append(f"{seconds / new * (self._total - self._done):,.0f} s left")
        parts += [f"{self._waiting:,} retrying"] if self._waiting else []
        parts += [f"{self._failed:,} errors"] if self._failed else []
        parts += [f"${self._usd:.2f}"] if self._usd else []
        self._line = ", ".join(parts)
        self._show()

    def _show(self) -> None:
        from IPython.display import display

        self._next = time.monotonic() + SECONDS
        shown = _Lines([*self._notes, self._line])
        if self._display is None:
            self._display = display(shown, display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._display.update(shown)


class _Lines:
    """Plain text, as a notebook shows it."""

    def __init__(self, lines: list[str]) -> None:
        self._text = "\n".join(line for line in lines if line)

    def __repr__(self) -> str:
        from evenkeel.page.format import visible

        return visible(self._text)

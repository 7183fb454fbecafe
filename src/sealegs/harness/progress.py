"""What a run tells whoever watches it: which phase it is in and what has come back so far."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, runtime_checkable

from sealegs.types import Response


class Progress:
    """A watcher, which takes no notice. The command line's draws a bar; Python callers may pass their own, a
    subclass with the methods that it needs."""

    def began(self, folder: Path) -> None:
        """The run's folder is there and is this process's; nothing was asked yet."""

    def phase(self, title: str, *, total: int, done: int) -> None:
        """A new stretch of work begins: `total` requests, of which `done` were answered before."""

    def answered(self, response: Response, *, usd: float) -> None:
        """One more request ended."""

    def retrying(self, count: int) -> None:
        """How many requests wait to be tried again."""

    def waiting(self, text: str) -> None:
        """What is waited for (batches, the tokens of a local model), and how far that is."""

    def note(self, text: str) -> None:
        """Something worth a line."""

    def finish(self) -> None:
        """The run is over, well or not."""


@runtime_checkable
class ReportsPhase(Protocol):
    """A model that has something to wait for."""

    def watch(self, progress: Progress) -> None:
        """Tell this watcher from now on what is waited for."""


def watch(model: object, progress: Progress) -> None:
    """Have a model tell the watcher what it waits for, if it is one that waits."""
    if isinstance(model, ReportsPhase):
        model.watch(progress)

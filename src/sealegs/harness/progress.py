"""What a run tells whoever watches it: which phase it is in and what has come back so far."""

from __future__ import annotations

from pathlib import Path
from time import monotonic
from typing import Protocol, runtime_checkable

from sealegs.types import Response

LOADING = "loading the model"
"""What is waited for until `loaded`."""
FEW = 10
"""The first answers say little of the time left."""


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

    def loaded(self) -> None:
        """The model of this phase has been loaded: rate and time left count from here."""

    def note(self, text: str) -> None:
        """Something worth a line."""

    def finish(self) -> None:
        """The run is over, well or not."""


class Pace:
    """How fast the requests of a phase are answered, from its beginning or from when its model was loaded."""

    def __init__(self, done: int) -> None:
        self._before = done
        self._began = monotonic()

    def rate(self, done: int) -> float:
        """Requests a second."""
        return (done - self._before) / max(monotonic() - self._began, 1e-9)

    def seconds_left(self, done: int, total: int) -> float | None:
        """Until all are answered; None where too few were to tell."""
        return (total - done) / self.rate(done) if done - self._before >= FEW else None


@runtime_checkable
class ReportsPhase(Protocol):
    """A model that has something to wait for."""

    def watch(self, progress: Progress) -> None:
        """Tell this watcher from now on what is waited for."""


def watch(model: object, progress: Progress) -> None:
    """Have a model tell the watcher what it waits for, if it is one that waits."""
    if isinstance(model, ReportsPhase):
        model.watch(progress)

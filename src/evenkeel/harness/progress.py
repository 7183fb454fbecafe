"""What a run tells whoever watches it: which phase it is in and what has come back so far."""

from __future__ import annotations

from typing import Protocol

from evenkeel.types import Response


class Progress(Protocol):
    """A watcher. The command line draws a bar; Python callers may pass their own.

    One that also has `retrying(count)` is told how many requests wait to be tried again; one that has
    `waiting(text)`, how far the batches are that are waited for.
    """

    def phase(self, title: str, *, total: int, done: int) -> None:
        """A new stretch of work begins: `total` requests, of which `done` were answered before."""

    def answered(self, response: Response, *, usd: float) -> None:
        """One more request ended."""

    def note(self, text: str) -> None:
        """Something worth a line."""

    def finish(self) -> None:
        """The run is over, well or not."""


class Silent:
    """Watches nothing."""

    def phase(self, title: str, *, total: int, done: int) -> None: ...

    def answered(self, response: Response, *, usd: float) -> None: ...

    def note(self, text: str) -> None: ...

    def finish(self) -> None: ...


def watch(model: object, progress: Progress) -> None:
    """Have a model tell the watcher what it waits for, if it is one that waits."""
    if (tell := getattr(model, "watch", None)) is not None:
        tell(progress)

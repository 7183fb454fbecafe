"""A stream of requests as jobs: each alone, or as many as go into one call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from evenkeel.types import Embed, Generate, LogLikelihood, Rank, Request, Response, StringLikelihood

Batch: TypeAlias = list[Embed | Rank]
"""Texts to embed, or documents to rank for one query."""
Job: TypeAlias = Generate | LogLikelihood | StringLikelihood | Batch
Answer: TypeAlias = tuple[Request, Response]


class Source:
    """The stream of requests as jobs, read one at a time and only when a worker is free."""

    def __init__(self, requests: Iterable[Request], batch_size: int) -> None:
        self._requests = iter(requests)
        self._batch_size = batch_size
        self._next_request: Request | None = None
        self._ended = False
        self.error: Exception | None = None

    def next(self) -> Job | None:
        """A single request, or as many texts to embed, or to rank for a query, as go into one call; None at
        the end."""
        request = self._pull()
        if not isinstance(request, Embed | Rank):
            return request
        batch: Batch = [request]
        while len(batch) < self._batch_size:
            more = self._pull()
            if not isinstance(more, Embed | Rank) or _query(more) != _query(request):
                self._next_request = more
                break
            batch.append(more)
        return batch

    def _pull(self) -> Request | None:
        if self._next_request is not None:
            request, self._next_request = self._next_request, None
            return request
        if self._ended:
            return None
        try:
            return next(self._requests)
        except StopIteration:
            self._ended = True
        except Exception as error:  # noqa: BLE001  # raised again when what is running has been answered
            self.end(error)
        return None

    def end(self, error: Exception) -> None:
        """Read no further: the error is raised when what is running has been answered."""
        self._ended, self._next_request, self.error = True, None, self.error or error


def _query(request: Embed | Rank) -> str | None:
    """What documents are ranked for; None of a text to embed."""
    return request.query if isinstance(request, Rank) else None

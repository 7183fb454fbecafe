"""The worker processes that hold one model, and the requests that are divided among them."""

from __future__ import annotations

import contextlib
import socket
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from math import ceil
from typing import Any

from sealegs.errors import ModelUnreachable, SealegsError
from sealegs.harness.progress import Progress
from sealegs.types import Request, Response

REQUESTS_IN_FLIGHT = 4096
"""Requests that are read ahead."""
SHARES = 4
"""Parts of a window that each worker gets: more would make small batches, fewer leave some without work."""
FEWEST = 16
"""Requests that a worker is sent at once, at least."""
WAIT_S = 1.0
NO_NODE_S = 30.0
MOST_LOSSES = 6
"""Workers that were lost without an answer between them, after which the run ends."""
LOST = "two worker processes ended before they had answered this"


@dataclass
class WorkerTask:
    """Requests that one worker is answering."""

    worker: Any
    unanswered: dict[int, Request]
    """By their index in what the worker was sent."""
    losses: int
    """How many workers were lost with them."""


class Pool:
    """Workers that hold one model. One that is lost is replaced, and its requests are asked again."""

    def __init__(
        self, ray: Any, start: Callable[[], Any], size: int, *, spec: str, patience_s: float = NO_NODE_S
    ) -> None:
        """`patience_s`: without a node that could start a worker, after which the run ends."""
        self.size = size
        self.closed = False
        self.watcher = Progress()
        self._ray, self._start, self._spec = ray, start, spec
        self._patience_s = patience_s
        self._starting: dict[Any, Any] = {}
        self._idle: deque[Any] = deque()
        self._tasks: dict[Any, WorkerTask] = {}
        self._again: deque[tuple[list[Request], int]] = deque()
        """Requests of lost workers, and how many were lost with them."""
        self._losses = 0
        self._alone_since = time.monotonic()
        self._head_is_lost = False
        for _ in range(size):
            self._start_worker()

    def answers(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Response]]:
        source = _parts(requests, self.size)
        while True:
            while self._idle:
                part, losses = self._again.popleft() if self._again else (next(source, []), 0)
                if not part:
                    break
                worker = self._idle.popleft()
                stream = worker.answer.options(num_returns="streaming").remote(part)
                self._tasks[stream] = WorkerTask(worker, dict(enumerate(part)), losses)
            if self._idle and not self._tasks:
                return
            ready, _ = self._ray.wait([*self._tasks, *self._starting], num_returns=1, timeout=WAIT_S)
            if not ready:
                self._await_head()
            self._check_nodes(waiting=not ready and not self._tasks)
            for ref in ready:
                if ref in self._starting:
                    self._receive_start(ref)
                else:
                    yield from self._receive_answers(ref)

    def _await_head(self) -> None:
        """Wait for the cluster's head where it is gone, but not so long that Ray ends the process itself."""
        host, _, port = self._ray.get_runtime_context().gcs_address.rpartition(":")
        given_up = time.monotonic() + self._patience_s
        while True:
            try:
                socket.create_connection((host.strip("[]"), int(port)), timeout=WAIT_S).close()
            except OSError:
                if time.monotonic() < given_up:
                    time.sleep(WAIT_S)
                    continue
                self._head_is_lost = True
                raise ModelUnreachable(
                    f"the head of the Ray cluster at {host}:{port} is gone, and with it the workers of "
                    f"'{self._spec}'. Start a cluster (`ray start --head`), then run the same command."
                ) from None
            return

    def _check_nodes(self, *, waiting: bool) -> None:
        """End the run where workers are waited for that no node is left to start."""
        if not waiting or any(
            node["Alive"] and node["Resources"].get("CPU", 0) >= 1 for node in self._ray.nodes()
        ):
            self._alone_since = time.monotonic()
        elif time.monotonic() - self._alone_since >= self._patience_s:
            raise ModelUnreachable(
                f"no node of the Ray cluster is left for '{self._spec}'. Start one (`ray start "
                "--address=HEAD:6379` on a machine that has the model's files), then run the same command."
            )

    def _start_worker(self, worker: Any = None) -> None:
        worker = worker or self._start()
        self._starting[worker.start.remote()] = worker

    def _receive_start(self, ref: Any) -> None:
        worker = self._starting.pop(ref)
        try:
            self._ray.get(ref)
        except self._ray.exceptions.RayError as error:
            self._replace(worker, error)
        else:
            self._idle.append(worker)

    def _receive_answers(self, stream: Any) -> Iterator[tuple[Request, Response]]:
        """What one message of a worker answers, or how its task ends."""
        task = self._tasks[stream]
        try:
            message = self._ray.get(next(stream))
        except StopIteration:
            self._idle.append(task.worker)
            reason = "the model gave no answer"
        except self._ray.exceptions.RayError as error:
            self._replace(task.worker, error)
            reason = LOST
            if not task.losses:
                self._again.append((list(task.unanswered.values()), 1))
                task.unanswered = {}
        else:
            for index, response in message:
                self._losses = 0
                yield task.unanswered.pop(index), response
            return
        del self._tasks[stream]
        for request in task.unanswered.values():
            yield request, Response(status="error", reason=reason)

    def _replace(self, worker: Any, error: BaseException) -> None:
        """Start another worker in the place of one that was lost; an error of its own ends the run."""
        if isinstance(cause := getattr(error, "cause", None), SealegsError):
            raise cause
        self._await_head()
        self._end(worker)
        self._losses += 1
        if self._losses >= MOST_LOSSES:
            raise ModelUnreachable(
                f"the workers of '{self._spec}' end before they answer; the last of {self._losses}: "
                f"{brief(error)}. Every node of the cluster needs the same sealegs with the extras of the "
                "model, its files, and memory for it."
            )
        self.watcher.note(f"a worker was lost; its requests go to others. {brief(error)}.")
        self._start_worker()
        while self._idle:  # they may be lost too, and must answer before they are sent anything
            self._start_worker(self._idle.popleft())

    def notes(self) -> list[str]:
        """What the model has to say in each of its workers, once."""
        with contextlib.suppress(self._ray.exceptions.RayError):
            several = self._ray.get([worker.notes.remote() for worker in self._idle], timeout=60)
            return list(dict.fromkeys(note for notes in several for note in notes))
        return []

    def close(self) -> None:
        self.closed = True
        working = [task.worker for task in self._tasks.values()]
        for worker in [*self._idle, *self._starting.values(), *working]:
            self._end(worker)

    def _end(self, worker: Any) -> None:
        if self._head_is_lost:
            return  # Ray would wait for it
        with contextlib.suppress(Exception):  # it has ended, or the cluster has
            self._ray.kill(worker)


def _parts(requests: Iterable[Request], workers: int) -> Iterator[list[Request]]:
    """Requests as they are sent to workers; neighbours, which often share a text, stay together."""
    stream = iter(requests)
    while window := list(islice(stream, REQUESTS_IN_FLIGHT)):
        size = max(FEWEST, ceil(len(window) / (SHARES * workers)))
        yield from (window[start : start + size] for start in range(0, len(window), size))


def brief(error: BaseException) -> str:
    """The first sentence of the last line of a message of Ray's, which has the cause."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[-1].partition(". ")[0] if lines else type(error).__name__)[:300].rstrip(".")

"""A model in a process of the cluster: what a Ray actor runs."""

from __future__ import annotations

import logging
import os
import socket
from collections import defaultdict, deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from evenkeel import __version__
from evenkeel.errors import EvenkeelError, place_of
from evenkeel.files.remote.telemetry import switch_off_telemetry
from evenkeel.harness.model import Batched, Model, Noted
from evenkeel.models.local.batching import BROKEN
from evenkeel.types import ModelRef, Request, Response

LOG_LINES = 100
"""The most that is kept of what a model logs."""


class Failed(Struct, frozen=True):
    """What ends the run, in place of a result: an exception would come back as one of Ray's."""

    problem: str
    unreachable: bool = False


class Worker:
    """Answers leases. A request that fails is answered with an error, alone; its neighbours are not lost."""

    def __init__(
        self,
        ref: ModelRef,
        identity: dict[str, Any],
        *,
        concurrency: int | None,
        threads: int,
        gpus: float,
        folder: str,
        version: str,
    ) -> None:
        self._ref = ref
        self._identity = identity
        self._concurrency = concurrency
        self._version = version
        self._model: Model | None = None
        switch_off_telemetry()
        # Before torch is imported. Ray hides the GPUs of a node only from workers that have some of them.
        os.environ.update(OMP_NUM_THREADS=str(min(threads, os.cpu_count() or 1)))
        if not gpus:
            os.environ.update(CUDA_VISIBLE_DEVICES="")
        if Path(folder).is_dir():
            os.chdir(folder)  # a model may be named by a relative path
        self._log = _Lines()
        logging.getLogger("evenkeel").addHandler(self._log)
        logging.getLogger("evenkeel").setLevel(logging.INFO)

    def start(self) -> str | Failed:
        """The name of this machine, once the model is known to be the driver's."""
        node = socket.gethostname()
        if __version__ != self._version:
            return Failed(
                f"the cluster's node {node} has evenkeel {__version__}, and this machine "
                f"{self._version}: install the same on both."
            )
        from evenkeel.models.registry import open_model

        try:
            self._model = model = open_model(self._ref, concurrency=self._concurrency)
            identity = model.identity()
        except EvenkeelError as error:
            return Failed(f"on the cluster's node {node}: {error}")
        differing = {
            name: (identity.get(name), self._identity.get(name))
            for name in {**identity, **self._identity}
            if identity.get(name) != self._identity.get(name)
        }
        for name, (there, here) in sorted(differing.items()):
            return Failed(
                f"'{self._ref.spec}' is not the same model on the cluster's node {node}: {name} is {there} "
                f"there and {here} on this machine."
            )
        return node

    def portions(self, requests: Sequence[Request]) -> list[list[int]] | Failed:
        """The requests by index, as the model computes them together; nothing where it does not say."""
        if not isinstance(self._model, Batched):
            return []
        index = _positions(requests)
        try:
            return [[index[id(r)].pop(0) for r in part] for part in self._model.portions(requests) if part]
        except EvenkeelError as error:
            return _fatal(error)
        except Exception:  # noqa: BLE001  # one request that cannot be read, say: it fails when it is answered
            return []

    def answer(self, requests: Sequence[Request]) -> list[Response] | Failed:
        """The answers in order."""
        assert self._model is not None
        responses: list[Response | None] = [None] * len(requests)
        index = _positions(requests)
        problem = "the model gave no answer"
        try:
            for request, response in self._model.answer(requests):
                responses[index[id(request)].pop(0)] = response
        except EvenkeelError as error:
            return _fatal(error)
        except Exception as error:  # noqa: BLE001  # whatever it is, it must not cost the neighbours
            if any(sign in str(error) for sign in BROKEN):
                os._exit(1)  # the driver starts another worker in its place
            problem = f"the model failed: {place_of(error)}: {error}"[:300]
        for at, request in enumerate(requests):
            if responses[at] is None:
                alone = self.answer([request]) if len(requests) > 1 else []
                if isinstance(alone, Failed):
                    return alone
                [responses[at]] = alone or [Response(status="error", reason=problem)]
        return [response for response in responses if response is not None]

    def notes(self) -> list[str]:
        return self._model.notes() if isinstance(self._model, Noted) else []

    def log_lines(self) -> list[str]:
        """What `--verbose` shows of a model in one's own process; each line is given once."""
        lines = list(self._log.lines)
        self._log.lines.clear()
        return lines


class _Lines(logging.Handler):
    """Keeps the last lines of a log."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: deque[str] = deque(maxlen=LOG_LINES)

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def _positions(requests: Sequence[Request]) -> dict[int, list[int]]:
    """Where each request is; one object may be there several times."""
    positions: defaultdict[int, list[int]] = defaultdict(list)
    for at, request in enumerate(requests):
        positions[id(request)].append(at)
    return positions


def _fatal(error: EvenkeelError) -> Failed:
    return Failed(str(error), unreachable=error.exit_code == 3)

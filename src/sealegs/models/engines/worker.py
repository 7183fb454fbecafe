"""A model in a process of the cluster: what a Ray actor runs."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from sealegs import __version__
from sealegs.errors import ModelUnreachable, SealegsError, UsageError
from sealegs.files.remote.telemetry import switch_off_telemetry
from sealegs.harness.model import HasNotes, Model, identity_differences
from sealegs.models.local.batching import failing_alone
from sealegs.types import ModelRef, Request, Response

SEND_S = 0.2
"""Seconds between two messages with answers to the driver."""


class WorkerSetup(NamedTuple):
    """What the driver tells a worker."""

    ref: ModelRef
    identity: dict[str, Any]
    """Of the driver's model: a worker's must be the same."""
    concurrency: int | None
    threads: int
    gpus: float
    folder: str
    """In which the driver works."""
    version: str


class Worker:
    """Holds a model and answers requests."""

    def __init__(self, setup: WorkerSetup) -> None:
        self._setup = setup
        self._model: Model | None = None
        switch_off_telemetry()
        # Before torch is imported. Ray hides the GPUs of a node only from workers that have some of them.
        os.environ.update(OMP_NUM_THREADS=str(min(setup.threads, os.cpu_count() or 1)))
        if not setup.gpus:
            os.environ.update(CUDA_VISIBLE_DEVICES="")
        if Path(setup.folder).is_dir():
            os.chdir(setup.folder)  # a model may be named by a relative path

    def start(self) -> None:
        """Open the model."""
        with _naming_the_node():
            self._model = self._model or self._open()

    def answer(self, requests: Sequence[Request]) -> Iterator[list[tuple[int, Response]]]:
        """The answers as they come, each with the index of its request."""
        assert self._model is not None
        with _naming_the_node():
            yield from _in_messages(self._model, requests)

    def _open(self) -> Model:
        """The model, once it is known to be the driver's."""
        driver = self._setup
        if __version__ != driver.version:
            raise SealegsError(
                f"it has sealegs {__version__}, and this machine {driver.version}: install the same on both."
            )
        from sealegs.models.registry import open_model

        model = open_model(driver.ref, concurrency=driver.concurrency)
        if differences := identity_differences(model.identity(), driver.identity, "there", "on this machine"):
            raise SealegsError(f"'{driver.ref.spec}' is not the same model: {'; '.join(differences)}.")
        return model

    def notes(self) -> list[str]:
        return self._model.notes() if isinstance(self._model, HasNotes) else []


@contextmanager
def _naming_the_node() -> Iterator[None]:
    """Errors that end the run, with the node's name, of a kind that can be sent to the driver."""
    try:
        yield
    except SealegsError as error:
        kind = ModelUnreachable if error.exit_code == 3 else UsageError
        raise kind(f"on the cluster's node {socket.gethostname()}: {error}") from None


def _in_messages(model: Model, requests: Sequence[Request]) -> Iterator[list[tuple[int, Response]]]:
    indexes: dict[int, list[int]] = {}  # one object may be asked several times
    for index, request in enumerate(requests):
        indexes.setdefault(id(request), []).append(index)
    message: list[tuple[int, Response]] = []
    sent = time.monotonic()
    for request, response in failing_alone(model.answer, requests):
        message.append((indexes[id(request)].pop(0), response))
        if time.monotonic() - sent > SEND_S:
            yield message
            message, sent = [], time.monotonic()
    yield message

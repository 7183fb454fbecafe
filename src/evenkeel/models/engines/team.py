"""The worker processes that hold one model: started, replaced where they are lost, and ended."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from evenkeel import __version__
from evenkeel.errors import ModelUnreachable
from evenkeel.harness.progress import Progress, Silent
from evenkeel.models.engines.worker import Worker
from evenkeel.types import ModelRef

log = logging.getLogger(__name__)

SILENT_S = 30.0
"""Without any worker, after which a note says what is waited for."""
PATIENCE_S = 900.0
"""Without any worker, after which the run ends: time for a cluster to start machines."""
LOST_IN_A_ROW = 12
"""Workers that were lost without one answer between them: so many lose a lease to its last part, and more."""
NEVER_STARTED = 3


class Needs(NamedTuple):
    """The workers of a model."""

    workers: int
    gpus: float
    """Of each."""
    threads: int


@dataclass
class Member:
    """A worker process, from the driver's side."""

    actor: Any
    node: str = ""
    """Where it is; empty until it has started."""
    running: list[Any] = field(default_factory=list)
    """What it was sent and has not answered."""
    alone: bool = False
    """Whether it was sent a lease that lost a worker before: should it be lost too, that is the cause."""


class Team:
    """The workers that hold one model. Those that are lost are replaced."""

    def __init__(
        self,
        ray: Any,
        ref: ModelRef,
        identity: dict[str, Any],
        needs: Needs,
        *,
        concurrency: int | None,
    ) -> None:
        self.ray = ray
        self.needs = needs
        self.closed = False
        self.starting: dict[Any, Member] = {}
        self.ready: list[Member] = []
        self.watcher: Progress = Silent()
        self._ref = ref
        self._lost = 0
        self._ever_started = False
        self._alone_since = time.monotonic()
        self._noted = False
        gpus = {"num_gpus": needs.gpus} if needs.gpus else {}
        actor: Any = ray.remote(Worker).options(
            num_cpus=1, scheduling_strategy="SPREAD", max_restarts=0, max_task_retries=0, **gpus
        )
        self._start_one: Callable[[], Any] = lambda: actor.remote(
            ref,
            identity,
            concurrency=concurrency,
            threads=needs.threads,
            gpus=needs.gpus,
            folder=str(Path.cwd()),
            version=__version__,
        )
        for _ in range(needs.workers):
            self._start()

    def _start(self) -> None:
        member = Member(self._start_one())
        self.starting[member.actor.start.remote()] = member

    def started(self, ref: Any, node: str) -> None:
        member = self.starting.pop(ref)
        member.node, self._ever_started = node, True
        self.ready.append(member)

    def lose(self, member: Member, error: BaseException) -> None:
        """Take a worker out and start another in its place."""
        if member not in self.ready and member not in self.starting.values():
            return
        self.ready = [other for other in self.ready if other is not member]
        self.starting = {ref: other for ref, other in self.starting.items() if other is not member}
        self._end(member)
        self._lost += 1
        if not self.ready:
            self._alone_since = time.monotonic()
        if self._lost >= LOST_IN_A_ROW or (self._lost >= NEVER_STARTED and not self._ever_started):
            raise ModelUnreachable(
                f"the workers of '{self._ref.spec}' end before they answer; the last of {self._lost}: "
                f"{brief(error)}. Every node of the cluster needs the same evenkeel with the extras of the "
                "model, its files, and memory for it."
            )
        at = f" on {member.node}" if member.node else ""
        self.watcher.note(f"a worker{at} was lost; its requests go to others. {brief(error)}.")
        self._start()

    def answered(self) -> None:
        self._lost = 0

    def check_patience(self) -> None:
        """Say what is waited for where no worker has started, and give up in the end."""
        waited = time.monotonic() - self._alone_since
        if self.ready or waited < SILENT_S or (self._noted and waited < PATIENCE_S):
            return
        free, there = self.ray.available_resources(), self.ray.cluster_resources()
        state = ", ".join(
            f"{name} {free.get(name, 0):g} free of {there.get(name, 0):g}" for name in ("CPU", "GPU")
        )
        each = f"1 CPU{f' and {self.needs.gpus:g} GPU' if self.needs.gpus else ''}"
        text = f"no worker of '{self._ref.spec}' has started in {waited:,.0f} s: each needs {each}; {state}."
        if waited >= PATIENCE_S:
            raise ModelUnreachable(text)
        self._noted = True
        self.watcher.note(text)

    def notes(self) -> list[str]:
        """What the model has to say in each of its workers, once; what they logged is logged here."""
        with contextlib.suppress(self.ray.exceptions.RayError):
            if log.isEnabledFor(logging.INFO):
                logs = self.ray.get([member.actor.log_lines.remote() for member in self.ready], timeout=60)
                for member, lines in zip(self.ready, logs, strict=True):
                    for line in lines:
                        log.info("%s: %s", member.node, line)
            several = self.ray.get([member.actor.notes.remote() for member in self.ready], timeout=60)
            return list(dict.fromkeys(note for notes in several for note in notes))
        return []

    def close(self) -> dict[str, float]:
        """End all workers; the resources that they held."""
        members = [*self.ready, *self.starting.values()]
        self.ready, self.starting, self.closed = [], {}, True
        for member in members:
            self._end(member)
        return {"CPU": float(len(members)), "GPU": self.needs.gpus * len(members)}

    def _end(self, member: Member) -> None:
        with contextlib.suppress(Exception):  # it has ended, or the cluster has
            self.ray.kill(member.actor)


def brief(error: BaseException) -> str:
    """The first sentence of the last line of a message of Ray's, which has the cause."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[-1].partition(". ")[0] if lines else type(error).__name__)[:300].rstrip(".")

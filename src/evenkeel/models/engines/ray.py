"""Runs models in processes of a Ray cluster: an existing one, or one on this machine.

Each model is held by worker processes. The driver, which is this process, reads the requests, hands them out
in leases and passes the answers on as they come; it alone writes the journal. What a model on a server or a
file of recorded answers is asked does not go through the cluster, and neither does any key.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from evenkeel import __version__
from evenkeel.errors import ModelUnreachable, UsageError
from evenkeel.models.engines.engine import EngineOptions, LocalEngine
from evenkeel.models.engines.leases import ROWS, Lease, after_loss, divide, shared_out
from evenkeel.models.engines.worker import Failed, Worker
from evenkeel.models.local.weights import require_packages
from evenkeel.models.registry import backend, check_spec, split_spec
from evenkeel.run.model import Batched, Model
from evenkeel.run.progress import Progress, Silent
from evenkeel.types import ModelRef, Request, Response

LOOPBACK = "127.0.0.1"
CONNECT_S = 10.0
STORE_BYTES = 200_000_000
"""Of a cluster on this machine, for requests and answers on their way."""
AT_ONCE = 2
"""Leases of a worker: while it answers one, the next is on its way."""
WAIT_S = 1.0
SILENT_S = 30.0
"""Without any worker, after which a note says what is waited for."""
PATIENCE_S = 900.0
"""Without any worker, after which the run ends: time for a cluster to start machines."""
LOST_IN_A_ROW = 12
"""Workers that were lost without one answer between them: so many lose a lease to its last part, and more."""
NEVER_STARTED = 3
LOST = "the worker process ended each time it computed this"


class RayEngine(LocalEngine):
    """Opens models whose weights are held by workers; those that do not compute stay in this process."""

    def __init__(self, options: EngineOptions, *, concurrency: int | None = None) -> None:
        super().__init__(concurrency=concurrency)
        require_packages("ray", what="--engine ray", extra="ray")
        self._options = options
        self._ray: Any = None
        self._connected = False
        self._teams: list[Team] = []

    def _make(self, ref: ModelRef) -> Model:
        model = super()._make(ref)
        entry = backend(split_spec(ref.spec)[0].partition(":")[0])
        return RayModel(self, ref, model) if entry is not None and entry.computes else model

    def team(self, ref: ModelRef, model: Model) -> Team:
        """The workers of a model, started. Where the cluster is too small for the workers of several models,
        those that have nothing to do now are ended."""
        ray = self._connect()
        needs = self._needs(ray, ref)
        free = ray.available_resources()
        wanted = {"CPU": float(needs.workers), "GPU": needs.gpus * needs.workers}
        for team in [team for team in self._teams if not team.closed]:
            if all(free.get(name, 0.0) >= number for name, number in wanted.items() if number):
                break
            for name, number in team.close().items():
                free[name] = free.get(name, 0.0) + number
        team = Team(ray, ref, model.identity(), needs, concurrency=self._concurrency)
        self._teams.append(team)
        return team

    def _needs(self, ray: Any, ref: ModelRef) -> Needs:
        options, resources = self._options, ray.cluster_resources()
        gpus_there = resources.get("GPU", 0.0)
        device = getattr(check_spec(ref.spec, ref.args), "device", "auto")
        gpus = options.gpus_per_worker if options.gpus_per_worker is not None else float(gpus_there > 0)
        gpus = 0.0 if device == "cpu" else gpus
        if gpus > gpus_there and self._connected and not self._address():
            raise UsageError(
                f"--gpus-per-worker {gpus:g}: this machine has {gpus_there:g}. Give less, or a cluster with "
                "--ray-address."
            )
        nodes = sum(1 for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= 1)
        workers = options.workers or (max(1, int(gpus_there // gpus)) if gpus else max(1, nodes))
        given = os.environ.get("OMP_NUM_THREADS", "")
        threads = int(given) if given.isdecimal() and int(given) else int(resources.get("CPU", 1) // workers)
        return Needs(workers, gpus, max(1, threads))

    def _address(self) -> str:
        return self._options.ray_address or os.environ.get("RAY_ADDRESS", "")

    def _connect(self) -> Any:
        """Ray, connected. A connection that the caller made before is used, and left open."""
        if self._ray is not None:
            return self._ray
        os.environ.update(RAY_USAGE_STATS_ENABLED="0")  # before the import: nothing is reported to anyone
        import ray

        if not ray.is_initialized():
            address = self._address()
            _check_contact(address)
            where: dict[str, Any] = {"address": address}
            if not address:
                where = {"address": "local", "include_dashboard": False, "object_store_memory": STORE_BYTES}
            try:
                with _own_signals(), contextlib.nullcontext() if address else _loopback():
                    ray.init(**where, log_to_driver=False, logging_level="CRITICAL")
            except Exception as error:
                at = f"the Ray cluster at {address}" if address else "a Ray cluster on this machine"
                raise ModelUnreachable(f"{at} cannot be used: {_brief(error)}.") from error
            self._connected = True
            self._ray = ray
            _silence()
            if not address and any(node["NodeManagerAddress"] != LOOPBACK for node in ray.nodes()):
                raise UsageError(
                    f"Ray {ray.__version__} would let other machines use a cluster of this one. Start it "
                    "yourself (ray start --head), and give --ray-address."
                )
        self._ray = ray
        return ray

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        for team in self._teams:
            team.close()
        if self._connected:
            with _own_signals():
                self._ray.shutdown()
            self._connected, self._ray = False, None


def _check_contact(address: str) -> None:
    """Refuse an address at which nothing listens, for which Ray would wait a long time."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host:  # empty, auto, local
        return
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_S):
            pass
    except ValueError:
        raise UsageError(f"--ray-address {address}: give HOST:PORT or auto.") from None
    except OSError as error:
        raise ModelUnreachable(f"no Ray cluster answers at {address}: {error.strerror or error}.") from None


@contextlib.contextmanager
def _own_signals() -> Iterator[None]:
    """Keep the handler of SIGTERM, which Ray replaces."""
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread() and handler is not None:
            signal.signal(signal.SIGTERM, handler)


@contextlib.contextmanager
def _loopback() -> Iterator[None]:
    """Have a cluster of this machine listen on it alone: who reaches a cluster can run programs on it. Ray
    does so where it does not form clusters (macOS, Windows), and takes no such address from its caller."""
    from ray._private import ray_constants

    before = ray_constants.ENABLE_RAY_CLUSTER
    ray_constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = before


def _silence() -> None:
    """Stop Ray from writing to standard output what its nodes report, such as the loss of a worker: there are
    figures, or JSON. No setting does that."""
    from ray._private import worker

    worker.print_to_stdstream = lambda *args, **kwargs: None


def _brief(error: BaseException) -> str:
    """The first sentence of the last line of a message of Ray's, which has the cause."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[-1].partition(". ")[0] if lines else type(error).__name__)[:300].rstrip(".")


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
                f"{_brief(error)}. Every node of the cluster needs the same evenkeel with the extras of the "
                "model, its files, and memory for it."
            )
        at = f" on {member.node}" if member.node else ""
        self.watcher.note(f"a worker{at} was lost; its requests go to others. {_brief(error)}.")
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
        """What the model has to say in each of its workers, once."""
        with contextlib.suppress(self.ray.exceptions.RayError):
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


class RayModel:
    """A model whose weights are in worker processes. What is known without weights is asked of a model here,
    which is never loaded."""

    def __init__(self, engine: RayEngine, ref: ModelRef, model: Model) -> None:
        self.capabilities = model.capabilities
        self._engine = engine
        self._ref = ref
        self._model = model
        self._team: Team | None = None
        self._progress: Progress = Silent()
        self._notes: list[str] = []

    def identity(self) -> dict[str, Any]:
        return self._model.identity()

    def probe(self, needs: frozenset[Any]) -> None:
        self._model.probe(needs)

    def watch(self, progress: Progress) -> None:
        self._progress = progress

    def notes(self) -> list[str]:
        return self._notes

    def answer(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Response]]:
        if self._team is None or self._team.closed:
            self._team = self._engine.team(self._ref, self._model)
        team = self._team
        team.watcher = self._progress
        window = self._model.window if isinstance(self._model, Batched) else 0
        try:
            yield from Exchange(team, requests, window).answers()
        except BaseException:
            team.close()  # what it still computes, nobody waits for
            raise
        self._notes = list(dict.fromkeys([*self._notes, *team.notes()]))

    def close(self) -> None:
        if self._team is not None:
            self._team.close()
        self._model.close()


class Job(NamedTuple):
    """What a worker was sent: a lease, or a window of requests to be cut into portions."""

    member: Member
    lease: Lease
    planning: bool


class Exchange:
    """One stream of requests, handed out to the workers of a model."""

    def __init__(self, team: Team, requests: Iterable[Request], window: int) -> None:
        self._team = team
        self._requests = iter(requests)
        self._window = window
        self._ended = False
        self._unplanned: deque[Lease] = deque()
        self._leases: deque[Lease] = deque()
        self._jobs: dict[Any, Job] = {}

    def answers(self) -> Iterator[tuple[Request, Response]]:
        while True:
            self._read()
            self._hand_out()
            if self._ended and not (self._jobs or self._leases or self._unplanned):
                return
            yield from self._collect()

    def _read(self) -> None:
        """Read on while the workers can use more. A model that computes requests together is asked how it
        would cut them, so that the digits are those of a run without a cluster."""
        team = self._team
        planning = self._unplanned or any(job.planning for job in self._jobs.values())
        while not self._ended and not planning and len(self._leases) < AT_ONCE * len(team.ready):
            requests = list(islice(self._requests, self._window or ROWS))
            self._ended = not requests
            if requests and self._window:
                self._unplanned.append(Lease(requests))
                return
            if requests:
                self._leases.append(Lease(requests))

    def _hand_out(self) -> None:
        members = self._team.ready
        for busy in range(AT_ONCE):
            for member in members:
                if len(member.running) > busy or member.alone:
                    continue
                if self._unplanned:
                    self._send(member, self._unplanned.popleft(), planning=True)
                # A worker gets a second lease only where there are enough for all others.
                elif self._leases and (
                    not busy or (len(self._leases) >= len(members) and not self._leases[0].losses)
                ):
                    self._send(member, self._leases.popleft(), planning=False)

    def _send(self, member: Member, lease: Lease, *, planning: bool) -> None:
        method = member.actor.portions if planning else member.actor.answer
        ref = method.remote(lease.requests)
        member.running.append(ref)
        member.alone = bool(lease.losses)
        self._jobs[ref] = Job(member, lease, planning)

    def _collect(self) -> Iterator[tuple[Request, Response]]:
        """Wait for one result and take what has come."""
        ray, team = self._team.ray, self._team
        waiting = [*self._jobs, *team.starting]
        done, _ = ray.wait(waiting, num_returns=1, timeout=WAIT_S)
        if not done:
            team.check_patience()
            return
        # All there is, in the order of sending: what a worker answered before it was lost is not lost.
        done, _ = ray.wait(waiting, num_returns=len(waiting), timeout=0)
        for ref in [ref for ref in waiting if ref in set(done)]:
            if ref not in self._jobs and ref not in team.starting:
                continue  # it was handed on with the rest of a lost worker
            try:
                result = ray.get(ref)
            except ray.exceptions.RayError as error:
                yield from self._lost(ref, error)
                continue
            if isinstance(result, Failed):
                raise (ModelUnreachable if result.unreachable else UsageError)(result.problem)
            if ref in team.starting:
                team.started(ref, result)
                continue
            member, lease, planning = self._jobs.pop(ref)
            member.running.remove(ref)
            member.alone = False
            if planning:
                self._cut(lease, result)
            else:
                team.answered()
                yield from zip(lease.requests, result, strict=True)

    def _cut(self, lease: Lease, portions: list[list[int]]) -> None:
        """Make leases of portions, and of what a backend left out of them."""
        requests, included = lease.requests, {at for part in portions for at in part}
        rest = [request for at, request in enumerate(requests) if at not in included]
        parts = [*([requests[at] for at in part] for part in portions), *divide(rest, ROWS)]
        self._leases.extend(shared_out(parts, self._team.needs.workers))

    def _lost(self, ref: Any, error: BaseException) -> Iterator[tuple[Request, Response]]:
        """Hand on what a lost worker had; any of it may be the cause."""
        team = self._team
        if ref in team.starting:
            team.lose(team.starting[ref], error)
            return
        member = self._jobs[ref].member
        jobs = [self._jobs.pop(each) for each in member.running]
        member.running.clear()
        for _, lease, planning in jobs:
            if planning:
                if lease.losses:
                    self._cut(lease, [])
                else:
                    self._unplanned.appendleft(Lease(lease.requests, 1))
            else:
                rest = after_loss(lease)
                self._leases.extendleft(rest)
                if not rest:
                    yield from ((r, Response(status="error", reason=LOST)) for r in lease.requests)
        team.lose(member, error)

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
from collections.abc import Iterable, Iterator
from typing import Any

from evenkeel.errors import ModelUnreachable, UsageError
from evenkeel.files.remote.telemetry import switch_off_telemetry
from evenkeel.harness.model import Batched, Model
from evenkeel.harness.progress import Progress, Silent
from evenkeel.models.engines.engine import EngineOptions, LocalEngine
from evenkeel.models.engines.exchange import Exchange
from evenkeel.models.engines.team import Needs, Team, brief
from evenkeel.models.local.weights import require_packages
from evenkeel.models.registry import backend, check_spec, split_spec
from evenkeel.types import Capability, ModelRef, Request, Response

LOOPBACK = "127.0.0.1"
CONNECT_S = 10.0
STORE_BYTES = 200_000_000
"""Of a cluster on this machine, for requests and answers on their way."""


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
        switch_off_telemetry()
        import ray

        if not ray.is_initialized():
            address = self._address()
            _check_contact(address)
            where: dict[str, Any] = {"address": address}
            if not address:
                where = {"address": "local", "include_dashboard": False, "object_store_memory": STORE_BYTES}
            try:
                with _own_signals(), contextlib.nullcontext() if address else _private():
                    ray.init(**where, log_to_driver=False, logging_level="CRITICAL")
            except Exception as error:
                at = f"the Ray cluster at {address}" if address else "a Ray cluster on this machine"
                raise ModelUnreachable(f"{at} cannot be used: {brief(error)}.") from error
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
def _private() -> Iterator[None]:
    """Have a cluster of this machine listen on it alone, and ask nobody what it is. Ray has no settings for
    either.

    Who reaches a cluster can run programs on it: Ray takes the loopback address where it does not form
    clusters (macOS, Windows). Without its dashboard Ray still starts the dashboard's process, for the usage
    report alone, and that asks the metadata servers of clouds before it looks whether to report.
    """
    from ray._private import ray_constants, services

    before = ray_constants.ENABLE_RAY_CLUSTER, services.start_api_server
    ray_constants.ENABLE_RAY_CLUSTER = False
    services.start_api_server = lambda *args, **kwargs: ("", None)
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER, services.start_api_server = before


def _silence() -> None:
    """Stop Ray from writing to standard output what its nodes report, such as the loss of a worker: there are
    figures, or JSON. No setting does that."""
    from ray._private import worker

    worker.print_to_stdstream = lambda *args, **kwargs: None


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

    def probe(self, needs: frozenset[Capability]) -> None:
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

"""Runs models in processes of a Ray cluster: an existing one, or one on this machine.

Each model is held by a pool of worker processes. The driver, which is this process, reads the requests, hands
them out and passes the answers on as they come; it alone writes the journal. What a model on a server or a
file of recorded answers is asked does not go through the cluster, and neither does any key.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from sealegs import __version__
from sealegs.errors import ModelUnreachable, UsageError
from sealegs.files.remote.telemetry import switch_off_telemetry
from sealegs.harness.model import Model
from sealegs.harness.progress import Progress
from sealegs.models.engines.engine import Engine, RayOptions
from sealegs.models.engines.pool import Pool, brief
from sealegs.models.engines.worker import Worker, WorkerSetup
from sealegs.models.local.weights import require_packages
from sealegs.models.registry import backend, check_spec, split_spec
from sealegs.types import Capability, ModelRef, Request, Response

LOOPBACK = "127.0.0.1"
LOOPBACK_ONLY = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""Set to 0 before Ray is imported, a cluster of this machine listens on the loopback address: whoever reaches
a cluster can run programs on it."""
CONNECT_S = 10.0
STORE_BYTES = 200_000_000
"""Of a cluster on this machine, for requests and answers on their way."""


class RayEngine(Engine):
    """Opens models whose weights are held by workers; those that do not compute stay in this process."""

    def __init__(self, options: RayOptions, *, concurrency: int | None = None) -> None:
        super().__init__(concurrency=concurrency)
        require_packages("ray", what="--engine ray", extra="ray")
        self._options = options
        self._address = options.address or os.environ.get("RAY_ADDRESS", "")
        self._ray: Any = None
        self._connected = False
        self._pools: list[Pool] = []

    def _make(self, ref: ModelRef) -> Model:
        model = super()._make(ref)
        entry = backend(split_spec(ref.spec)[0].partition(":")[0])
        return RayModel(self, ref, model) if entry is not None and entry.computes else model

    def pool(self, ref: ModelRef, model: Model, progress: Progress) -> Pool:
        """The workers of a model, started. Where the cluster has no room for them, those of other models,
        which have nothing to do now, are ended."""
        ray = self._connect()
        workers, gpus, threads = self._needs(ray, ref)
        free = ray.available_resources()
        if free.get("CPU", 0.0) < workers or free.get("GPU", 0.0) < gpus * workers:
            self._close_pools()
        resources = {"num_gpus": gpus} if gpus else {}
        actor: Any = ray.remote(Worker).options(
            num_cpus=1, scheduling_strategy="SPREAD", max_restarts=0, max_task_retries=0, **resources
        )
        setup = WorkerSetup(
            ref, model.identity(), self._concurrency, threads, gpus, str(Path.cwd()), __version__
        )
        pool = Pool(ray, lambda: actor.remote(setup), workers, spec=ref.spec)
        needs, total = f"1 CPU{f' and {gpus:g} GPU' if gpus else ''}", ray.cluster_resources()
        progress.note(
            f"starting {workers} worker(s) of '{ref.spec}' with {needs} each; the cluster has "
            f"{total.get('CPU', 0):g} CPU and {total.get('GPU', 0):g} GPU"
        )
        self._pools.append(pool)
        return pool

    def _needs(self, ray: Any, ref: ModelRef) -> tuple[int, float, int]:
        """How many workers a model has, and the GPUs and threads of each."""
        options, resources = self._options, ray.cluster_resources()
        total = resources.get("GPU", 0.0)
        gpus = options.gpus_per_worker if options.gpus_per_worker is not None else float(total > 0)
        if getattr(check_spec(ref.spec, ref.args), "device", "auto") == "cpu":
            gpus = 0.0
        if gpus > total and self._connected and not self._address:
            raise UsageError(
                f"--engine-arg gpus_per_worker={gpus:g}: this machine has {total:g}. Give less, or a cluster "
                "with --engine-arg address=HOST:PORT."
            )
        nodes = sum(1 for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= 1)
        workers = options.workers or max(1, int(total // gpus) if gpus else nodes)
        given = os.environ.get("OMP_NUM_THREADS", "")
        threads = int(given) if given.isdecimal() and int(given) else int(resources.get("CPU", 1) // workers)
        return workers, gpus, max(1, threads)

    def _connect(self) -> Any:
        """Ray, connected. A connection that the caller made before is used, and left open."""
        if self._ray is not None:
            return self._ray
        switch_off_telemetry()
        address = self._address
        where: dict[str, Any] = {"address": address}
        if not address:
            os.environ.setdefault(LOOPBACK_ONLY, "0")
            where = {"address": "local", "include_dashboard": False, "object_store_memory": STORE_BYTES}
        import ray

        if not ray.is_initialized():
            _check_contact(address)
            try:
                with _sigterm_handler_kept():
                    ray.init(**where, log_to_driver=False, logging_level="CRITICAL")
            except Exception as error:
                at = f"the Ray cluster at {address}" if address else "a Ray cluster on this machine"
                raise ModelUnreachable(f"{at} cannot be used: {brief(error)}.") from error
            self._connected, self._ray = True, ray
            if not address and any(node["NodeManagerAddress"] != LOOPBACK for node in ray.nodes()):
                raise UsageError(
                    f"Ray {ray.__version__} would let other machines use a cluster of this one. Set "
                    f"{LOOPBACK_ONLY}=0 before Ray is imported, or start a cluster yourself (ray start "
                    "--head) and give --engine-arg address=HOST:PORT."
                )
        self._ray = ray
        return ray

    def _close_pools(self) -> None:
        for pool in self._pools:
            pool.close()

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self._close_pools()
        if self._connected:
            with _sigterm_handler_kept():
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
        raise UsageError(f"--engine-arg address={address}: give HOST:PORT or auto.") from None
    except OSError as error:
        raise ModelUnreachable(f"no Ray cluster answers at {address}: {error.strerror or error}.") from None


@contextlib.contextmanager
def _sigterm_handler_kept() -> Iterator[None]:
    """Ray replaces the handler of SIGTERM."""
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread() and handler is not None:
            signal.signal(signal.SIGTERM, handler)


class RayModel:
    """A model whose weights are in worker processes. What is known without weights is asked of a model here,
    which is never loaded."""

    def __init__(self, engine: RayEngine, ref: ModelRef, model: Model) -> None:
        self.capabilities = model.capabilities
        self._engine = engine
        self._ref = ref
        self._model = model
        self._pool: Pool | None = None
        self._progress = Progress()
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
        if self._pool is None or self._pool.closed:
            self._pool = self._engine.pool(self._ref, self._model, self._progress)
        pool = self._pool
        pool.watcher = self._progress
        try:
            yield from pool.answers(requests)
        except BaseException:
            pool.close()  # what it still computes, nobody waits for
            raise
        self._notes = list(dict.fromkeys([*self._notes, *pool.notes()]))

    def close(self) -> None:
        if self._pool is not None:
            self._pool.close()
        self._model.close()

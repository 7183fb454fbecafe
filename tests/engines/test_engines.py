"""Engines and a worker's part, without a cluster."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import sealegs as sl
from engines.plugin import Scripted
from sealegs.errors import ModelUnreachable, UsageError
from sealegs.models.engines.pool import Pool
from sealegs.models.engines.worker import Worker, WorkerSetup
from sealegs.types import Generate, ModelRef, Request, Response, Sampling


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Worker:
    """A worker in this process, whose model is the scripted one."""

    def open_scripted(ref: ModelRef, *, concurrency: int | None = None) -> Scripted:
        return Scripted(Scripted.Options(**ref.args))

    monkeypatch.setattr("sealegs.models.registry.open_model", open_scripted)
    for variable in ("OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES"):  # which a worker sets for its process
        monkeypatch.setenv(variable, os.environ.get(variable, ""))
    return make_worker({"spec": "scripted", "shout": False})


def make_worker(identity: dict[str, Any], *, version: str = sl.__version__) -> Worker:
    return Worker(WorkerSetup(ModelRef("scripted"), identity, None, 1, 0.0, str(Path.cwd()), version))


def prompts(*prompts: str) -> list[Request]:
    return [Generate(prompt=prompt, sampling=Sampling()) for prompt in prompts]


def answers(worker: Worker, requests: list[Request]) -> dict[int, Response]:
    worker.start()
    return dict(pair for message in worker.answer(requests) for pair in message)


def test_a_row_that_raises_fails_alone(worker: Worker) -> None:
    responses = answers(worker, prompts("one", "[raise]", "two"))
    assert [responses[index].status for index in range(3)] == ["ok", "error", "ok"]
    assert "a row that no model can read" in responses[1].reason
    assert responses[2].text == "owt 0"


def test_one_object_asked_twice_is_answered_twice(worker: Worker) -> None:
    responses = answers(worker, prompts("one") * 2)
    assert [responses[index].text for index in range(2)] == ["eno 0", "eno 0"]


def test_what_ends_a_run_is_not_a_rows_error(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Scripted, requests: Iterable[Request]) -> Iterator[tuple[Request, Response]]:
        raise UsageError("its files are gone")

    monkeypatch.setattr(Scripted, "answer", refuse)
    worker.start()
    with pytest.raises(UsageError, match="its files are gone"):
        list(worker.answer(prompts("one", "two")))


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize(
    ("shout", "version", "problem"),
    [
        (True, sl.__version__, "shout: False there, True on this machine"),
        (False, "0.0.0", "install the same on both"),
    ],
)
def test_another_model_or_version_is_refused(shout: bool, version: str, problem: str) -> None:
    other = make_worker({"spec": "scripted", "shout": shout}, version=version)
    with pytest.raises(UsageError, match=problem):
        other.start()


class DeadCluster:
    """Ray, as far as a pool sees it, when the last node has died; at `port` its head."""

    exceptions = SimpleNamespace(RayError=RuntimeError)

    def __init__(self, port: int) -> None:
        self._head = f"127.0.0.1:{port}"

    def get_runtime_context(self) -> SimpleNamespace:
        return SimpleNamespace(gcs_address=self._head)

    def wait(self, refs: list[Any], **_: Any) -> tuple[list[Any], list[Any]]:
        return [], refs

    def nodes(self) -> list[dict[str, Any]]:
        return [{"Alive": False, "Resources": {"CPU": 8}}, {"Alive": True, "Resources": {}}]


@pytest.mark.parametrize(
    ("listening", "lost"),
    [(True, "no node of the Ray cluster"), (False, "the head of the Ray cluster")],
)
def test_a_cluster_without_node_or_head_ends_the_run_with_what_to_do(listening: bool, lost: str) -> None:
    worker = SimpleNamespace(start=SimpleNamespace(remote=object))
    with socket.create_server(("127.0.0.1", 0)) as head:
        port = head.getsockname()[1]
        if not listening:
            head.close()
        workers = Pool(DeadCluster(port), lambda: worker, 2, spec="hf:tiny", patience_s=0.0)
        request = Generate(prompt="a", sampling=Sampling())
        with pytest.raises(ModelUnreachable, match=rf"{lost}.*ray start"):
            list(workers.answers([request]))

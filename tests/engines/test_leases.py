"""Leases, workers and portions, without a cluster."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import evenkeel as ek
from engines.plugin import Scripted
from evenkeel.errors import MissingExtra, UsageError
from evenkeel.models.engines.engine import EngineOptions, load_engine
from evenkeel.models.engines.leases import Lease, after_loss, shared_out
from evenkeel.models.engines.worker import Failed, Worker
from evenkeel.types import Embed, Generate, LogLikelihood, ModelRef, Request, Response, Sampling
from models.tiny import open_hf, tiny_model


def texts(count: int) -> list[Request]:
    return [Embed(text=f"text {number}") for number in range(count)]


def test_a_lost_lease_is_divided_until_the_cause_is_alone() -> None:
    poison = texts(100)[37]
    losses = 0
    answered: list[Request] = []
    waiting = [Lease(texts(100))]
    while waiting:
        lease = waiting.pop()
        if poison in lease.requests:
            losses += 1
            waiting += after_loss(lease)
        else:
            answered += lease.requests
    assert set(answered) == {request for request in texts(100) if request != poison}
    assert len(answered) == 99
    assert losses <= 5


def test_a_lease_lost_by_chance_is_handed_on_whole() -> None:
    [again] = after_loss(Lease(texts(16)))
    assert again.requests == texts(16)


def test_large_portions_are_divided_where_workers_would_be_idle() -> None:
    assert [len(lease.requests) for lease in shared_out([texts(1000)], workers=4)] == [250] * 4
    assert [len(lease.requests) for lease in shared_out([texts(16)] * 2, workers=4)] == [16, 16]
    assert [len(lease.requests) for lease in shared_out([texts(100)] * 4, workers=4)] == [100] * 4


def test_portions_of_a_causal_model_have_the_digits_of_the_whole(tmp_path: Path) -> None:
    model = open_hf(tiny_model(tmp_path / "tiny"), concurrency=4)
    prefixes = [" ".join(["the keel holds"] * (1 + number % 7)) + f" {number}" for number in range(30)]
    requests: list[Request] = [
        *(LogLikelihood(prefix=prefix, continuation=" a course") for prefix in prefixes),
        *(Generate(prompt=prefix, sampling=Sampling(length_of=" a course")) for prefix in prefixes[:9]),
        *(
            Generate(prompt=prefix, sampling=Sampling(max_tokens=6, temperature=0.7), repeat=repeat)
            for prefix in prefixes[:5]
            for repeat in range(3)
        ),
        *(Embed(text=prefix) for prefix in prefixes),
        LogLikelihood(prefix="", continuation=""),
    ]
    check_portions(model, requests)


def test_portions_of_an_embedder_have_the_digits_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenkeel.models.sbert.PART", 16)
    model = ek.load_model("embedded-embedder", batch_tokens=64)
    check_portions(model, [Embed(text=f"boat {number} " * (1 + number % 11)) for number in range(40)])


def check_portions(model: Any, requests: list[Request]) -> None:
    whole = {id(request): response for request, response in model.answer(requests)}
    portions = [portion for portion in model.portions(requests) if portion]
    assert sorted(id(r) for portion in portions for r in portion) == sorted(map(id, requests))
    assert len(portions) > 3
    for portion in reversed(portions):
        for request, response in model.answer(portion):
            assert response == whole[id(request)]


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Worker:
    """A worker in this process, whose model is the scripted one."""

    def open_scripted(ref: ModelRef, *, concurrency: int | None = None) -> Scripted:
        return Scripted(Scripted.Options(**ref.args))

    monkeypatch.setattr("evenkeel.models.registry.open_model", open_scripted)
    for variable in ("OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES"):  # which a worker sets for its process
        monkeypatch.setenv(variable, os.environ.get(variable, ""))
    return make_worker({"spec": "scripted", "shout": False})


def make_worker(identity: dict[str, Any], *, version: str = ek.__version__) -> Worker:
    ref = ModelRef("scripted")
    return Worker(
        ref, identity, concurrency=None, threads=1, gpus=0.0, folder=str(Path.cwd()), version=version
    )


def prompts(*prompts: str) -> list[Request]:
    return [Generate(prompt=prompt, sampling=Sampling()) for prompt in prompts]


def test_a_row_that_raises_fails_alone(scripted: Worker) -> None:
    assert isinstance(scripted.start(), str)
    responses = scripted.answer(prompts("one", "[raise]", "two"))
    assert isinstance(responses, list)
    assert [response.status for response in responses] == ["ok", "error", "ok"]
    assert "a row that no model can read" in responses[1].reason
    assert responses[2].text == "owt 0"


def test_a_worker_gives_what_its_model_logged_once(scripted: Worker) -> None:
    scripted.start()
    logging.getLogger("evenkeel.models.hf").info("%s rows", 16)
    assert scripted.log_lines() == ["16 rows"]
    assert scripted.log_lines() == []


def test_requests_that_cannot_be_cut_into_portions_are_answered(
    scripted: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Scripted, requests: list[Request]) -> list[list[Request]]:
        raise ValueError("a row that no tokenizer can read")

    monkeypatch.setattr(Scripted, "window", 8, raising=False)
    monkeypatch.setattr(Scripted, "portions", fail, raising=False)
    scripted.start()
    assert scripted.portions(prompts("one", "two")) == []


def test_one_object_asked_twice_is_answered_twice(scripted: Worker) -> None:
    scripted.start()
    responses = scripted.answer(prompts("one") * 2)
    assert isinstance(responses, list)
    assert [response.text for response in responses] == ["eno 0", "eno 0"]


def test_a_model_that_gives_no_answer_leaves_an_error(
    scripted: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(self: Scripted, requests: Iterable[Request]) -> Iterator[tuple[Request, Response]]:
        return iter(())

    monkeypatch.setattr(Scripted, "answer", silent)
    scripted.start()
    [response] = scripted.answer(prompts("one"))  # type: ignore[misc]
    assert (response.status, response.reason) == ("error", "the model gave no answer")


def test_what_ends_a_run_is_not_a_rows_error(scripted: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Scripted, requests: Iterable[Request]) -> Iterator[tuple[Request, Response]]:
        raise UsageError("its files are gone")

    monkeypatch.setattr(Scripted, "answer", refuse)
    scripted.start()
    assert scripted.answer(prompts("one", "two")) == Failed("its files are gone")


@pytest.mark.usefixtures("scripted")
def test_another_model_of_the_same_name_is_refused() -> None:
    failed = make_worker({"spec": "scripted", "shout": True}).start()
    assert isinstance(failed, Failed)
    assert "shout is False there and True on this machine" in failed.problem


@pytest.mark.usefixtures("scripted")
def test_another_version_of_evenkeel_is_refused() -> None:
    failed = make_worker({"spec": "scripted", "shout": False}, version="0.0.0").start()
    assert isinstance(failed, Failed)
    assert "install the same on both" in failed.problem


def test_after_an_error_of_the_device_the_process_ends(
    scripted: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Ended(Exception):
        pass

    def broken(self: Scripted, requests: Iterable[Request]) -> Iterator[tuple[Request, Response]]:
        raise RuntimeError("CUDA error: device-side assert triggered")

    def leave(code: int) -> None:
        raise Ended

    monkeypatch.setattr(Scripted, "answer", broken)
    monkeypatch.setattr("os._exit", leave)
    scripted.start()
    with pytest.raises(Ended):
        scripted.answer(prompts("one"))


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        (("rai", None, None, None), "unknown engine 'rai'. Did you mean 'ray'?"),
        (("local", None, 2, None), "--workers goes with --engine ray"),
        (("local", "auto", None, None), "--ray-address goes with --engine ray"),
        (("ray", None, 0, None), "workers"),
        (("ray", None, None, -1.0), "gpus_per_worker"),
    ],
)
def test_options_of_another_engine_are_refused(values: tuple[Any, ...], problem: str) -> None:
    with pytest.raises(UsageError) as raised:
        EngineOptions.of(*values)
    assert problem in str(raised.value)


def test_without_ray_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"evenkeel-bench\[ray\]"):
        load_engine(EngineOptions(engine="ray"))

"""Batches against the faults of `faults.py`, in every step: the answers are right, and no batch is created,
and paid for, twice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from aiohttp import web

from batches import BatchServer
from evenkeel.types import Request, Response
from faults import FAULTS, STATUSES, status_fault
from models.test_batches import Notes, ask, chats, live_answers

pytestmark = pytest.mark.slow

KEY = "sk-loop-4f9a0c2d7b61e835"
ANSWERS = ("slow", "another type", "twice")
TRANSIENT = (*STATUSES, "429 0.05", "503 -60", "reset in the body", "cut in the body", "not HTTP")
"""Faults after which a call is tried again; what is in doubt after a batch was created is not."""
GARBAGE = ("broken", "a string", "nested", "gzip cut")
STEPS = {
    "upload": lambda method, path: method == "POST" and path.endswith("/files"),
    "create": lambda method, path: method == "POST" and path.endswith("/batches"),
    "look": lambda method, path: "/batches/" in path and not path.endswith("/results"),
    "read": lambda method, path: path.endswith(("/content", "/results")),
}
REQUESTS = chats(3)


class FaultyBatches(BatchServer):
    """Answers the calls of one step with faults, one after the other."""

    def __init__(self, step: str, faults: tuple[str, ...]) -> None:
        super().__init__()
        self._is_step: Callable[[str, str], bool] = STEPS[step]
        self.faults = list(faults)

    async def _reply(self, request: web.BaseRequest, path: str, data: bytes) -> web.StreamResponse | None:
        if not self.faults or not self._is_step(request.method, path):
            return await super()._reply(request, path, data)
        fault = self.faults.pop(0)
        if (status := status_fault(fault)) is not None:
            return self._error(status[0], f"the keel is cracked {KEY}", "", wait=status[1] or "0")
        body = b""
        if fault in ANSWERS:
            reply = await super()._reply(request, path, data)
            assert isinstance(reply, web.Response)
            assert isinstance(reply.body, bytes)
            body = reply.body
        return await FAULTS[fault](request, lambda: body)


@pytest.fixture(scope="module")
def live() -> dict[Request, Response]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOOP_KEY", KEY)
        return live_answers(REQUESTS)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOOP_KEY", KEY)
    monkeypatch.setenv("EVENKEEL_BATCH_POLL", "0")


def survives(
    folder: Path, live: dict[Request, Response], provider: str, step: str, *faults: str, timeout: float = 60
) -> None:
    notes = Notes()
    with FaultyBatches(step, faults) as server:
        answers = ask(server, folder, REQUESTS, provider=provider, notes=notes, timeout=timeout)
    assert server.faults == []
    assert answers == live, faults
    assert len(server.batches) == 1, faults
    assert "4f9a0c2d" not in " ".join(notes.notes)


@pytest.mark.parametrize(
    ("provider", "step"),
    [("openai", step) for step in STEPS] + [("anthropic", step) for step in list(STEPS)[1:]],
)
def test_a_step_that_fails_in_every_way_costs_nothing(
    provider: str, step: str, live: dict[Request, Response], tmp_path: Path
) -> None:
    faults = STATUSES if step == "create" else (*TRANSIENT, *GARBAGE)
    for number, at in enumerate(range(0, len(faults), 4)):
        survives(tmp_path / str(number), live, provider, step, *faults[at : at + 4])
    for fault in ANSWERS:
        survives(tmp_path / fault, live, provider, step, fault)

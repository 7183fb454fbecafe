"""The path of a request: past the journal, within the budget, to a model, into the journal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from evenkeel.harness.budget import Budget
from evenkeel.harness.limits import Limits
from evenkeel.harness.progress import Silent
from evenkeel.harness.runner import RequestPath
from evenkeel.journal.journal import Journal
from evenkeel.types import Capability, Generate, Request, Response, Sampling


class Echo:
    """A model that answers with the prompt."""

    capabilities: frozenset[Capability] = frozenset({"generate"})

    def identity(self) -> dict[str, Any]:
        return {"spec": "echo"}

    def probe(self, needs: frozenset[Capability]) -> None: ...

    def answer(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Response]]:
        for request in requests:
            assert isinstance(request, Generate)
            yield request, Response(status="ok", text=str(request.prompt))

    def close(self) -> None: ...


class Counted(Silent):
    """How far a phase is."""

    total = done = 0

    def phase(self, title: str, *, total: int, done: int) -> None:
        self.total, self.done = total, done

    def answered(self, response: Response, *, usd: float) -> None:
        self.done += 1


def test_equal_requests_are_asked_and_counted_once(tmp_path: Path) -> None:
    requests = [Generate(prompt=f"question {n % 5}", sampling=Sampling()) for n in range(10)]
    model = Echo()
    for _ in range(2):  # the second time all are in the journal
        progress = Counted()
        with closing(Journal(tmp_path / "journal.sqlite")) as journal:
            path = RequestPath(
                journal, {"model": model.identity()}, opener=lambda role: model, budget=Budget(Limits()),
                progress=progress,
            )  # fmt: skip
            responses = path.answer(requests)
        assert (progress.done, progress.total) == (5, 5)
        assert [response.text for response in responses] == [request.prompt for request in requests]
        assert path.budget.requests == 5

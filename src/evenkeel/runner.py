"""From samples to a summary: requests → responses → scores, over one road for every benchmark."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, TypeAlias, TypeVar

import msgspec

from evenkeel.benchmarks import Benchmark
from evenkeel.budget import Budget
from evenkeel.cache import slug
from evenkeel.errors import BudgetReached
from evenkeel.journal import Journal, make_key, model_digest
from evenkeel.models import Model
from evenkeel.progress import Progress
from evenkeel.store import Run, RunFolder
from evenkeel.types import Answered, Record, Request, Response, RunSpec, Sample, Score

CHUNK = 25_000  # requests scored at a time: large enough for bulk work, small enough for memory

T = TypeVar("T")

Opener: TypeAlias = Callable[[str], Model]
"""Gives the model of a role, loading nothing before it is asked."""

TITLES = {"model": "asking", "embedder": "embedding", "judge": "judging"}


class Road:
    """The way every request takes: past the journal, within the budget, to a model, into the journal."""

    def __init__(
        self,
        journal: Journal,
        identities: Mapping[str, dict[str, Any]],
        *,
        opener: Opener,
        budget: Budget,
        progress: Progress,
        titles: Mapping[str, str] = TITLES,
    ) -> None:
        self.journal = journal
        self.budget = budget
        self._opener = opener
        self._progress = progress
        self._titles = titles
        self._digests = {role: model_digest(identity) for role, identity in identities.items()}

    def ask(self, role: str, requests: Callable[[], Iterator[Request]]) -> None:
        """Have every request answered that the journal does not hold. `requests` may be iterated anew."""
        total = sum(1 for _ in requests())
        pending = total if self.journal.empty else sum(1 for _ in self._unanswered(role, requests()))
        self._progress.phase(self._titles.get(role, role), total=total, done=total - pending)
        if not pending:
            return
        model = self._opener(role)
        while self._send(model, role, self._unanswered(role, requests())):
            self.journal.flush()
        self.journal.flush()

    def _send(self, model: Model, role: str, requests: Iterator[Request]) -> bool:
        """One pass over the stream; True where a limit held back what may pass once others are settled."""
        settled = 0
        digest = self._digests[role]
        for request, response in model.answer(self.budget.admit(requests)):
            self.journal.put(make_key(digest, request), request, response)
            self.budget.spend(request, response)
            self._progress.answered(response, usd=self.budget.usd)
            settled += response.status != "error"
        # A pass that settled nothing would be followed by the same again: what failed is for the next run.
        if self.budget.exhausted and not settled:
            raise BudgetReached(
                f"stopped at {self.budget.exhausted}: raise the limit, or leave it out, to go on."
            )
        return bool(self.budget.exhausted)

    def _unanswered(self, role: str, requests: Iterable[Request]) -> Iterator[Request]:
        return self.journal.unanswered(self._digests[role], requests)

    def read(self, requests: Sequence[Request]) -> list[Response]:
        """The stored answers to requests of any roles, in order."""
        streams = {
            role: self.journal.read(self._digests[role], asked) for role, asked in by_role(requests).items()
        }
        return [next(streams[request.role]) for request in requests]


def by_role(requests: Iterable[Request]) -> dict[str, list[Request]]:
    roles: defaultdict[str, list[Request]] = defaultdict(list)
    for request in requests:
        roles[request.role].append(request)
    return roles


def ask(benchmark: Benchmark, samples: Sequence[Sample], road: Road) -> None:
    """Have the model answer what the journal does not hold yet, where a model is under test."""
    if "model" not in benchmark.needs:
        return
    road.ask("model", lambda: chain.from_iterable(benchmark.requests(sample) for sample in samples))


def score(
    benchmark: Benchmark, folder: RunFolder, spec: RunSpec, samples: Sequence[Sample], road: Road
) -> Run:
    """From stored answers to records, published files and the summary."""
    scores: list[Score] = []
    with folder.writing("records.jsonl") as file:
        for chunk in in_chunks(benchmark, samples):
            answered = _with_answers(benchmark, chunk, road)
            for item, result in zip(answered, drive(benchmark.score(answered), road), strict=True):
                record = Record(sample=item.sample, answers=item.responses, score=result)
                file.write(msgspec.json.encode(record) + b"\n")
                # Texts and matrices are on disk now; the summary needs only the numbers.
                scores.append(msgspec.structs.replace(result, detail={}))
    run = Run(folder.path)
    for name, chunks in benchmark.publish(spec, run.records):
        with folder.writing(f"export/{slug(name, longest=200)}") as file:
            file.writelines(chunks)
    folder.write_json("summary.json", benchmark.summarise(scores))
    return run


def in_chunks(benchmark: Benchmark, samples: Sequence[Sample]) -> Iterator[list[Sample]]:
    """Samples in portions of about CHUNK requests; a group is never torn apart."""
    groups: defaultdict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        groups[sample.group].append(sample)
    order = {sample.id: index for index, sample in enumerate(samples)}
    chunk: list[Sample] = []
    size = 0
    for members in groups.values():
        chunk += members
        size += sum(len(benchmark.requests(sample)) for sample in members)
        if size >= CHUNK:
            yield sorted(chunk, key=lambda sample: order[sample.id])
            chunk, size = [], 0
    if chunk:
        yield sorted(chunk, key=lambda sample: order[sample.id])


def _with_answers(benchmark: Benchmark, samples: Sequence[Sample], road: Road) -> list[Answered]:
    requests = [tuple(benchmark.requests(sample)) for sample in samples]
    responses = iter(road.read(list(chain.from_iterable(requests))))
    return [
        Answered(sample, asked, tuple(islice(responses, len(asked))))
        for sample, asked in zip(samples, requests, strict=True)
    ]


def drive(asking: Generator[Sequence[Request], Sequence[Response], T], road: Road) -> T:
    """Run what yields requests (scoring, building), having each answered, and give back what it returns."""
    try:
        further = next(asking)
        while True:
            for role, requests in by_role(further).items():
                road.ask(role, requests.__iter__)
            further = asking.send(road.read(further))
    except StopIteration as done:
        result: T = done.value
        return result

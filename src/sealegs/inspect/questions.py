"""A benchmark's samples as Inspect's: what is asked once is a sample there, its repeats are the epochs.

MIRAE asks one sample several times; RGB makes a sample of each repeat. Either way an epoch of a question is
the next repeat of the same prompt, and an answer is found by its request, as in a run's journal.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, zip_longest
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from sealegs.harness.benchmark import Benchmark, sample_type
from sealegs.journal.journal import content_digest
from sealegs.models.replay import RecordedAnswers
from sealegs.types import Answered, Generate, Request, Response, Sample, to_jsonable

FIELD = "sealegs"
"""Where a sample's metadata, a score's metadata and a sample's store hold what belongs to Sealegs."""
NOT_RECORDED = Response(status="error", reason="not recorded")

Answers: TypeAlias = Mapping[bytes, Response]
"""Responses by `RecordedAnswers.key` of their requests."""


class InspectQuestion(Struct, frozen=True):
    """What Inspect calls a sample."""

    samples: tuple[Sample, ...]
    """The benchmark's samples that rest on its answers."""
    positions: tuple[int, ...]
    """Where each of them is in the order of the data."""
    epochs: tuple[tuple[Request, ...], ...]
    """What is asked in each epoch; none where a benchmark asks only while it scores."""

    @property
    def id(self) -> str:
        return self.samples[0].id

    @property
    def metadata(self) -> dict[str, Any]:
        """The tags, to be shown, and the samples themselves: a log can be scored without the data."""
        fields = {"samples": to_jsonable(self.samples), "positions": list(self.positions)}
        return {**self.samples[0].tags, FIELD: fields}

    def request(self, epoch: int) -> Generate | None:
        """The request for a text in an epoch, which counts from 1; None where there is none."""
        asked = self.epochs[epoch - 1] if 0 < epoch <= len(self.epochs) else ()
        return next((request for request in asked if isinstance(request, Generate)), None)


def make_questions(benchmark: Benchmark, samples: Iterable[Sample]) -> list[InspectQuestion]:
    """Samples of one group that ask the same, in turns; those that share their answers are one question."""
    repeats: defaultdict[Any, list[tuple[int, Sample]]] = defaultdict(list)
    for position, sample in enumerate(samples):
        contents = frozenset(content_digest(request) for request in benchmark.requests(sample))
        repeats[sample.group, frozenset(sample.tags.items()), contents].append((position, sample))
    shared: defaultdict[Any, list[tuple[int, Sample]]] = defaultdict(list)
    for members in repeats.values():
        requests = chain.from_iterable(benchmark.requests(sample) for _, sample in members)
        shared[frozenset(map(RecordedAnswers.key, requests)) or members[0][1].id] += members
    return [as_question(benchmark, *zip(*members, strict=True)) for members in shared.values()]


def as_question(benchmark: Benchmark, positions: Sequence[int], samples: Sequence[Sample]) -> InspectQuestion:
    """Samples that belong to one question, with what is asked in each epoch."""
    by_content: defaultdict[bytes, dict[bytes, Request]] = defaultdict(dict)
    for request in chain.from_iterable(map(benchmark.requests, samples)):
        by_content[content_digest(request)].setdefault(RecordedAnswers.key(request), request)
    epochs = zip_longest(*(repeats.values() for repeats in by_content.values()))
    return InspectQuestion(
        tuple(samples), tuple(positions), tuple(tuple(filter(None, asked)) for asked in epochs)
    )


def read_question(benchmark: Benchmark, metadata: Mapping[str, Any]) -> InspectQuestion:
    """The question of a sample's metadata."""
    kind = sample_type(type(benchmark))
    samples = msgspec.convert(metadata[FIELD]["samples"], list[kind])  # type: ignore[valid-type]
    return as_question(benchmark, metadata[FIELD]["positions"], samples)


def in_order(questions: Iterable[InspectQuestion]) -> list[Sample]:
    """The samples of all questions, in the order of the data."""
    placed = (
        pair for question in questions for pair in zip(question.positions, question.samples, strict=True)
    )
    return [sample for _, sample in sorted(placed, key=lambda pair: pair[0])]


def answered(benchmark: Benchmark, sample: Sample, answers: Answers) -> Answered:
    """A sample with its answers; a request without one counts as an error."""
    requests = tuple(benchmark.requests(sample))
    responses = (answers.get(RecordedAnswers.key(request), NOT_RECORDED) for request in requests)
    return Answered(sample, requests, tuple(responses))


def encode_answers(answers: Answers) -> dict[str, Any]:
    """Answers as JSON: by the request's key in hexadecimal digits."""
    return {key.hex(): to_jsonable(response) for key, response in answers.items()}


def decode_answers(raw: Any) -> dict[bytes, Response]:
    """The reverse."""
    responses = msgspec.convert(raw, dict[str, Response])
    return {bytes.fromhex(key): response for key, response in responses.items()}

"""From samples to scores, on one path for every benchmark: requests → responses → records.

One odd answer cannot stop it: whatever fails is that sample's `error`, and the rest goes on. A benchmark
scores a portion of samples together. Where that fails, each is scored by itself; the answers of those that
fail count as errors, and the portion is scored again. Where that fails too, so is each group. What was asked
further on the way is in the journal by then, so that trying again costs no request. A sample that fails also
with errors for answers stops the run, with its name.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from math import ceil
from pathlib import Path
from typing import IO, NamedTuple, TypeAlias, TypeVar

import msgspec

from sealegs.errors import DataError, RunConflict, SealegsError, place_of
from sealegs.harness.benchmark import Benchmark
from sealegs.harness.dispatcher import Dispatcher
from sealegs.harness.folder.layout import run_file
from sealegs.types import KIND_NEEDS, Answered, Asking, Record, Request, Response, Sample, Score

T = TypeVar("T")

Answer: TypeAlias = Callable[[Sequence[Request]], Sequence[Response]]
"""Has requests answered, in order."""

FAILED = Response(status="error", reason="scoring failed")
FAILURE = "scoring failed: "
"""Begins what is said of a sample that could not be scored; how and where follows."""
REQUESTS_PER_CHUNK = 25_000
BYTES_PER_CHUNK = 2**26
"""Requests, and bytes of their stored answers, scored at a time: large enough for bulk work, small enough for
memory."""
ROUNDING = 1e-9
"""Of a sum of shares."""
UNCAUGHT = (SealegsError, MemoryError)
"""What stops a run wherever it comes from: it is not about one sample."""


class Scored(NamedTuple):
    """A sample's score, and its line of records.jsonl."""

    score: Score
    line: bytes


class Unscorable(Exception):
    """Scoring some samples together failed; the message says how and where."""


def ask(benchmark: Benchmark, samples: Sequence[Sample], dispatcher: Dispatcher) -> None:
    """Have the model answer what the journal does not hold yet, where a model is under test."""
    if "model" in benchmark.roles:
        dispatcher.ask("model", lambda: _all_requests(benchmark, samples))


def check_loss(benchmark: Benchmark, samples: Sequence[Sample], dispatcher: Dispatcher, folder: Path) -> None:
    """Refuse to score a run again whose journal lacks answers that its results may still hold."""
    if "model" not in benchmark.roles or run_file(folder, "records.jsonl") is None:
        return
    if missing := dispatcher.count_missing("model", _all_requests(benchmark, samples)):
        raise RunConflict(
            f"{dispatcher.journal.path} lacks {missing:,} answers that the results of the run may hold, "
            "which are left as they are. Run the command that made the run again: it asks for them."
        )


def score_samples(
    benchmark: Benchmark,
    file: IO[bytes],
    samples: Sequence[Sample],
    dispatcher: Dispatcher,
    note: Callable[[str], None],
) -> list[Score]:
    """From stored answers to records and the scores."""
    scores: list[Score] = []
    failed: Counter[str] = Counter()
    for score, line in scored(benchmark, samples, dispatcher):
        file.write(line + b"\n")
        scores.append(score)
        failed.update(text.removeprefix(FAILURE) for text in score.failures if text.startswith(FAILURE))
    for place, count in failed.most_common():
        note(f"scoring failed for {count:,} of {len(samples):,} samples, which count as errors: {place}")
    return scores


def scored(benchmark: Benchmark, samples: Sequence[Sample], dispatcher: Dispatcher) -> Iterator[Scored]:
    """The samples with their stored answers, scored a portion at a time, which asks what it needs further."""
    for chunk in in_chunks(benchmark, samples, dispatcher.stored_bytes):
        yield from score_portion(benchmark, _with_answers(benchmark, chunk, dispatcher), dispatcher.answer)


def in_chunks(
    benchmark: Benchmark,
    samples: Sequence[Sample],
    stored_bytes: Callable[[Sequence[Request]], int] = lambda requests: 0,
) -> Iterator[list[Sample]]:
    """Samples in equal portions of at most about REQUESTS_PER_CHUNK requests, and of BYTES_PER_CHUNK bytes of
    answers; a group is never torn apart.

    None of them is small: a benchmark may compare the samples of a portion with each other.
    """
    groups: defaultdict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        groups[sample.group].append(sample)
    sizes: dict[str, float] = {}
    """Of each group, as a share of the largest portion."""
    for group, members in groups.items():
        requests = list(_all_requests(benchmark, members))
        sizes[group] = max(len(requests) / REQUESTS_PER_CHUNK, stored_bytes(requests) / BYTES_PER_CHUNK)
    total = sum(sizes.values())
    # Where nothing is asked before scoring, all are one portion.
    portion = total / max(1, ceil(total)) or 1.0
    order = {sample.id: index for index, sample in enumerate(samples)}
    chunk: list[Sample] = []
    size, portions = 0.0, 1
    for group, members in groups.items():
        chunk += members
        size += sizes[group]
        if size >= portions * portion - ROUNDING:
            yield sorted(chunk, key=lambda sample: order[sample.id])
            chunk, portions = [], portions + 1
    if chunk:
        yield sorted(chunk, key=lambda sample: order[sample.id])


def _with_answers(benchmark: Benchmark, samples: Sequence[Sample], dispatcher: Dispatcher) -> list[Answered]:
    requests = [_requests(benchmark, sample) for sample in samples]
    responses = iter(dispatcher.read(list(chain.from_iterable(requests))))
    return [
        Answered(sample, group, tuple(islice(responses, len(group))))
        for sample, group in zip(samples, requests, strict=True)
    ]


def _all_requests(benchmark: Benchmark, samples: Iterable[Sample]) -> Iterator[Request]:
    return chain.from_iterable(_requests(benchmark, sample) for sample in samples)


def _requests(benchmark: Benchmark, sample: Sample) -> tuple[Request, ...]:
    """What is asked for a sample, which may be stored and of any shape."""
    asking = f"{type(benchmark).__name__}.requests"
    try:
        requests = tuple(benchmark.requests(sample))
    except UNCAUGHT:
        raise
    except Exception as error:
        raise DataError(f"sample {sample.id}", f"{asking} failed: {place_of(error)}: {error}.") from error
    if odd := [request for request in requests if type(request) not in KIND_NEEDS]:
        problem = f"{asking} must give Generate, …, Rank; it gave a {type(odd[0]).__name__}."
        raise DataError(f"sample {sample.id}", problem)
    return requests


def score_portion(benchmark: Benchmark, items: Sequence[Answered], answer: Answer) -> list[Scored]:
    """Score samples together; each one's score, in order."""
    failed: dict[str, str] = {}
    """How and where scoring failed, by sample."""
    groups: defaultdict[str, list[Answered]] = defaultdict(list)
    for item in items:
        groups[item.sample.group].append(item)
    failure = ""
    # Some fail only beside others of their group, which then counts as failed as a whole.
    for suspects in ([], [[item] for item in items], list(groups.values())):
        for members in suspects:
            try:
                complete(_scoring(benchmark, members, failed), answer)
            except Unscorable as error:
                failed |= {item.sample.id: str(error) for item in members}
        try:
            return complete(_scoring(benchmark, items, failed), answer)
        except Unscorable as error:
            failure = str(error)
    sample = next(iter(failed), items[0].sample.id)
    raise DataError(f"sample {sample}", f"this cannot be scored, whatever was answered: {failure}.")


def _scoring(
    benchmark: Benchmark, items: Sequence[Answered], failed: Mapping[str, str]
) -> Asking[list[Scored]]:
    """Score and write down, with errors for answers of those that failed; whatever goes wrong in that is
    raised as Unscorable."""
    asked = [
        Answered(item.sample, item.requests, (FAILED,) * len(item.requests))
        if item.sample.id in failed
        else item
        for item in items
    ]
    try:
        scoring = benchmark.score(asked)
        scores = (yield from scoring) if isinstance(scoring, Generator) else scoring
        if not isinstance(scores, list) or len(scores) != len(items):
            amount = len(scores) if isinstance(scores, list) else type(scores).__name__
            raise Unscorable(f"score gave {amount} for {len(items)} samples")
        return [
            _scored(item, score, failed.get(item.sample.id, ""))
            for item, score in zip(items, scores, strict=True)
        ]
    except (*UNCAUGHT, Unscorable):
        raise
    except (Exception, SystemExit) as error:  # it becomes the error of a sample
        raise Unscorable(place_of(error)) from error


def _scored(item: Answered, score: Score, failure: str) -> Scored:
    if failure:
        score = msgspec.structs.replace(score, failures=(*score.failures, f"{FAILURE}{failure}"))
    record = Record(sample=item.sample, answers=item.responses, score=score)
    # The summary needs only the numbers: texts and matrices go to the disk.
    return Scored(msgspec.structs.replace(score, detail=None), msgspec.json.encode(record))


def complete(asking: Asking[T], answer: Answer) -> T:
    """Run what yields requests (scoring, building) to its end; what it returns."""
    try:
        requests = next(asking)
        while True:
            requests = asking.send(answer(requests))
    except StopIteration as done:
        result: T = done.value
        return result

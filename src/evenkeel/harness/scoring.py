"""Scoring that one odd answer cannot stop: whatever fails is that sample's `error`, and the rest goes on.

A benchmark scores a portion of samples together. Where that fails, each is scored by itself; the answers of
those that fail count as errors, and the portion is scored again. What was asked further on the way is in the
journal by then, so that trying again costs no request. A sample that fails also with errors for answers stops
the run, with its name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import NamedTuple, TypeAlias, TypeVar

import msgspec

from evenkeel.errors import DataError, EvenkeelError, place_of
from evenkeel.harness.benchmark import Benchmark, Scoring
from evenkeel.types import Answered, Asking, Record, Request, Response, Score

T = TypeVar("T")

Answer: TypeAlias = Callable[[Sequence[Request]], Sequence[Response]]
"""Has requests answered, in order."""

FAILED = Response(status="error", reason="scoring failed")
FAILURE = "scoring failed: "
"""Begins what is said of a sample that could not be scored; how and where follows."""
UNCAUGHT = (EvenkeelError, MemoryError)
"""What stops a run wherever it comes from: it is not about one sample."""


class Scored(NamedTuple):
    """A sample's score, and its line of records.jsonl."""

    score: Score
    line: bytes


class Unscorable(Exception):
    """Scoring some samples together failed; the message says how and where."""


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
        scores = yield from _encodable(_generator(benchmark.score(asked), len(items)))
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


def _generator(scoring: Scoring | list[Score], count: int) -> Scoring:
    """The scores, one for each sample. A benchmark that asks nothing further may return them at once."""
    scores = (yield from scoring) if isinstance(scoring, Generator) else scoring
    if not isinstance(scores, list) or len(scores) != count:
        amount = len(scores) if isinstance(scores, list) else type(scores).__name__
        raise Unscorable(f"score gave {amount} for {count} samples")
    return scores


def _encodable(scoring: Scoring) -> Scoring:
    """The same, with each request checked: what cannot be written down cannot be asked."""
    try:
        requests = next(scoring)
        while True:
            msgspec.json.encode(requests)
            requests = scoring.send((yield requests))
    except StopIteration as done:
        scores: list[Score] = done.value
        return scores

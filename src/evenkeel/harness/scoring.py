"""Scoring that one odd answer cannot stop: whatever fails is that sample's `error`, and the rest goes on.

A benchmark scores a portion of samples together. Where that fails, each is scored by itself; the answers of
those that fail count as errors, and the portion is scored again. What was asked further on the way is in the
journal by then, so that trying again costs no request. A sample that fails also with errors for answers stops
the run, with its name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Generator, Sequence
from typing import NamedTuple, TypeAlias, TypeVar

import msgspec

from evenkeel.errors import DataError, EvenkeelError, place_of
from evenkeel.harness.benchmark import Benchmark, Scoring
from evenkeel.types import Answered, Asking, Record, Request, Response, Score

T = TypeVar("T")

Answer: TypeAlias = Callable[[Sequence[Request]], Sequence[Response]]
"""Has requests answered, in order."""

FAILED = Response(status="error", reason="scoring failed")
UNCAUGHT = (EvenkeelError, MemoryError)
"""What stops a run wherever it comes from: it is not about one sample."""


class Scored(NamedTuple):
    """A sample's score, and its line of records.jsonl."""

    score: Score
    line: bytes


class Unscorable(Exception):
    """Scoring some samples together failed; the message says how and where."""


class Portion:
    """Samples that are scored together."""

    def __init__(self, benchmark: Benchmark, items: Sequence[Answered], answer: Answer) -> None:
        self.failed: dict[str, str] = {}
        """How and where scoring failed, by sample."""
        self._benchmark = benchmark
        self._items = {item.sample.id: item for item in items}
        self._answer = answer

    def scored(self) -> list[Scored]:
        """Every sample's score, in order."""
        items = list(self._items.values())
        groups: defaultdict[str, list[Answered]] = defaultdict(list)
        for item in items:
            groups[item.sample.group].append(item)
        # Some fail only beside others of their group, which then counts as failed as a whole.
        for suspects in ([], [[item] for item in items], list(groups.values())):
            for members in suspects:
                self._mark_if_failing(members)
            try:
                return list(self._together(items).values())
            except Unscorable as error:
                failure = str(error)
        sample = next(iter(self.failed), items[0].sample.id)
        raise DataError(f"sample {sample}", f"this cannot be scored, whatever was answered: {failure}.")

    def _mark_if_failing(self, items: Sequence[Answered]) -> None:
        """Have the answers of samples that cannot be scored together count as errors."""
        try:
            self._together(items)
        except Unscorable as failure:
            self.failed |= {item.sample.id: str(failure) for item in items}

    def _together(self, items: Sequence[Answered]) -> dict[str, Scored]:
        """The scores of some samples in one go, by sample."""
        return complete(self._scoring([self._as_failed(item) for item in items]), self._answer)

    def _scoring(self, items: Sequence[Answered]) -> Asking[dict[str, Scored]]:
        """Score and write down; whatever goes wrong in that is raised as Unscorable."""
        try:
            scores = yield from _encodable(_generator(self._benchmark.score(items), len(items)))
            return {item.sample.id: self._line(item, s) for item, s in zip(items, scores, strict=True)}
        except (*UNCAUGHT, Unscorable):
            raise
        except (Exception, SystemExit) as error:  # it becomes the error of a sample
            raise Unscorable(place_of(error)) from error

    def _as_failed(self, item: Answered) -> Answered:
        if item.sample.id not in self.failed:
            return item
        return Answered(item.sample, item.requests, (FAILED,) * len(item.requests))

    def _line(self, item: Answered, score: Score) -> Scored:
        original = self._items[item.sample.id]
        if (failure := self.failed.get(item.sample.id)) is not None:
            score = msgspec.structs.replace(score, failures=(*score.failures, f"scoring failed: {failure}"))
        record = Record(sample=original.sample, answers=original.responses, score=score)
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

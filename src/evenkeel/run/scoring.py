"""Scoring that one odd answer cannot stop: whatever fails is that sample's `error`, and the rest goes on.

A benchmark scores a portion of samples together. Where that fails, the samples that fail alone are found by
halving; their answers count as errors, and the portion is scored again. What was asked further on the way is
in the journal by then, so that trying again costs no request.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Sequence
from itertools import chain
from typing import NamedTuple, TypeAlias

import msgspec

from evenkeel.errors import DataError, EvenkeelError, place_of
from evenkeel.run.benchmark import Benchmark, Scoring
from evenkeel.types import Answered, Record, Response, Score

Drive: TypeAlias = Callable[[Scoring], list[Score]]
"""Runs a scoring to its end, having its requests answered."""

FAILED = Response(status="error", reason="scoring failed")
UNCAUGHT = (EvenkeelError, MemoryError)
"""What stops a run wherever it comes from: it is not about one sample."""


class Scored(NamedTuple):
    """A sample's score, and its line of records.jsonl."""

    score: Score
    line: bytes


class Unscorable(Exception):
    """Scoring some samples together failed; `place` says how and where."""

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self.place = place


class Portion:
    """Samples that are scored together."""

    def __init__(self, benchmark: Benchmark, items: Sequence[Answered], complete: Drive) -> None:
        self.failed: dict[str, str] = {}
        """How and where scoring failed, by sample."""
        self._benchmark = benchmark
        self._items = {item.sample.id: item for item in items}
        self._drive = complete
        self._lost: dict[str, Score] = {}
        """The scores of samples that cannot be scored even where their answers count as errors."""

    def scored(self) -> list[Scored]:
        """Every sample's score, in order."""
        items = list(self._items.values())
        try:
            return self._together(items)
        except Unscorable:
            self._find(items)
        try:
            scored = self._by_id(items)
        except Unscorable:  # some samples fail only in company: in each group those that spoil it are found
            groups: defaultdict[str, list[Answered]] = defaultdict(list)
            for item in items:
                groups[item.sample.group].append(item)
            scored = {}
            for members in groups.values():
                scored |= self._group(members)
        lost = self._blanks(scored.values())
        return [scored.get(name) or lost[name] for name in self._items]

    def _find(self, items: Sequence[Answered]) -> None:
        """Mark the samples that fail by themselves."""
        try:
            self._together(items)
        except Unscorable as failure:
            if len(items) == 1:
                self._mark(items[0], failure, company=[])
            else:
                half = len(items) // 2
                self._find(items[:half])
                self._find(items[half:])

    def _group(self, members: Sequence[Answered]) -> dict[str, Scored]:
        """One group's scores: a sample that cannot stand beside those before it is marked."""
        try:
            return self._by_id(members)
        except Unscorable:
            company: list[Answered] = []
            for item in members:
                try:
                    self._together([*company, item])
                except Unscorable as failure:
                    self._mark(item, failure, company)
                company.append(item)
            return self._by_id(company)

    def _mark(self, item: Answered, failure: Unscorable, company: Sequence[Answered]) -> None:
        name = item.sample.id
        self.failed[name] = failure.place
        try:
            self._together([*company, item])  # its answers count as errors now
        except Unscorable:
            self._lost[name] = self._unanswered(item)

    def _by_id(self, items: Sequence[Answered]) -> dict[str, Scored]:
        kept = [item.sample.id for item in items if item.sample.id not in self._lost]
        return dict(zip(kept, self._together(items), strict=True))

    def _together(self, items: Iterable[Answered]) -> list[Scored]:
        """The scores of some samples in one go, those left out that are lost."""
        kept = [self._as_failed(item) for item in items if item.sample.id not in self._lost]
        return self._guard(kept, self._drive) if kept else []

    def _as_failed(self, item: Answered) -> Answered:
        if item.sample.id not in self.failed:
            return item
        return Answered(item.sample, item.requests, (FAILED,) * len(item.requests))

    def _guard(self, items: Sequence[Answered], complete: Drive) -> list[Scored]:
        lines: list[Scored] = []

        def scoring() -> Scoring:
            responses: Sequence[Response] | None = None
            try:
                asking = _generator(self._benchmark.score(items))
                while True:
                    further = next(asking) if responses is None else asking.send(responses)
                    msgspec.json.encode(further)  # what cannot be written down cannot be asked
                    responses = yield further
            except StopIteration as done:
                scores: list[Score] = done.value
                lines.extend(self._line(*each) for each in zip(items, scores, strict=True))
                return scores

        complete(_told(scoring()))
        return lines

    def _line(self, item: Answered, score: Score) -> Scored:
        original = self._items[item.sample.id]
        if (place := self.failed.get(item.sample.id)) is not None:
            score = msgspec.structs.replace(score, failures=(*score.failures, f"scoring failed: {place}"))
        record = Record(sample=original.sample, answers=original.responses, score=score)
        # The summary needs only the numbers: texts and matrices go to the disk.
        return Scored(msgspec.structs.replace(score, detail=None), msgspec.json.encode(record))

    def _unanswered(self, item: Answered) -> Score:
        """The score of a sample of which nothing was answered, also not what is asked further."""
        sample = item.sample
        blank = Score(
            sample_id=sample.id, group=sample.group, tags=sample.tags, values={},
            statuses={"error": max(1, len(item.requests))}, answered=0, unscorable=True,
        )  # fmt: skip
        try:
            asking = _generator(self._benchmark.score([self._as_failed(item)]))
            further = next(asking)
            while True:
                further = asking.send([FAILED] * len(further))
        except StopIteration as done:
            return done.value[0] if len(done.value) == 1 else blank
        except UNCAUGHT:
            raise
        except Exception:  # noqa: BLE001  # its place is known from the first failure
            return blank

    def _blanks(self, others: Iterable[Scored]) -> dict[str, Scored]:
        """The lost samples; what the others have values of, these lack."""
        names = dict.fromkeys(chain.from_iterable(scored.score.values for scored in others))
        if self._lost and not names and not any(score.values for score in self._lost.values()):
            sample, place = next(iter(self.failed.items()))
            raise DataError(f"sample {sample}", f"neither this nor any other can be scored: {place}.")
        blanks = {}
        for name, score in self._lost.items():
            values = score.values or dict.fromkeys(names)
            blanks[name] = self._line(self._items[name], msgspec.structs.replace(score, values=values))
        return blanks


def _generator(scoring: Scoring | list[Score]) -> Scoring:
    """A benchmark that asks nothing further may return its scores at once."""
    return (yield from scoring) if isinstance(scoring, Generator) else scoring


def _told(scoring: Scoring) -> Scoring:
    """A scoring that raises Unscorable for whatever goes wrong in it."""
    try:
        return (yield from scoring)
    except UNCAUGHT:
        raise
    except Exception as error:  # it becomes the error of a sample
        raise Unscorable(place_of(error)) from error

"""Picking samples to look at, read as a stream: a run may be larger than memory."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator

from evenkeel.report.layout import Example
from evenkeel.types import Record, Records, Response

EACH = 5
LONGEST = 20_000  # characters of one text on the page; the whole of it is in records.jsonl


def extremes(records: Records, metric: str, show: Callable[[Record], Example]) -> tuple[Example, ...]:
    """The samples at both ends of a metric, the least first."""

    def scored() -> Iterator[Record]:
        return (record for record in records() if record.score.values.get(metric) is not None)

    def place(record: Record) -> float:
        return record.score.values[metric] or 0.0

    least = heapq.nsmallest(EACH, scored(), key=place)
    most = heapq.nlargest(EACH, scored(), key=place)
    ids = {record.sample.id for record in least}
    return tuple(show(record) for record in [*least, *(r for r in most if r.sample.id not in ids)])


def first(
    records: Iterable[Record], wanted: Callable[[Record], bool], show: Callable[[Record], Example]
) -> tuple[Example, ...]:
    """The first few samples that are wanted."""
    found = []
    for record in records:
        if wanted(record):
            found.append(show(record))
            if len(found) == EACH:
                break
    return tuple(found)


def answer_parts(answers: Iterable[Response]) -> list[tuple[str, str]]:
    """Answers under headings that tell how each ended."""
    return [
        (f"answer {number}, {answer.status}{f': {answer.reason}' if answer.reason else ''}", answer.text)
        for number, answer in enumerate(answers, 1)
    ]


def shortened(text: str, most: int = 90) -> str:
    return text if len(text) <= most else f"{text[:most]}…"

"""Picking samples to look at, read as a stream: a run may be larger than memory."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape

from msgspec.structs import replace

from evenkeel.page.format import visible
from evenkeel.page.layout import Example, Examples
from evenkeel.types import Record, Records, Response

EACH = 5
LONGEST = 20_000
"""Characters of one text on the page; the whole of it is in records.jsonl."""
TOGETHER = 2_000_000
"""Bytes of all texts on the page, as they are written there."""
LINE = 300
"""Characters of a line: of a label, a title or a heading."""


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


def fitting(shown: Sequence[Examples], most: int = TOGETHER) -> list[Examples]:
    """The examples as a page can hold them: hostile characters shown, lines cut, texts within `most` bytes.

    Short texts are whole. Those that are longer than an equal share of what the short ones leave over are
    cut to that share.
    """
    texts = [body for part in shown for example in part.items for _, body in example.parts]
    share = _equal_share([_size(visible(text[:LONGEST])) for text in texts], most)

    def held(example: Example) -> Example:
        return Example(
            label=visible(shortened(example.label, LINE)),
            title=visible(shortened(example.title, LINE)),
            parts=tuple((visible(shortened(head, LINE)), _held(body, share)) for head, body in example.parts),
        )

    return [replace(part, items=tuple(map(held, part.items))) for part in shown]


def _equal_share(sizes: Sequence[int], most: int) -> int:
    """The largest size to which the texts can be cut so that all together have at most `most`."""
    left = most
    for place, size in enumerate(sorted(sizes)):
        share = left // (len(sizes) - place)
        if size > share:
            return share
        left -= size
    return most


def _held(text: str, share: int) -> str:
    """A text cut to its share, with a mark where something was cut."""
    cut = text[:LONGEST]
    while (size := _size(visible(cut))) > share:
        cut = cut[: len(cut) * share // size]
    return f"{visible(cut)}{'…' if len(cut) < len(text) else ''}"


def _size(text: str) -> int:
    return len(escape(text).encode())

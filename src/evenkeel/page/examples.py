"""Samples to look at, read as a stream because a run may be larger than memory, and cut to fit a page."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape
from itertools import islice

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
"""Characters of a label, a title or a heading."""


def extremes(records: Records, metric: str, show: Callable[[Record], Example]) -> tuple[Example, ...]:
    """The samples at both ends of a metric, the lowest first."""

    def scored() -> Iterator[Record]:
        return (record for record in records() if record.score.values.get(metric) is not None)

    def score(record: Record) -> float:
        return record.score.values[metric] or 0.0

    lowest = heapq.nsmallest(EACH, scored(), key=score)
    highest = heapq.nlargest(EACH, scored(), key=score)
    ids = {record.sample.id for record in lowest}
    return tuple(show(record) for record in [*lowest, *(r for r in highest if r.sample.id not in ids)])


def first(
    records: Iterable[Record], matches: Callable[[Record], bool], show: Callable[[Record], Example]
) -> tuple[Example, ...]:
    """The first few samples that match."""
    return tuple(show(record) for record in islice(filter(matches, records), EACH))


def answer_parts(answers: Iterable[Response]) -> Iterator[tuple[str, str]]:
    """Answers under headings that tell how each ended."""
    for number, answer in enumerate(answers, 1):
        yield answer_heading(number, answer), answer.text


def answer_heading(number: int, answer: Response) -> str:
    """`Answer 1`, `Answer 2 (cut off)`, `Answer 3 (error: HTTP 500)`."""
    if answer.status == "ok":
        return f"Answer {number}"
    if answer.status == "truncated":
        return f"Answer {number} (cut off)"
    return f"Answer {number} ({answer.status}{f': {answer.reason}' if answer.reason else ''})"


def shortened(text: str, most: int = 90) -> str:
    return text if len(text) <= most else f"{text[:most]}…"


def fitting(sections: Sequence[Examples], most: int = TOGETHER) -> list[Examples]:
    """The examples as a page can hold them: hostile characters shown, lines cut, texts within `most` bytes.

    Short texts are whole. Those that are longer than an equal share of what the short ones leave over are
    cut to that share.
    """
    texts = [body for section in sections for example in section.items for _, body in example.parts]
    share = _share_of_each(texts, most)

    def line(text: str) -> str:
        return visible(shortened(text, LINE))

    def fitted(example: Example) -> Example:
        parts = tuple((line(heading), _cut(body, share)) for heading, body in example.parts)
        return Example(label=line(example.label), title=line(example.title), parts=parts)

    return [replace(section, items=tuple(map(fitted, section.items))) for section in sections]


def cut_fairly(texts: Sequence[str], most: int) -> list[str]:
    """The texts themselves in the same way: hostile characters shown, all within about `most` bytes."""
    share = _share_of_each(texts, most)
    return [_cut(text, share) for text in texts]


def _share_of_each(texts: Iterable[str], most: int) -> int:
    return _equal_share([_size(visible(text[:LONGEST])) for text in texts], most)


def _equal_share(sizes: Sequence[int], most: int) -> int:
    """The largest size to which the texts can be cut so that all together have at most `most`."""
    rest = most
    for index, size in enumerate(sorted(sizes)):
        share = rest // (len(sizes) - index)
        if size > share:
            return share
        rest -= size
    return most


def _cut(text: str, share: int) -> str:
    """A text cut to its share, with a mark where something was cut."""
    start = text[: min(LONGEST, share)]  # a character has a byte at least
    while (size := _size(shown := visible(start))) > share:
        start = start[: len(start) * share // size]
    return f"{shown}{'…' if len(start) < len(text) else ''}"


def _size(text: str) -> int:
    return len(escape(text).encode())

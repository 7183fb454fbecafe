"""Texts of samples as a page can hold them: headings of answers, and long texts cut fairly."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from evenkeel.page.format import visible
from evenkeel.types import Response

LONGEST = 20_000
"""Characters of one text on the page; the whole of it is in records.jsonl."""


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


def cut_fairly(texts: Sequence[str], most: int) -> list[str]:
    """The texts with hostile characters shown, all within about `most` bytes as they are written on a page.

    Short texts are whole. Those that are longer than an equal share of what the short ones leave over are
    cut to that share.
    """
    share = rest = most
    sizes = sorted(_size(visible(text[:LONGEST])) for text in texts)
    for index, size in enumerate(sizes):
        share = rest // (len(sizes) - index)
        if size > share:
            return [_cut(text, share) for text in texts]
        rest -= size
    return [_cut(text, most) for text in texts]


def _cut(text: str, share: int) -> str:
    """A text cut to its share, with a mark where something was cut."""
    start = text[: min(LONGEST, share)]  # a character has a byte at least
    while (size := _size(shown := visible(start))) > share:
        start = start[: len(start) * share // size]
    return f"{shown}{'…' if len(start) < len(text) else ''}"


def _size(text: str) -> int:
    return len(escape(text).encode())

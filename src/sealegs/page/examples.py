"""Texts of samples as a page can hold them: headings of answers, and long texts cut fairly."""

from __future__ import annotations

from collections.abc import Sequence

from sealegs.page.format import STATUS_WORDS
from sealegs.types import Response

LONGEST_EXAMPLE_CHARS = 20_000
"""Characters of one text on a page with many; the whole of it is in records.jsonl."""


def answer_heading(number: int, answer: Response) -> str:
    """`Answer 1`, `Answer 2 (cut off)`, `Answer 3 (error: HTTP 500)`."""
    if answer.status == "ok":
        return f"Answer {number}"
    reason = f": {answer.reason}" if answer.reason and answer.status != "truncated" else ""
    return f"Answer {number} ({STATUS_WORDS[answer.status]}{reason})"


def shortened(text: str, most: int = 90) -> str:
    return text if len(text) <= most else f"{text[:most]}…"


def cut_fairly(texts: Sequence[str], most: int) -> list[str]:
    """The texts within about `most` characters together.

    Short texts are whole. Those that are longer than an equal share of what the short ones leave over are
    cut to that share.
    """
    share = rest = most
    for index, size in enumerate(sorted(map(len, texts))):
        share = rest // (len(texts) - index)
        if size > share:
            break
        rest -= size
    else:
        share = most
    return [shortened(text, min(share, LONGEST_EXAMPLE_CHARS)) for text in texts]

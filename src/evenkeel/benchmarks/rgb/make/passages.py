"""Documents cut into passages, at the ends of sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from math import ceil
from typing import NamedTuple

from evenkeel.benchmarks.rgb.files import Lang
from evenkeel.make.documents import Document

LONGEST: dict[Lang, int] = {"en": 150, "zh": 250}
"""Of a passage: words, in Chinese characters. A document that is no longer stays whole."""
AIM: dict[Lang, int] = {"en": 110, "zh": 180}
"""What longer documents are cut to, more or less."""
GAP: dict[Lang, str] = {"en": " ", "zh": ""}

_HEADING = re.compile(r"(?m)^#{1,6}[ \t]+(.*?[^\s.!?。！？#])[ \t#]*$")
_TITLES = r"(?<!\b[A-Z]\.)(?<!\b(?:Mr|Ms|Dr|St|No)\.)(?<!\b(?:Mrs|Rev|Gen|Col)\.)(?<!\bProf\.)"
_SENTENCE_END = re.compile(
    rf"(?:(?<=[.!?…]){_TITLES}|(?<=[.!?…][\"”’)]))\s+(?![a-z])"
    r"|(?<=[。！？])(?![”’」』）])|(?<=[。！？][”’」』）])"
)


class Passage(NamedTuple):
    document: str
    """The id of the document that it is from."""
    text: str


def cut(documents: Sequence[Document], lang: Lang) -> list[Passage]:
    """The passages of all documents, in order, each text once."""
    first: dict[str, str] = {}
    for document in documents:
        for text in pieces(document.text, lang):
            first.setdefault(text, document.id)
    return [Passage(document, text) for text, document in first.items()]


def pieces(text: str, lang: Lang) -> list[str]:
    """A text in pieces of about equal length, none much longer than LONGEST."""
    parts = [part for sentence in sentences(text, lang) for part in _broken(sentence, lang)]
    total = sum(length(part, lang) for part in parts)
    count = 1 if total <= LONGEST[lang] else ceil(total / AIM[lang])
    found: list[list[str]] = [[]]
    read = 0
    for part in parts:
        # The middle of a sentence decides which piece it belongs to.
        middle = read + length(part, lang) / 2
        if found[-1] and middle >= len(found) * total / count:
            found.append([])
        found[-1].append(part)
        read += length(part, lang)
    return [GAP[lang].join(piece) for piece in found if piece]


def sentences(text: str, lang: Lang) -> list[str]:
    """The sentences of a text; a blank line ends one too, and a heading gets a full stop."""
    stop = "." if lang == "en" else "。"
    marked = _HEADING.sub(rf"\n\1{stop}\n", text)
    paragraphs = [GAP[lang].join(_lines(block)) for block in re.split(r"\n\s*\n", marked)]
    parts = (part.strip() for block in paragraphs for part in _SENTENCE_END.split(block))
    return [part for part in parts if part]


def length(text: str, lang: Lang) -> int:
    return len(text.split()) if lang == "en" else len(re.sub(r"\s", "", text))


def _lines(block: str) -> list[str]:
    return [" ".join(line.split()) for line in block.splitlines() if line.strip()]


def _broken(sentence: str, lang: Lang) -> Iterator[str]:
    """A sentence that is longer than a passage may be, in parts: a table, a list, a text without stops."""
    units = sentence.split() if lang == "en" else list(sentence)
    if length(sentence, lang) <= LONGEST[lang]:
        yield sentence
        return
    for start in range(0, len(units), AIM[lang]):
        yield GAP[lang].join(units[start : start + AIM[lang]])

"""Passages of a user's documents: cut, ranked by nearness to a question, and checked for an answer."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from evenkeel.benchmarks.rgb.files import Lang
from evenkeel.make.documents import Document
from evenkeel.text.answer_search.mention import mentions, target
from evenkeel.text.answer_search.normalization import HAN, Word, plain, words
from evenkeel.text.bm25 import bm25_index

LONGEST: dict[Lang, int] = {"en": 150, "zh": 250}
"""Of a passage: words, in Chinese characters."""
GAP: dict[Lang, str] = {"en": " ", "zh": ""}
SHORT = 2
"""Answers of so few characters must be whole words to be revealed, except in Chinese, which has no gaps."""
NAME = 5
"""Letters from which a last name reveals who is meant."""

_SENTENCE_END = re.compile(
    r"(?:(?<=[.!?…])|(?<=[.!?…][\"”’)]))\s+(?![a-z])|(?<=[。！？])(?![”’」』）])|(?<=[。！？][”’」』）])"
)


# --- cutting ----------------------------------------------------------------------------------------


class Passage(NamedTuple):
    document: str
    """The id of the document that it is from."""
    text: str


def cut(documents: Sequence[Document], lang: Lang) -> list[Passage]:
    """The passages of all documents, in order, each text once."""
    sources: dict[str, str] = {}
    for document in documents:
        for text in cut_text(document.text, lang):
            sources.setdefault(text, document.id)
    return [Passage(document, text) for text, document in sources.items()]


def cut_text(text: str, lang: Lang) -> list[str]:
    """A text in passages of whole sentences, each as long as LONGEST allows."""
    passages: list[list[str]] = []
    room = 0
    for part in (part for sentence in sentences(text, lang) for part in _break_up(sentence, lang)):
        if length(part, lang) > room:
            passages.append([])
            room = LONGEST[lang]
        passages[-1].append(part)
        room -= length(part, lang)
    return [GAP[lang].join(passage) for passage in passages]


def sentences(text: str, lang: Lang) -> list[str]:
    """The sentences of a text; a blank line ends one too."""
    parts: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text):
        lines = [" ".join(line.split()) for line in paragraph.splitlines() if line.strip()]
        parts += _SENTENCE_END.split(GAP[lang].join(lines))
    return [part.strip() for part in parts if part.strip()]


def length(text: str, lang: Lang) -> int:
    return len(text.split()) if lang == "en" else len(re.sub(r"\s", "", text))


def _break_up(sentence: str, lang: Lang) -> Iterator[str]:
    """A sentence, in parts where it is longer than a passage: a table, a list, a text without stops."""
    units = sentence.split() if lang == "en" else list(sentence)
    for start in range(0, len(units), LONGEST[lang]):
        yield GAP[lang].join(units[start : start + LONGEST[lang]])


# --- ranking ----------------------------------------------------------------------------------------


def ranked(passages: Sequence[str], queries: Sequence[str], lang: Lang) -> list[list[int]]:
    """For each query all passages by their index, nearest first by BM25.

    Those that share no word with it come last: an irrelevant document need not share any.
    """
    scores = bm25_index([*passages, *queries], lang)
    count = len(passages)
    rows = (scores(count + number)[:count] for number in range(len(queries)))
    return [np.argsort(-row, kind="stable").tolist() for row in rows]


# --- answers ----------------------------------------------------------------------------------------
# Two checks for two uses: a document with the answer must state it as whole words; one without it must not
# contain even its letters, nor the last name of the person it names.


def states(text: str, answer: str) -> bool:
    """Whether the text has the answer as whole words, in whatever spelling."""
    return any(True for _ in mentions(target(answer), _words(text)))


def reveals(text: str, answer: str, query: str | None = None) -> bool:
    """Whether the text might give the answer away.

    With the question, a capitalised last word of the answer is enough (Rudgard for Agnes Rudgard), unless
    the question has that word itself (which river, for Columbia River).
    """
    spellings = [answer]
    last = answer.rpartition(" ")[2]
    if query is not None and len(last) >= NAME and last[0].isupper() and not _contains(query, last):
        spellings.append(last)
    return states(text, answer) or any(_contains(text, spelling) for spelling in spellings)


def same_words(text: str, other: str) -> bool:
    """Whether two texts differ in nothing but case, punctuation and gaps."""
    return [word.text for word in _words(text)] == [word.text for word in _words(other)]


def false_version(text: str, answer: str, false: str, query: str) -> str | None:
    """The text with the true answer replaced by the false one; None where replacing is not enough.

    That is where another spelling still reveals the true answer, or "a" should become "an".
    """
    pattern = _pattern(answer)
    article = re.compile(rf"\ban?\s+(?:{pattern.pattern})", re.IGNORECASE)
    if article.search(text) and _takes_an(answer) != _takes_an(false):
        return None
    capitalised = false[:1].upper() + false[1:]
    lower = answer[:1].islower()
    version = pattern.sub(lambda match: capitalised if lower and match[0][0].isupper() else false, text)
    return version if states(version, false) and not reveals(version, answer, query) else None


def _contains(text: str, spelling: str) -> bool:
    text, spelling = _normalise(text), _normalise(spelling)
    if len(spelling) <= SHORT and not re.search(f"[{HAN}]", spelling):
        return bool(_pattern(spelling).search(text))
    return spelling in text


def _pattern(answer: str) -> re.Pattern[str]:
    """The answer literally, in any case and with any gaps; as whole words, where words have ends."""
    gapped = r"\s+".join(map(re.escape, answer.split()))
    if re.search(f"[{HAN}]", answer):
        return re.compile(gapped, re.IGNORECASE)
    start = r"(?<![^\W_])" if re.match(r"[^\W_]", answer) else ""
    end = r"(?![^\W_])" if re.search(r"[^\W_]$", answer) else ""
    return re.compile(f"{start}{gapped}{end}", re.IGNORECASE)


def _normalise(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _takes_an(word: str) -> bool:
    return word[:1].lower() in "aeiou"


@lru_cache(maxsize=16384)
def _words(text: str) -> tuple[Word, ...]:
    return words(plain(text))

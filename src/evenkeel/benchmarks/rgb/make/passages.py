"""Passages of a user's documents: cut, ranked by nearness to a question, and checked for an answer."""

from __future__ import annotations

import random
import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain, islice
from math import ceil
from typing import NamedTuple

from evenkeel.benchmarks.rgb.check import mention as matching
from evenkeel.benchmarks.rgb.check.normalization import HAN, Word, plain, words
from evenkeel.benchmarks.rgb.files import Lang
from evenkeel.make.documents import Document
from evenkeel.make.grammar import between, shuffled
from evenkeel.text.bm25 import best, bm25_rows

LONGEST: dict[Lang, int] = {"en": 150, "zh": 250}
"""Of a passage: words, in Chinese characters. A document that is no longer stays whole."""
TARGET: dict[Lang, int] = {"en": 110, "zh": 180}
"""About how long the passages of a longer document are."""
GAP: dict[Lang, str] = {"en": " ", "zh": ""}
DEPTH = 200
"""Passages that are ranked for one question."""
SHORT = 2
"""Answers of so few characters must be whole words to be revealed, except in Chinese, which has no gaps."""
NAME = 5
"""Letters from which a last name reveals who is meant."""

_HEADING = re.compile(r"(?m)^#{1,6}[ \t]+(.*?[^\s.!?。！？#])[ \t#]*$")
_TITLES = r"(?<!\b[A-Z]\.)(?<!\b(?:Mr|Ms|Dr|St|No)\.)(?<!\b(?:Mrs|Rev|Gen|Col)\.)(?<!\bProf\.)"
_SENTENCE_END = re.compile(
    rf"(?:(?<=[.!?…]){_TITLES}|(?<=[.!?…][\"”’)]))\s+(?![a-z])"
    r"|(?<=[。！？])(?![”’」』）])|(?<=[。！？][”’」』）])"
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
    """A text in passages of about equal length, cut at the ends of sentences, none much above LONGEST."""
    parts = [part for sentence in sentences(text, lang) for part in _break_up(sentence, lang)]
    total = sum(length(part, lang) for part in parts)
    count = 1 if total <= LONGEST[lang] else ceil(total / TARGET[lang])
    passages: list[list[str]] = [[]]
    position = 0
    for part in parts:
        # The middle of a sentence decides which passage it belongs to.
        middle = position + length(part, lang) / 2
        if passages[-1] and middle >= len(passages) * total / count:
            passages.append([])
        passages[-1].append(part)
        position += length(part, lang)
    return [GAP[lang].join(passage) for passage in passages if passage]


def sentences(text: str, lang: Lang) -> list[str]:
    """The sentences of a text; a blank line ends one too, and a heading gets a full stop."""
    stop = "." if lang == "en" else "。"
    paragraphs = re.split(r"\n\s*\n", _HEADING.sub(rf"\n\1{stop}\n", text))
    parts: list[str] = []
    for paragraph in paragraphs:
        lines = [" ".join(line.split()) for line in paragraph.splitlines() if line.strip()]
        parts += _SENTENCE_END.split(GAP[lang].join(lines))
    return [part.strip() for part in parts if part.strip()]


def length(text: str, lang: Lang) -> int:
    return len(text.split()) if lang == "en" else len(re.sub(r"\s", "", text))


def _break_up(sentence: str, lang: Lang) -> Iterator[str]:
    """A sentence, in parts where it is longer than a passage: a table, a list, a text without stops."""
    if length(sentence, lang) <= LONGEST[lang]:
        yield sentence
        return
    units = sentence.split() if lang == "en" else list(sentence)
    for start in range(0, len(units), TARGET[lang]):
        yield GAP[lang].join(units[start : start + TARGET[lang]])


# --- ranking ----------------------------------------------------------------------------------------


class Nearest:
    """Ranks passages by nearness to a question: by BM25, then others in a random order, since an irrelevant
    document need not share a word with the question."""

    def __init__(self, passages: Sequence[str], lang: Lang, seed: int = 0) -> None:
        self._passages = passages
        self._lang = lang
        self._seed = seed
        self._order = shuffled(range(len(passages)), random.Random(f"{seed}:others"))

    def of(self, queries: Sequence[str]) -> list[list[str]]:
        """For each query the passages, nearest first."""
        rankings = rank_by_words(self._passages, queries, self._lang)
        return [
            [self._passages[index] for index in (*ranking, *self._others(ranking, query))]
            for query, ranking in zip(queries, rankings, strict=True)
        ]

    def _others(self, ranking: Sequence[int], query: str) -> Iterator[int]:
        """At most DEPTH passages that are not in the ranking, in a random order that differs by query."""
        near = set(ranking)
        start = between(0, len(self._order) - 1, random.Random(f"{self._seed}:{query}"))
        order = chain(self._order[start:], self._order[:start])
        return islice((index for index in order if index not in near), DEPTH)


def rank_by_words(passages: Sequence[str], queries: Sequence[str], lang: Lang) -> list[list[int]]:
    """Indexes of passages by BM25. One that shares no word with the query is left out."""
    if not queries:
        return []
    count = len(passages)
    rankings = []
    for row in bm25_rows([*passages, *queries], range(count, count + len(queries)), lang=lang):
        is_passage = row.documents < count
        row = row._replace(documents=row.documents[is_passage], scores=row.scores[is_passage])
        rankings.append([candidate.document for candidate in best(row, DEPTH)])
    return rankings


# --- answers ----------------------------------------------------------------------------------------
# Two checks for two uses: a document with the answer must state it as whole words; one without it must not
# contain even its letters, nor the last name of the person it names.


def states(text: str, answer: str) -> bool:
    """Whether the text has the answer as whole words, in whatever spelling."""
    return any(True for _ in matching.mentions(_target(answer), _words(text)))


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


@lru_cache(maxsize=4096)
def _target(answer: str) -> matching.Target:
    return matching.target(answer)


@lru_cache(maxsize=16384)
def _words(text: str) -> tuple[Word, ...]:
    return words(plain(text))

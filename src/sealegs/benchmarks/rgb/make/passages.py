"""Passages of a user's documents: cut, ranked by nearness to a question, and checked for an answer."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from rapidfuzz.distance import Indel

from sealegs.benchmarks.rgb.data import Lang
from sealegs.benchmarks.rgb.make.sections import ANNOUNCEMENT, read_sections
from sealegs.make.documents import Document
from sealegs.text.answer_search.mention import mentions, target
from sealegs.text.answer_search.normalization import HAN, Word, plain, words
from sealegs.text.bm25 import bm25_index

LONGEST: dict[Lang, int] = {"en": 150, "zh": 250}
"""Of a passage: words, in Chinese characters."""
SHORTEST: dict[Lang, int] = {"en": 6, "zh": 10}
"""A shorter one says nothing to ask about."""
GAP: dict[Lang, str] = {"en": " ", "zh": ""}
SHORT = 2
"""Answers of so few characters must be whole words to be revealed, except in Chinese, which has no gaps."""
NAME = 5
"""Letters from which a last name reveals who is meant."""
RUN = 3
MOST_SHARED = 0.5
"""Of the runs of RUN words of the shorter of two texts: a text that shares more with another repeats it."""
SAME_SPELLING = 0.85
"""Of the letters of two answers: with more in common they may be spellings of one (colour, color)."""

_SENTENCE_END = re.compile(
    # Not behind an initial or a title: "W. H. Street", "Dr. Street".
    r"(?<!\b[A-Z]\.)(?<!\b(?:Dr|Mr|Ms|St|pp|vs)\.)(?<!\bMrs\.)(?<!\bProf\.)"
    r"(?:(?<=[.!?…])|(?<=[.!?…][\"”’)]))\s+(?![a-z])|(?<=[。！？])(?![”’」』）])|(?<=[。！？][”’」』）])"
)

_LEANS: dict[Lang, re.Pattern[str]] = {
    "en": re.compile(
        r"[\"“‘'(]*(?:he|she|it|they|we|his|hers?|him|its|their|theirs|them|this|that|these|those|such|both|"
        r"neither|here|however|but|and|or|so|then|thus|hence|therefore|also|moreover|furthermore|besides|"
        r"instead|otherwise|nevertheless|nonetheless|still|yet|consequently|accordingly|likewise|similarly|"
        r"meanwhile|afterwards|later|another|others|the (?:former|latter|same|following|above)|"
        r"there(?! (?:is|are|was|were|has|have|will)\b))\b(?!-)",
        re.IGNORECASE,
    ),
    "zh": re.compile(
        r"[“‘（]*(?:[他她它]们?|其|该|此|这|那(?!曲|不勒斯|霸)|因此|因而|所以|但|然而|不过|于是|后来|随后|接着|同时|"
        r"另外|而且|并且|或者|否则|同样|两者|前者|后者|以上|上述|如上|咱们|我们|本人)"
    ),
}
"""Beginnings of a sentence that speaks of what was said before it."""
_ENTRY = re.compile(r"[a-z][\w ’'-]{1,30}: ")
"""The word that an entry of a glossary explains."""
_NAME_INSIDE = re.compile(r"(?<![.!?…:])(?<![.!?…:][\"”’)]) [\"“‘(]*(?!I\b)[A-Z]|\d")


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
    """The passages of a document that can be understood by themselves.

    Each is of whole sentences of one section, as long as LONGEST allows, after the document's title and the
    section's heading. A sentence that leans on the one before it ("Its engineer, ...") never begins one, and
    what follows a sentence that is longer than a passage is left out as far as it leans.
    """
    title, sections = read_sections(text, lang)
    passages: list[str] = []
    for section in sections:
        parts = [part for paragraph in section.paragraphs for part in sentences(paragraph, lang)]
        for body in _pack(parts, lang):
            if length(body, lang) >= SHORTEST[lang] and (title or names_something(body, lang)):
                heading = "" if section.heading in ("", title) else section.heading
                passages.append(_headed([title, heading], body, lang))
    return passages


def _headed(headings: Sequence[str], body: str, lang: Lang) -> str:
    """A passage after its headings; a heading that asks ("Who runs it?") keeps its mark."""
    joined = (" – " if lang == "en" else "：").join(filter(None, headings))
    colon = "" if joined[-1:] in ("", "?", "!", "？", "！") else ":" if lang == "en" else "："
    return f"{joined}{colon}{GAP[lang] if joined else ''}{body}"


def _pack(parts: Sequence[str], lang: Lang) -> list[str]:
    """Sentences in passages, each of which begins with one that stands by itself."""
    groups: list[str] = []  # a sentence that stands by itself, with those that lean on it
    whole = False
    for part in parts:
        longer = f"{groups[-1]}{GAP[lang]}{part}" if whole else part
        if leans(part, lang) and whole and length(longer, lang) <= LONGEST[lang]:
            groups[-1] = longer
            continue
        whole = not leans(part, lang) and length(part, lang) <= LONGEST[lang]
        if whole:
            groups.append(part)
    passages: list[list[str]] = []
    room = 0
    for group in groups:
        if length(group, lang) > room:
            passages.append([])
            room = LONGEST[lang]
        passages[-1].append(group)
        room -= length(group, lang)
    return [ANNOUNCEMENT.sub("", GAP[lang].join(passage)) for passage in passages]


def leans(sentence: str, lang: Lang) -> bool:
    """Whether a sentence cannot be understood without the one before it."""
    if sentence[:1].islower():
        return not _ENTRY.match(sentence)
    return bool(_LEANS[lang].match(sentence))


def names_something(text: str, lang: Lang) -> bool:
    """Whether a text names anything: in English by a capital inside a sentence or a figure; of Chinese, which
    has no capitals, it is not known."""
    return lang == "zh" or bool(_NAME_INSIDE.search(text))


def sentences(paragraph: str, lang: Lang) -> list[str]:
    """The sentences of a paragraph."""
    return [part.strip() for part in _SENTENCE_END.split(" ".join(paragraph.split())) if part.strip()]


def length(text: str, lang: Lang) -> int:
    return len(text.split()) if lang == "en" else len(re.sub(r"\s", "", text))


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


def may_be_same(answer: str, other: str) -> bool:
    """Whether two answers may be spellings of one.

    The words of the one are all in the other ("Venn, Tobias"), it is the initials of the other (FSF), its
    words are shortened (St. Petersburg, T. Venn), or hardly a letter differs (colour, color).
    """
    one, two = (re.findall(r"\w+", _normalise(text).replace(".", "")) for text in (answer, other))
    if {*one} <= {*two} or {*two} <= {*one}:
        return True
    if any(_are_initials("".join(short), long) for short, long in ((one, other), (two, answer))):
        return True
    if len(one) == len(two) and all(map(_shortens, one, two)):
        return True
    figures = any(character.isdigit() for character in answer + other)
    return not figures and Indel.normalized_similarity("".join(one), "".join(two)) > SAME_SPELLING


def _are_initials(letters: str, name: str) -> bool:
    """Whether letters are those of a name's capitals, or with one more: USA for United States."""
    initials = "".join(re.findall(r"\b[A-Z]", name)).casefold()
    return len(initials) > 1 and letters.startswith(initials) and len(letters) <= len(initials) + 1


def _shortens(one: str, two: str) -> bool:
    """Whether one of two words is the other without some of its letters, but not the first; no number is."""
    short, long = sorted((one, two), key=len)
    letters = iter(long[1:])
    return one == two or (
        short[0] == long[0] and short.isalpha() and all(letter in letters for letter in short[1:])
    )


def repeats(text: str, other: str) -> bool:
    """Whether a text has most of another's words in the other's order: it copies it, with or without more."""
    runs, theirs = _runs(text), _runs(other)
    return same_words(text, other) or len(runs & theirs) > MOST_SHARED * min(len(runs), len(theirs))


def _runs(text: str) -> set[tuple[str, ...]]:
    """Every run of so many words of a text; of so many characters, in Chinese."""
    listed = [word.text for word in _words(text)]
    return {tuple(listed[start : start + RUN]) for start in range(len(listed) - RUN + 1)}


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

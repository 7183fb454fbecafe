"""A reply as a row of word classes: negation, documents, knowing, error, the right answer, and so on.

Each word, phrase or Han character becomes one letter, so that a rule is about classes and not about phrases:
"none of the passages gives", "the text does not say" and 文中没有提到 are all a negation before a verb of
stating. `phrases.json` has the phrases of each class, as their words are read: without articles, numbers as
digits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from sealegs.text.answer_check.lexicon import PHRASES, korean_phrases, lexicon
from sealegs.text.answer_search.korean import HANGUL, noun
from sealegs.text.answer_search.normalization import HAN, Word, plain, words
from sealegs.text.answer_search.spelling import simplified

SAYING = frozenset("nY~lvAeyXhCTNzfkd<>DL")
"""Letters by which decisions are taken: words of the question, as in a title, say nothing."""
NUMERIC, NAMED = frozenset("134"), frozenset("02")
"""The kinds of things that are given as numbers (times, quantities, extents) and as names (persons, places),
by their order in the file of phrases."""
OWN_DOCUMENTS = {"document", "documents", "passage", "passages", "text", "texts", "context", "文档", "资料"}
"""What replies call what they were given, also where the question has the word."""
HAN_WORD = re.compile(f"[{HAN}]")
_HANGUL_WORD = re.compile(f"[{HANGUL}]")
MOST_DIGITS = 2
"""Of the number of a document."""
MANY = 40
"""Words by which the script of a reply is told."""


class ReplyToken(NamedTuple):
    """One word, phrase or answer: its class and its words."""

    letter: str
    start: int
    end: int


class ClassifiedReply(NamedTuple):
    """A reply as classes: one letter for each token, with `,` and `.` where clauses and sentences end."""

    tokens: Sequence[ReplyToken]
    words: Sequence[Word]

    @property
    def letters(self) -> str:
        return "".join(token.letter for token in self.tokens)

    @property
    def han(self) -> bool:
        """Whether it is in Chinese characters."""
        return any(HAN_WORD.match(word.text) for word in self.words[:MANY])


def read(listed: Sequence[Word], query: str, answers: Mapping[int, tuple[int, str]]) -> ClassifiedReply:
    """The classes of a text's words. `answers` has the end and the letter of an answer by its start."""
    asked_kinds, about_error = kinds(query), asks_about_error(query)
    asked, asked_characters = _asked(query)
    tokens: list[ReplyToken] = []
    position = 0
    while position < len(listed):
        word = listed[position]
        if position and word.clause != listed[position - 1].clause:
            mark = "." if word.sentence != listed[position - 1].sentence else ","
            tokens.append(ReplyToken(mark, position, position))
        end, letter = answers.get(position, (0, ""))
        if not letter and word.number and tokens and tokens[-1].letter == "d":
            end, letter = _enumeration(listed, position, answers), "#"
        elif not letter:
            end, letter = _classified(listed, position)
            if letter in ("n", "l", "v") and _is_in_a_title(listed, position, end, tokens):
                letter = "w"
            elif letter in SAYING and _is_asked_about(listed, position, end, query):
                letter = "Q"
            elif letter in ("l", "v", "e", "A") and (
                word.cased == "Na"
                or _begins_name(listed, position, end)
                or (word.cased[:1].isupper() and tokens and tokens[-1].letter == "M")
            ):
                letter = "w"
            elif letter == "d" and about_error and _phrase(listed, position, end) not in OWN_DOCUMENTS:
                letter = "w"  # the textbook of the story
        if letter[:1].isdigit():
            same = letter[0] in (asked_kinds or "0")  # a name is asked for by "which", too
            letter = ("H" if letter[1:] else "J") if same else "Q" if form(word.text) in asked else "O"
        if letter in ("", "w"):
            asked_too = form(word.text) in asked or word.text in asked_characters
            if asked_too and not _begins_date(listed, position):
                letter = "Q"
            letter = letter or ("#" if word.number else "w")
        if letter == "w" and end == position + 1 and _is_name(listed, position):
            letter = "M"
            if tokens and tokens[-1].letter == "M":
                position = tokens.pop().start
        tokens.append(ReplyToken(letter, position, end))
        position = end
        if listed[end - 1].text.endswith(PHRASES.clause_endings):
            tokens.append(ReplyToken(",", end, end))
    return ClassifiedReply(tokens, listed)


def _enumeration(listed: Sequence[Word], position: int, answers: Mapping[int, object]) -> int:
    """The end of the numbers of documents that begin here: "1, 3 and 4"."""
    end = position + 1
    while end < len(listed) and listed[end].sentence == listed[position].sentence:
        joint = listed[end].text in PHRASES.joints
        last = end + joint
        if last == len(listed) or not listed[last].text.isdigit() or len(listed[last].text) > MOST_DIGITS:
            break
        if last in answers:
            break
        end = last + 1
    return end


def _begins_date(listed: Sequence[Word], position: int) -> bool:
    """Whether a word is the year of a date, which may be new where its year is not: m6 is June."""
    after = listed[position + 1].text if position + 1 < len(listed) else ""
    return listed[position].number and after[:1] == "m" and after[1:].isdigit()


def _phrase(listed: Sequence[Word], position: int, end: int) -> str:
    return "".join(word.text for word in listed[position:end])


def _is_asked_about(listed: Sequence[Word], position: int, end: int, query: str) -> bool:
    """Whether the question is about what a phrase says: "declined", where it is "Who declined the prize?". A
    word that may be anywhere, as "not", counts only beside another one of the question."""
    if _phrase(listed, position, end) in OWN_DOCUMENTS:
        return False
    for start, stop in ((position, end), (max(0, position - 1), end), (position, end + 1)):
        texts = [word.text for word in listed[start:stop]]
        if len(texts) > 1 and f" {' '.join(texts)} " in _spaced(query):
            return True
    return end == position + 1 and form(listed[position].text) in _asked(query)[0]


@lru_cache(maxsize=1024)
def _spaced(query: str) -> str:
    return f" {' '.join(word.text for word in words(query))} "


@lru_cache(maxsize=1024)
def kinds(query: str) -> frozenset[str]:
    """The letters of the kinds of things that a question asks for."""
    listed = words(query)
    letters = (_classified(listed, position)[1] for position in range(len(listed)))
    return frozenset(letter[0] for letter in letters if letter[:1].isdigit())


def value_letters(query: str, *, han: bool) -> str:
    """The letters of what could be an answer to a question of its kind."""
    asked = kinds(query)
    if asked and asked <= NUMERIC:
        return "GK#"
    if asked and asked <= NAMED and not han:
        return "GKM"
    return "GKM#w"


def _classified(listed: Sequence[Word], position: int) -> tuple[int, str]:
    """The end and the letter of the longest phrase that begins here; no letter where it is in no class."""
    letters, lengths = lexicon()
    word = listed[position]
    for length in lengths.get(word.text, ()):
        phrase = listed[position : position + length]
        letter = letters.get(tuple([w.text for w in phrase]))
        if letter and phrase[-1].clause == word.clause and not _enters_name(phrase):
            return position + len(phrase), letter
    if _HANGUL_WORD.match(word.text):
        return _korean(listed, position)
    return position + 1, letters.get((word.text,)) or letters.get((_base(word.text),), "")


def _enters_name(phrase: Sequence[Word]) -> bool:
    """Whether a phrase runs into a name: "is Mystery", of "is Mystery at Sea"."""
    small, capital = phrase[0].cased[:1].islower(), phrase[-1].cased
    return small and len(capital) > 2 and capital[:1].isupper()


def _korean(listed: Sequence[Word], position: int) -> tuple[int, str]:
    """The end and the letter of the longest Korean phrase whose last word goes on as it likes."""
    for phrase, letter in korean_phrases().get(listed[position].text[0], ()):
        end = position + len(phrase)
        texts = tuple(word.text for word in listed[position:end])
        if texts == phrase:
            return end, letter
        begins = (
            (len(phrase) > 1 or len(phrase[0]) > 1)
            and texts[:-1] == phrase[:-1]
            and texts[-1].startswith(phrase[-1])
        )
        if begins and listed[end - 1].clause == listed[position].clause:
            return end, letter
    return position + 1, ""


def _is_in_a_title(listed: Sequence[Word], position: int, end: int, tokens: Sequence[ReplyToken]) -> bool:
    """Whether a word of declining belongs to a title: "is called Without Ada", 沉默的海湾, 红楼之谜."""
    before = listed[position - 1] if position else None
    if not HAN_WORD.match(listed[position].text):
        inside = before is not None and before.clause == listed[position].clause
        return inside and _begins_name(listed, position, end)
    if before is not None and before.text == "之":
        return len(tokens) > 1 and tokens[-2].letter != "G"  # the right answer and more is another title
    after = listed[end : end + 2]
    attributive = len(after) > 1 and after[0].text == "的" and HAN_WORD.match(after[1].text)
    return bool(attributive) and after[1].clause == after[0].clause and not _classified(listed, end + 1)[1]


def _begins_name(listed: Sequence[Word], position: int, end: int) -> bool:
    """Whether a phrase is the beginning of a name: "Unknown Tides", but not "Unknown Reason"."""
    if end == len(listed) or listed[end].clause != listed[position].clause:
        return False
    capitals = listed[position].cased[:1].isupper() and listed[end].cased[:1].isupper()
    return capitals and not _classified(listed, end)[1]


def _is_name(listed: Sequence[Word], position: int) -> bool:
    """Whether a word has a capital that is not only that of a sentence: inside one, before another capital,
    or as a clause by itself."""
    word = listed[position]
    if not word.cased[:1].isupper():
        return False
    if position and listed[position - 1].sentence == word.sentence:
        return True
    after = listed[position + 1] if position + 1 < len(listed) else None
    return after is None or after.clause != word.clause or after.cased[:1].isupper()


@lru_cache(maxsize=1024)
def asks_yes_or_no(query: str) -> bool:
    """Whether a question has no word that asks for something: "no" is an answer to it."""
    listed = words(query)
    letters = [_classified(listed, position)[1] for position in range(len(listed))]
    return bool(letters) and not any(letter == "W" or letter.isdigit() for letter in letters)


@lru_cache(maxsize=1024)
def asks_about_error(query: str) -> bool:
    """Whether a question is about somebody's error: "Who found the mistakes in the textbook?"."""
    listed = words(simplified(plain(query)))
    last = len(listed) - 1  # "Where does Bilbao lie?"
    return any(
        _classified(listed, n)[1] == "e" and (n < last or listed[n].text != "lie") for n in range(len(listed))
    )


def asked_forms(query: str) -> frozenset[str]:
    """The content words and the Han characters of a question."""
    forms, characters = _asked(query)
    return forms | characters


@lru_cache(maxsize=1024)
def _asked(query: str) -> tuple[frozenset[str], frozenset[str]]:
    """The words of a question that are in no class of function words, and its Han characters."""
    listed = words(simplified(plain(query)))
    content, characters = set(), set()
    position = 0
    while position < len(listed):
        end, letter = _classified(listed, position)
        for text in (word.text for word in listed[position:end]):
            if HAN_WORD.match(text):
                if letter not in tuple("xmVWB") and not letter.isdigit():
                    characters.add(text)
            elif lexicon()[0].get((text,), "w") not in "xmVWn" and text not in OWN_DOCUMENTS:
                content.add(form(text))
        position = end
    return frozenset(content), frozenset(characters)


@lru_cache(maxsize=8192)
def _base(word: str) -> str:
    """The word of a class of which this is another form: provides, providing and provided are provide."""
    letters = lexicon()[0]
    for ending in ("s", "es", "ed", "d", "ing", "ly") if word.isascii() and len(word) > 3 else ():
        stem = word.removesuffix(ending)
        if stem != word and len(stem) > 2 and (ending != "d" or stem[-1] == "e"):
            doubled, ies = stem[-1] == stem[-2], stem.endswith("i")
            for base in (stem, stem + "e", stem[:-1] if doubled else stem, stem[:-1] + "y" if ies else stem):
                if not letters.get((base,), "0")[0].isdigit():
                    return base
    return word


@lru_cache(maxsize=8192)
def form(word: str) -> str:
    """A word without the ending of a verb or of a plural: hosted and hosting are host; 수도는 is 수도."""
    word = PHRASES.irregular.get(word, word)
    if not word.isascii():
        return noun(word)
    stem = re.sub(r"([bdgmnprt])\1$", r"\1", re.sub(r"(?:ing|ed|es|s|er|or|e)$", "", word))
    return stem if len(stem) > 2 else word

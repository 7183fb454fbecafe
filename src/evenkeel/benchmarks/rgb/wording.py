"""A text as words that can be compared, however it was written.

Unicode forms, case, accents, punctuation and articles are levelled; numbers become digits (1,000 and one
thousand, 二十一 and 21, 10.4 billion and 104亿); dates become year, month and day. Chinese is compared
character by character, so that no word list is needed; letters and numbers are compared whole, so that
70 is not found in 170 nor "no" in "know".
"""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

from evenkeel.benchmarks.rgb.normalization import DATE, DATE_END, digits
from evenkeel.text.word_splitting import normalized

HAN = r"\u3400-\u9fff"
LOOK_BACK = 200
"""As many characters before a word or phrase are read for what it means there."""


class Word(NamedTuple):
    """One word, number, part of a date, or Han character."""

    text: str
    cased: str
    """As it was written, to tell US from us."""
    clause: int
    sentence: int
    glued: bool
    """Written on to the word before it, as the 4 of PS4."""

    @property
    def number(self) -> bool:
        return self.text[-1].isdigit()

    @property
    def joined(self) -> str:
        """To compare spellings with and without a gap (Spider-Man, Spiderman), yet never 1 70 with 170."""
        return f" {self.text} " if self.number else self.text


def plain(text: str) -> str:
    """One form for characters, apostrophes, contractions, mark-up and gaps; the words stay as they are."""
    text = normalized("NFKC", text)
    text = re.sub(r"[\u2018\u2019\u02bc]", "'", text)
    text = re.sub(rf"[*`#_{DATE}{DATE_END}]+", "", text)
    text = re.sub(r"\bcan(?:'t| not)\b", "cannot", text, flags=re.IGNORECASE)
    text = re.sub(r"\bwon't\b", "will not", text, flags=re.IGNORECASE)
    text = re.sub(r"n't\b", " not", text, flags=re.IGNORECASE)
    text = re.sub(rf"(?<=[{HAN}])[ \t]+(?=[{HAN}])|(?<=\d)[ \t]+(?=[万亿])", "", text)
    return re.sub(r"[^\S\n]+", " ", text).strip()


_SENTENCE_END = r"[。!?;\n]+|(?<!\b[A-Za-z])\.(?=\s*$|\s+[^a-z0-9\s])"


def sentence_starts(text: str) -> list[int]:
    """Where the sentences of a plain text begin."""
    return [0, *(end.end() for end in re.finditer(_SENTENCE_END, text) if end.end() < len(text))]


def words(text: str) -> tuple[Word, ...]:
    """The words of a plain text, without articles and punctuation."""
    text = _unaccented(text)
    text = re.sub(r"\b[A-Za-z][.·](?:\s?[A-Za-z][.·])+", lambda m: re.sub(r"[.·\s]", "", m[0]), text)
    text = re.sub(r"'s\b|(?<=\w)'(?=\w)", "", text)
    return tuple(_split(digits(text)))


_PIECE = re.compile(
    rf"{DATE}(?P<date>[^{DATE_END}]+){DATE_END}"
    rf"|(?P<number>(?:(?<![^\s(:])-)?\d+(?:\.\d+)*)"
    rf"|(?P<word>[{HAN}%‰]|(?:(?![{HAN}])[^\W\d_])+)"
    rf"|(?P<end>{_SENTENCE_END})|(?P<pause>[,:()\"“”、—])",
)
_LETTER, _LETTER_OR_DIGIT = rf"[^\W\d_{HAN}]", rf"[^\W_{HAN}]"
_GLUED = {
    "number": re.compile(rf"(?<={_LETTER_OR_DIGIT})|(?<={_LETTER}-)|(?<=\d:)|(?<=第)"),
    "word": re.compile(rf"(?<=\d)(?={_LETTER})"),
}
"""What a number or word runs on from: the 4 of PS4, the 19 of COVID-19, the 30 of 10:30, the s of 1990s,
the 3 of 第3."""


_SMALL_LETTER = re.compile(" [a-z]")


def _split(text: str) -> list[Word]:
    found: list[Word] = []
    clause = sentence = 0
    for piece in _PIECE.finditer(text):
        kind, cased = str(piece.lastgroup), piece[piece.lastgroup or 0]
        if kind in ("end", "pause"):
            clause += 1
            sentence += kind == "end"
        elif not _is_article(piece, text):
            word = re.sub(r"\.0+$", "", cased) if kind == "number" else cased.lower()
            glued = kind in _GLUED and bool(_GLUED[kind].match(text, piece.start()))
            found.append(Word(word, cased, clause, sentence, glued))
    return found


def _is_article(piece: re.Match[str], text: str) -> bool:
    """The, an and a; but not a capital A inside a sentence, as in "vitamin A"."""
    word = piece["word"] or ""
    if word == "A":
        before = text[max(0, piece.start() - LOOK_BACK) : piece.start()]
        begins = not before.rstrip(" \"'(") or before.rstrip()[-1:] in ".!?:\n"
        return begins and bool(_SMALL_LETTER.match(text, piece.end()))
    return word.lower() in ("the", "an") or word == "a"


def _unaccented(text: str) -> str:
    if text.isascii():
        return text
    split = normalized("NFKD", text)
    return unicodedata.normalize("NFC", "".join(c for c in split if not unicodedata.combining(c)))

"""A text as words that can be compared, however it was written.

Unicode forms, case, accents, punctuation and articles are made equal, and numbers and dates become digits
(`numbers`). Chinese is compared character by character, so that no word list is needed, and Korean without
its particles (`korean`); letters and numbers are compared whole, so that 70 is not found in 170 nor "no" in
"know".
"""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

from sealegs.text.answer_search.clock import DATE, DATE_END
from sealegs.text.answer_search.korean import HANGUL
from sealegs.text.answer_search.numbers import digits
from sealegs.text.word_splitting import normalized

HAN = r"\u3400-\u9fff"
LOOK_BACK = 200
"""As many characters before a word or phrase are read for what it means there."""


# Words


class Word(NamedTuple):
    """One word, number, part of a date, or Han character."""

    text: str
    cased: str
    """As it was written, to distinguish US from us."""
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


_SENTENCE_END = (
    r"[。!?;\n]+|(?<!\b[A-Za-z])(?<!\b[DM]r)(?<!\bMs)(?<!\bMrs)(?<!\bProf)(?<!\bMsgr)(?<!\bRev)\.(?=\s*$|[\"\u201d)\]]*\s+[^a-z0-9\s])"
    r"|(?<=[a-z]{4})(?<!prox)\.(?=\s+\d)"
    r"|(?<=[다요])\.(?=\s+\d)"  # as Korean sentences end
    r"|(?<=\d [gmst])\.(?=\s+[A-Z])"  # a unit is no initial
)


_TOKEN = re.compile(
    rf"{DATE}(?P<date>[^{DATE_END}]+){DATE_END}"
    rf"|(?P<number>(?:(?<![^\s(:])-)?\d+(?:\.\d+)*)"
    rf"|(?P<word>[{HAN}%‰]|[{HANGUL}]+|(?:(?![{HAN}{HANGUL}])[^\W\d_])+)"
    rf"|(?P<end>{_SENTENCE_END})|(?P<pause>[,:()、—]|(?<=\s)[–-](?=\s))",
)
_LETTER, _LETTER_OR_DIGIT = rf"[^\W\d_{HAN}{HANGUL}]", rf"[^\W_{HAN}{HANGUL}]"
_GLUED = {
    "number": re.compile(rf"(?<={_LETTER_OR_DIGIT})|(?<={_LETTER}-)|(?<=\d:)|(?<=[第제])"),
    "word": re.compile(rf"(?<=\d)(?={_LETTER})"),
}
"""What a number or word runs on from: the 4 of PS4, the 19 of COVID-19, the 30 of 10:30, the s of 1990s,
the 3 of 第3 and 제3."""
_SMALL_LETTER = re.compile(" [a-z]")


def words(text: str) -> tuple[Word, ...]:
    """The words of a plain text, without articles and punctuation."""
    text = _unaccented(text)
    text = re.sub(r"\b[A-Za-z][.·](?:\s?[A-Za-z][.·])+", lambda m: re.sub(r"[.·\s]", "", m[0]), text)
    text = digits(re.sub(r"'s\b|(?<=\w)'(?=\w)", "", text))
    listed: list[Word] = []
    clause = sentence = 0
    for token in _TOKEN.finditer(text):
        kind, cased = str(token.lastgroup), token[token.lastgroup or 0]
        if kind in ("end", "pause"):
            clause += 1
            sentence += kind == "end"
        elif not _is_article(token):
            word = re.sub(r"\.0+$", "", cased) if kind == "number" else cased.lower()
            glued = kind in _GLUED and bool(_GLUED[kind].match(text, token.start()))
            listed.append(Word(word, cased, clause, sentence, glued))
    return tuple(listed)


def _is_article(token: re.Match[str]) -> bool:
    """The, an and a; but not a capital A inside a sentence, as in "vitamin A"."""
    word, text = token["word"] or "", token.string
    if word == "A":
        before = text[max(0, token.start() - LOOK_BACK) : token.start()]
        begins = not before.rstrip(" \"'(") or before.rstrip()[-1:] in ".!?:\n"
        return begins and bool(_SMALL_LETTER.match(text, token.end()))
    return word.lower() in ("the", "an") or word == "a"


_LETTERS_ALIKE = str.maketrans("ðÐđĐøØłŁ", "dDdDoOlL")
"""Letters whose mark Unicode does not part from them."""


def _unaccented(text: str) -> str:
    if text.isascii():
        return text
    letters = (
        char for char in normalized("NFKD", text.translate(_LETTERS_ALIKE)) if not unicodedata.combining(char)
    )
    return unicodedata.normalize("NFC", "".join(letters))

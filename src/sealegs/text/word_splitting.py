"""Words of a text, for BM25: Chinese with rjieba, Korean with kiwipiepy, the rest by Unicode.

Only a text in Han or Hangul loads a splitter, so that nobody else needs the extra packages.
"""

from __future__ import annotations

import importlib
import re
import unicodedata
import warnings
from collections.abc import Sequence
from functools import cache
from typing import Any, Literal

from sealegs.errors import MissingExtra

HAN_RANGES = r"\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
HAN = re.compile(f"[{HAN_RANGES}]")
MARKS = 30
"""Combining marks in a row that are read."""
INSIDE_WORD = re.compile(r"\w|['’\-‐‑](?=\w)|(?<=\d)[.,:/](?=\d)|(?<=\b\w)\.(?=\w)")
"""What a word goes on with."""
UNSPACED = re.compile(rf"[{HAN_RANGES}\u3040-\u30ff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]")
"""Letters of scripts that put no spaces between words: a word may end after any."""
HANGUL = re.compile(r"[\uac00-\ud7a3\u1100-\u11ff\u3130-\u318f]")


def split(texts: Sequence[str], lang: str | None = None) -> list[list[str]]:
    """The lower-cased words of each text.

    Without `lang`, a text with any Hangul is split as Korean and runs of Han are split as Chinese. With it,
    every text is of that language, and only `ko` and `zh` need a splitter.
    """
    plain = [normalized("NFC", text).lower().replace("’", "'") for text in texts]
    korean = [at for at, text in enumerate(plain) if lang == "ko" or (lang is None and HANGUL.search(text))]
    apart = dict(zip(korean, _korean([plain[at] for at in korean]), strict=True))
    chinese = lang in (None, "zh")
    return [apart[at] if at in apart else _words(text, chinese=chinese) for at, text in enumerate(plain)]


def first_words(text: str, count: int) -> str:
    """A text up to the end of its `count`-th word, the spaces before it included."""
    end = 0
    for _ in range(count):
        while end < len(text) and text[end].isspace():
            end += 1
        while end < len(text) and not text[end].isspace():
            end += 1
    return text[:end]


def has_whole_words(text: str, count: int) -> bool:
    """Whether a text goes on after its `count`-th word, so that none of them can grow any more."""
    return len(first_words(text, count)) < len(text)


def word_goes_on(text: str, end: int) -> bool:
    """Whether a word goes on at a position of a text: with a letter, a digit or a mark, or with a hyphen,
    apostrophe or point inside of it (`well-known`, `4.5`, `U.K.`)."""
    if end >= len(text):
        return False
    if unicodedata.category(text[end])[0] == "M":
        return True
    unspaced = UNSPACED.match(text, end) or (end and UNSPACED.match(text, end - 1))
    return not unspaced and INSIDE_WORD.match(text, end) is not None


def word_ends(text: str) -> list[int]:
    """Where each word of a text ends, whatever follows it: `Rome—the` has two."""
    return [end for end in range(1, len(text) + 1) if text[end - 1].isalnum() and not word_goes_on(text, end)]


def normalized(form: Literal["NFC", "NFKC", "NFKD"], text: str) -> str:
    """A Unicode normal form in linear time.

    Python sorts the combining marks of a character by insertion, which is quadratic in their number. No
    script needs more than MARKS of them (Unicode's stream-safe text format); the others are left out.
    """
    if text.isascii():
        return text
    letters, marks = [], 0
    for char in text:
        marks = marks + 1 if unicodedata.combining(char) else 0
        if marks <= MARKS:
            letters.append(char)
    return unicodedata.normalize(form, "".join(letters))


def _words(text: str, *, chinese: bool) -> list[str]:
    words = _pattern().findall(text)
    if not chinese or not HAN.search(text):
        return words
    return [part for word in words for part in (_rjieba().cut(word) if HAN.match(word) else [word])]


@cache
def _pattern() -> re.Pattern[str]:
    """A run of Han, or a word: letters and digits with their combining marks, and apostrophes inside.

    To Python the marks are no part of a word, and without them words of Hindi or Thai fall to pieces.
    """
    marks = "".join(char for char in map(chr, range(0x300, 0x10000)) if unicodedata.category(char)[0] == "M")
    letters = rf"[^\W{HAN_RANGES}]+(?:[{marks}]+[^\W{HAN_RANGES}]*)*"
    return re.compile(rf"[{HAN_RANGES}]+|{letters}(?:'{letters})*")


def _korean(texts: Sequence[str]) -> list[list[str]]:
    """Morphemes, without punctuation; kiwipiepy works on many texts at once."""
    if not texts:
        return []
    return [
        [token.form for token in tokens if any(char.isalnum() for char in token.form)]
        for tokens in _kiwi().tokenize(texts)
    ]


@cache
def _rjieba() -> Any:
    return _load("rjieba", what="Splitting Chinese into words")


@cache
def _kiwi() -> Any:
    return _load("kiwipiepy", what="Splitting Korean into words").Kiwi()


def _load(package: str, *, what: str) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # old escapes and pkg_resources, of no use to our readers
            return importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise MissingExtra(what, package=package, install="pip install 'sealegs[words]'") from None

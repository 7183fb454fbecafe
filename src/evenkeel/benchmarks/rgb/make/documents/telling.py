"""Whether a text gives an answer, and a text with another answer in its place.

Two checks, for two uses: what counts as a document with the answer must state it as whole words; what
counts as one without it must not hold so much as its letters, nor the last name of the person it names.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from evenkeel.benchmarks.rgb import matching
from evenkeel.benchmarks.rgb.wording import HAN, Word, plain, words

SHORT = 2
"""Answers of so few characters are sought as whole words only; Chinese, which has no gaps, aside."""
NAME = 5
"""Letters from which a last name tells who is meant."""


def states(text: str, answer: str) -> bool:
    """Whether the answer stands in the text as whole words, in whatever spelling, and is not denied."""
    return any(True for _ in matching.occurrences(_target(answer), _words(text)))


def tells(text: str, answer: str, query: str | None = None) -> bool:
    """Whether the text might give the answer away.

    With the question, a capitalised last word of the answer is enough (Rudgard for Agnes Rudgard), unless
    the question has that word itself (which river, for Columbia River).
    """
    spellings = [answer]
    last = answer.rpartition(" ")[2]
    if query is not None and len(last) >= NAME and last[0].isupper() and not _written(query, last):
        spellings.append(last)
    return states(text, answer) or any(_written(text, spelling) for spelling in spellings)


def agree(reply: str, answer: str) -> bool:
    """Whether one of two answers contains the other."""
    return states(reply, answer) or states(answer, reply)


def alike(one: str, other: str) -> bool:
    """Whether two texts differ in nothing but case, punctuation and gaps."""
    return [word.text for word in _words(one)] == [word.text for word in _words(other)]


def twin(text: str, answer: str, fake: str, *, query: str) -> str | None:
    """The text with the false answer in every place of the true one; None where that does not do.

    It does not where the true answer is still told in another spelling, or "a" should become "an".
    """
    written = _pattern(answer)
    article = re.compile(rf"\ban?\s+(?:{written.pattern})", re.IGNORECASE)
    if article.search(text) and _takes_an(answer) != _takes_an(fake):
        return None
    small = answer[:1].islower()
    made = written.sub(lambda found: _begun(fake) if small and found[0][0].isupper() else fake, text)
    return made if is_twin(made, answer, fake, query=query) else None


def is_twin(text: str, answer: str, fake: str, *, query: str) -> bool:
    """Whether the text gives the false answer and nothing of the true one."""
    return states(text, fake) and not tells(text, answer, query)


def of_one_kind(answer: str, fake: str) -> bool:
    """As far as text can show: both with digits or both without, both with Han or both without, and
    neither of them many times as long."""
    same = all(bool(re.search(sign, answer)) == bool(re.search(sign, fake)) for sign in (r"\d", f"[{HAN}]"))
    return same and len(fake) <= 3 * len(answer) + 6 and len(answer) <= 3 * len(fake) + 6


def _written(text: str, spelling: str) -> bool:
    sought = _level(spelling)
    if len(sought) <= SHORT and not re.search(f"[{HAN}]", sought):
        return bool(_pattern(sought).search(_level(text)))
    return sought in _level(text)


def _pattern(answer: str) -> re.Pattern[str]:
    """The answer as it is written, in any case and with any gaps; whole words, where words have ends."""
    gapped = r"\s+".join(map(re.escape, answer.split()))
    start = r"(?<![^\W_])" if re.match(rf"[^\W_{HAN}]", answer) else ""
    end = r"(?![^\W_])" if re.search(rf"[^\W_{HAN}]$", answer) else ""
    if re.search(f"[{HAN}]", answer):
        start = end = ""
    return re.compile(f"{start}{gapped}{end}", re.IGNORECASE)


def _level(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _takes_an(word: str) -> bool:
    return word[:1].lower() in "aeiou"


def _begun(text: str) -> str:
    return text[:1].upper() + text[1:]


@lru_cache(maxsize=4096)
def _target(answer: str) -> matching.Target:
    return matching.target(answer)


@lru_cache(maxsize=16384)
def _words(text: str) -> tuple[Word, ...]:
    return words(plain(text))

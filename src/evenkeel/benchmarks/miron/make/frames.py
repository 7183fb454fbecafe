"""What every MIRON example is made of: a frame with slots, and the words of it that a typo may fall on.

A frame is a line of a bank. `{name}` is filled in; `[words]` stand as they are; both decide the answer, so
no typo may touch them. All other words are free, but for the last one before the answer.
Of `random.Random` only `random()` is used: Python does not promise the other methods to stay the same.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

from evenkeel.files.jsonfile import read_json
from evenkeel.make.grammar import shuffled

VERSION = 1
"""Goes up whenever the code or a bank changes the examples of a seed."""
PATIENCE = 200
"""So many words are drawn in search of a new one."""
BANK = Path(__file__).with_name("bank")

T = TypeVar("T")
Span: TypeAlias = tuple[int, int]

_PIECE = re.compile(r"\{(?P<slot>\w+)\}|\[(?P<decisive>[^\]]*)\]|(?P<free>[^{\[]+)")
_WORD = re.compile(r"[^\W\d_]{2,}")
_SENTENCE = re.compile(r'(?:^|[.?!] )["«]?[^\W\d_]')
_LAST_WORD = re.compile(r"\S+$")


class Draft(NamedTuple):
    """An example before it has a place in a set."""

    kind: str
    prefix: str
    target: str
    free: tuple[Span, ...]
    """Where the words stand that a typo may fall on."""
    about: str
    """What is not to be used too often in one set: the pseudo-word, the fact."""


Kinds: TypeAlias = Mapping[str, Iterator[Draft]]
"""For each kind of example a stream of drafts, in the order in which a set takes them."""


def draft(
    kind: str, frame: str, values: Mapping[str, str] | Callable[[str], str], target: str, about: str = ""
) -> Draft:
    """A frame filled in. The answer begins a new word, so it gets a space in front."""
    value = values.__getitem__ if isinstance(values, Mapping) else values
    prefix = ""
    free: list[Span] = []
    for piece in _PIECE.finditer(frame):
        text = value(piece["slot"]) if piece["slot"] else piece[0] if piece["free"] else piece["decisive"]
        if piece["free"]:
            free += [(len(prefix) + word.start(), len(prefix) + word.end()) for word in _WORD.finditer(text)]
        prefix += text
    last = _LAST_WORD.search(prefix)
    limit = last.start() if last else 0
    return Draft(kind, capitalised(prefix), f" {target}", tuple(s for s in free if s[1] <= limit), about)


def capitalised(text: str) -> str:
    """With a capital at the beginning of every sentence, so that a slot may stand there."""
    return _SENTENCE.sub(lambda start: start[0].upper(), text)


def source(lang: str, seed: int, part: str) -> random.Random:
    """The randomness of one part of a set: nothing in another part changes it."""
    return random.Random(f"evenkeel-miron/{VERSION}/{lang}/{seed}/{part}")


def deck(things: Sequence[T], rng: random.Random) -> Iterator[T]:
    """All of them in a random order, then again in another: every one gets its share."""
    while True:
        yield from shuffled(things, rng)


def unused(words: Iterator[str], used: set[str]) -> str:
    """A word that the set does not have yet; only a set of many thousands runs out of them."""
    word = next((word for word in islice(words, PATIENCE) if word not in used), None) or next(words)
    used.add(word)
    return word


@cache
def read_bank(lang: str, name: str, kind: Any = Any) -> Any:
    return read_json(BANK / lang / f"{name}.json", kind)


@cache
def read_words(lang: str, name: str) -> frozenset[str]:
    """A word list of the bank."""
    return frozenset((BANK / lang / f"{name}.txt").read_text(encoding="utf-8").split())

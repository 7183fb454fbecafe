"""The grammar of everything that is generated: templates with slots and choices, decks, seeded choice.

A template is a line of a data file:

    {name}        a slot: the value of that name is written here
    [one|other]   a choice: one of the options is taken; an option may be empty or hold slots
    [words]       fixed words: written as they are; what decides the answer
    ?A sentence.  as one sentence of several: left out every other time

    >>> template = "{who} [sold|bought] {what}[ yesterday|]."
    >>> fill(choose(template, seeded("example", 0)), {"who": "Ada", "what": "a lamp"})
    'Ada sold a lamp yesterday.'

A seed decides everything, so that it gives the same bytes on every machine. Of `random.Random` only
`random()` and `getrandbits()` may be used: Python does not promise the other methods to stay the same.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal, TypeAlias, TypeVar

T = TypeVar("T")
Values: TypeAlias = Mapping[str, object] | Callable[[str], object]
"""What is written in a slot, by its name."""
Role: TypeAlias = Literal["slot", "fixed", "free"]

_CHOICE = re.compile(r"\[([^\[\]]*\|[^\[\]]*)\]")
_FIXED = re.compile(r"\[([^\[\]]*)\]")
_SLOT = re.compile(r"\{([\w.]+)\}")
_SENTENCE_START = re.compile(r"""(?:^|[.?!]'? )["«]?[^\W\d_]""")


# --- seeded choice ----------------------------------------------------------------------------------

SALT = bytes.fromhex("6576656e6b65656c").decode()
"""Begins the key of every draw: the name under which the first sets were drawn. It stays, since with another
one every seed would give another set."""


def seeded(*key: object) -> random.Random:
    """The random numbers of one part of a set: no other part changes them."""
    return random.Random(f"{SALT}-{'/'.join(map(str, key))}")


def pick(options: Sequence[T], rng: random.Random) -> T:
    """One of the options."""
    return options[int(rng.random() * len(options))]


def between(low: int, high: int, rng: random.Random) -> int:
    """A whole number from `low` to `high`, both included."""
    return low + int(rng.random() * (high - low + 1))


def shuffled(items: Iterable[T], rng: random.Random) -> list[T]:
    """All items in a random order."""
    return [item for _, item in sorted(((rng.random(), item) for item in items), key=lambda pair: pair[0])]


def deck(items: Sequence[T], rng: random.Random) -> Iterator[T]:
    """All items in a random order, then all again in another, without end."""
    while True:
        yield from shuffled(items, rng)


# --- templates --------------------------------------------------------------------------------------


def choose(template: str, rng: random.Random) -> str:
    """A template with one option of each choice."""
    return _CHOICE.sub(lambda match: pick(match[1].split("|"), rng), template)


def slots(template: str) -> list[str]:
    """The names of the slots of a template."""
    return _SLOT.findall(template)


def segments(template: str, values: Values) -> Iterator[tuple[str, Role]]:
    """A filled template in segments, each with what it is in the template."""
    value = values.__getitem__ if isinstance(values, Mapping) else values
    for number, part in enumerate(_FIXED.split(template)):  # every second part is between brackets
        for index, text in enumerate(_SLOT.split(part)):  # every second text is the name of a slot
            yield (str(value(text)), "slot") if index % 2 else (text, "fixed" if number % 2 else "free")


def fill(template: str, values: Values) -> str:
    """A template without choices, its slots filled."""
    return "".join(text for text, _ in segments(template, values))


def sentences(templates: Iterable[str], values: Values, rng: random.Random) -> list[str]:
    """One sentence for each template, without those that were left out (`?`)."""
    taken = [text.removeprefix("?") for text in templates if not text.startswith("?") or rng.random() < 0.5]
    return [capitalised(fill(choose(text, rng), values)) for text in taken]


def capitalised(text: str) -> str:
    """With a capital at the beginning of every sentence, where a slot may have put a small letter."""
    return _SENTENCE_START.sub(lambda match: match[0].upper(), text)

"""An invented world: names, dates and figures that no model can have read, and the sentences they go into.

The words are data (`bank/<language>/`). In their templates `{slot}` or `{slot.part}` stands for a value,
`[one|other]` for a choice, and a sentence that begins with `?` is one that may be left out. Of
`random.Random` only `random()` and `getrandbits()` are used: Python does not promise the other methods to
stay the same from version to version.
"""

from __future__ import annotations

import datetime
import random
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import cycle
from pathlib import Path
from typing import Generic, TypeAlias, TypeVar

from msgspec import Struct

from evenkeel.errors import UsageError
from evenkeel.files.jsonfile import read_json
from evenkeel.make.grammar import between, pick, shuffled

BANK = Path(__file__).with_name("bank")
LANGUAGES = ("en", "zh")

T = TypeVar("T")
Form: TypeAlias = tuple[str, ...]
"""The sentences of one kind of document."""

_CHOICE = re.compile(r"\[([^\[\]]*)\]")
_SLOT = re.compile(r"\{(\w+)(?:\.(\w+))?\}")


class Deck(Generic[T]):
    """Things drawn one after another in a random order, and in that order again when all are drawn."""

    def __init__(self, things: Sequence[T], rng: random.Random) -> None:
        self.order = cycle(shuffled(things, rng))

    def draw(self) -> T:
        return next(self.order)


# --- values and the sentences around them -----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Value:
    """Something that documents tell: a name, a date, a figure."""

    written: tuple[str, ...]
    """The ways in which documents write it."""
    accepted: tuple[str, ...] = ()
    """Further ways that are right in an answer."""
    parts: Mapping[str, str] = field(default_factory=dict)


Slots: TypeAlias = Mapping[str, Value]


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def text_value(text: str) -> Value:
    parts = {
        "last": text.rpartition(" ")[2],
        "cap": capital(text),
        "bare": text.removeprefix("The "),
    }
    return Value((text,), parts=parts)


def write(template: str, slots: Slots, rng: random.Random) -> str:
    """A template with its choices made and its slots filled."""
    chosen = _CHOICE.sub(lambda match: pick(match[1].split("|"), rng), template)

    def fill(match: re.Match[str]) -> str:
        value = slots[match[1]]
        return value.parts[match[2]] if match[2] else pick(value.written, rng)

    return _SLOT.sub(fill, chosen)


def sentences(form: Form, slots: Slots, rng: random.Random) -> list[str]:
    """The sentences of a form, each with a capital; one that may be left out is kept every other time."""
    kept = [text for text in form if not text.startswith("?") or rng.random() < 0.5]
    return [capital(write(text.removeprefix("?"), slots, rng)) for text in kept]


def spellings(template: str, slots: Slots) -> list[str]:
    """Every right way to write an answer given as a template with one slot."""
    match = _SLOT.search(template)
    if match is None:
        raise ValueError(f"an answer needs a slot: {template}")
    value = slots[match[1]]
    texts = [value.parts[match[2]]] if match[2] else [*value.written, *value.accepted]
    return [template.replace(match[0], text) for text in texts]


def squeezed(text: str) -> str:
    """Text as strict as a leak is looked for: compatible forms, lower case, no spaces, no commas."""
    return re.sub(r"[\s,，]+", "", unicodedata.normalize("NFKC", text).lower())


def states(text: str, spellings: Sequence[str]) -> bool:
    """Whether a text contains any of the spellings."""
    plain = squeezed(text)
    return any(squeezed(spelling) in plain for spelling in spellings)


# --- names and figures ------------------------------------------------------------------------------


class Writing(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a date or a score is written in a language."""

    written: tuple[str, ...]
    accepted: tuple[str, ...]

    def value(self, parts: Mapping[str, str]) -> Value:
        def made(patterns: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(pattern.format_map(parts) for pattern in patterns)

        return Value(made(self.written), made(self.accepted), parts)


class Names(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The naming habits of a language: rules that expand to names, and how figures are written."""

    gap: str
    """What stands between two sentences."""
    join: str
    """How two questions become one."""
    thousands: str
    months: tuple[str, ...]
    weekdays: tuple[str, ...]
    date: Writing
    score: Writing
    once: tuple[str, ...]
    """Rules none of whose expansions is used twice in a world before all have been used."""
    rules: dict[str, tuple[str, ...]]


@cache
def names_of(lang: str) -> Names:
    found: Names = read_json(folder(lang) / "names.json", Names)
    return found


def folder(lang: str) -> Path:
    if lang not in LANGUAGES:
        raise UsageError(f"RGB has no starter set in the language '{lang}'. It has: {', '.join(LANGUAGES)}.")
    return BANK / lang


class World:
    """The people, places, dates and figures of one question, drawn as they are needed."""

    def __init__(self, names: Names, rng: random.Random) -> None:
        self.names = names
        self.rng = rng
        self.decks = {rule: Deck(names.rules[rule], rng) for rule in names.once}

    def name(self, rule: str) -> str:
        """A new name of a kind."""
        deck = self.decks.get(rule)
        template = deck.draw() if deck else pick(self.names.rules[rule], self.rng)
        chosen = write(_SLOT.sub(r"<\1>", template), {}, self.rng)
        return re.sub(r"<(\w+)>", lambda match: self.name(match[1]), chosen)

    def value(self, spec: str, known: Slots) -> Value:
        """A new value: a name by its rule, a figure by its range, or a template over what is known.

        Figures are `year 1992 2023`, `number 40 900`, `decimal 1.2 9.6`, `score 26 38 3 9`
        (won by 3 to 9), `date 1992 2023`, and `date opened -2`: in the year two before that of the slot
        `opened`.
        """
        if spec in self.names.rules:
            return text_value(self.name(spec))
        kind, *limits = spec.split()
        if kind in ("year", "number", "decimal", "score", "date"):
            return self._figure(kind, limits, known)
        return text_value(write(spec, known, self.rng))

    def _figure(self, kind: str, limits: Sequence[str], known: Slots) -> Value:
        low, high, *lead = limits
        if kind == "date":
            return self._date(low, high, known)
        if kind == "decimal":
            return self._decimal(low, high)
        figure = between(int(low), int(high), self.rng)
        if kind == "year":
            return Value((str(figure),))
        if kind == "score":
            least, most = lead
            behind = figure - between(int(least), int(most), self.rng)
            return self.names.score.value({"high": str(figure), "low": str(behind)})
        plain, grouped = str(figure), f"{figure:,}"
        return Value((grouped,), (plain,)) if self.names.thousands else Value((plain,), (grouped,))

    def _decimal(self, low: str, high: str) -> Value:
        """A decimal with as many places as its limits; the last is never 0, so that it is written one way."""
        places = len(low.partition(".")[2])
        scale = 10**places
        while True:
            figure = between(round(float(low) * scale), round(float(high) * scale), self.rng)
            if figure % 10:
                return Value((f"{figure // scale}.{figure % scale:0{places}}",))

    def _date(self, start: str, end: str, known: Slots) -> Value:
        """A date; its day has two digits, so that it is never found inside another date."""
        if start in known:
            year = int(known[start].parts["year"]) + int(end)
        else:
            year = between(int(start), int(end), self.rng)
        day = datetime.date(year, between(1, 12, self.rng), between(10, 28, self.rng))
        return self.names.date.value(
            {
                "year": str(year),
                "month": self.names.months[day.month - 1],
                "day": str(day.day),
                "weekday": self.names.weekdays[day.weekday()],
            }
        )

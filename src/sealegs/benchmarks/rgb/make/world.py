"""An invented world: names, dates and figures that no model can have read, and how documents write them.

The words are data (`bank/<language>/`), in the grammar of `sealegs.make.grammar`.
"""

from __future__ import annotations

import datetime
import random
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import cycle
from typing import NamedTuple, TypeAlias, TypeVar

from msgspec import Struct

from sealegs.files.package_data import data_path, read_json
from sealegs.make.grammar import between, choose, fill, pick, sentences, shuffled

T = TypeVar("T")
F = TypeVar("F", bound=Sequence[str])


class Value(NamedTuple):
    """Something that documents state: a name, a date, a figure."""

    written: tuple[str, ...]
    """The ways in which documents write it."""
    accepted: tuple[str, ...] = ()
    """Further ways that are right in an answer."""
    parts: Mapping[str, str] = {}
    size: int = 0
    """Of a figure or a date: what it is compared by."""


Slots: TypeAlias = Mapping[str, Value]


def text_value(text: str) -> Value:
    parts = {
        "last": text.rpartition(" ")[2],
        "cap": text[:1].upper() + text[1:],
        "bare": text.removeprefix("The "),
    }
    return Value((text,), parts=parts)


def values(slots: Slots, rng: random.Random) -> Callable[[str], str]:
    """What templates write: for `{slot}` one of the ways to write its value, for `{slot.part}` that part."""

    def value(slot: str) -> str:
        name, _, part = slot.partition(".")
        return slots[name].parts[part] if part else pick(slots[name].written, rng)

    return value


def write(template: str, slots: Slots, rng: random.Random) -> str:
    """A template with its choices made and its slots filled."""
    return fill(choose(template, rng), values(slots, rng))


def write_document(form: Iterable[str], slots: Slots, gap: str, rng: random.Random) -> str:
    """A document from the templates of its sentences."""
    return gap.join(sentences(form, values(slots, rng), rng))


MOST_FIXED = 3
"""Documents of a set that may share a sentence in which nothing is filled in."""
MOST_FILLED = 4
"""Of one in which something is filled in and that may be left out."""


class Repeats:
    """The sentences of a set, before anything is filled in, and how often each was written."""

    def __init__(self) -> None:
        self.written: Counter[str] = Counter()

    def deck(self, forms: Iterable[F], rng: random.Random) -> list[F]:
        """Forms in a random order, those least written first, but last those with a used-up sentence in which
        nothing is filled in."""
        return sorted(shuffled(forms, rng), key=self._wear)

    def choose(self, form: Iterable[str]) -> list[str]:
        """A form without what is used up and may be left out; what remains counts as written."""
        kept = [text for text in form if not (text.startswith("?") and self._used_up(text[1:]))]
        self.written.update(text.removeprefix("?") for text in kept)
        return kept

    def _wear(self, form: Sequence[str]) -> tuple[bool, int]:
        kept = [text for text in form if not (text.startswith("?") or re.fullmatch(r"\{\w+\}", text))]
        used_up = any("{" not in text and self._used_up(text) for text in kept)
        return used_up, max((self.written[text] for text in kept), default=0)

    def _used_up(self, text: str) -> bool:
        most = MOST_FILLED if "{" in text else MOST_FIXED
        return self.written[text] >= most and not re.fullmatch(r"\{\w+\}", text)


def spellings(template: str, slots: Slots) -> list[str]:
    """Every right way to write an answer, which is a template with one slot."""
    slot = template[template.index("{") + 1 : template.index("}")]
    name, _, part = slot.partition(".")
    value = slots[name]
    texts = [value.parts[part]] if part else [*value.written, *value.accepted]
    return [fill(template, {slot: text}) for text in texts]


def states(text: str, spellings: Sequence[str]) -> bool:
    """Whether a text contains any of the spellings."""
    normal = _normalized(text)
    return any(_normalized(spelling) in normal for spelling in spellings)


def _normalized(text: str) -> str:
    """Text as strictly as a leak is looked for: compatible forms, lower case, no spaces, no commas."""
    return re.sub(r"[\s,，]+", "", unicodedata.normalize("NFKC", text).lower())


def stated_slots(form: Iterable[str]) -> set[str]:
    """The slots that every document of a form states: no choice and no left-out sentence takes them away."""
    texts = (re.sub(r"\[.*?\]", "", text) for text in form if not text.startswith("?"))
    return {slot for text in texts for slot in re.findall(r"\{(\w+)", text)}


# --- names and figures ------------------------------------------------------------------------------


class DateSpelling(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a date or a score is written in a language."""

    written: tuple[str, ...]
    accepted: tuple[str, ...]

    def value(self, parts: Mapping[str, str], size: int = 0) -> Value:
        written, accepted = (
            tuple(fill(pattern, parts) for pattern in patterns) for patterns in (self.written, self.accepted)
        )
        return Value(written, accepted, parts, size)


class Names(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The names of a language, as rules that expand to them, and how its figures are written."""

    gap: str
    """What separates two sentences."""
    join: str
    """How two questions become one."""
    thousands: str
    months: tuple[str, ...]
    weekdays: tuple[str, ...]
    date: DateSpelling
    score: DateSpelling
    once: tuple[str, ...]
    """Rules none of whose expansions is used twice in a world before all have been used."""
    rules: dict[str, tuple[str, ...]]

    def joined(self, first: str, second: str) -> str:
        """Two questions as one."""
        first, second = first.rstrip("?？"), second.rstrip("?？")
        question = fill(self.join, {"first": first, "second": second[:1].lower() + second[1:]})
        return question + ("?" if self.gap else "？")


def names_of(lang: str) -> Names:
    return read_json(__package__, "bank", lang, "names.json", type=Names)


def read_folder(lang: str, folder: str, type: type[T]) -> dict[str, T]:
    """The files of one folder of a language's bank, by name."""
    paths = sorted(data_path(__package__, "bank", lang, folder).glob("*.json"))
    return {path.stem: read_json(__package__, "bank", lang, folder, path.name, type=type) for path in paths}


Table: TypeAlias = dict[str, tuple[tuple[str, str, str, str], ...]]
"""Well-known facts of one sort in groups of like ones, each group in an order that puts near what is alike.
A row is the subject and the answer in English, then both in Chinese; empty where it is not asked about."""


def read_tables() -> dict[str, Table]:
    """The tables of well-known facts, by the name of their relation."""
    paths = sorted(data_path(__package__, "bank", "tables").glob("*.json"))
    return {path.stem: read_json(__package__, "bank", "tables", path.name, type=Table) for path in paths}


DOUBLED = re.compile(
    r"(?:m(?=minster|mere|mouth)|n(?=ness)|[lr](?=ley|rigg)|d(?=dale|den)|s(?=stead|stow)|"
    r"h(?=ham|haven|holt|hurst)|w(?=wick|worth)|mere(?=mere)|haver(?=haven))",
    re.IGNORECASE,
)
"""Where the two halves of a place name run into each other, as in Ilmminster."""


class World:
    """The people, places, dates and figures of one question, invented as they are needed."""

    def __init__(self, names: Names, rng: random.Random, repeats: Repeats | None = None) -> None:
        self.names = names
        self.rng = rng
        self.repeats = repeats or Repeats()
        self.decks = {rule: cycle(shuffled(names.rules[rule], rng)) for rule in names.once}

    def name(self, rule: str) -> str:
        """A new name of a kind."""
        deck = self.decks.get(rule)
        template = next(deck) if deck else pick(self.names.rules[rule], self.rng)
        text = fill(choose(template, self.rng), self.name)
        return self.name(rule) if rule == "place" and DOUBLED.search(text) else text

    def value(self, spec: str, slots: Slots) -> Value:
        """A new value: a name by its rule, a figure by its range, or a template over what is known.

        Figures are `year 1992 2023`, `year opened -1` (the year before that of the slot `opened`),
        `year first 0 27 3` (0 to 27 years after that of the slot `first`, in steps of 3), `number 40 900`,
        `decimal 1.2 9.6`, `score 26 38 3 9` (won by 3 to 9), `date 1992 2023`, and
        `date opened -2`: in the year two before that of the slot `opened`.
        """
        if spec in self.names.rules:
            return text_value(self.name(spec))
        match spec.split():
            case "year", slot, least, most, *step if slot in slots:
                every = int(step[0]) if step else 1
                year = slots[slot].size + every * between(int(least) // every, int(most) // every, self.rng)
                return Value((str(year),), size=year)
            case "year", slot, years if slot in slots:
                year = slots[slot].size + int(years)
                return Value((str(year),), size=year)
            case "year", low, high:
                year = between(int(low), int(high), self.rng)
                return Value((str(year),), size=year)
            case "number", low, high:
                return self._number(int(low), int(high))
            case "decimal", low, high:
                return self._decimal(low, high)
            case "score", low, high, least, most:
                won = between(int(low), int(high), self.rng)
                lost = won - between(int(least), int(most), self.rng)
                return self.names.score.value({"high": str(won), "low": str(lost)})
            case "date", slot, years if slot in slots:
                return self._date(int(slots[slot].parts["year"]) + int(years))
            case "date", first, last:
                return self._date(between(int(first), int(last), self.rng))
        return text_value(write(spec, slots, self.rng))

    def _number(self, low: int, high: int) -> Value:
        figure = between(low, high, self.rng)
        plain, grouped = (str(figure),), (f"{figure:,}",)
        written, accepted = (grouped, plain) if self.names.thousands else (plain, grouped)
        return Value(written, accepted, size=figure)

    def _decimal(self, low: str, high: str) -> Value:
        """With as many digits as its limits; the last is never 0, so that there is one way to write it."""
        digits = len(low.partition(".")[2])
        scale = 10**digits
        while True:
            figure = between(round(float(low) * scale), round(float(high) * scale), self.rng)
            if figure % 10:
                return Value((f"{figure // scale}.{figure % scale:0{digits}}",), size=figure)

    def _date(self, year: int) -> Value:
        """A day of two digits, so that one date is never found inside another."""
        date = datetime.date(year, between(1, 12, self.rng), between(10, 28, self.rng))
        return self.names.date.value(
            {
                "year": str(year),
                "month": self.names.months[date.month - 1],
                "day": str(date.day),
                "weekday": self.names.weekdays[date.weekday()],
            },
            date.toordinal(),
        )

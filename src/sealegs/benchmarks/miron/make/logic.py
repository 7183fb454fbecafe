"""Small puzzles with one answer: sequences, calendar, letters, sums, patterns, comparison and order.

Each kind chooses its numbers and names; the words are in `bank/<language>/logic.json`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from sealegs.benchmarks.miron.make.frames import ExampleDraft, Kinds, draft, read_bank, rng_for
from sealegs.make.grammar import between, fill, pick, shuffled


class Numerals(Struct, frozen=True):
    """The numerals from 0 to 99 in words."""

    small: tuple[str, ...]
    tens: tuple[str, ...]
    joint: str
    feminine: dict[str, str]
    ordinals: tuple[str, ...]

    def word(self, number: int) -> str:
        if number < 20:
            return self.small[number]
        tens = self.tens[number // 10 - 2]
        return f"{tens}{self.joint}{self.small[number % 10]}" if number % 10 else tens


class Bank(Struct, frozen=True):
    """The words and frames of one language."""

    numbers: Numerals
    days: tuple[tuple[str, ...], ...]
    months: tuple[tuple[str, ...], ...]
    calendar_forms: tuple[str, ...]
    """What the forms of a day or a month are called in the frames."""
    alphabets: tuple[str, ...]
    """Stretches of the alphabet in which the next letter is beyond doubt."""
    words: tuple[str, ...]
    patterns: tuple[tuple[str, ...], ...]
    names: tuple[tuple[str, ...], ...]
    """The nominative, and the genitive where the language has one."""
    scales: tuple[tuple[str, str, str], ...]
    """taller, tallest, shortest"""
    things: tuple[tuple[str, str, str], ...]
    """Their form after 1, after 2 to 4, and after 5 and more."""
    genders: tuple[str, ...]
    accepted: dict[str, dict[str, tuple[str, ...]]]
    """Templates of further right answers, by kind and variant: in quotes, or a number in digits."""
    frames: dict[str, dict[str, tuple[str, ...]]]


class Puzzle(NamedTuple):
    """Which frames fit, what fills them, and the answer."""

    variant: str
    values: Mapping[str, str]
    target: str


PERIODS = ("ab", "abc", "aab", "abb", "abcd", "aabb")
Maker: TypeAlias = Callable[[Bank, random.Random], Puzzle]


def _row(terms: Sequence[object], variant: str = "all", **values: str) -> Puzzle:
    """Terms of which the last is the answer."""
    return Puzzle(variant, {"terms": ", ".join(map(str, terms[:-1])), **values}, str(terms[-1]))


# --- numbers ----------------------------------------------------------------------------------------


def _arithmetic(top: int, write: Callable[[int], str], rng: random.Random) -> Puzzle:
    """Two numbers and the result of an operation, none of them above `top` or below 1."""
    operation = pick(("plus", "minus", "times", "divided"), rng)
    if operation in ("plus", "minus"):
        whole = between(3, top, rng)
        part = between(1, whole - 1, rng)
        a, b, result = (part, whole - part, whole) if operation == "plus" else (whole, part, whole - part)
    else:
        one = between(2, 9, rng)
        other = between(2, min(10, top // one), rng)
        product = one * other
        a, b, result = (one, other, product) if operation == "times" else (product, one, other)
    return Puzzle(operation, {"a": write(a), "b": write(b)}, write(result))


def number_sequence(bank: Bank, rng: random.Random) -> Puzzle:
    """a, a + d, …; the same downwards; a, aq, …; squares; each the sum of the two before."""
    length = between(5, 7, rng)
    rule = pick(("up", "up", "down", "times", "squares", "sums"), rng)
    if rule == "times":
        start, factor = between(1, 9, rng), between(2, 3, rng)
        return _row([start * factor**index for index in range(length)])
    if rule == "squares":
        start = between(1, 9, rng)
        return _row([(start + index) ** 2 for index in range(length)])
    if rule == "sums":
        terms = [between(1, 9, rng), between(1, 9, rng)]
        while len(terms) < length + 1:
            terms.append(terms[-1] + terms[-2])
        return _row(terms)
    start, step = between(1, 60, rng), between(2, 12, rng)
    terms = [start + index * step for index in range(length)]
    return _row(terms[::-1] if rule == "down" else terms)


def counting(bank: Bank, rng: random.Random) -> Puzzle:
    word = bank.numbers.word
    variant = pick(("row", "row", "next", "before", "between"), rng)
    if variant == "row":
        step = pick((1, 2, 5, 10, 0), rng)
        terms = [word(number) for number in range(step, 100, step)] if step else bank.numbers.ordinals
        length = between(5, 6, rng)
        start = between(0, len(terms) - length, rng)
        row = terms[start : start + length]
        return _row(row[::-1] if step and rng.random() < 0.3 else row, "row")  # ordinals only go up
    a = between(3, 97, rng)
    if variant == "between":
        return Puzzle(variant, {"a": word(a - 1), "b": word(a + 1)}, word(a))
    return Puzzle(variant, {"a": word(a - 1 if variant == "next" else a + 1)}, word(a))


def word_problem(bank: Bank, rng: random.Random) -> Puzzle:
    """Results stay between 2 and 20, so that every numeral has one form for a gender."""
    index = between(0, len(bank.things) - 1, rng)
    thing = bank.things[index]

    def number(value: int) -> str:
        word = bank.numbers.word(value)
        return bank.numbers.feminine.get(word, word) if bank.genders[index] == "f" else word

    variant = pick(("less", "more"), rng)
    a = between(5, 12, rng)
    b = between(2, a - 2 if variant == "less" else 8, rng)
    values = {
        "a": number(a),
        "b": number(b),
        "things_a": thing[1 if a < 5 else 2],
        "things_b": thing[1 if b < 5 else 2],
        "things": thing[2],
        "name": pick(bank.names, rng)[0],
    }
    return Puzzle(variant, values, number(a - b if variant == "less" else a + b))


# --- calendar and letters ---------------------------------------------------------------------------


def _calendar(units: Sequence[Sequence[str]], bank: Bank, rng: random.Random) -> Puzzle:
    # In Russian "on Monday" is a fourth form, for which there are separate frames.
    variant = pick(("row", "next", "before", "second", *bank.calendar_forms[3:4]), rng)
    at = between(0, len(units) - 1, rng)
    if variant == "row":
        length = between(4, 5, rng)
        return _row([units[(at + index) % len(units)][0] for index in range(length)], "row")
    step = {"next": 1, "before": -1, "second": 2, "when": 1}[variant]
    values = dict(zip(bank.calendar_forms, units[at], strict=True))
    answer = dict(zip(bank.calendar_forms, units[(at + step) % len(units)], strict=True))
    return Puzzle(variant, values, answer["when" if variant == "when" else "nom"])


def letters(bank: Bank, rng: random.Random) -> Puzzle:
    """Letters in a row, by ones or twos, also backwards; the next letter; a word letter by letter."""
    variant = pick(("row", "row", "next", "spelling"), rng)
    if variant == "spelling":
        word = pick(bank.words, rng)
        return _row(word[: between(3, len(word), rng)], variant, word=word)
    alphabet = pick(bank.alphabets, rng)
    if variant == "next":
        at = between(0, len(alphabet) - 2, rng)
        return Puzzle(variant, {"a": alphabet[at]}, alphabet[at + 1])
    step = pick((1, 2), rng) if len(alphabet) > 9 else 1
    start = between(0, len(alphabet) - 1 - 4 * step, rng)
    row = alphabet[start : start + 4 * step + 1 : step]
    return _row(row[::-1] if rng.random() < 0.3 else row, variant)


# --- patterns, comparison, order --------------------------------------------------------------------


def repeating_pattern(bank: Bank, rng: random.Random) -> Puzzle:
    """At least two whole periods, then a part of a third."""
    things = shuffled(pick(bank.patterns, rng), rng)
    period = [things["abcd".index(letter)] for letter in pick(PERIODS, rng)]
    length = 2 * len(period) + between(1, len(period), rng)
    return _row([period[index % len(period)] for index in range(length + 1)])


def _people(bank: Bank, rng: random.Random) -> dict[str, str]:
    """Three names, a, b and c, each also in the genitive."""
    people = {}
    for key, name in zip("abc", shuffled(bank.names, rng)[:3], strict=True):
        people[key], people[f"{key}_gen"] = name[0], name[-1]
    return people


def comparison(bank: Bank, rng: random.Random) -> Puzzle:
    variant = pick(("most", "most", "least", "least", "larger", "smaller"), rng)
    if variant in ("larger", "smaller"):
        a, b = shuffled(range(11, 100), rng)[:2]
        answer = max(a, b) if variant == "larger" else min(a, b)
        return Puzzle(variant, {"a": str(a), "b": str(b)}, str(answer))
    people = _people(bank, rng)
    scale = dict(zip(("more", "most", "least"), pick(bank.scales, rng), strict=True))
    return Puzzle(variant, people | scale, people["a" if variant == "most" else "c"])


def order(bank: Bank, rng: random.Random) -> Puzzle:
    variant = pick(("first", "last", "middle", "of", "of last"), rng)
    if variant.startswith("of"):
        words = dict(zip("xyz", shuffled(bank.words, rng)[:3], strict=True))
        return Puzzle(variant, words, words["x" if variant == "of" else "z"])
    people = _people(bank, rng)
    return Puzzle(variant, people, people[{"first": "a", "last": "c", "middle": "b"}[variant]])


MAKERS: Mapping[str, Maker] = {
    "arithmetic in digits": lambda bank, rng: _arithmetic(99, str, rng),
    "comparison": comparison,
    "number sequence": number_sequence,
    "days": lambda bank, rng: _calendar(bank.days, bank, rng),
    "arithmetic in words": lambda bank, rng: _arithmetic(50, bank.numbers.word, rng),
    "letters": letters,
    "repeating pattern": repeating_pattern,
    "counting": counting,
    "order": order,
    "months": lambda bank, rng: _calendar(bank.months, bank, rng),
    "word problem": word_problem,
}


def examples(lang: str, seed: int) -> Kinds:
    """For each kind an endless stream of puzzles, which may repeat themselves."""
    bank = read_bank(lang, "logic", Bank)
    return {kind: _stream(kind, maker, bank, rng_for(lang, seed, kind)) for kind, maker in MAKERS.items()}


def _stream(kind: str, maker: Maker, bank: Bank, rng: random.Random) -> Iterator[ExampleDraft]:
    digits = {bank.numbers.word(number): str(number) for number in range(100)}
    while True:
        variant, values, target = maker(bank, rng)
        templates = bank.accepted.get(kind, {}).get(variant, ())
        answer = {"target": target, "digits": digits.get(target, "")}
        yield draft(
            kind,
            pick(bank.frames[kind][variant], rng),
            values,
            target,
            accepted=[fill(template, answer) for template in templates],
            exact=True,
        )

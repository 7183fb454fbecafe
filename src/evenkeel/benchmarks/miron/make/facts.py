"""Well-known facts as sentences that break off before their last word (`bank/<language>/facts/`).

A table holds facts in columns, and questions that ask for one column in several wordings; or it holds whole
sentences. A fact is not asked a second time before all others have been asked once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache

from msgspec import Struct

from evenkeel.benchmarks.miron.make.frames import BANK, Draft, draft, read_bank, source
from evenkeel.files.jsonfile import read_json
from evenkeel.make.grammar import pick, shuffled


class Question(Struct, frozen=True, forbid_unknown_fields=True):
    """Which column is asked for, and how."""

    kind: str
    answer: str
    frames: tuple[str, ...]


class Table(Struct, frozen=True, forbid_unknown_fields=True):
    """Facts of one sort."""

    name: str
    fields: tuple[str, ...] = ()
    questions: tuple[Question, ...] = ()
    facts: tuple[tuple[str, ...], ...] = ()
    sentences: tuple[tuple[str, str], ...] = ()
    leads: tuple[str, ...] = ()
    """How a sentence may begin, where the common ways do not fit."""


class Asking(Struct, frozen=True):
    """One way to ask one fact."""

    kind: str
    frame: str
    values: dict[str, str]
    target: str
    leads: tuple[str, ...]


@cache
def tables(lang: str) -> tuple[Table, ...]:
    files = sorted((BANK / lang / "facts").glob("*.json"))
    return tuple(table for path in files for table in read_json(path, tuple[Table, ...]))


def askings(table: Table) -> Iterator[list[Asking]]:
    """For each fact all the ways to ask it."""
    for sentence, answer in table.sentences:
        yield [Asking(table.name, sentence, {}, answer, table.leads)]
    for fact in table.facts:
        values = dict(zip(table.fields, fact, strict=True))
        yield [
            Asking(question.kind, frame, values, values[question.answer], table.leads)
            for question in table.questions
            for frame in question.frames
        ]


def examples(lang: str, seed: int) -> Iterator[Draft]:
    """Every fact once, the kinds mixed evenly; then every fact again in other words, as often as it goes."""
    rng = source(lang, seed, "facts")
    common: tuple[str, ...] = read_bank(lang, "leads", tuple[str, ...])
    ways = [shuffled(one, rng) for table in tables(lang) for one in askings(table)]
    for turn in range(max(map(len, ways))):
        drafts = []
        for number in shuffled(range(len(ways)), rng):
            if turn < len(ways[number]):
                way = ways[number][turn]
                lead = pick(way.leads or common, rng)
                frame = f"{lead} {way.frame}" if lead else way.frame
                drafts.append(draft(way.kind, frame, way.values, way.target, f"fact {number}"))
        yield from _mixed(drafts)


def _mixed(drafts: list[Draft]) -> list[Draft]:
    """In an order that gives every kind its share of any beginning."""
    sizes = Counter(one.kind for one in drafts)
    seen: Counter[str] = Counter()
    placed = []
    for number, one in enumerate(drafts):
        placed.append(((seen[one.kind] + 0.5) / sizes[one.kind], number, one))
        seen[one.kind] += 1
    return [one for _, _, one in sorted(placed, key=lambda entry: entry[:2])]

"""Make a MIRON set: beginnings of sentences with one right continuation, in four categories.

The pseudo-words, facts, puzzles and typos come from the modules beside this one and the sentences from
`bank/`; here they are counted out, mixed and numbered. The same seed gives the same rows on every machine.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from evenkeel.benchmarks.miron.make import english, facts, logic, russian
from evenkeel.benchmarks.miron.make.frames import VERSION, Draft, Kinds, deck, source
from evenkeel.benchmarks.miron.make.noise import EDITS, keys, noisy
from evenkeel.errors import UsageError
from evenkeel.make.grammar import shuffled

GENERATOR = "evenkeel-miron"
LANGUAGES = ("en", "ru")
CATEGORIES = ("Morphology", "Facts", "Logic", "Noise")
CLEAN = CATEGORIES[:3]
MOST_EDITS = 3
PATIENCE = 2000
"""After so many repeats in a row a stream has nothing new to give."""

__all__ = ["CATEGORIES", "GENERATOR", "LANGUAGES", "VERSION", "Row", "compose", "drafts"]


class Row(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One example: the model is to continue the prefix with the target."""

    id: str
    prefix: str
    """Ends without a space."""
    target: str
    """Begins with a space where it begins a word."""
    category: str
    lang: str
    kind: str
    twin: str = ""
    """Of a noisy example: the id of the clean one."""
    edits: int = 0
    edit_kinds: tuple[str, ...] = ()


MORPHOLOGY: Mapping[str, Callable[[int], Kinds]] = {"en": english.examples, "ru": russian.examples}


def compose(lang: str, *, seed: int = 0, per_category: int = 500) -> list[Row]:
    """The set of a seed in one language: so many examples a category, every kind spread over all of it.

    No prefix comes twice, and each noisy example has its clean twin in the same set.
    """
    rng = source(lang, seed, "noise")
    made = drafts(lang, seed=seed, per_category=per_category)
    clean = [
        (_row(draft, lang, category, number), draft)
        for category, found in made.items()
        for number, draft in enumerate(found, 1)
    ]
    return [row for row, _ in clean] + list(_noise(clean, lang, per_category, rng))


def drafts(lang: str, *, seed: int = 0, per_category: int = 500) -> dict[str, list[Draft]]:
    """The clean examples of a set by category, each with what it is about and where a typo may fall."""
    if lang not in LANGUAGES:
        raise UsageError(f"MIRON has no '{lang}'. It has: {', '.join(LANGUAGES)}.")
    rng = source(lang, seed, "order of kinds")
    streams = {
        "Morphology": _in_turn(MORPHOLOGY[lang](seed), rng),
        "Facts": facts.examples(lang, seed),
        "Logic": _in_turn(logic.examples(lang, seed), rng),
    }
    seen: set[str] = set()
    made = {}
    for category in ("Facts", "Morphology", "Logic"):  # facts are the first to run out
        made[category] = _taken(streams[category], per_category, seen)
        if len(made[category]) < per_category:
            raise UsageError(
                f"There are {len(made[category])} different examples of {category} in '{lang}', "
                f"not {per_category}: ask for fewer with --per-category, or take several seeds."
            )
    return {category: made[category] for category in CLEAN}


def _row(draft: Draft, lang: str, category: str, number: int) -> Row:
    return Row(
        id=f"{lang}-{category.lower()}-{number:04d}",
        prefix=draft.prefix,
        target=draft.target,
        category=category,
        lang=lang,
        kind=draft.kind,
    )


def _in_turn(kinds: Kinds, rng: random.Random) -> Iterator[Draft]:
    """One of each kind, then another of each; a kind that only repeats itself drops out."""
    streams = [_unrepeated(stream) for _, stream in shuffled(kinds.items(), rng)]
    while streams:
        for stream in list(streams):
            if (draft := next(stream, None)) is not None:
                yield draft
            else:
                streams.remove(stream)


def _unrepeated(stream: Iterator[Draft]) -> Iterator[Draft]:
    seen: set[str] = set()
    repeats = 0
    for draft in stream:
        repeats = repeats + 1 if draft.prefix in seen else 0
        if repeats > PATIENCE:
            return
        if not repeats:
            seen.add(draft.prefix)
            yield draft


def _taken(stream: Iterator[Draft], wanted: int, seen: set[str]) -> list[Draft]:
    """The first so many whose prefix no category has yet."""
    drafts: list[Draft] = []
    for draft in stream:
        if len(drafts) == wanted:
            break
        if draft.prefix not in seen:
            seen.add(draft.prefix)
            drafts.append(draft)
    return drafts


def _noise(clean: Sequence[tuple[Row, Draft]], lang: str, wanted: int, rng: random.Random) -> Iterator[Row]:
    """Noisy twins: the categories, the numbers of edits and the kinds of edit each get an equal share."""
    left = {
        category: [pair for pair in shuffled(clean, rng) if pair[0].category == category]
        for category in CLEAN
    }
    words = {word for _, draft in clean for word in re.findall(r"\w+", draft.prefix)}
    kinds = deck(tuple(EDITS), rng)
    for number in range(wanted):
        edits = number // len(CLEAN) % MOST_EDITS + 1
        drawn = [next(kinds) for _ in range(edits)]
        first = number % len(CLEAN)
        # Where a small set has no fitting example of a category left, another category stands in for it.
        order = (*CLEAN[first:], *CLEAN[:first])
        tried = (
            (pair, noisy(pair[1], drawn, keys(lang), rng, words))
            for category in order
            for pair in left[category]
        )
        found = next(((pair, made) for pair, made in tried if made), None)
        if found is None:
            raise UsageError(f"{wanted} examples a category are too few to make noisy ones of: ask for more.")
        (row, draft), (prefix, edit_kinds) = found
        left[row.category].remove((row, draft))
        noise = _row(draft._replace(prefix=prefix), lang, "Noise", number + 1)
        yield msgspec.structs.replace(noise, twin=row.id, edits=edits, edit_kinds=edit_kinds)

"""Make a MIRON set: beginnings of sentences with one right continuation, in four categories.

Morphology, facts and logic come from the modules beside this one; here they are mixed and numbered, and some
get typos. A typo changes one letter inside a word, never the first or the last, and a word gets at most one.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice

from msgspec import Struct, structs

from evenkeel.benchmarks.miron.files import CATEGORIES, LANGUAGES, Example
from evenkeel.benchmarks.miron.make import english, logic, russian
from evenkeel.benchmarks.miron.make.frames import Draft, Kinds, Span, facts, read_bank, rng_for
from evenkeel.errors import UsageError
from evenkeel.make.grammar import deck, pick, shuffled

CLEAN = CATEGORIES[:3]
MOST_EDITS = 3
MOST_REPEATS = 2000
"""After so many repeats in a row a stream has nothing new to give."""
LONG_WORD = 4
"""Letters from which a word is preferred for a typo: shorter ones become hard to read."""
EDIT_KINDS = ("swap", "drop", "double", "neighbour", "case", "lookalike")
MORPHOLOGY: Mapping[str, Callable[[int], Kinds]] = {"en": english.examples, "ru": russian.examples}


def compose(lang: str, *, seed: int = 0, per_category: int = 500) -> list[Example]:
    """The set of a seed in one language: so many examples a category, every kind spread over all of it.

    No prefix comes twice, and the clean version of each noisy example is in the same set.
    """
    clean = [
        (_example(draft, lang, category, number), draft)
        for category, drafts in clean_drafts(lang, seed=seed, per_category=per_category).items()
        for number, draft in enumerate(drafts, 1)
    ]
    noise = _noise(clean, lang, per_category, rng_for(lang, seed, "noise"))
    return [*(example for example, _ in clean), *noise]


def _example(draft: Draft, lang: str, category: str, number: int) -> Example:
    return Example(
        id=f"{lang}-{category.lower()}-{number:04d}",
        prefix=draft.prefix,
        target=draft.target,
        category=category,
        lang=lang,
        kind=draft.kind,
    )


# --- clean examples ---------------------------------------------------------------------------------


def clean_drafts(lang: str, *, seed: int = 0, per_category: int = 500) -> dict[str, list[Draft]]:
    """The clean examples of a set by category."""
    if lang not in LANGUAGES:
        raise UsageError(f"MIRON has no examples in '{lang}'. Available: {', '.join(LANGUAGES)}.")
    rng = rng_for(lang, seed, "order of kinds")
    streams = {
        "Morphology": _in_turn(MORPHOLOGY[lang](seed), rng),
        "Facts": facts(lang, seed),
        "Logic": _in_turn(logic.examples(lang, seed), rng),
    }
    prefixes: set[str] = set()
    drafts: dict[str, list[Draft]] = {category: [] for category in CLEAN}
    for category in ("Facts", "Morphology", "Logic"):  # facts are the first to run out
        drafts[category] = list(islice(_unrepeated(streams[category], prefixes), per_category))
        if (available := len(drafts[category])) < per_category:
            raise UsageError(
                f"There are {available} different examples of {category} in '{lang}', not {per_category}: "
                "ask for fewer with --per-category, or take several seeds."
            )
    return drafts


def _in_turn(kinds: Kinds, rng: random.Random) -> Iterator[Draft]:
    """One of each kind, then another of each; a kind that only repeats itself drops out."""
    streams = [_unrepeated(stream, set()) for _, stream in shuffled(kinds.items(), rng)]
    while streams:
        for stream in list(streams):
            if (draft := next(stream, None)) is not None:
                yield draft
            else:
                streams.remove(stream)


def _unrepeated(stream: Iterator[Draft], prefixes: set[str]) -> Iterator[Draft]:
    """The drafts whose prefix is not yet among the prefixes, until the stream only repeats itself."""
    repeats = 0
    for draft in stream:
        repeats = repeats + 1 if draft.prefix in prefixes else 0
        if repeats > MOST_REPEATS:
            return
        if not repeats:
            prefixes.add(draft.prefix)
            yield draft


# --- noise ------------------------------------------------------------------------------------------


class Keyboard(Struct, frozen=True):
    """What lies beside a letter on the keyboard, and what looks like it in the other alphabet."""

    neighbours: dict[str, str]
    lookalikes: dict[str, str]
    avoid: tuple[str, ...] = ()
    """What a typo must not bring about: parts of rude words."""


def keyboard(lang: str) -> Keyboard:
    avoid = read_bank(lang, "sounds", dict[str, object])["avoid"]
    return structs.replace(read_bank(lang, "noise", Keyboard), avoid=avoid)


def _noise(
    clean: Sequence[tuple[Example, Draft]], lang: str, count: int, rng: random.Random
) -> Iterator[Example]:
    """Noisy versions: the categories, the numbers of edits and the kinds of edit each get an equal share."""
    left = {
        category: [pair for pair in shuffled(clean, rng) if pair[0].category == category]
        for category in CLEAN
    }
    vocabulary = {word for _, draft in clean for word in re.findall(r"\w+", draft.prefix)}
    keys = keyboard(lang)
    kinds = deck(EDIT_KINDS, rng)
    for number in range(count):
        edits = [next(kinds) for _ in range(number // len(CLEAN) % MOST_EDITS + 1)]
        first = number % len(CLEAN)
        # Where no example of a category is left that has room for the edits, the next category gives one.
        candidates = [pair for category in (*CLEAN[first:], *CLEAN[:first]) for pair in left[category]]
        for example, draft in candidates:
            if noisy := add_typos(draft, edits, keys, rng, vocabulary):
                left[example.category].remove((example, draft))
                break
        else:
            raise UsageError(
                f"{count} examples a category are too few to make noisy ones of: "
                "ask for more with --per-category."
            )
        prefix, edit_kinds = noisy
        yield structs.replace(
            _example(draft._replace(prefix=prefix), lang, "Noise", number + 1),
            clean_id=example.id,
            edits=len(edits),
            edit_kinds=edit_kinds,
        )


def add_typos(
    draft: Draft, kinds: Sequence[str], keys: Keyboard, rng: random.Random, vocabulary: Collection[str]
) -> tuple[str, tuple[str, ...]] | None:
    """The prefix with an edit of each kind, and the kinds from left to right; None where they do not fit."""
    long_first = sorted(shuffled(draft.free, rng), key=lambda span: span[1] - span[0] < LONG_WORD)
    edits: dict[Span, tuple[str, str]] = {}
    for kind in kinds:
        for span in long_first:
            word = draft.prefix[slice(*span)]
            if span not in edits and (edited := typo(word, kind, keys, rng, vocabulary)):
                edits[span] = kind, edited
                break
        else:
            return None
    prefix = draft.prefix
    for (start, end), (_, edited) in sorted(edits.items(), reverse=True):
        prefix = prefix[:start] + edited + prefix[end:]
    return prefix, tuple(kind for _, (kind, _) in sorted(edits.items()))


def typo(
    word: str, kind: str, keys: Keyboard, rng: random.Random, vocabulary: Collection[str] = ()
) -> str | None:
    """The word with one edit of a kind inside, or None where there is no room for it.

    A typo must not make another word of the vocabulary: "three" is not a typo of "there".
    """
    for at in shuffled(range(1, len(word) - 1), rng):
        edited = _edited(word, at, kind, keys, rng)
        if edited and edited not in vocabulary and not _rude(edited, word, keys):
            return edited
    return None


def _edited(word: str, at: int, kind: str, keys: Keyboard, rng: random.Random) -> str | None:
    before, letter, after = word[:at], word[at], word[at + 1 :]
    replacement: str | None
    match kind:
        case "swap":  # capital → captial
            is_same = after[0] == letter or len(after) == 1  # the last letter stays as it is
            return None if is_same else before + after[0] + letter + after[1:]
        case "drop":  # capital → captal
            replacement = ""
        case "double":  # capital → cappital
            replacement = letter + letter
        case "neighbour":  # capital → capotal
            beside = keys.neighbours.get(letter)
            replacement = pick(beside, rng) if beside else None
        case "case":  # capital → capItal
            replacement = letter.swapcase()
        case "lookalike":  # capital → cаpital, with a Cyrillic а
            replacement = keys.lookalikes.get(letter)
    return None if replacement is None else before + replacement + after


def _rude(edited: str, word: str, keys: Keyboard) -> bool:
    return any(part in edited.lower() and part not in word.lower() for part in keys.avoid)

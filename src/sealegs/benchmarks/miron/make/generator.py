"""Make a MIRON set: beginnings of sentences with one right continuation, in four categories.

Morphology, facts and logic come from the modules beside this one; here they are mixed and numbered, and some
get typos. A typo changes one letter inside a word, never the first or the last, and a word gets at most one.
All typos of an example fall on function words or all on content words, but never on a word that decides the
answer: what fills a slot, a fixed word of the frame, and in puzzles and whole sentences every content word.
Numbers, codes, the answer itself and the last word before it stay as they are too.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice, product

from msgspec import Struct, structs

from sealegs.benchmarks.miron.data import CATEGORIES, LANGUAGES, Example
from sealegs.benchmarks.miron.make import english, logic, russian
from sealegs.benchmarks.miron.make.frames import (
    ExampleDraft,
    Kinds,
    Span,
    bank_words,
    facts,
    read_bank,
    rng_for,
)
from sealegs.errors import UsageError
from sealegs.files.package_data import data_path
from sealegs.make.grammar import deck, shuffled

CLEAN = CATEGORIES[:3]
MOST_EDITS = 3
MOST_REPEATS = 2000
"""After so many repeats in a row a stream has nothing new to give."""
EDITED = {"function": 3, "content": 5}
"""The sorts of words that typos fall on, with the letters that such a word has at least."""
EDIT_KINDS = ("swap", "drop", "double", "neighbour", "case", "lookalike")
SAME_READING = ("case", "lookalike")
"""The kinds after which a reader still sees all letters of the word."""
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


def _example(draft: ExampleDraft, lang: str, category: str, number: int) -> Example:
    return Example(
        id=f"{lang}-{category.lower()}-{number:04d}",
        prefix=draft.prefix,
        target=draft.target,
        accepted=draft.accepted,
        category=category,
        lang=lang,
        kind=draft.kind,
    )


# --- clean examples ---------------------------------------------------------------------------------


def clean_drafts(lang: str, *, seed: int = 0, per_category: int = 500) -> dict[str, list[ExampleDraft]]:
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
    drafts: dict[str, list[ExampleDraft]] = {category: [] for category in CLEAN}
    for category in ("Facts", "Morphology", "Logic"):  # facts are the first to run out
        drafts[category] = list(islice(_unrepeated(streams[category], prefixes), per_category))
        if (available := len(drafts[category])) < per_category:
            raise UsageError(
                f"There are {available} different examples of {category} in '{lang}', not {per_category}: "
                "ask for fewer with --per-category, or take several seeds."
            )
    return drafts


def _in_turn(kinds: Kinds, rng: random.Random) -> Iterator[ExampleDraft]:
    """One of each kind, then another of each; a kind that only repeats itself drops out."""
    streams = [_unrepeated(stream, set()) for _, stream in shuffled(kinds.items(), rng)]
    while streams:
        for stream in list(streams):
            if (draft := next(stream, None)) is not None:
                yield draft
            else:
                streams.remove(stream)


def _unrepeated(stream: Iterator[ExampleDraft], prefixes: set[str]) -> Iterator[ExampleDraft]:
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
    """What a typo can make of a letter, and of which words it can."""

    neighbours: dict[str, str]
    """What lies beside a letter on the keyboard."""
    lookalikes: dict[str, str]
    """What looks like it in the other alphabet."""
    function: frozenset[str]
    """Articles, prepositions, pronouns, auxiliary verbs, conjunctions, particles."""
    numbers: frozenset[str]
    """Words that no typo may change."""
    avoid: tuple[str, ...] = ()
    """What a typo must not bring about: parts of rude words."""
    words: frozenset[str] = frozenset()
    """The words of the bank: what a typo makes of one must not be as near to another."""


def keyboard(lang: str) -> Keyboard:
    return structs.replace(read_bank(lang, "noise", Keyboard), words=bank_vocabulary(lang))


def _noise(
    clean: Sequence[tuple[Example, ExampleDraft]], lang: str, count: int, rng: random.Random
) -> list[Example]:
    """Noisy versions: categories, numbers of edits, sorts of words and kinds of edit get equal shares."""
    left = {
        category: [pair for pair in shuffled(clean, rng) if pair[0].category == category]
        for category in CLEAN
    }
    set_words = {decapitalised(word) for _, draft in clean for word in re.findall(r"\w+", draft.prefix)}
    # Also the real words outside the bank that are one typo away from one of its words.
    vocabulary = set_words | bank_vocabulary(lang) | bank_words(lang, "typos")
    keys = keyboard(lang)
    kinds = deck(EDIT_KINDS, rng)
    edits = {number: [next(kinds) for _ in range(_strength(number))] for number in range(count)}
    noise: dict[int, Example] = {}
    # Few examples have room for many edits, so these choose first.
    for number in sorted(edits, key=lambda number: -len(edits[number])):
        # Where no example of a category is left that has room for the edits, the next category gives one, and
        # where none has, the other sort of words.
        categories = _rotated(CLEAN, number)
        sorts = _rotated(tuple(EDITED), number // (len(CLEAN) * MOST_EDITS))
        candidates = [pair for category in categories for pair in left[category]]
        for edited, (example, draft) in product(sorts, candidates):
            spans = editable(draft, keys, rng)[edited]
            if noisy := add_typos(draft.prefix, spans, edits[number], keys, rng, vocabulary):
                left[example.category].remove((example, draft))
                break
        else:
            raise UsageError(
                f"{count} examples per category are too few to make noisy ones from: "
                "ask for more with --per-category."
            )
        prefix, edit_kinds = noisy
        noise[number] = structs.replace(
            _example(draft._replace(prefix=prefix), lang, "Noise", number + 1),
            clean_id=example.id,
            edits=len(edit_kinds),
            edit_kinds=edit_kinds,
            edited=edited,
        )
    return [noise[number] for number in sorted(noise)]


def _rotated(items: tuple[str, ...], turns: int) -> tuple[str, ...]:
    first = turns % len(items)
    return items[first:] + items[:first]


def _strength(number: int) -> int:
    """How many edits a noisy example gets: 1, 2 and 3 in turn, each for all categories."""
    return number // len(CLEAN) % MOST_EDITS + 1


def editable(draft: ExampleDraft, keys: Keyboard, rng: random.Random) -> dict[str, list[Span]]:
    """The words of a prefix that typos may fall on, by sort, in the order in which they are taken."""
    answer = set(re.findall(r"\w+", " ".join((draft.target, *draft.accepted)).lower()))
    spans: dict[str, list[Span]] = {sort: [] for sort in EDITED}
    for span in shuffled(draft.free, rng):
        word = draft.prefix[slice(*span)]
        sort = "function" if word.lower() in keys.function else "content"
        if (
            len(word) >= EDITED[sort]
            and not (sort == "content" and draft.exact)
            and not word.isupper()
            and word.lower() not in keys.numbers | answer
        ):
            spans[sort].append(span)
    return spans


def add_typos(
    prefix: str,
    spans: Sequence[Span],
    kinds: Sequence[str],
    keys: Keyboard,
    rng: random.Random,
    vocabulary: Collection[str],
) -> tuple[str, tuple[str, ...]] | None:
    """The prefix with an edit of each kind, and the kinds from left to right; None where they do not fit."""
    edits: dict[int, tuple[Span, str, str]] = {}
    for kind in kinds:
        for start, end in spans:
            number = prefix.count(" ", 0, start)  # of the word: "Port-au-Prince" is one
            if number not in edits and (edited := typo(prefix[start:end], kind, keys, rng, vocabulary)):
                edits[number] = (start, end), kind, edited
                break
        else:
            return None
    for (start, end), _, edited in sorted(edits.values(), reverse=True):
        prefix = prefix[:start] + edited + prefix[end:]
    return prefix, tuple(kind for _, kind, _ in sorted(edits.values()))


def typo(
    word: str, kind: str, keys: Keyboard, rng: random.Random, vocabulary: Collection[str] = ()
) -> str | None:
    """The word with one edit of a kind inside, or None where there is no room for it.

    A typo must not make another word of the vocabulary: "three" is not a typo of "there". Nor may a content
    word become as near to another one: "Tursday" could be Thursday or Tuesday.
    """
    for edited in shuffled(edited_forms(word, kind, keys), rng):
        if (
            decapitalised(edited) not in vocabulary
            and not _rude(edited, word, keys)
            and (word.lower() in keys.function or not ambiguous(edited, word, kind, keys))
        ):
            return edited
    return None


def ambiguous(edited: str, word: str, kind: str, keys: Keyboard) -> bool:
    """Whether what a typo made of a word is one letter away from another word of the bank too.

    Another case and a letter that looks the same leave the word as it reads.
    """
    if kind in SAME_READING:
        return False
    return not keys.words.isdisjoint(
        set(one_letter_away(decapitalised(edited), keys)) - {decapitalised(word)}
    )


def one_letter_away(word: str, keys: Keyboard) -> Iterator[str]:
    """All strings that differ by one letter after the first: missing, added, another, or two swapped."""
    for at in range(1, len(word) + 1):
        before, after = word[:at], word[at:]
        yield before + after[1:]
        yield before + after[1:2] + after[:1] + after[2:]
        for letter in keys.neighbours:
            yield before + letter + after
            yield before + letter + after[1:]


def edited_forms(word: str, kind: str, keys: Keyboard) -> Iterator[str]:
    """All the ways to edit a word inside."""
    for at in range(1, len(word) - 1):
        before, letter, after = word[:at], word[at], word[at + 1 :]
        match kind:
            case "swap":  # capital → captial
                if after[0] != letter and len(after) > 1:  # the last letter stays as it is
                    yield before + after[0] + letter + after[1:]
            case "drop":  # capital → captal
                yield before + after
            case "double":  # capital → cappital
                yield before + letter + letter + after
            case "neighbour":  # capital → capotal
                yield from (before + beside + after for beside in keys.neighbours.get(letter, ""))
            case "case":  # capital → capItal
                yield before + letter.swapcase() + after
            case "lookalike":  # capital → cаpital, with a Cyrillic а
                if alike := keys.lookalikes.get(letter):
                    yield before + alike + after


def decapitalised(word: str) -> str:
    return word[:1].lower() + word[1:]


@cache
def bank_vocabulary(lang: str) -> frozenset[str]:
    """All words of the bank."""
    texts = [path.read_text("utf-8") for path in data_path(__package__, "bank", lang).rglob("*.json")]
    return frozenset(decapitalised(word) for text in texts for word in re.findall(r"\w+", text))


def _rude(edited: str, word: str, keys: Keyboard) -> bool:
    return any(part in edited.lower() and part not in word.lower() for part in keys.avoid)

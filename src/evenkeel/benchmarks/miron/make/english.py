"""English pseudo-words, inflected by rule, in frames that leave one form to choose.

A pseudo-word is built from onsets, rhymes, middles and endings of English (`bank/en/sounds.json`). The
rhymes leave out those of irregular words (sing, keep, mouse), and every word of more than one syllable ends
so that no consonant could double, so each form follows from the spelling alone. `words.txt` holds the real
words that could come out.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct

from evenkeel.benchmarks.miron.make.frames import (
    Draft,
    Kinds,
    deck,
    draft,
    read_bank,
    read_words,
    source,
    unused,
)
from evenkeel.make.grammar import pick

_HISSING = re.compile(r"(?:s|x|z|ch|sh)$")
_CONSONANT_Y = re.compile(r"[^aeiou]y$")
_DOUBLING = re.compile(r"(?:[^aeiou]|qu)+[aeiou][bdgklmnprt]$")
"""One syllable with one short vowel before one consonant."""
_ODD = re.compile(
    r"sc[ei]|k[aou]|w[ou]|qu[ou]|(.)\1\1"  # spelt otherwise: ske, ca
    r"|[^aeiou]([rl])[aeiou]\2|s([pmnk])[aeiou]\3|^(.{1,3}).\4"  # not in English: brarb, spep; babble: bab
    r"|(.)\5(?:ful|less|some)$|fful$"
)


class Middles(Struct, frozen=True):
    """What stands in the middle of a word of two syllables."""

    vowels: tuple[str, ...]
    consonants: tuple[str, ...]


class Sounds(Struct, frozen=True):
    """What pseudo-words are built of."""

    singles: tuple[str, ...]
    """Onsets of one sound. With one of them a word of one syllable is too often a word."""
    clusters: tuple[str, ...]
    rhymes: dict[str, tuple[str, ...]]
    """By what their spelling does before an ending: doubling, plain, hissing, mute e."""
    middles: Middles
    endings: tuple[str, ...]
    descriptive: tuple[str, ...]
    """Endings that make an adjective."""
    rare: tuple[str, ...]
    """Real words that common dictionaries lack; `words.txt` is made with them."""
    avoid: tuple[str, ...]
    """Parts that would remind of a rude word."""


class Kind(Struct, frozen=True):
    """One inflection: which words it can be asked of, and in which frames."""

    shapes: tuple[str, ...]
    frames: tuple[str, ...]


# --- the rules --------------------------------------------------------------------------------------


def plural(word: str) -> str:
    """blig → bligs, blash → blashes, blandy → blandies; also the third person of a verb."""
    if _CONSONANT_Y.search(word):
        return f"{word[:-1]}ies"
    return f"{word}es" if _HISSING.search(word) else f"{word}s"


def suffixed(word: str, suffix: str) -> str:
    """With -ed, -er, -est or -ing: blig → bligged, blobe → blobed, blandy → blandied."""
    if word.endswith("e"):
        return word[:-1] + suffix
    if _CONSONANT_Y.search(word):
        return word + suffix if suffix == "ing" else f"{word[:-1]}i{suffix}"
    return word + word[-1] + suffix if _DOUBLING.fullmatch(word) else word + suffix


def adverb(word: str) -> str:
    """blig → bligly, blandy → blandily."""
    return f"{word[:-1]}ily" if _CONSONANT_Y.search(word) else f"{word}ly"


FORMS: Mapping[str, Callable[[str], str]] = {
    "plural": plural,
    "third person": plural,
    "past": lambda word: suffixed(word, "ed"),
    "progressive": lambda word: suffixed(word, "ing"),
    "agent": lambda word: suffixed(word, "er"),
    "comparative": lambda word: suffixed(word, "er"),
    "superlative": lambda word: suffixed(word, "est"),
    "adverb": adverb,
    "possessive singular": lambda word: f"{word}'s",
    "possessive plural": lambda word: f"{plural(word)}'",
}


# --- pseudo-words -----------------------------------------------------------------------------------


def sounds() -> Sounds:
    found: Sounds = read_bank("en", "sounds", Sounds)
    return found


def shapes(parts: Sounds) -> dict[str, tuple[tuple[str, ...], ...]]:
    """What a word of each shape is joined from, part by part."""
    first = ((*parts.singles, *parts.clusters), parts.middles.vowels, parts.middles.consonants)
    return {
        **{name: (parts.clusters, rhymes) for name, rhymes in parts.rhymes.items()},
        "y": (*first, ("y",)),
        "long": (*first, parts.endings),
        "descriptive": (*first, parts.descriptive),
    }


def is_sound(word: str, parts: Sounds) -> bool:
    """Whether a join of parts looks like English."""
    return not (_ODD.search(word) or any(part in word for part in parts.avoid))


def pseudo_words(shape: str, rng: random.Random) -> Iterator[str]:
    """Words of one shape that obey the sound patterns, none of which has a form that is a word."""
    parts = sounds()
    choices = shapes(parts)[shape]
    while True:
        joined = tuple(pick(options, rng) for options in choices)
        if is_sound("".join(joined), parts) and not read_words("en", "words") & lemmas(joined):
            yield "".join(joined)


def lemmas(joined: Sequence[str]) -> set[str]:
    """What must not be real: the word, and of a longer one also what is before its ending (wart-less)."""
    return {"".join(joined), "".join(joined[:-1])} if len(joined) > 2 else {"".join(joined)}


# --- examples ---------------------------------------------------------------------------------------


def examples(seed: int) -> Kinds:
    """For each inflection a stream of examples, each with a pseudo-word of its own."""
    kinds: dict[str, Kind] = read_bank("en", "morphology", dict[str, Kind])
    used: set[str] = set()
    return {name: _stream(name, kind, source("en", seed, name), used) for name, kind in kinds.items()}


def _stream(name: str, kind: Kind, rng: random.Random, used: set[str]) -> Iterator[Draft]:
    words = {shape: pseudo_words(shape, rng) for shape in kind.shapes}
    frames = deck(kind.frames, rng)
    for shape in deck(kind.shapes, rng):
        word = unused(words[shape], used)
        shown = {"word": word, "plural": plural(word), "third": plural(word)}
        yield draft(name, next(frames), shown, FORMS[name](word), word)

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
    bank_words,
    draft,
    read_bank,
    rng_for,
    unused,
)
from evenkeel.make.grammar import deck, pick

_HISSING = re.compile(r"(?:s|x|z|ch|sh)$")
_CONSONANT_Y = re.compile(r"[^aeiou]y$")
_DOUBLING = re.compile(r"(?:[^aeiou]|qu)+[aeiou][bdgklmnprt]$")
"""One syllable with one short vowel before one consonant."""
_ODD = re.compile(
    r"sc[ei]|k[aou]|w[ou]|qu[ou]|(.)\1\1"  # spelt otherwise: ske, ca
    r"|[^aeiou]([rl])[aeiou]\2|s([pmnk])[aeiou]\3|^(.{1,3}).\4"  # not in English: brarb, spep; babble: bab
    r"|(.)\5(?:ful|less|some)$|fful$"
)


class Sounds(Struct, frozen=True):
    """What pseudo-words are built of."""

    singles: tuple[str, ...]
    """Onsets of one sound. With one of them a pseudo-word of one syllable is too often a real word."""
    clusters: tuple[str, ...]
    rhymes: dict[str, tuple[str, ...]]
    """By what their spelling does before an ending: doubling, plain, hissing, mute e."""
    middles: dict[str, tuple[str, ...]]
    """Vowels and consonants in the middle of a word of two syllables."""
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
    return read_bank("en", "sounds", Sounds)


def shapes() -> dict[str, tuple[tuple[str, ...], ...]]:
    """The options for each part of a word, by the shape of the word."""
    parts = sounds()
    first = ((*parts.singles, *parts.clusters), parts.middles["vowels"], parts.middles["consonants"])
    return {
        **{name: (parts.clusters, rhymes) for name, rhymes in parts.rhymes.items()},
        "y": (*first, ("y",)),
        "long": (*first, parts.endings),
        "descriptive": (*first, parts.descriptive),
    }


def is_sound(word: str) -> bool:
    """Whether joined parts look like English."""
    return not (_ODD.search(word) or any(part in word for part in sounds().avoid))


def pseudo_words(shape: str, rng: random.Random) -> Iterator[str]:
    """Words of one shape that obey the sound patterns, none of which has a form that is a word."""
    options_by_part = shapes()[shape]
    while True:
        parts = [pick(options, rng) for options in options_by_part]
        word = "".join(parts)
        if is_sound(word) and not bank_words("en", "words") & lemmas(parts):
            yield word


def lemmas(parts: Sequence[str]) -> set[str]:
    """What must not be real: the word, and of a longer one also what is before its ending (wart-less)."""
    return {"".join(parts), "".join(parts[:-1])} if len(parts) > 2 else {"".join(parts)}


# --- examples ---------------------------------------------------------------------------------------


def examples(seed: int) -> Kinds:
    """For each inflection a stream of examples, no two with the same pseudo-word."""
    kinds = read_bank("en", "morphology", dict[str, Kind])
    used: set[str] = set()
    return {name: _stream(name, kind, rng_for("en", seed, name), used) for name, kind in kinds.items()}


def _stream(name: str, kind: Kind, rng: random.Random, used: set[str]) -> Iterator[Draft]:
    words = {shape: pseudo_words(shape, rng) for shape in kind.shapes}
    frames = deck(kind.frames, rng)
    for shape in deck(kind.shapes, rng):
        word = unused(words[shape], used)
        values = {"word": word, "plural": plural(word), "third": plural(word)}
        yield draft(name, next(frames), values, FORMS[name](word), word, exact=True)

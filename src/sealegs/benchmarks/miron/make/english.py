"""English pseudo-words, inflected by rule, in frames that leave one form to choose.

A regular word is inflected in the frame first, so that the pseudo-word after it has one form. The shape of
a pseudo-word says what its spelling does before an ending; a consonant doubles after one short syllable.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct

from sealegs.benchmarks.miron.make.frames import (
    ExampleDraft,
    Kinds,
    by_analogy,
    pseudo_words,
    read_bank,
    rng_for,
    unused,
)
from sealegs.make.grammar import deck

_HISSING = re.compile(r"(?:s|x|z|ch|sh)$")
_CONSONANT_Y = re.compile(r"[^aeiou]y$")
_DOUBLING = re.compile(r"(?:[^aeiou]|qu)+[aeiou][bdgklmnprt]$")
"""One syllable with one short vowel before one consonant."""


class Inflection(Struct, frozen=True):
    """One inflection: which words it can be asked of, after which regular words, and in which frames."""

    shapes: tuple[str, ...]
    models: tuple[str, ...]
    frames: tuple[str, ...]


# --- the rules --------------------------------------------------------------------------------------


def plural(word: str) -> str:
    """blig → bligs, blash → blashes, blandy → blandies; also the third person of a verb."""
    if _CONSONANT_Y.search(word):
        return f"{word[:-1]}ies"
    return f"{word}es" if _HISSING.search(word) else f"{word}s"


def suffixed(word: str, suffix: str) -> str:
    """With -ed, -ers, -est, -able or -ing: blig → bligged, blobe → blobed, blandy → blandied."""
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
    "agents": lambda word: suffixed(word, "ers"),
    "comparative": lambda word: suffixed(word, "er"),
    "superlative": lambda word: suffixed(word, "est"),
    "adverb": adverb,
    "quality": lambda word: adverb(word).removesuffix("ly") + "ness",
    "able": lambda word: suffixed(word, "able"),
}


# --- examples ---------------------------------------------------------------------------------------


def examples(seed: int) -> Kinds:
    """For each inflection a stream of examples, no two with the same pseudo-word."""
    kinds = read_bank("en", "morphology", dict[str, Inflection])
    used: set[str] = set()
    return {name: _stream(name, kind, rng_for("en", seed, name), used) for name, kind in kinds.items()}


def _stream(name: str, kind: Inflection, rng: random.Random, used: set[str]) -> Iterator[ExampleDraft]:
    words = {shape: deck(pseudo_words("en")[shape], rng) for shape in kind.shapes}
    frames, models, inflected = deck(kind.frames, rng), deck(kind.models, rng), FORMS[name]
    for shape in deck(kind.shapes, rng):
        word, model = unused(words[shape], used), next(models)
        values = {"word": word, "model_word": model, "model_target": inflected(model)}
        yield by_analogy(name, next(frames), values, inflected(word), word)

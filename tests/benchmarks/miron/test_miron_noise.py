"""MIRON's typos: one edit each, of the kind and on the sort of word they say; the answer stays the same."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import cache

import pytest
from rapidfuzz.distance import OSA

from sealegs.benchmarks.miron.data import LANGUAGES, Example
from sealegs.benchmarks.miron.make import generator
from sealegs.benchmarks.miron.make.frames import ExampleDraft, bank_words, rng_for
from sealegs.benchmarks.miron.make.generator import (
    CLEAN,
    EDIT_KINDS,
    EDITED,
    SAME_READING,
    bank_vocabulary,
    compose,
    decapitalised,
    keyboard,
    typo,
)

pytestmark = pytest.mark.full
every_language = pytest.mark.parametrize("lang", LANGUAGES)


@cache
def rows(lang: str) -> dict[str, Example]:
    return {row.id: row for row in compose(lang)}


def noise(lang: str) -> list[Example]:
    return [row for row in rows(lang).values() if row.category == "Noise"]


@cache
def clean_drafts(lang: str) -> dict[str, ExampleDraft]:
    return {one.prefix: one for drafts in generator.clean_drafts(lang).values() for one in drafts}


def edited_words(row: Example) -> list[tuple[str, str]]:
    """Pairs of a clean word and what the typo made of it."""
    before, after = rows(row.lang)[row.clean_id].prefix.split(), row.prefix.split()
    return [(one, two) for one, two in zip(before, after, strict=True) if one != two]


def alphabet_of(letter: str) -> str:
    return unicodedata.name(letter).split()[0]


@every_language
def test_a_noisy_example_differs_from_its_clean_version_by_edits(lang: str) -> None:
    for row in noise(lang):
        clean = rows(lang)[row.clean_id]
        assert clean.category in CLEAN
        assert (clean.target, clean.kind, clean.lang) == (row.target, row.kind, row.lang)
        assert OSA.distance(clean.prefix, row.prefix) == row.edits == len(row.edit_kinds)
        assert len(edited_words(row)) == row.edits, "one typo a word"


@every_language
def test_typos_fall_on_the_sort_of_words_that_the_row_says(lang: str) -> None:
    function = keyboard(lang).function
    for row in noise(lang):
        clean = clean_drafts(lang)[rows(lang)[row.clean_id].prefix]
        free = [clean.prefix[slice(*span)] for span in clean.free]
        for before, after in edited_words(row):
            # Of "grown-ups" or "dog's" one part is edited.
            (word,) = set(re.findall(r"[^\W\d_]+", before)) - set(re.findall(r"[^\W\d_]+", after))
            assert len(word) >= EDITED[row.edited], row
            assert (word.lower() in function) == (row.edited == "function"), row
            assert word in free, "a word that decides the answer stays as it is"
            assert row.edited == "function" or not clean.exact, row


@every_language
def test_a_typo_leaves_numbers_codes_pseudo_words_and_the_answer_as_they_are(lang: str) -> None:
    numbers = keyboard(lang).numbers
    for row in noise(lang):
        clean = rows(lang)[row.clean_id]
        draft = clean_drafts(lang)[clean.prefix]
        answer = set(re.findall(r"\w+", " ".join((row.target, *row.accepted)).lower()))
        for before, after in edited_words(row):
            lost = set(re.findall(r"[^\W\d_]+", before)) - set(re.findall(r"[^\W\d_]+", after))
            assert not any(word.lower() in numbers | answer or word.isupper() for word in lost), row
        assert re.findall(r"\d+", row.prefix) == re.findall(r"\d+", clean.prefix)
        assert row.prefix.split()[-1] == clean.prefix.split()[-1], "the last word meets the answer"
        assert row.accepted == clean.accepted
        if clean.category == "Morphology":
            stem = draft.about[: max(3, len(draft.about) - 2)]
            words = {
                decapitalised(word) for before, _ in edited_words(row) for word in re.findall(r"\w+", before)
            }
            assert not any(stem in word for word in words - bank_vocabulary(lang)), row


@every_language
def test_each_edit_is_of_the_kind_it_says(lang: str) -> None:
    for row in noise(lang):
        for kind, (before, after) in zip(row.edit_kinds, edited_words(row), strict=True):
            grown = {"drop": -1, "double": 1}.get(kind, 0)
            assert len(after) - len(before) == grown
            changed = [(a, b) for a, b in zip(before, after, strict=False) if a != b]
            if kind == "swap":
                assert changed[0] == changed[1][::-1]
            elif kind == "case":
                assert before.lower() == after.lower()
            elif kind == "neighbour":
                assert changed[0][1] in keyboard(lang).neighbours[changed[0][0]]
            elif kind == "lookalike":
                assert alphabet_of(changed[0][0]) != alphabet_of(changed[0][1])


@every_language
def test_numbers_of_edits_sorts_and_kinds_get_equal_shares(lang: str) -> None:
    """Most words of facts and puzzles decide the answer: where too few are left, Morphology gives the row."""
    origins = Counter(row.clean_id.split("-")[1] for row in noise(lang))
    assert min(origins.values()) > 40
    shares = Counter((row.edits, row.edited) for row in noise(lang))
    assert len(shares) == 6
    assert max(shares.values()) - min(shares.values()) <= 3
    kinds = Counter(kind for row in noise(lang) for kind in row.edit_kinds)
    assert set(kinds) == set(EDIT_KINDS)
    assert max(kinds.values()) - min(kinds.values()) <= 1
    assert len({row.clean_id for row in noise(lang)}) == len(noise(lang)), "no clean example serves twice"


@pytest.mark.parametrize(
    ("lang", "word", "wrong"),
    [
        ("en", "Thursday", "Tursday"),
        ("en", "Tuesday", "Tursday"),
        ("ru", "июль", "июь"),
        ("ru", "июня", "июя"),
    ],
)
def test_a_typo_that_could_be_of_two_words_is_refused(lang: str, word: str, wrong: str) -> None:
    keys, kind = keyboard(lang), "drop" if len(wrong) < len(word) else "neighbour"
    assert wrong in generator.edited_forms(word, kind, keys)
    typos = {typo(word, kind, keys, rng_for(lang, seed, "test")) for seed in range(60)}
    assert wrong not in typos


SEEDS = (0, 7, 11)


@pytest.mark.parametrize("seed", SEEDS)
@every_language
def test_no_typo_makes_a_frequent_word_or_a_rude_one(lang: str, seed: int) -> None:
    """`typos.txt` has the words of a dictionary and of a list of frequent words."""
    wordfreq = pytest.importorskip("wordfreq")
    examples = {row.id: row for row in compose(lang, seed=seed)}
    avoid = keyboard(lang).avoid
    for row in examples.values():
        if not row.clean_id:
            continue
        pairs = zip(examples[row.clean_id].prefix.split(), row.prefix.split(), strict=True)
        for kind, (before, after) in zip(
            row.edit_kinds, [pair for pair in pairs if pair[0] != pair[1]], strict=True
        ):
            if kind not in SAME_READING:
                assert all(not wordfreq.zipf_frequency(word, lang) for word in changed_parts(before, after))
            assert not [part for part in avoid if part in after.lower() and part not in before.lower()]


def changed_parts(before: str, after: str) -> set[str]:
    return set(re.findall(r"[^\W\d_]+", after.lower())) - set(re.findall(r"[^\W\d_]+", before.lower()))


@pytest.mark.parametrize("wrong", ["еть", "еси", "опа", "ога", "эро", "бла"])
def test_what_a_reader_took_for_a_word_is_no_typo(wrong: str) -> None:
    assert wrong in bank_words("ru", "typos")

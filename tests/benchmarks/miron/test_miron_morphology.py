"""MIRON's inflected pseudo-words against independent libraries: lemminflect and pymorphy3."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pytest

from sealegs.benchmarks.miron.make import english, russian
from sealegs.benchmarks.miron.make.frames import ExampleDraft
from sealegs.benchmarks.miron.make.generator import clean_drafts, compose

pytestmark = [pytest.mark.slow, pytest.mark.full]
lemminflect: Any = pytest.importorskip("lemminflect")
pymorphy3: Any = pytest.importorskip("pymorphy3")

SEEDS = (0, 7)


@cache
def morphology(lang: str, seed: int = 0) -> list[ExampleDraft]:
    return clean_drafts(lang, seed=seed)["Morphology"]


@cache
def analyzer() -> Any:
    return pymorphy3.MorphAnalyzer()


CUT = re.compile(r"(?:овать|[аяеи]ть|[ыи]й|[еуаяйьоey])$")
"""What an inflected form may lack of its lemma."""


def shown_forms(one: ExampleDraft) -> set[str]:
    """Every form of the pseudo-word in the example: what has its stem, and the answer."""
    stem = CUT.sub("", one.about)
    shown = {word for word in re.findall(r"\w+", one.prefix.lower()) if word.startswith(stem)}
    return shown | {one.about, one.target.strip()}


# --- English ----------------------------------------------------------------------------------------

TAGS = {
    "past": "VBD",
    "progressive": "VBG",
    "third person": "VBZ",
    "plural": "NNS",
    "comparative": "JJR",
    "superlative": "JJS",
}


def lemminflect_form(kind: str, word: str) -> str:
    """What the library makes of a word it does not know."""
    if kind in TAGS:
        return str(lemminflect.getInflection(word, TAGS[kind])[0])
    # It has no derivation, but -ers and -able are added as -ed is.
    suffix = {"agents": "ers", "able": "able"}[kind]
    return str(lemminflect.getInflection(word, "VBD")[0]).removesuffix("ed") + suffix


def test_lemminflect_agrees_but_for_some_doublings() -> None:
    """Its guess for unknown words is a small neural network, which now and then forgets to double the last
    consonant of one short syllable (splom → splomed) or doubles it after two vowels; nothing else differs."""
    inflected = [one for one in morphology("en") if one.kind not in ("adverb", "quality")]
    differing = [one for one in inflected if lemminflect_form(one.kind, one.about) != one.target.strip()]
    assert len(differing) <= 0.02 * len(inflected)
    for one in differing:
        undoubled = re.sub(r"([bdgklmnprt])\1(?=ed$|ers?$|est$|ing$|able$)", r"\1", one.target.strip())
        assert undoubled == lemminflect_form(one.kind, one.about), one


@pytest.mark.parametrize("seed", SEEDS)
def test_no_english_pseudo_word_is_in_a_dictionary(seed: int) -> None:
    english_words = pytest.importorskip("english_words")
    websters = {word.lower() for word in english_words.get_english_words_set(["web2", "gcide"])}
    forms = [form for one in morphology("en", seed) for form in shown_forms(one)]
    assert [form for form in forms if form in websters or lemminflect.getAllLemmas(form)] == []


@pytest.mark.parametrize("word", ["jump", "wash", "bake", "dodge", "rub", "plan", "carry", "tidy", "attack"])
def test_the_rules_hold_for_real_regular_verbs(word: str) -> None:
    for kind in ("past", "progressive", "third person"):
        assert english.FORMS[kind](word) in lemminflect.getInflection(word, TAGS[kind], inflect_oov=False)


# --- Russian ----------------------------------------------------------------------------------------

CASES = dict(zip(russian.CASES.values(), ("nomn", "gent", "datv", "accs", "ablt", "loct"), strict=True))
PERSONS = dict(
    zip(
        russian.PERSONS,
        ("1per sing", "2per sing", "3per sing", "1per plur", "2per plur", "3per plur"),
        strict=True,
    )
)
GENDERS = {"m": "masc sing", "f": "femn sing", "n": "neut sing", "pl": "plur"}


def inflected(word: str, part: str, grammemes: str) -> set[str]:
    """The forms of a real word in pymorphy3's dictionary."""
    parses = [parse for parse in analyzer().parse(word) if part in parse.tag and parse.normal_form == word]
    forms = {parse.inflect(set(grammemes.split())) for parse in parses}
    return {form.word for form in forms if form}


@pytest.mark.parametrize("name", russian.endings().nouns)
def test_the_nouns_of_every_class_decline_as_in_pymorphys_dictionary(name: str) -> None:
    noun = russian.endings().nouns[name]
    for animate, words in ((False, noun.things), (True, noun.beings)):
        for word in words:
            for form, text in russian.decline(word, noun, animate=animate).items():
                case, _, plural = form.partition("_")
                number = "plur" if plural else "sing"
                assert text in inflected(word, "NOUN", f"{CASES[case]} {number}"), (form, text)


@pytest.mark.parametrize("name", russian.endings().verbs)
def test_the_verbs_of_every_class_conjugate_as_in_pymorphys_dictionary(name: str) -> None:
    verb = russian.endings().verbs[name]
    tags = {form: f"pres {tag}" for form, tag in PERSONS.items()}
    tags |= {form: f"past {tag}" for form, tag in GENDERS.items()}
    for word in verb.models:
        forms = dict(russian.conjugate(word.removesuffix(verb.infinitive), verb))
        assert forms.pop("инф") == word
        for form, text in forms.items():
            assert text in inflected(word, "INFN", f"{tags[form]} indc"), (form, text)


@pytest.mark.parametrize("name", russian.endings().adjectives)
def test_the_adjectives_of_every_class_agree_as_in_pymorphys_dictionary(name: str) -> None:
    adjective = russian.endings().adjectives[name]
    for word in adjective.models:
        for gender, tag in GENDERS.items():
            for case, text in russian.agree(word[:-2], gender, soft=adjective.soft).items():
                assert text in inflected(word, "ADJF", f"{CASES[case]} {tag}"), (case, text)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_russian_target_is_in_its_prefix(seed: int) -> None:
    for one in morphology("ru", seed):
        assert one.target.strip() not in re.findall(r"\w+", one.prefix.lower()), one


def test_endings_that_depend_on_the_stress_are_both_accepted() -> None:
    answers = {one.about: {one.target, *one.accepted} for one in morphology("ru")}
    pairs = (("ем", "ом"), ("ем", "ём"), ("ей", "ой"))
    both = [texts for texts in answers.values() for a, b in pairs if {t[-2:] for t in texts} >= {a, b}]
    assert len(both) >= 3


@pytest.mark.parametrize("seed", SEEDS)
def test_no_russian_pseudo_word_is_in_pymorphys_dictionary(seed: int) -> None:
    known = analyzer().word_is_known
    assert [(one.about, f) for one in morphology("ru", seed) for f in shown_forms(one) if known(f)] == []


@pytest.mark.parametrize("lang", ["en", "ru"])
def test_no_typo_makes_a_word_of_the_dictionary(lang: str) -> None:
    """`typos.txt` holds what the bank can give: it is made anew after a change of the bank."""
    is_word = lemminflect.getAllLemmas if lang == "en" else analyzer().word_is_known
    examples = {row.id: row for row in compose(lang)}
    real = []
    for row in examples.values():
        if row.clean_id:
            words = zip(examples[row.clean_id].prefix.split(), row.prefix.split(), strict=True)
            edited = [re.findall(r"\w+", two) for one, two in words if one.lower() != two.lower()]
            real += [word for parts in edited if len(parts) == 1 for word in parts if is_word(word)]
    assert real == []

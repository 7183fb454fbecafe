"""MIRON's inflected pseudo-words against independent libraries: lemminflect and inflect, and pymorphy3."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pytest

from evenkeel.benchmarks.miron.make import english, russian
from evenkeel.benchmarks.miron.make.frames import Draft, read_bank
from evenkeel.benchmarks.miron.make.generator import clean_drafts, compose

pytestmark = [pytest.mark.slow, pytest.mark.full]
lemminflect: Any = pytest.importorskip("lemminflect")
inflect: Any = pytest.importorskip("inflect")
pymorphy3: Any = pytest.importorskip("pymorphy3")

SEEDS = (0, 7)


@cache
def morphology(lang: str, seed: int = 0) -> list[Draft]:
    return clean_drafts(lang, seed=seed)["Morphology"]


@cache
def analyzer() -> Any:
    return pymorphy3.MorphAnalyzer()


CUT = re.compile(r"(?:овать|[аяеи]ть|[ыи]й|[еуаяйьоey])$")
"""What an inflected form may lack of its lemma."""


def shown_forms(one: Draft) -> set[str]:
    """Every form of the pseudo-word in the example: what has its stem, and the answer."""
    stem = CUT.sub("", one.about)
    shown = {word for word in re.findall(r"\w+", one.prefix.lower()) if word.startswith(stem)}
    return shown | {one.about, one.target.strip().rstrip("'").removesuffix("'s")}


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
    if kind == "agent":  # it has no derivation, but -er is added as -ed is
        return str(lemminflect.getInflection(word, "VBD")[0]).removesuffix("ed") + "er"
    if kind == "possessive plural":
        return str(lemminflect.getInflection(word, "NNS")[0]) + "'"
    return f"{word}'s"


def test_lemminflect_agrees_but_for_some_doublings() -> None:
    """Its guess for unknown words is a small neural network, which now and then forgets to double the last
    consonant of one short syllable (splom → splomed) or doubles it after two vowels; nothing else differs."""
    inflected = [one for one in morphology("en") if one.kind != "adverb"]
    differing = [one for one in inflected if lemminflect_form(one.kind, one.about) != one.target.strip()]
    assert len(differing) <= 0.02 * len(inflected)
    for one in differing:
        undoubled = re.sub(r"([bdgklmnprt])\1(?=ed$|er$|est$|ing$)", r"\1", one.target.strip())
        assert undoubled == lemminflect_form(one.kind, one.about), one


def test_inflect_agrees_with_every_plural_and_participle() -> None:
    engine = inflect.engine()
    for one in morphology("en"):
        if one.kind in ("plural", "third person"):
            assert engine.plural_noun(one.about) == one.target.strip()
        elif one.kind == "possessive plural":
            assert engine.plural_noun(one.about) + "'" == one.target.strip()
        elif one.kind == "progressive":
            assert engine.present_participle(english.plural(one.about)) == one.target.strip()


@pytest.mark.parametrize("seed", SEEDS)
def test_no_english_pseudo_word_is_in_lemminflects_dictionary(seed: int) -> None:
    lexical = [
        (one.about, form)
        for one in morphology("en", seed)
        for form in shown_forms(one)
        if lemminflect.getAllLemmas(form)
    ]
    assert lexical == []


REAL = {  # regular words of every shape, whose forms lemminflect has in its dictionary
    "plain": "jump lurk milk mask dart film",
    "hissing": "wash box miss watch fix crunch",
    "mute e": "bake hope dodge solve probe smile",
    "doubling": "rub drop hug plan trim stab",
    "y": "carry hurry bully study tidy empty",
    "long": "attack exploit insist result",
}


@pytest.mark.parametrize("word", " ".join(REAL.values()).split())
def test_the_rules_hold_for_real_regular_verbs(word: str) -> None:
    for kind in ("past", "progressive", "third person"):
        assert english.FORMS[kind](word) in lemminflect.getInflection(word, TAGS[kind], inflect_oov=False)


@pytest.mark.parametrize(
    ("adjective", "adverb"),
    [
        ("quick", "quickly"),
        ("wise", "wisely"),
        ("happy", "happily"),
        ("easy", "easily"),
        ("careful", "carefully"),
        ("famous", "famously"),
        ("rapid", "rapidly"),
        ("foolish", "foolishly"),
    ],
)
def test_the_rule_for_adverbs_holds_for_real_ones(adjective: str, adverb: str) -> None:
    assert english.adverb(adjective) == adverb
    assert lemminflect.getAllLemmas(adverb, "ADV")


# --- Russian ----------------------------------------------------------------------------------------

CASES = dict(zip(russian.CASES, ("nomn", "gent", "datv", "accs", "ablt", "loct"), strict=True))
PERSONS = {"first": "1per", "second": "2per", "third": "3per"}
GENDERS = {"masculine": "masc", "feminine": "femn", "neuter": "neut"}

# A regular word of the dictionary for every class, a thing and a living being; stress is on the stem.
MODELS = {
    "masculine hard": ("завод", "слон"),
    "masculine velar": ("порог", "волк"),
    "masculine sibilant": ("пейзаж", "товарищ"),
    "masculine soft": ("портфель", "житель"),
    "masculine in -й": ("трамвай", "лентяй"),
    "masculine in -ий": ("санаторий",),
    "feminine hard": ("комната", "рыба"),
    "feminine velar": ("дорога", "собака"),
    "feminine sibilant": ("крыша",),
    "feminine in -ица": ("граница", "птица"),
    "feminine soft": ("пуля",),
    "feminine in -ия": ("линия",),
    "feminine third": ("тетрадь",),
    "feminine third sibilant": ("ночь",),
    "neuter hard": ("болото",),
    "neuter soft": ("море",),
    "neuter in -ище": ("училище",),
    "neuter in -ие": ("здание",),
    "first in -ать": ("играть",),
    "first in -ять": ("гулять",),
    "first in -еть": ("краснеть",),
    "first in -овать": ("рисовать",),
    "second in -ить": ("хвалить",),
    "second after a lip sound": ("любить",),
    "second after a sibilant": ("учить",),
    "second after a tooth sound": ("ходить",),
    "second in -еть": ("гореть",),
    "hard": ("старый",),
    "velar": ("тихий",),
    "sibilant": ("колючий",),
    "soft": ("синий",),
}


def grammemes(one: Draft) -> set[str]:
    """The grammemes that pymorphy3 has for a kind of example."""
    words = one.kind.split()
    if words[0] == "adjective":
        return {CASES[words[1]]}
    if words[0] in CASES:
        return {CASES[words[0]], "sing" if words[1] == "singular" else "plur"}
    if words[0] == "past":
        return {"past", "indc", *({"plur"} if words[1] == "plural" else {"sing", GENDERS[words[1]]})}
    return {PERSONS[words[0]], "sing" if words[2] == "singular" else "plur", "pres"}


def as_model(model: str, form: str, lemma: str) -> str | None:
    """The lemma inflected as a model word is: what is replaced at its end is replaced here."""
    common = next(
        (at for at, (a, b) in enumerate(zip(model, form, strict=False)) if a != b), min(len(model), len(form))
    )
    end = model[common:]
    return lemma.removesuffix(end) + form[common:] if lemma.endswith(end) else None


def agreement(one: Draft) -> list[set[str]]:
    """What the example shows of gender, number and life: an adjective by the one it is set against ("не о
    старой улице, а о"), a noun by the determiner of its lemma and the last word of the prefix."""
    words = re.findall(r"\w+", one.prefix)
    case = grammemes(one) & set(CASES.values())
    if one.kind.startswith("adjective"):
        against = [word for word in words if re.match("нов|стар|красив", word)][-1]
        readings = [parse.tag for parse in analyzer().parse(against) if case <= set(parse.tag.grammemes)]
        return [{str(g) for g in (tag.gender, tag.number, tag.animacy) if g} for tag in readings]
    before = {words[at] for at, word in enumerate(words[1:]) if word == one.about}
    tags = [parse.tag for word in before for parse in analyzer().parse(word)]
    genders = {str(tag.gender) for tag in tags if "ADJF" in tag and "nomn" in tag}
    last = [parse.tag for parse in analyzer().parse(words[-1]) if case <= set(parse.tag.grammemes)]
    return [{gender} | {str(tag.animacy) for tag in last[:1] if tag.animacy} for gender in genders]


def model_forms(one: Draft, model: str) -> set[str]:
    """What pymorphy3's dictionary says for a model word, carried over to the lemma."""
    parse = analyzer().parse(model)[0]
    if "VERB" in parse.tag or "INFN" in parse.tag:
        inflected = [parse.inflect(grammemes(one))]
    elif one.kind.startswith("adjective"):
        inflected = [parse.inflect(grammemes(one) | agreeing) for agreeing in agreement(one)]
    else:
        fits = any(agreeing <= set(parse.tag.grammemes) for agreeing in agreement(one))
        inflected = [parse.inflect(grammemes(one))] if fits else []
    forms = {as_model(model, form.word, one.about) for form in inflected if form}
    return {form for form in forms if form}


def by_models(one: Draft) -> set[str]:
    """The forms of the classes that the lemma can belong to."""
    known = russian.endings()
    lemmas: dict[str, tuple[str, ...]] = {}
    if one.kind.startswith("adjective"):
        for name, adjective in known.adjectives.items():
            lemmas[name] = tuple(final + ("ый" if name == "hard" else "ий") for final in adjective.finals)
    elif one.kind.split()[0] in CASES:
        lemmas = {name: noun.finals for name, noun in known.nouns.items()}
    else:
        for name, verb in known.verbs.items():
            lemmas[name] = tuple(final + verb.infinitive for final in verb.finals)
    classes = [name for name, finals in lemmas.items() if one.about.endswith(finals)]
    return {form for name in classes for model in MODELS[name] for form in model_forms(one, model)}


@pytest.mark.parametrize("seed", SEEDS)
def test_every_russian_form_ends_as_in_pymorphys_dictionary(seed: int) -> None:
    assert [one for one in morphology("ru", seed) if one.target.strip() not in by_models(one)] == []


@pytest.mark.parametrize("seed", SEEDS)
def test_no_russian_pseudo_word_is_in_pymorphys_dictionary(seed: int) -> None:
    known = analyzer().word_is_known
    assert [(one.about, f) for one in morphology("ru", seed) for f in shown_forms(one) if known(f)] == []


@pytest.mark.parametrize(
    ("stem", "ending", "word"),
    [
        ("парк", "ы", "парки"),
        ("душ", "ом", "душем"),
        ("душ", "ов", "душей"),
        ("месяц", "ов", "месяцев"),
        ("ноч", "ям", "ночам"),
        ("уч", "ят", "учат"),
        ("уч", "ю", "учу"),
        ("хорош", "ого", "хорошего"),
        ("тих", "ый", "тихий"),
        ("тих", "ого", "тихого"),
        ("стол", "ы", "столы"),
    ],
)
def test_endings_follow_the_spelling_rules(stem: str, ending: str, word: str) -> None:
    assert russian.join(stem, ending) == word


def test_the_nouns_beside_adjectives_are_inflected_as_pymorphy_does() -> None:
    nouns = read_bank("ru", "adjectives", russian.AdjectiveFrames).nouns
    for agreement, paradigms in nouns.items():
        number = "plur" if agreement == "pl" else "sing"
        for forms in paradigms:
            for case, form in zip(CASES.values(), forms, strict=True):
                readings = analyzer().parse(form)
                assert any({case, number} <= set(parse.tag.grammemes) for parse in readings), form


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

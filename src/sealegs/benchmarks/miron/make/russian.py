"""Russian pseudo-words, inflected by rule, in frames that leave one form to choose.

A pseudo-word (`bank/ru/pseudo.txt`) belongs to a class of nouns, verbs or adjectives (`endings.json`). In the
frame a real word of the same class comes first, in the same gender, number and case. The finals of the
pseudo-words are such that no vowel is fleeting; where an ending hangs on the stress, both are accepted.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

from msgspec import Struct

from sealegs.benchmarks.miron.make.frames import (
    ExampleDraft,
    Kinds,
    by_analogy,
    pseudo_words,
    read_bank,
    rng_for,
)
from sealegs.make.grammar import deck, pick

CASES = {
    "nominative": "nom",
    "genitive": "gen",
    "dative": "dat",
    "accusative": "acc",
    "instrumental": "ins",
    "prepositional": "pre",
}
PERSONS = ("я", "ты", "он", "мы", "вы", "они")
PAST = {"m": "", "f": "а", "n": "о", "pl": "и"}

Forms: TypeAlias = Mapping[str, str]

_SOFT = str.maketrans("ыоау", "иеяю")


class NounClass(Struct, frozen=True):
    """A declension. `*` is an accusative like the nominative or, of a living being, like the genitive."""

    gender: str
    singular: tuple[str, ...]
    plural: tuple[str, ...]
    things: tuple[str, ...]
    """Real words of the class."""
    beings: tuple[str, ...] = ()
    accepted: dict[str, tuple[str, ...]] = {}
    """Further endings by form: stressed ones, and -ою for -ой."""


class VerbClass(Struct, frozen=True):
    """A conjugation."""

    infinitive: str
    past: str
    present: tuple[str, ...]
    models: tuple[str, ...]
    never: tuple[str, ...] = ()
    """Forms that do not follow from the others."""


class AdjectiveClass(Struct, frozen=True):
    """A kind of adjective; stress never falls on the ending."""

    models: tuple[str, ...]
    soft: bool = False


class Endings(Struct, frozen=True):
    """All that `endings.json` holds."""

    nouns: dict[str, NounClass]
    verbs: dict[str, VerbClass]
    adjectives: dict[str, AdjectiveClass]
    agreement: dict[str, tuple[str, ...]]
    determiners: dict[str, dict[str, tuple[str, ...]]]


def endings() -> Endings:
    return read_bank("ru", "endings", Endings)


# --- the rules --------------------------------------------------------------------------------------


def join(stem: str, ending: str) -> str:
    """Stem and unstressed ending by the spelling rules.

    и, not ы, after к г х ж ш ч щ; а, у, not я, ю, and е, not о, after ж ш ч щ ц; and -ей, not -ов, after
    ж ш ч щ in the genitive plural.
    """
    last, first = stem[-1], ending[:1]
    if last in "жшчщ" and ending == "ов":
        return f"{stem}ей"
    if last in "кгхжшчщ" and first == "ы":
        return f"{stem}и{ending[1:]}"
    if last in "жшчщц" and first in ("я", "ю", "о"):
        return stem + {"я": "а", "ю": "у", "о": "е"}[first] + ending[1:]
    return stem + ending


def by_case(forms: Iterable[str], *, animate: bool) -> dict[str, str]:
    """Six forms by their case, the accusative (`*`) put in where it is that of another case."""
    cases = dict(zip(CASES.values(), forms, strict=True))
    if cases["acc"].endswith("*"):
        cases["acc"] = cases["gen" if animate else "nom"]
    return cases


def decline(lemma: str, noun: NounClass, *, animate: bool = False) -> Forms:
    """All twelve forms, as nom, gen, … and nom_pl, gen_pl, …"""
    stem = lemma.removesuffix(noun.singular[0])
    singular = by_case((join(stem, ending) for ending in noun.singular), animate=animate)
    plural = by_case((join(stem, ending) for ending in noun.plural), animate=animate)
    return {**singular, **{f"{case}_pl": form for case, form in plural.items()}}


def conjugate(stem: str, verb: VerbClass) -> Forms:
    """The infinitive (инф), six persons of the present (я, ты, …) and the past (m, f, n, pl)."""
    present = {
        person: join(stem, ending) for person, ending in zip(PERSONS, verb.present, strict=True) if ending
    }
    past = {gender: stem + verb.past + ending for gender, ending in PAST.items()}
    return {"инф": stem + verb.infinitive, **present, **past}


def agree(stem: str, agreement: str, *, soft: bool = False, animate: bool = False) -> dict[str, str]:
    """The six cases of an adjective for a gender (m, f, n) or the plural (pl).

    A soft stem has и, е, я, ю where a hard one has ы, о, а, у.
    """
    suffixes = endings().agreement[agreement]
    if soft:
        suffixes = tuple(suffix[:1].translate(_SOFT) + suffix[1:] for suffix in suffixes)
    return by_case((join(stem, suffix) for suffix in suffixes), animate=animate)


# --- examples ---------------------------------------------------------------------------------------


class Frames(Struct, frozen=True):
    """Frames of nouns and adjectives by the form that they leave to choose."""

    frames: dict[str, tuple[str, ...]]
    nouns: dict[str, tuple[tuple[str, ...], ...]] = {}
    """What adjectives stand beside, in six cases, by agreement."""


class VerbFrames(Struct, frozen=True):
    """Frames show the infinitive and a person, which together give the conjugation."""

    present: tuple[str, ...]
    third: tuple[str, ...]
    """For the third person: the others show it."""
    past: tuple[str, ...]
    subjects: dict[str, tuple[str, ...]]


def examples(seed: int) -> Kinds:
    """For each form a stream of examples, no two with the same pseudo-word."""
    streams: dict[str, Callable[[str, random.Random], Iterator[ExampleDraft]]] = {
        **dict.fromkeys(read_bank("ru", "nouns", Frames).frames, _nouns),
        **dict.fromkeys(read_bank("ru", "verbs", VerbFrames).subjects, _verbs),
        **dict.fromkeys(read_bank("ru", "adjectives", Frames).frames, _adjectives),
    }
    used: set[str] = set()
    return {kind: _unused(stream(kind, rng_for("ru", seed, kind)), used) for kind, stream in streams.items()}


def _unused(drafts: Iterator[ExampleDraft], used: set[str]) -> Iterator[ExampleDraft]:
    """The drafts of new pseudo-words whose form is not in the prefix: some accusatives are like the lemma."""
    for draft in drafts:
        if draft.about not in used and draft.target.strip() not in re.findall(r"\w+", draft.prefix.lower()):
            used.add(draft.about)
            yield draft


def determiner(lemma: str, agreement: str, case: str, *, animate: bool) -> str:
    """этот, наш, новый, … beside a noun."""
    table = endings().determiners.get(lemma)
    if table is None:
        return agree(lemma[:-2], agreement, animate=animate)[case]
    return by_case(table[agreement], animate=animate)[case]


def slots(words: Mapping[str, Forms], agreement: str, *, animate: bool) -> Callable[[str], str]:
    """What fills a slot: `noun_gen` a form of one of the words, `этот_gen` a determiner that agrees; for a
    slot of the real word (`model_…`) a form of that, whose agreement is the same."""

    def value(slot: str) -> str:
        if slot in words["forms"]:
            return words["forms"][slot]
        head, _, form = slot.removeprefix("model_").partition("_")
        if head in words:
            return words[head][form]
        agreeing = "pl" if form.endswith("_pl") else agreement
        return determiner(head, agreeing, form.removesuffix("_pl"), animate=animate)

    return value


def _named(prefix: str, forms: Forms) -> Forms:
    return {f"{prefix}_{form}": text for form, text in forms.items()}


def _nouns(kind: str, rng: random.Random) -> Iterator[ExampleDraft]:
    case, number = kind.split()
    form = CASES[case] + ("_pl" if number == "plural" else "")
    nouns = endings().nouns
    words = {name: deck(pseudo_words("ru")[name], rng) for name in nouns}
    frames = deck(read_bank("ru", "nouns", Frames).frames[kind], rng)
    classes = [(name, False) for name in nouns] + [(name, True) for name in nouns if nouns[name].beings]
    for name, animate in deck(classes, rng):
        noun, lemma = nouns[name], next(words[name])
        forms = decline(lemma, noun, animate=animate)
        model = decline(pick(noun.beings if animate else noun.things, rng), noun, animate=animate)
        filled = {**_named("noun", forms), **_named("model_noun", model), "model_target": model[form]}
        values = slots({"forms": filled}, noun.gender, animate=animate)
        stem = lemma.removesuffix(noun.singular[0])
        accepted = [stem + ending for ending in noun.accepted.get(form, ())]
        yield by_analogy(kind, next(frames), values, forms[form], lemma, accepted)


def _verbs(kind: str, rng: random.Random) -> Iterator[ExampleDraft]:
    bank = read_bank("ru", "verbs", VerbFrames)
    form = dict(zip(bank.subjects, (*PERSONS, *PAST), strict=True))[kind]
    verbs = {name: verb for name, verb in endings().verbs.items() if form not in verb.never}
    words = {name: deck(pseudo_words("ru")[name], rng) for name in verbs}
    frames = deck(bank.past if form in PAST else bank.third if form == "он" else bank.present, rng)
    for name in deck(tuple(verbs), rng):
        verb = verbs[name]
        forms = conjugate(next(words[name]), verb)
        model = conjugate(pick(verb.models, rng).removesuffix(verb.infinitive), verb)
        subject = pick(bank.subjects[kind], rng)
        values = {
            **forms,
            **_named("model", model),
            "subject": subject,
            "model_subject": subject,
            "model_target": model[form],
        }
        yield by_analogy(kind, next(frames), values, forms[form], forms["инф"])


def _adjectives(kind: str, rng: random.Random) -> Iterator[ExampleDraft]:
    bank = read_bank("ru", "adjectives", Frames)
    case, adjectives = CASES[kind.split()[1]], endings().adjectives
    words = {name: deck(pseudo_words("ru")[name], rng) for name in adjectives}
    frames = deck(bank.frames[kind], rng)
    for name, agreement in deck([(name, agreement) for name in words for agreement in bank.nouns], rng):
        soft = adjectives[name].soft
        word, model = (
            agree(stem, agreement, soft=soft) | {"m": agree(stem, "m", soft=soft)["nom"]}
            for stem in (next(words[name]), pick(adjectives[name].models, rng)[:-2])
        )
        filled = {**_named("adj", word), **_named("model_adj", model), "model_target": model[case]}
        noun = by_case(pick(bank.nouns[agreement], rng), animate=False)
        values = slots({"forms": filled, "noun": noun}, agreement, animate=False)
        accepted = [word["ins"].removesuffix("й") + "ю"] if (agreement, case) == ("f", "ins") else []
        yield by_analogy(kind, next(frames), values, word[case], word["m"], accepted)

"""Russian pseudo-words, inflected by rule.

A pseudo-word is a base (onset, vowel, middle; `bank/ru/sounds.json`) with a final that puts it in a class of
nouns, verbs or adjectives (`bank/ru/endings.json`). The finals are chosen so that no vowel is fleeting, and
a class names the forms that hang on stress (`stress`) or cannot be known at all (`never`).
`words.txt` holds the bases and lemmas that would come too near to a real word.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

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
Shape: TypeAlias = tuple[tuple[str, ...], ...]

_VOWELS = "аеиоуыэюя"
_SOFT = str.maketrans("ыоау", "иеяю")
_ODD = re.compile(
    rf"[кгхжшчщц][ыяю]|[чщ]о|ио|([^{_VOWELS}])[{_VOWELS}]\1|([{_VOWELS}])[^{_VOWELS}]*\2[^{_VOWELS}]+\2"
)
"""Against the spelling (кы, чя), or hard to say: the same consonant twice, the same vowel three times."""


class NounClass(Struct, frozen=True):
    """A declension. `*` is an accusative like the nominative or, of a living being, like the genitive."""

    gender: str
    finals: tuple[str, ...]
    singular: tuple[str, ...]
    plural: tuple[str, ...]
    animate: bool = False
    """Whether there are living beings among these words."""
    show: bool = False
    """The lemma alone could be indeclinable: a frame must show a further form."""
    short: bool = False
    """The base is an onset alone."""
    stress: tuple[str, ...] = ()
    never: tuple[str, ...] = ()


class VerbClass(Struct, frozen=True):
    """A conjugation; endings come after the final."""

    finals: tuple[str, ...]
    infinitive: str
    past: str
    present: tuple[str, ...]
    never: tuple[str, ...] = ()


class AdjectiveClass(Struct, frozen=True):
    """A kind of adjective; stress never falls on the ending."""

    finals: tuple[str, ...]
    soft: bool = False


class Endings(Struct, frozen=True):
    """All that `endings.json` holds."""

    nouns: dict[str, NounClass]
    verbs: dict[str, VerbClass]
    adjectives: dict[str, AdjectiveClass]
    agreement: dict[str, tuple[str, ...]]
    determiners: dict[str, dict[str, tuple[str, ...]]]


class Sounds(Struct, frozen=True):
    """What bases are built of."""

    singles: tuple[str, ...]
    clusters: tuple[str, ...]
    vowels: tuple[str, ...]
    middles: tuple[str, ...]
    steady_vowels: tuple[str, ...]
    """Vowels that never flee before a last consonant."""
    avoid: tuple[str, ...]
    """Parts that would remind of a rude word."""


def endings() -> Endings:
    return read_bank("ru", "endings", Endings)


def sounds() -> Sounds:
    return read_bank("ru", "sounds", Sounds)


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


def by_case(forms: Iterable[str], *, animate: bool) -> Forms:
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


def agree(stem: str, agreement: str, *, soft: bool = False, animate: bool = False) -> Forms:
    """The six cases of an adjective for a gender (m, f, n) or the plural (pl).

    A soft stem has и, е, я, ю where a hard one has ы, о, а, у.
    """
    suffixes = endings().agreement[agreement]
    if soft:
        suffixes = tuple(suffix[:1].translate(_SOFT) + suffix[1:] for suffix in suffixes)
    return by_case((join(stem, suffix) for suffix in suffixes), animate=animate)


# --- pseudo-words -----------------------------------------------------------------------------------


def shapes(final: str, *, short: bool = False) -> tuple[Shape, ...]:
    """The options for each part of a word with this final: those of its base, then the final itself.

    The base ends in a vowel before a consonant and in a consonant before a vowel.
    """
    parts = sounds()
    onsets = (*parts.singles, *parts.clusters)
    if short:
        return ((parts.clusters, (final,)),)
    if final[0] in _VOWELS:
        return ((onsets, parts.vowels, parts.middles, (final,)),)
    return (
        (parts.clusters, parts.vowels, (final,)),
        (onsets, parts.vowels, parts.middles, parts.steady_vowels, (final,)),
    )


def is_sound(word: str) -> bool:
    """Whether joined parts look like Russian."""
    return not (_ODD.search(word) or any(part in word for part in sounds().avoid))


def pseudo_words(
    finals: Sequence[str], rng: random.Random, *, suffix: str = "", short: bool = False
) -> Iterator[str]:
    """Stems of one class, by the sound patterns; with `suffix` the lemma, no form of which is a word."""
    real = bank_words("ru", "words")
    while True:
        parts = [pick(options, rng) for options in pick(shapes(pick(finals, rng), short=short), rng)]
        stem, base = "".join(parts), "".join(parts[:-1])
        if is_sound(stem) and stem + suffix not in real and base not in real:
            yield stem


# --- examples ---------------------------------------------------------------------------------------


class Frames(Struct, frozen=True):
    """A lead shows the word, an ask leaves one form of it to choose."""

    leads: tuple[str, ...]
    asks: dict[str, tuple[str, ...]]


class NounFrames(Frames, frozen=True):
    animate_leads: tuple[str, ...]
    stress_leads: tuple[str, ...]
    """Leads that also say where the stress is."""


class VerbFrames(Frames, frozen=True):
    """Leads show the infinitive and a person, which together give the conjugation."""

    plural_leads: tuple[str, ...]
    paradigms: tuple[str, ...]


class AdjectiveFrames(Frames, frozen=True):
    """Leads show the masculine form, by which the stress is on the stem."""

    nouns: dict[str, tuple[tuple[str, ...], ...]]


def examples(seed: int) -> Kinds:
    """For each form a stream of examples, no two with the same pseudo-word."""
    used: set[str] = set()
    streams = {"nouns": _nouns, "verbs": _verbs, "adjectives": _adjectives}
    return {
        kind: stream(kind, rng_for("ru", seed, kind), used)
        for part, stream in streams.items()
        for kind in read_bank("ru", part, Frames).asks
    }


def determiner(lemma: str, agreement: str, case: str, *, animate: bool) -> str:
    """этот, наш, новый, … beside a noun."""
    table = endings().determiners.get(lemma)
    if table is None:
        return agree(lemma[:-2], agreement, animate=animate)[case]
    return by_case(table[agreement], animate=animate)[case]


def slots(words: Mapping[str, Forms], agreement: str, *, animate: bool) -> Callable[[str], str]:
    """What fills a slot: `noun_gen` a form of one of the words, `этот_gen` a determiner that agrees."""

    def value(slot: str) -> str:
        head, _, form = slot.partition("_")
        if head in words:
            return words[head][form]
        agreeing = "pl" if form.endswith("_pl") else agreement
        return determiner(head, agreeing, form.removesuffix("_pl"), animate=animate)

    return value


def _nouns(kind: str, rng: random.Random, used: set[str]) -> Iterator[Draft]:
    frames = read_bank("ru", "nouns", NounFrames)
    nouns = endings().nouns
    case, number = kind.split()
    form = CASES[case] + ("_pl" if number == "plural" else "")
    classes = [
        (name, animate)
        for name, noun in nouns.items()
        for animate in ((False, True) if noun.animate else (False,))
        if form not in noun.never
    ]
    words = {name: pseudo_words(noun.finals, rng, short=noun.short) for name, noun in nouns.items()}
    asks = deck(frames.asks[kind], rng)
    for name, animate in deck(classes, rng):
        forms = decline(unused(words[name], used), nouns[name], animate=animate)
        lead = pick(_leads(frames, nouns[name], forms, form, animate=animate), rng)
        values = slots({"noun": forms}, nouns[name].gender, animate=animate)
        yield draft(kind, f"{lead} {next(asks)}", values, forms[form], forms["nom"], exact=True)


def _leads(frames: NounFrames, noun: NounClass, forms: Forms, target: str, *, animate: bool) -> list[str]:
    """The leads that show enough of a word, but not the form that is to be chosen."""
    leads = frames.animate_leads if animate else frames.leads
    if target in noun.stress:
        leads = frames.stress_leads
    shown = {lead: set(re.findall(r"\{noun_(\w+)\}", lead)) - {"nom"} for lead in leads}
    return [
        lead
        for lead in leads
        if (shown[lead] or not noun.show) and forms[target] not in {forms[form] for form in shown[lead]}
    ]


def _verbs(kind: str, rng: random.Random, used: set[str]) -> Iterator[Draft]:
    frames = read_bank("ru", "verbs", VerbFrames)
    form = dict(zip(frames.asks, (*PERSONS, *PAST), strict=True))[kind]
    verbs = {name: verb for name, verb in endings().verbs.items() if form not in verb.never}
    words = {name: pseudo_words(verb.finals, rng, suffix=verb.infinitive) for name, verb in verbs.items()}
    leads, shown = (frames.plural_leads, "они") if form == "он" else (frames.leads, "он")
    asks = deck((*frames.asks[kind], *frames.paradigms[:1]) if form in PERSONS else frames.asks[kind], rng)
    for name in deck(tuple(verbs), rng):
        forms = conjugate(unused(words[name], used), verbs[name])
        ask = next(asks)
        frame = pick(frames.paradigms, rng) if ask in frames.paradigms else f"{pick(leads, rng)} {ask}"
        values = {**forms, "shown": f"{shown} {forms[shown]}", "person": form}
        yield draft(kind, frame, values, forms[form], forms["инф"], exact=True)


def _adjectives(kind: str, rng: random.Random, used: set[str]) -> Iterator[Draft]:
    frames = read_bank("ru", "adjectives", AdjectiveFrames)
    adjectives = endings().adjectives
    case = CASES[kind.split()[1]]
    words = {
        name: pseudo_words(adjective.finals, rng, suffix="ый" if name == "hard" else "ий")
        for name, adjective in adjectives.items()
    }
    # In the nominative and the accusative a masculine form would only repeat the lemma.
    agreements = {"nom": ("f", "n", "pl"), "acc": ("f", "n", "pl", "animate")}.get(
        case, ("m", "f", "n", "pl")
    )
    asks = deck(frames.asks[kind], rng)
    for name, agreement in deck([(name, agreement) for name in words for agreement in agreements], rng):
        stem, soft = unused(words[name], used), adjectives[name].soft
        animate = agreement == "animate"
        gender = "m" if animate else agreement
        noun = by_case(pick(frames.nouns[agreement], rng), animate=animate)
        lemma = agree(stem, "m", soft=soft)["nom"]
        target = agree(stem, gender, soft=soft, animate=animate)[case]
        values = slots({"noun": noun, "adj": {"": lemma}}, gender, animate=animate)
        yield draft(kind, f"{pick(frames.leads, rng)} {next(asks)}", values, target, lemma, exact=True)

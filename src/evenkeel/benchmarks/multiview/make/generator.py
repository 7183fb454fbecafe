"""The starter set: documents with two independent views each, and triplets whose truth is known.

    math      word problems: the arithmetic that solves them × the setting of their story
    stories   short stories: their plot × their setting

The words are data (`bank/`); here they are chosen and joined. For every view the negative shares the *other*
view with the anchor. On the deep views (arithmetic, plot) whatever looks alike therefore misleads; on the
settings it leads. A seed decides everything, so the same seed gives the same bytes on every machine.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from functools import cache
from importlib import resources
from itertools import product
from math import gcd
from typing import Any, NamedTuple, TypeAlias

import msgspec
from msgspec import Struct

from evenkeel.benchmarks.multiview.files import Triplet, make_triplet
from evenkeel.benchmarks.multiview.make.criteria import Criterion
from evenkeel.errors import UsageError
from evenkeel.make.documents import Document
from evenkeel.make.grammar import between, pick, shuffled

GENERATOR = "evenkeel-multiview"
VERSION = 1
"""Goes up whenever the code or a bank changes the texts of a seed, so that a file tells which it is."""

COPIES = {"math": 3, "stories": 4}
"""Documents for each pair of views: 10 × 10 × 3 problems and 8 × 8 × 4 stories."""
TRIPLETS = 30
"""Triplets for each view: as many as a small model judges in a minute or two on a laptop."""

Numbers: TypeAlias = dict[str, int]


class MathSetting(Struct, frozen=True, forbid_unknown_fields=True):
    """Where a word problem happens. `box` and `make` hold two forms: one and many, to do and done."""

    people: tuple[str, ...]
    items: tuple[str, str, str]
    box: tuple[str, str]
    make: tuple[str, str]
    spot: str
    gone: str
    buyer: str
    scenes: tuple[str, ...]
    asides: tuple[str, ...]


class MathBank(Struct, frozen=True, forbid_unknown_fields=True):
    settings: dict[str, MathSetting]
    structures: dict[str, tuple[str, ...]]


class StorySetting(Struct, frozen=True, forbid_unknown_fields=True):
    """Where a story happens, and what there is in that place to make a plot of."""

    people: tuple[str, ...]
    things: tuple[str, ...]
    nooks: tuple[str, ...]
    events: tuple[str, ...]
    jobs: tuple[str, ...]
    crowd: str
    scenes: tuple[str, ...]


class StoryBank(Struct, frozen=True, forbid_unknown_fields=True):
    settings: dict[str, StorySetting]
    plots: dict[str, tuple[tuple[str, ...], ...]]
    """For each plot its beats in their order, each in several wordings that may be mixed."""


@cache
def _bank(name: str, kind: Any) -> Any:
    content = (
        resources.files("evenkeel.benchmarks.multiview.make").joinpath("bank", f"{name}.json").read_bytes()
    )
    return msgspec.json.decode(content, type=kind)


def math_bank() -> MathBank:
    bank: MathBank = _bank("math", MathBank)
    return bank


def story_bank() -> StoryBank:
    bank: StoryBank = _bank("stories", StoryBank)
    return bank


def views(docset: str) -> tuple[Criterion, Criterion]:
    """The deep view of a document set and its surface view, as criteria."""
    known: dict[str, tuple[Criterion, Criterion]] = _bank("views", dict[str, tuple[Criterion, Criterion]])
    if docset not in known:
        raise UsageError(f"there is no document set '{docset}' to compose. There is: {', '.join(known)}.")
    return known[docset]


# --- documents --------------------------------------------------------------------------------------


class Written(NamedTuple):
    """A document, and the wordings of its bank that it was made of, its scene aside."""

    document: Document
    wordings: frozenset[str]


def compose_documents(docset: str, seed: int = 0) -> list[Document]:
    """All documents of a set in an order that tells nothing, with both labels of each in `views`."""
    return [written.document for written in _written(docset, seed)]


def _written(docset: str, seed: int) -> list[Written]:
    deep, surface = views(docset)
    drafts: list[tuple[str, frozenset[str], dict[str, str]]] = []
    for kind, setting in product(*_axes(docset)):
        for text, wordings in _texts(docset, kind, setting, _rng(seed, docset, kind, setting)):
            drafts.append((text, frozenset(wordings), {deep.name: kind, surface.name: setting}))
    return [
        Written(Document(f"{docset}-{number:03}", text, views=labels), wordings)
        for number, (text, wordings, labels) in enumerate(shuffled(drafts, _rng(seed, docset)), 1)
    ]


def _axes(docset: str) -> tuple[list[str], list[str]]:
    if docset == "math":
        return list(math_bank().structures), list(math_bank().settings)
    return list(story_bank().plots), list(story_bank().settings)


def _texts(docset: str, kind: str, setting: str, rng: random.Random) -> list[tuple[str, Sequence[str]]]:
    """Documents of one kind in one setting, with their wordings: no two begin with the same scene."""
    if docset == "math":
        place = math_bank().settings[setting]
        templates = shuffled(math_bank().structures[kind], rng)[: COPIES[docset]]
        scenes = shuffled(place.scenes, rng)[: COPIES[docset]]
        return [
            (_problem(scene, template, place, NUMBERS[kind](rng), rng), [template])
            for scene, template in zip(scenes, templates, strict=True)
        ]
    stage = story_bank().settings[setting]
    scenes = shuffled(stage.scenes, rng)[: COPIES[docset]]
    told = [[pick(wordings, rng) for wordings in story_bank().plots[kind]] for _ in scenes]
    return [(_story(scene, beats, stage, rng), beats) for scene, beats in zip(scenes, told, strict=True)]


def _problem(scene: str, template: str, place: MathSetting, numbers: Numbers, rng: random.Random) -> str:
    who, mate, *_ = shuffled(place.people, rng)
    items, items2, items3 = shuffled(place.items, rng)
    asked = template.format(
        **numbers, who=who, mate=mate, items=items, items2=items2, items3=items3, buyer=place.buyer,
        box=place.box[0], boxes=place.box[1], make=place.make[0], made=place.make[1],
        spot=place.spot, gone=place.gone,
    )  # fmt: skip
    return capitalised(f"{scene} {pick(place.asides, rng)} {asked}")


def _story(scene: str, beats: Sequence[str], stage: StorySetting, rng: random.Random) -> str:
    hero, other, *_ = shuffled(stage.people, rng)
    nook1, nook2, nook3, *_ = shuffled(stage.nooks, rng)
    told = " ".join(beats).format(
        hero=hero, other=other, nook1=nook1, nook2=nook2, nook3=nook3, crowd=stage.crowd,
        thing=pick(stage.things, rng), event=pick(stage.events, rng), job=pick(stage.jobs, rng),
    )  # fmt: skip
    return capitalised(f"{scene} {told}")


def capitalised(text: str) -> str:
    """Each sentence with a capital: a slot may stand at its beginning."""
    return re.sub(r"(?:^|[.?!]'? )[a-z]", lambda match: match[0].upper(), text)


# --- numbers: small enough for the head, and with a whole answer ------------------------------------


def _parts(rng: random.Random) -> Numbers:
    a, b, c = (between(12, 68, rng) for _ in range(3))
    return {"a": a, "b": b, "c": c, "answer": a + b + c}


def _difference(rng: random.Random) -> Numbers:
    a = between(40, 95, rng)
    b = between(12, a - 9, rng)
    return {"a": a, "b": b, "answer": a - b}


def _groups(rng: random.Random) -> Numbers:
    n, m = between(3, 12, rng), between(6, 25, rng)
    return {"n": n, "m": m, "answer": n * m}


def _sharing(rng: random.Random) -> Numbers:
    n, each = between(3, 9, rng), between(6, 18, rng)
    return {"n": n, "t": n * each, "answer": each}


def _discount(rng: random.Random) -> Numbers:
    price, percent = 20 * between(1, 6, rng), pick((10, 15, 20, 25, 30, 40), rng)
    return {"price": price, "percent": percent, "answer": price * (100 - percent) // 100}


def _change(rng: random.Random) -> Numbers:
    n, price = between(2, 6, rng), between(3, 13, rng)
    note = next(note for note in (20, 50, 100) if note > n * price)
    return {"n": n, "price": price, "note": note, "answer": note - n * price}


def _average(rng: random.Random) -> Numbers:
    mean, up, down = between(20, 50, rng), between(5, 9, rng), between(1, 4, rng)
    a, b, c = shuffled((mean + up, mean - down, mean - up + down), rng)
    return {"a": a, "b": b, "c": c, "answer": mean}


def _ratio(rng: random.Random) -> Numbers:
    r, s = pick([(r, s) for r in range(2, 8) for s in range(2, 8) if gcd(r, s) == 1], rng)
    share = between(3, 9, rng)
    return {"r": r, "s": s, "t": share * (r + s), "answer": share * r}


def _rule_of_three(rng: random.Random) -> Numbers:
    n, m, one = between(2, 6, rng), between(7, 12, rng), between(4, 12, rng)
    return {"n": n, "t": n * one, "m": m, "answer": m * one}


def _combined(rng: random.Random) -> Numbers:
    n, a, b = between(3, 9, rng), between(4, 15, rng), between(4, 15, rng)
    return {"n": n, "a": a, "b": b, "answer": n * (a + b)}


NUMBERS: dict[str, Callable[[random.Random], Numbers]] = {
    "sum of parts": _parts,
    "difference": _difference,
    "equal groups": _groups,
    "sharing": _sharing,
    "percentage off": _discount,
    "buying and change": _change,
    "average": _average,
    "ratio": _ratio,
    "rule of three": _rule_of_three,
    "combined rates": _combined,
}
"""For each arithmetic structure the numbers of one problem, by their slot, and its answer."""


# --- triplets ---------------------------------------------------------------------------------------


def compose(seed: int = 0, triplets: int = TRIPLETS) -> list[Triplet]:
    """The triplets of all four tasks: each document set under its deep view and under its surface view."""
    made = []
    for docset in COPIES:
        documents = _written(docset, seed)
        deep, surface = views(docset)
        for view, other, hard_for in ((deep, surface, "bm25"), (surface, deep, "")):
            rng = _rng(seed, docset, "triplets", view.name)
            for anchor in shuffled(documents, rng)[:triplets]:
                positive = pick(_sharing_only(view, other, anchor, documents), rng)
                negative = pick(_sharing_only(other, view, anchor, documents), rng)
                chosen = (anchor.document, positive, negative)
                labels = [document.views for document in chosen]
                made.append(make_triplet(docset, view, chosen, labels=labels, hard_for=hard_for))
    return made


def _sharing_only(
    view: Criterion, other: Criterion, anchor: Written, documents: Sequence[Written]
) -> list[Document]:
    """The documents that are like the anchor in one view, unlike it in the other, and told in other words.

    Without the last, the same sentence with other nouns would stand for the same arithmetic or plot.
    """
    own = anchor.document.views
    return [
        document
        for document, wordings in documents
        if document.views[view.name] == own[view.name]
        and document.views[other.name] != own[other.name]
        and not wordings & anchor.wordings
    ]


def _rng(seed: int, *parts: str) -> random.Random:
    return random.Random("/".join((GENERATOR, str(VERSION), str(seed), *parts)))

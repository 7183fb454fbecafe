"""The starter set: documents with two independent views each, asked under both of them.

    math      word problems: the arithmetic that solves them × the setting of their story
    stories   short stories: their plot × their setting

One document shares the first view with the anchor, another the second. Under either criterion one of the two
is the positive and the other the negative, so that a method that does not read the criterion is right under
one of them at most. A setting is never named, and documents of one setting are told from different corners
of it, in words of their own (facets). The words are data (`bank/`).
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import product
from math import gcd
from typing import NamedTuple

from msgspec import Struct

from sealegs.benchmarks.multiview.data import Triplet
from sealegs.benchmarks.multiview.make.criteria import Criterion, make_triplet
from sealegs.files.package_data import read_json
from sealegs.make.documents import Document
from sealegs.make.grammar import between, capitalised, fill, pick, seeded, shuffled

VERSION = 3
"""Goes up whenever the code or a bank changes the texts of a seed."""

DOCSETS = ("math", "stories")
UNDERDOG = "underdog wins"
"""The plot whose hero is the less experienced of the two."""
TRIPLETS = 30
"""Triplets for each view: as many as a small model judges in a minute or two on a laptop."""


class MathFacet(Struct, frozen=True, forbid_unknown_fields=True):
    """A corner of a setting, and its words by slot (`box`, `boxes`, `make`, `made`…)."""

    people: tuple[str, str]
    items: tuple[str, str, str]
    words: dict[str, str]
    scenes: tuple[str, ...]
    asides: tuple[str, ...]


class MathBank(Struct, frozen=True, forbid_unknown_fields=True):
    settings: dict[str, tuple[MathFacet, ...]]
    wordings: dict[str, tuple[str, ...]]
    """For each arithmetic structure its templates."""


class StoryFacet(Struct, frozen=True, forbid_unknown_fields=True):
    """A corner of a setting, and what a plot can be made of there."""

    people: tuple[str, str]
    """The more experienced first."""
    thing: str
    nooks: tuple[str, str, str]
    event: str
    job: str
    contest: str
    crowd: str
    scenes: tuple[str, ...]


class StoryBank(Struct, frozen=True, forbid_unknown_fields=True):
    settings: dict[str, tuple[StoryFacet, ...]]
    wordings: dict[str, tuple[tuple[str, ...], ...]]
    """For each plot its beats in their order, each with several templates that may be mixed."""


def math_bank() -> MathBank:
    return read_json(__package__, "bank", "math.json", type=MathBank)


def story_bank() -> StoryBank:
    return read_json(__package__, "bank", "stories.json", type=StoryBank)


def views(docset: str) -> tuple[Criterion, Criterion]:
    """The deep view of a document set and its surface view, as criteria."""
    return read_json(__package__, "bank", "views.json", type=dict[str, tuple[Criterion, Criterion]])[docset]


# --- documents --------------------------------------------------------------------------------------


class Composed(NamedTuple):
    """A document, and what no document like it in one view may share: its wordings and its facet."""

    document: Document
    parts: frozenset[str]


def compose_documents(docset: str, seed: int = 0) -> list[Document]:
    """All documents of a set in a random order, with both labels of each in `views`."""
    return [composed.document for composed in _composed(docset, seed)]


def _composed(docset: str, seed: int) -> list[Composed]:
    """A document for each kind in each facet of each setting."""
    deep, surface = views(docset)
    bank: MathBank | StoryBank = math_bank() if docset == "math" else story_bank()
    drafts: list[tuple[str, frozenset[str], dict[str, str]]] = []
    for kind, setting in product(bank.wordings, bank.settings):
        rng = _rng(seed, docset, kind, setting)
        texts = _problems(kind, setting, rng) if docset == "math" else _stories(kind, setting, rng)
        labels = {deep.name: kind, surface.name: setting}
        for number, (text, wordings) in enumerate(texts):
            drafts.append((text, frozenset([*wordings, f"{setting}/{number}"]), labels))
    return [
        Composed(Document(f"{docset}-{number:03}", text, views=labels), parts)
        for number, (text, parts, labels) in enumerate(shuffled(drafts, _rng(seed, docset)), 1)
    ]


def _problems(structure: str, setting: str, rng: random.Random) -> list[tuple[str, Sequence[str]]]:
    """A problem of one structure for each facet of a setting, with its wording."""
    facets = math_bank().settings[setting]
    templates = shuffled(math_bank().wordings[structure], rng)[: len(facets)]
    texts: list[tuple[str, Sequence[str]]] = []
    for facet, template in zip(facets, templates, strict=True):
        values: dict[str, object] = {**facet.words, **numbers(structure, rng)}
        values["who"], values["mate"] = shuffled(facet.people, rng)
        values["items"], values["items2"], values["items3"] = shuffled(facet.items, rng)
        sentences = (pick(facet.scenes, rng), pick(facet.asides, rng), fill(template, values))
        texts.append((capitalised(" ".join(sentences)), [template]))
    return texts


def _stories(plot: str, setting: str, rng: random.Random) -> list[tuple[str, Sequence[str]]]:
    """A story of one plot for each facet of a setting, with its wordings."""
    texts: list[tuple[str, Sequence[str]]] = []
    for facet in story_bank().settings[setting]:
        beats = [pick(options, rng) for options in story_bank().wordings[plot]]
        values = {name: getattr(facet, name) for name in ("thing", "event", "job", "contest", "crowd")}
        people = reversed(facet.people) if plot == UNDERDOG else shuffled(facet.people, rng)
        values["hero"], values["other"] = people
        values["nook1"], values["nook2"], values["nook3"] = shuffled(facet.nooks, rng)
        texts.append((capitalised(f"{pick(facet.scenes, rng)} {fill(' '.join(beats), values)}"), beats))
    return texts


def numbers(structure: str, rng: random.Random) -> Mapping[str, int]:
    """The numbers of a problem by their slot: small enough for the head, and with a whole answer."""
    match structure:
        case "sum of parts":
            return {slot: between(12, 68, rng) for slot in "abc"}
        case "difference":
            a = between(40, 95, rng)
            return {"a": a, "b": between(12, a - 9, rng)}
        case "equal groups":
            return {"n": between(3, 12, rng), "m": between(6, 25, rng)}
        case "sharing":
            n, share = between(3, 9, rng), between(6, 18, rng)
            return {"n": n, "t": n * share}
        case "percentage off":
            return {"price": 20 * between(1, 6, rng), "percent": pick((10, 15, 20, 25, 30, 40), rng)}
        case "buying and change":
            n, price = between(2, 6, rng), between(3, 13, rng)
            return {"n": n, "price": price, "note": next(note for note in (20, 50, 100) if note > n * price)}
        case "average":
            mean, up, down = between(20, 50, rng), between(5, 9, rng), between(1, 4, rng)
            return dict(zip("abc", shuffled((mean + up, mean - down, mean - up + down), rng), strict=True))
        case "ratio":
            r, s = pick([(r, s) for r in range(2, 8) for s in range(2, 8) if gcd(r, s) == 1], rng)
            return {"r": r, "s": s, "t": between(3, 9, rng) * (r + s)}
        case "rule of three":
            n, m, each = between(2, 6, rng), between(7, 12, rng), between(4, 12, rng)
            return {"n": n, "t": n * each, "m": m}
        case "combined rates":
            return {"n": between(3, 9, rng), "a": between(4, 15, rng), "b": between(4, 15, rng)}
    raise ValueError(f"'{structure}' is not a structure of the bank")


# --- triplets ---------------------------------------------------------------------------------------


def compose(seed: int = 0, triplets: int = TRIPLETS) -> list[Triplet]:
    """The triplets of all four tasks: the same documents under the deep view, then under the surface view."""
    composed = []
    for docset in DOCSETS:
        documents = _composed(docset, seed)
        deep, surface = views(docset)
        rng = _rng(seed, docset, "triplets")
        chosen = [
            (
                anchor.document,
                pick(_sharing_only(deep, surface, anchor, documents), rng),
                pick(_sharing_only(surface, deep, anchor, documents), rng),
            )
            for anchor in shuffled(documents, rng)[:triplets]
        ]
        for view, order in ((deep, (0, 1, 2)), (surface, (0, 2, 1))):
            for three in chosen:
                anchor, positive, negative = (three[index] for index in order)
                labels = [document.views for document in (anchor, positive, negative)]
                composed.append(make_triplet(docset, view, (anchor, positive, negative), labels=labels))
    return composed


def _sharing_only(
    view: Criterion, other: Criterion, anchor: Composed, documents: Sequence[Composed]
) -> list[Document]:
    """The documents like the anchor in one view, unlike it in the other, and in other words.

    Without the last, a positive could be the same sentence with other nouns, or the same place in the same
    words.
    """
    labels = anchor.document.views
    return [
        document
        for document, parts in documents
        if document.views[view.name] == labels[view.name]
        and document.views[other.name] != labels[other.name]
        and not parts & anchor.parts
    ]


def _rng(seed: int, *parts: str) -> random.Random:
    return seeded("multiview", VERSION, seed, *parts)

"""The starter set: documents with two independent views each, and triplets whose truth is known.

    math      word problems: the arithmetic that solves them × the setting of their story
    stories   short stories: their plot × their setting

For every view the negative shares the *other* view with the anchor. On the deep views (arithmetic, plot)
whatever looks alike therefore misleads; on the settings it leads. The words are data (`bank/`).
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import product
from math import gcd
from typing import NamedTuple

from msgspec import Struct

from evenkeel.benchmarks.multiview.files import Triplet
from evenkeel.benchmarks.multiview.make.criteria import Criterion, make_triplet
from evenkeel.files.package_data import read_json
from evenkeel.make.documents import Document
from evenkeel.make.grammar import between, capitalised, fill, pick, seeded, shuffled

GENERATOR = "evenkeel-multiview"
VERSION = 1
"""Goes up whenever the code or a bank changes the texts of a seed."""

COPIES = {"math": 3, "stories": 4}
"""Documents for each pair of views: 10 × 10 × 3 problems and 8 × 8 × 4 stories."""
TRIPLETS = 30
"""Triplets for each view: as many as a small model judges in a minute or two on a laptop."""


class MathSetting(Struct, frozen=True, forbid_unknown_fields=True):
    """Where a word problem happens, and the words of that place by slot (`box`, `boxes`, `make`, `made`…)."""

    people: tuple[str, ...]
    items: tuple[str, str, str]
    words: dict[str, str]
    scenes: tuple[str, ...]
    asides: tuple[str, ...]


class MathBank(Struct, frozen=True, forbid_unknown_fields=True):
    settings: dict[str, MathSetting]
    wordings: dict[str, tuple[str, ...]]
    """For each arithmetic structure its templates."""


class StorySetting(Struct, frozen=True, forbid_unknown_fields=True):
    """Where a story happens, and what a plot can be made of there."""

    people: tuple[str, ...]
    things: tuple[str, ...]
    nooks: tuple[str, ...]
    events: tuple[str, ...]
    jobs: tuple[str, ...]
    crowd: str
    scenes: tuple[str, ...]


class StoryBank(Struct, frozen=True, forbid_unknown_fields=True):
    settings: dict[str, StorySetting]
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
    """A document, and the wordings of the bank in it, except its scene."""

    document: Document
    wordings: frozenset[str]


def compose_documents(docset: str, seed: int = 0) -> list[Document]:
    """All documents of a set in a random order, with both labels of each in `views`."""
    return [composed.document for composed in _composed(docset, seed)]


def _composed(docset: str, seed: int) -> list[Composed]:
    deep, surface = views(docset)
    bank: MathBank | StoryBank = math_bank() if docset == "math" else story_bank()
    drafts: list[tuple[str, Sequence[str], dict[str, str]]] = []
    for kind, setting in product(bank.wordings, bank.settings):
        rng = _rng(seed, docset, kind, setting)
        texts = _problems(kind, setting, rng) if docset == "math" else _stories(kind, setting, rng)
        labels = {deep.name: kind, surface.name: setting}
        drafts += [(text, wordings, labels) for text, wordings in texts]
    return [
        Composed(Document(f"{docset}-{number:03}", text, views=labels), frozenset(wordings))
        for number, (text, wordings, labels) in enumerate(shuffled(drafts, _rng(seed, docset)), 1)
    ]


def _problems(structure: str, setting_name: str, rng: random.Random) -> list[tuple[str, Sequence[str]]]:
    """Problems of one structure in one setting, each with its wording: no two begin with the same scene."""
    setting = math_bank().settings[setting_name]
    templates = shuffled(math_bank().wordings[structure], rng)[: COPIES["math"]]
    scenes = shuffled(setting.scenes, rng)[: COPIES["math"]]
    texts: list[tuple[str, Sequence[str]]] = []
    for scene, template in zip(scenes, templates, strict=True):
        values: dict[str, object] = {**setting.words, **numbers(structure, rng)}
        values["who"], values["mate"], *_ = shuffled(setting.people, rng)
        values["items"], values["items2"], values["items3"] = shuffled(setting.items, rng)
        problem = fill(template, values)
        texts.append((capitalised(f"{scene} {pick(setting.asides, rng)} {problem}"), [template]))
    return texts


def _stories(plot: str, setting_name: str, rng: random.Random) -> list[tuple[str, Sequence[str]]]:
    """Stories of one plot in one setting, each with its wordings: no two begin with the same scene."""
    setting = story_bank().settings[setting_name]
    scenes = shuffled(setting.scenes, rng)[: COPIES["stories"]]
    beats_by_scene = [[pick(options, rng) for options in story_bank().wordings[plot]] for _ in scenes]
    texts: list[tuple[str, Sequence[str]]] = []
    for scene, beats in zip(scenes, beats_by_scene, strict=True):
        values = {"crowd": setting.crowd}
        values["hero"], values["other"], *_ = shuffled(setting.people, rng)
        values["nook1"], values["nook2"], values["nook3"], *_ = shuffled(setting.nooks, rng)
        values["thing"] = pick(setting.things, rng)
        values["event"] = pick(setting.events, rng)
        values["job"] = pick(setting.jobs, rng)
        texts.append((capitalised(f"{scene} {fill(' '.join(beats), values)}"), beats))
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
    """The triplets of all four tasks: each document set under its deep view and under its surface view."""
    composed = []
    for docset in COPIES:
        documents = _composed(docset, seed)
        deep, surface = views(docset)
        for view, other, hard_for in ((deep, surface, "bm25"), (surface, deep, "")):
            rng = _rng(seed, docset, "triplets", view.name)
            for anchor in shuffled(documents, rng)[:triplets]:
                positive = pick(_sharing_only(view, other, anchor, documents), rng)
                negative = pick(_sharing_only(other, view, anchor, documents), rng)
                chosen = (anchor.document, positive, negative)
                labels = [document.views for document in chosen]
                composed.append(make_triplet(docset, view, chosen, labels=labels, hard_for=hard_for))
    return composed


def _sharing_only(
    view: Criterion, other: Criterion, anchor: Composed, documents: Sequence[Composed]
) -> list[Document]:
    """The documents like the anchor in one view, unlike it in the other, and in other words.

    Without the last, a positive could be the same sentence with other nouns.
    """
    labels = anchor.document.views
    return [
        document
        for document, wordings in documents
        if document.views[view.name] == labels[view.name]
        and document.views[other.name] != labels[other.name]
        and not wordings & anchor.wordings
    ]


def _rng(seed: int, *parts: str) -> random.Random:
    return seeded(GENERATOR, VERSION, seed, *parts)

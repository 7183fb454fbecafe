"""Which documents are chosen: the published procedure to the letter, and the balanced order."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from sealegs.benchmarks.rgb.data import Dataset, Instance, read_instances
from sealegs.benchmarks.rgb.selection import Ability, DocumentSelection, Setting, select

NOISES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
PASSAGES = (1, 2, 3, 4, 5, 7, 10, 20)
CORRECTS = (0.0, 0.2, 0.4, 0.6, 1.0)


def oracle(item: dict[str, Any], kind: str, noise: float, passages: int, correct: float) -> list[str]:
    """The published procedure step by step, on Python's own `random` and on lists that it changes in place.

    Written down from what the published script does and kept apart from the code under test: it knows no
    instances, no document kinds and no generator of its own.
    """
    item = json.loads(json.dumps(item))
    random.seed(2333)
    noisy = math.ceil(passages * noise)
    true = passages - noisy
    docs: list[str] = []
    if kind == "int":
        for group in item["positive"]:
            random.shuffle(group)
        docs = [group[0] for group in item["positive"]]
        rank = 1
        while len(docs) < true and rank < max(len(group) for group in item["positive"]):
            for group in item["positive"]:
                if rank < len(group) and len(docs) < true:
                    docs.append(group[rank])
            rank += 1
        room = passages - len(docs)
        if room > 0:
            docs.extend(item["negative"][0:room])
    elif kind == "fact":
        right = math.ceil(passages * correct)
        wrong = passages - noisy - right
        everywhere = list(range(len(item["positive"])))
        picked = random.sample(everywhere, min(len(everywhere), wrong))
        docs = [item["positive_wrong"][place] for place in picked]
        unpicked = [place for place in everywhere if place not in picked]
        if right > 0 and unpicked:
            also = random.sample(unpicked, min(len(unpicked), right))
            docs.extend(item["positive"][place] for place in also)
        if noisy > 0:
            docs.extend(item["negative"][0:noisy])
    else:
        if noise == 1:
            noisy, true = passages, 0
        elif noisy > len(item["negative"]):
            noisy = len(item["negative"])
            true = passages - noisy
        elif true > len(item["positive"]):
            true = len(item["positive"])
            noisy = passages - true
        docs = item["positive"][0:true] + item["negative"][0:noisy]
    random.shuffle(docs)
    return docs


def numbered(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{number}" for number in range(count)]


def item(**fields: Any) -> dict[str, Any]:
    return {"query": "Which?", "answer": "this", "positive": [], "negative": []} | fields


def plain_items() -> list[dict[str, Any]]:
    """Every mixture of plenty, few and no documents."""
    counts = (0, 1, 2, 3, 5, 12)
    return [item(positive=numbered("p", p), negative=numbered("n", n)) for p, n in product(counts, counts)]


def int_items() -> list[dict[str, Any]]:
    shapes = [(1,), (3, 3), (1, 6), (5, 1, 2), (2, 2, 2, 2), (1, 1, 1, 1, 1), (9, 8), (3, 1, 4, 1, 5, 9, 2)]
    return [
        item(positive=[numbered(f"g{g}.", size) for g, size in enumerate(shape)], negative=numbered("n", n))
        for shape, n in product(shapes, (0, 1, 3, 12))
    ]


def fact_items() -> list[dict[str, Any]]:
    return [
        item(
            positive=numbered("p", p),
            positive_wrong=numbered("w", p),
            fakeanswer="that",
            negative=numbered("n", n),
        )
        for p, n in product((0, 1, 2, 4, 9), (0, 2, 12))
    ]


def read(path: Path, items: list[dict[str, Any]]) -> Dataset:
    rows = [{"id": number} | row for number, row in enumerate(items)]
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return read_instances(path)


def one(**fields: Any) -> Instance:
    """A question by hand."""
    blank: dict[str, Any] = {"id": 3, "query": "?", "raw_answer": "x", "raw_positive": (), "negative": ()}
    return Instance(**(blank | fields))


def chosen(
    instance: Instance, noise: float, passages: int = 5, correct: float = 0.0, **order: Any
) -> DocumentSelection:
    """The documents of a question at a setting of its kind."""
    ability: Ability = "integration" if instance.groups else "noise"
    if instance.raw_wrong is not None:
        ability = "counterfactual"
    return select(instance, Setting(ability, noise, passages, correct), **order)


def settings(kind: str) -> Iterator[tuple[float, int, float]]:
    for noise, passages, correct in product(NOISES, PASSAGES, CORRECTS if kind == "fact" else (0.0,)):
        if math.ceil(passages * noise) + math.ceil(passages * correct) <= passages:
            yield noise, passages, correct


def agree(items: list[dict[str, Any]], instances: tuple[Instance, ...], kind: str) -> int:
    """Compare every question at every setting; how many comparisons that were."""
    compared = 0
    for (noise, passages, correct), (raw, instance) in product(
        settings(kind), zip(items, instances, strict=True)
    ):
        docs = chosen(instance, noise, passages, correct).docs
        assert list(docs) == oracle(raw, kind, noise, passages, correct), (
            instance.id,
            noise,
            passages,
        )
        compared += 1
    return compared


@pytest.mark.parametrize(
    ("kind", "items"), [("plain", plain_items()), ("int", int_items()), ("fact", fact_items())]
)
def test_the_published_selection_is_reproduced_element_for_element(
    kind: str, items: list[dict[str, Any]], tmp_path: Path
) -> None:
    dataset = read(tmp_path / "made.json", items)
    assert dataset.kind == kind
    assert agree(items, dataset.instances, kind) > 2000


@pytest.mark.parametrize(("every", "least"), [(8, 2500), pytest.param(1, 20_000, marks=pytest.mark.full)])
@pytest.mark.parametrize("name", ["en_fact", "zh_fact"])
def test_the_published_selection_holds_on_the_published_files(
    name: str, every: int, least: int, reference: Path
) -> None:
    path = reference / "rgb" / f"{name}.json"
    items = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
    assert agree(items[::every], read_instances(path).instances[::every], "fact") > least


P, W, N = (tuple(numbered(prefix, count)) for prefix, count in (("p", 5), ("w", 5), ("n", 10)))
GROUPS = (("a0", "a1", "a2"), ("b0", "b1", "b2", "b3"))
SINGLES = tuple((f"g{number}",) for number in range(7))
FACT = one(raw_positive=P, raw_wrong=W, negative=N)


@pytest.mark.parametrize(
    ("instance", "noise", "correct", "expected"),
    [
        (one(raw_positive=P, negative=N), 0.8, 0.0, "n0 n3 n2 n1 p0"),
        (one(raw_positive=P[:1], negative=N[:2]), 0.4, 0.0, "n1 n0 p0"),
        (one(raw_positive=GROUPS, negative=N), 0.4, 0.0, "n1 b0 a2 n0 a1"),
        (one(raw_positive=SINGLES, negative=N), 0.4, 0.0, "g6 g3 g5 g1 g4 g2 g0"),
        (FACT, 0.2, 0.4, "w0 p1 w2 p4 n0"),
    ],
)
def test_five_passages_come_out_as_the_published_seed_has_them(
    instance: Instance, noise: float, correct: float, expected: str
) -> None:
    """Literals, so that a Python whose shuffle or sample went another way would be found out."""
    assert chosen(instance, noise, correct=correct).docs == tuple(expected.split())


# The balanced order


@pytest.mark.parametrize(("noise", "places"), [(0.8, 5), (0.6, 4), (0.4, 3), (0.2, 2), (0.0, 1)])
def test_balanced_spreads_the_first_true_document_evenly(noise: float, places: int) -> None:
    """With m true documents of five, the first can stand in 6 - m places: in each equally often."""
    instances = [one(id=number, raw_positive=P, negative=N) for number in range(60)]
    positions = [
        chosen(instance, noise, order="balanced", index=index).kinds.index("positive")
        for index, instance in enumerate(instances)
    ]
    assert Counter(positions) == dict.fromkeys(range(places), 60 // places)
    assert positions == [index % places for index in range(60)]

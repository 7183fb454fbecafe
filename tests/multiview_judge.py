"""A judge on loopback that knows the truth of the starter documents, and what a build with it leaves."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from jsonlines import read_lines, write_lines
from loopback import Loopback
from sealegs import api
from sealegs.benchmarks.multiview.data import Triplet
from sealegs.benchmarks.multiview.make.annotate import Annotation
from sealegs.benchmarks.multiview.make.generator import compose_documents
from sealegs.make.builder import Built
from sealegs.make.documents import Document

MATH = {document.text: document for document in compose_documents("math")}
CRITERION = {"criterion": "arithmetic", "description": "The same calculation solves them."}
MANY_STEPS = ("buying and change", "average", "ratio", "rule of three", "combined rates")
STRUCTURES = sorted({document.views["arithmetic"] for document in MATH.values()})
SCHEME: dict[str, Any] = {
    "categories": [{"name": name, "description": f"It asks for {name}."} for name in STRUCTURES],
    "tags": [{"name": name, "description": "It holds."} for name in (*STRUCTURES, "many steps", "numbers")],
    "guidance": "Name the operations.",
}

Says = Callable[[str, "list[Document]"], "str | None"]


class Judge(Loopback):
    """A server whose answers follow the truth of the starter documents, but for what `says` says instead."""

    def __init__(self, says: Says | None = None, **behaviour: Any) -> None:
        super().__init__(**behaviour)
        self.says = says or (lambda kind, read: None)
        self.kinds: Counter[str] = Counter()
        self.fixed = False
        """Whether [poison] is accepted."""

    def _complaint(self, path: str, body: Any) -> str | None:
        return None if self.fixed else super()._complaint(path, body)

    def _answer(self, path: str, body: Any, key: str) -> bytes:
        prompt = body.messages[-1].content
        self.answered[prompt] += 1
        task, _, schema = prompt.rpartition("Its schema:\n")
        fields = frozenset(msgspec.json.decode(schema.partition("\n")[0])["properties"])
        kind = KINDS[fields]
        self.kinds[kind] += 1
        read = [document for line in re.findall(TEXTS, task) if (document := known(line))]
        text = self.says(kind, read) or msgspec.json.encode(self.truth(kind, task, read)).decode()
        message = {"content": None, "refusal": "No."} if text == REFUSES else {"content": text}
        return msgspec.json.encode({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})

    def truth(self, kind: str, task: str, read: list[Document]) -> dict[str, Any]:
        match kind:
            case "reflect":
                return SCHEME
            case "annotate":
                structure = read[0].views["arithmetic"]
                tags = [structure, "numbers", *(["many steps"] if structure in MANY_STEPS else [])]
                return {"category": structure, "tags": tags, "summary": f"It takes {structure}."}
            case "select":
                listed = re.findall(r"^([PN]\d+)\. (.*)$", task, re.MULTILINE)
                labels = {label: known(text) for label, text in listed}
                return {
                    "positive": self.first("P", labels, read[0], alike=True),
                    "negative": self.first("N", labels, read[0], alike=False),
                }
            case "rate":
                return {"quality": 4 if self.alike(read[0], read[1]) > self.alike(read[0], read[2]) else 1}
        first, second = (self.alike(read[0], other) for other in read[1:])
        return {"more_alike": "tie" if first == second else "first" if first else "second"}

    def first(
        self, letter: str, labels: Mapping[str, Document | None], anchor: Document, *, alike: bool
    ) -> str:
        fitting = (
            label
            for label, document in labels.items()
            if label[0] == letter and document and self.alike(anchor, document) == alike
        )
        return next(fitting, "none")

    def alike(self, one: Document, other: Document) -> bool:
        return one.views["arithmetic"] == other.views["arithmetic"]


def known(text: str) -> Document | None:
    """The starter document that a text begins with, however it goes on."""
    for prefix in ("[poison] ", "Question: ", "Clue: "):
        text = text.removeprefix(prefix)
    return BEGINNINGS.get(text[:BEGINNING])


BEGINNING = min(map(len, MATH))
BEGINNINGS = {text[:BEGINNING]: document for text, document in MATH.items()}
REFUSES = "[refuses]"
KINDS = {
    frozenset({"categories", "tags", "guidance"}): "reflect",
    frozenset({"category", "tags", "summary"}): "annotate",
    frozenset({"positive", "negative"}): "select",
    frozenset({"quality"}): "rate",
    frozenset({"more_alike"}): "order",
}
TEXTS = re.compile(r"^(?:Anchor: |[PN]?\d+\. )?(.+)$", re.MULTILINE)


def written(path: Path, documents: list[Document]) -> Path:
    return write_lines(path, ({"id": d.id, "text": d.text, **d.views} for d in documents))


def build(docs: Path, out: Path, server: Judge, **more: Any) -> Built:
    settings: dict[str, Any] = {**CRITERION, "triplets": 12, "concurrency": 16, **more}
    return api.build("multiview", out, docs=str(docs), judge="openai:judge", base_url=server.url, **settings)[
        1
    ]


def manifest(out: Path) -> dict[str, Any]:
    content: dict[str, Any] = msgspec.json.decode((out / "manifest.json").read_bytes())
    return content


def counts(out: Path) -> dict[str, Any]:
    steps: dict[str, Any] = manifest(out)["criteria"][0]["counts"]
    return steps


def noted_in(out: Path) -> list[Annotation]:
    return [msgspec.convert(line, Annotation) for line in read_lines(out / "annotations.jsonl")]


def dropped_in(out: Path) -> list[dict[str, Any]]:
    return read_lines(out / "dropped.jsonl")


def views(triplet: Triplet) -> tuple[str, str, str]:
    anchor, positive, negative = (MATH[text].views["arithmetic"] for text in triplet.documents)
    return anchor, positive, negative


def adds_up(out: Path) -> None:
    """Whatever was proposed is somewhere in the counts."""
    steps = counts(out)
    select, discarded = steps["select"], sum(steps["discarded"].values())
    left = {name: n for name, n in select.items() if name not in ("without_candidates", "proposed")}
    assert select["proposed"] == sum(left.values())
    assert select["selected"] == discarded + steps["kept"]

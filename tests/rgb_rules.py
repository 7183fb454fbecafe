"""Small RGB sets, and servers that answer them by a rule, so that every figure is known beforehand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import pytest
from msgspec.structs import replace

import sealegs as sl
from jsonlines import read_lines, write_lines
from scripted import Scripted
from sealegs.files import datasets
from sealegs.files.datasets import data_file, git_blob, published_set
from sealegs.harness.data import Data
from sealegs.harness.registry import load_benchmark
from sealegs.page.metrics import scope_of
from sealegs.types import Figure, Sample

Item: TypeAlias = dict[str, Any]
Rule: TypeAlias = Callable[[Item, str], str]

KEEPERS: tuple[Any, ...] = (
    "Ada Lock",
    ["Ben Moor"],
    [["Cy Reef", "Captain Reef"]],
    ["Dora Quay", "Eli Buoy"],
)
REJECTION = "I cannot answer the question because of insufficient information in the documents."
REPORT = "There are factual errors in the documents."
NOISE = [f"noise {rate}" for rate in ("0", "0.2", "0.4", "0.6", "0.8")]
INTEGRATION = [f"integration, noise {rate}" for rate in ("0", "0.2", "0.4")]
DETECTION = "false documents: error detection"
CORRECTION = "false documents: error correction"
ROWS = [
    *NOISE,
    "no answer in the documents",
    *INTEGRATION,
    "no documents",
    "false documents",
    DETECTION,
    CORRECTION,
]
RATES = ["all_rate", "noise_rate", "tt", "nums"]
FACT_RATES = [*RATES, "fact_check_rate", "correct_rate", "fact_tt", "correct_tt"]
FIELDS = ["id", "query", "ans", "label", "prediction", "docs", "noise_rate", "factlabel"]


def plain(number: int, *, query: str = "Who keeps the light at Point {}?") -> Item:
    answer = KEEPERS[number % 4]
    return {
        "id": number,
        "query": query.format(number),
        "answer": answer,
        "positive": [f"Note {k}: the light of Point {number} is kept by {given(answer)}." for k in range(5)],
        "negative": [f"Note {k}: the tower of Point {number} was painted in {1900 + k}." for k in range(9)],
    }


def scattered(number: int) -> Item:
    return {
        "id": number,
        "query": f"Who built Pier {number}, and who paid for it?",
        "answer": [["Fay Sand"], ["Gus Tide", "G. Tide"]],
        "positive": [
            [f"Note {k}: Pier {number} is the work of Fay Sand." for k in range(3)],
            [f"Note {k}: Gus Tide paid for Pier {number}." for k in range(3)],
        ],
        "negative": [f"Note {k}: Pier {number} was closed in {1950 + k}." for k in range(5)],
    }


def false(number: int) -> Item:
    capital = "The capital of Land {} is {}, says note {}."
    return {
        "id": number,
        "query": f"What is the capital of Land {number}?",
        "answer": "Rightham",
        "fakeanswer": "Wrongford",
        "positive": [capital.format(number, "Rightham", k) for k in range(5)],
        "positive_wrong": [capital.format(number, "Wrongford", k) for k in range(5)],
        "negative": [f"Land {number} has a coast, says note {k}." for k in range(5)],
    }


def given(answer: Any) -> str:
    """An answer as a text that states all its parts."""
    parts = [answer] if isinstance(answer, str) else answer
    return " and ".join(part if isinstance(part, str) else part[0] for part in parts)


def write_sets(folder: Path) -> Path:
    """A small set of each kind in a folder."""
    write_lines(folder / "en.json", map(plain, range(4)))
    write_lines(folder / "en_int.json", map(scattered, range(3)))
    write_lines(folder / "en_fact.json", map(false, range(3)))
    return folder


def items_of(data: Path) -> list[Item]:
    paths = [data] if data.is_file() else sorted(data.glob("*.json"))
    return [item for path in paths for item in read_lines(path)]


class Answering(Scripted):
    """Finds the question in what is asked, and answers by the rule."""

    def __init__(self, data: Path, rule: Rule, **behaviour: Any) -> None:
        known = {item["query"]: item for item in items_of(data)}

        def answer(prompt: str) -> str:
            # The question that stands last: another may stand in a document.
            return rule(known[max(known, key=prompt.rfind)], prompt)

        super().__init__(answer, **behaviour)


def right(item: Item, prompt: str) -> str:
    return f"It is {given(item['answer'])}."


def rejecting(item: Item, prompt: str) -> str:
    return REJECTION


def reporting(item: Item, prompt: str) -> str:
    return f"{REPORT} {right(item, prompt)}"


def hedging(item: Item, prompt: str) -> str:
    return f"{REPORT} {REJECTION}"


def misled(item: Item, prompt: str) -> str:
    return f"It is {given(item.get('fakeanswer', 'Nemo'))}."


def troubled(item: Item, prompt: str) -> str:
    """Right, but every other question is lost where four of five documents are irrelevant."""
    lost = prompt.count("was painted") == 4 and item["id"] % 2
    return misled(item, prompt) if lost else right(item, prompt)


def ask(data: Path, out: Path, rule: Rule, **options: Any) -> sl.Run:
    with Answering(data, rule) as server:
        return sl.run("rgb", "openai:loop", base_url=server.url, data=data, out=out, **options)


def pin(monkeypatch: pytest.MonkeyPatch, *paths: Path) -> None:
    """Have files of the published set be those at the paths, whatever is in them."""
    chosen = published_set("rgb")
    blobs = {path.name: git_blob(path.read_bytes()) for path in paths}
    files = [replace(file, blob=blobs.get(Path(file.path).name, file.blob)) for file in chosen.files]
    monkeypatch.setattr(datasets, "published_sets", lambda: {"rgb": replace(chosen, files=files)})


def samples(path: Path, **options: Any) -> list[Sample]:
    return load_benchmark("rgb", options).samples(Data([data_file(path)], langs=None, limit=None))


KINDS = {
    "": "",
    "known": "",
    "detected": ": error detection",
    "corrected": ": error correction",
    "false_alarms": ": false alarms",
}


def table(run: sl.Run) -> dict[str, dict[str, Figure]]:
    """The figures of each setting by what is decided, and by the check that decides; the judge's rejections
    are beside the answers that are right."""
    rows: dict[str, dict[str, Figure]] = {}
    for name, figure in run.summary.items():
        metric, scope = scope_of(name)
        kind, _, check = metric.rpartition("_")
        kind = "" if metric == "rejected_judge" else kind
        if [*scope] == ["setting"] and kind in KINDS and check in ("published", "lenient", "judge"):
            rows.setdefault(f"{scope['setting']}{KINDS[kind]}", {})[check] = figure
    return rows


def values(run: sl.Run, check: str) -> dict[str, float | None]:
    return {row: cells[check].value for row, cells in table(run).items() if check in cells}


def exported(run: sl.Run) -> dict[str, Any]:
    """The lines of each prediction file, and the content of each file of rates."""
    found: dict[str, Any] = {}
    for path in (run.path / "export").iterdir():
        rates = path.stem.endswith("result")
        found[path.stem] = msgspec.json.decode(path.read_bytes()) if rates else read_lines(path)
    return found

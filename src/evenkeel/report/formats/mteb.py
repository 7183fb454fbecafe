"""The triplets of a multiview run as a reranking task of MTEB: a folder with the task and its data.

The anchor is the query, positive and negative are the two documents to be ranked; each of multiview's tasks
is a subset. `task.py` is the same for every run: what differs is in `task.json` and the data, so that no text
of a data set becomes code.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from pathlib import Path
from typing import Any

import msgspec

from evenkeel.benchmarks.multiview.files import Triplet
from evenkeel.errors import UsageError
from evenkeel.files.cache import write_whole
from evenkeel.files.package_data import data_path
from evenkeel.harness.folder import Run
from evenkeel.types import Sample

FILES = ("corpus", "queries", "qrels", "top_ranked")
CODE = "mteb_task.txt"


def write(run: Run, folder: Path) -> list[Path]:
    """`task.py`, `task.json` and four files of JSON lines."""
    if run.spec.benchmark != "multiview":
        raise UsageError(
            f"{run.path} is a run of {run.spec.benchmark}: only the triplets of multiview are a task of MTEB."
        )
    tasks: defaultdict[str, list[Sample[Triplet]]] = defaultdict(list)
    for record in run.records():
        tasks[record.sample.inputs.task].append(record.sample)
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in FILES}
    for task, samples in tasks.items():
        _add_task(rows, task, samples)
    written = []
    digest = hashlib.sha256()
    for name, lines in rows.items():
        content = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
        digest.update(content)
        written.append(folder / f"{name}.jsonl")
        write_whole(written[-1], content)
    about = {
        "name": "EvenkeelMultiview",
        "revision": digest.hexdigest(),
        "description": "Triplets: the document that is more alike to the query under the criterion is to be "
        "ranked before the other.",
        "subsets": {
            task: {"triplets": len(samples), "criterion": samples[0].inputs.description}
            for task, samples in tasks.items()
        },
    }
    write_whole(folder / "task.json", msgspec.json.format(msgspec.json.encode(about), indent=2) + b"\n")
    write_whole(folder / "task.py", data_path(__package__, CODE).read_bytes())
    return [folder / "task.py", folder / "task.json", *written]


def _add_task(rows: dict[str, list[dict[str, Any]]], task: str, samples: list[Sample[Triplet]]) -> None:
    """The rows of one subset; a text that is in several triplets is one document."""
    ids: dict[str, str] = {}
    for sample in samples:
        triplet = sample.inputs
        for text in (triplet.positive, triplet.negative):
            if text not in ids:
                ids[text] = f"d{len(ids) + 1}"
                rows["corpus"].append({"subset": task, "id": ids[text], "title": "", "text": text})
        positive, negative = ids[triplet.positive], ids[triplet.negative]
        rows["queries"].append(
            {
                "subset": task,
                "id": sample.id,
                "text": triplet.anchor,
                "instruction": triplet.instruction or triplet.description,
            }
        )
        rows["qrels"].append({"subset": task, "query-id": sample.id, "corpus-id": positive, "score": 1})
        # In an order that says nothing: a model that cannot tell the two apart must not gain by it.
        rows["top_ranked"].append(
            {"subset": task, "query-id": sample.id, "corpus-ids": sorted((positive, negative))}
        )

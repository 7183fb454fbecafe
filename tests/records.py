"""Records of a benchmark that is not known here, or of any, runs that hold them, and what a run notes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from evenkeel.harness.folder import Run
from evenkeel.harness.progress import Progress
from evenkeel.harness.spec import FORMAT
from evenkeel.harness.writing import RunFolder
from evenkeel.types import Record, Response, RunSpec, Sample, Score, Tag


class Notes(Progress):
    """A watcher that keeps what a run notes."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def note(self, text: str) -> None:
        self.told.append(text)


def record(
    number: int,
    *,
    text: str = "",
    inputs: Any = None,
    tags: dict[str, Tag] | None = None,
    values: dict[str, float | None] | None = None,
    status: Any = "ok",
) -> Record:
    sample = Sample(
        id=f"s{number}", group=f"g{number // 2}", tags=tags or {"lang": "en"}, inputs=inputs or {}
    )
    score = Score(
        sample_id=sample.id, group=sample.group, tags=sample.tags, values=values or {"x": number / 2},
        statuses={status: 1}, answered=int(status in ("ok", "truncated")),
    )  # fmt: skip
    return Record(sample=sample, answers=(Response(status=status, text=text),), score=score)


def store(path: Path, records: Iterable[Record], benchmark: str = "unknown") -> Run:
    spec = RunSpec(
        format=FORMAT, benchmark=benchmark, options={}, seed=0, limit=None, provenance={}, subjects=("m",),
        models={"model": {"name": "m", "spec": "openai:m", "identity": {}}},
        data={"source": "starter", "sha256": ["0"]},
    )  # fmt: skip
    with RunFolder.open(path, spec, fresh=True) as folder, folder.writing("records.jsonl") as file:
        file.writelines(msgspec.json.encode(each) + b"\n" for each in records)
    return Run(path)

"""Scores and records of a benchmark that is not known here, or of any, and runs that hold them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace

from sealegs.analysis import Interval, figure
from sealegs.benchmarks.rgb.data import RgbInputs
from sealegs.harness.folder import Run
from sealegs.harness.folder.spec import FORMAT
from sealegs.harness.folder.writer import RunFolder
from sealegs.types import Record, Response, RunSpec, Sample, Score, Tag


def record(
    number: int = 0,
    *,
    text: str = "",
    answers: tuple[Response, ...] | None = None,
    inputs: Any = None,
    tags: dict[str, Tag] | None = None,
    values: dict[str, float | None] | None = None,
    status: Any = "ok",
) -> Record:
    sample = Sample(
        id=f"s{number}", group=f"g{number // 2}", tags=tags or {"lang": "en"}, inputs=inputs or {}
    )
    answers = (Response(status=status, text=text),) if answers is None else answers
    scored = score(
        sample.id, values or {"x": number / 2}, group=sample.group, tags=sample.tags,
        statuses=dict(Counter(answer.status for answer in answers)),
        answered=sum(answer.status in ("ok", "truncated") for answer in answers),
    )  # fmt: skip
    return Record(sample=sample, answers=answers, score=scored)


def score(
    name: object,
    values: Mapping[str, float | None],
    *,
    group: str = "",
    tags: Mapping[str, Tag] | None = None,
    **more: Any,
) -> Score:
    """The score of a sample with one answer, which is a group of its own unless another is named."""
    return Score(
        sample_id=str(name), group=group or str(name), tags=dict(tags or {}), values=dict(values),
        **{"statuses": {"ok": 1}, "answered": 1, **more},
    )  # fmt: skip


def store(
    path: Path,
    records: Iterable[Record],
    benchmark: str = "unknown",
    *,
    subjects: tuple[str, ...] = ("m",),
    summary: Mapping[str, float] | None = None,
) -> Run:
    """A run of these records; with a summary, which has a share under each name."""
    spec = RunSpec(
        format=FORMAT, benchmark=benchmark, options={}, seed=0, limit=None, provenance={}, subjects=subjects,
        models={"model": {"name": "m", "spec": "openai:m", "identity": {}}},
        data={"source": "starter", "sha256": ["0"]},
    )  # fmt: skip
    with RunFolder.open(path, spec, fresh=True) as folder, folder.writing("records.jsonl") as file:
        file.writelines(msgspec.json.encode(each) + b"\n" for each in records)
    if summary is not None:
        shares = {
            name: figure([], "", Interval(value, 0.0, 1.0, "", 4, 4), unit="share")
            for name, value in summary.items()
        }
        (path / "summary.json").write_bytes(msgspec.json.encode(shares))
    return Run(path)


def macro_run(path: Path, **abilities: Sequence[float | None]) -> Run:
    """A run of RGB: whether each question was answered right, by ability."""
    inputs = RgbInputs(
        dataset="en", instance=0, query="Which city?", answer="Paris", fake="", noise=0.5, passages=2,
        correct=0.0, docs=(), kinds=(), note="",
    )  # fmt: skip
    cells = [(ability, value) for ability, values in abilities.items() for value in values]
    records = [
        record(2 * number, inputs=inputs, tags={"ability": ability}, values={"macro_lenient": value})
        for number, (ability, value) in enumerate(cells)
    ]
    run = store(path, records, "rgb")
    parts = [None if None in values else np.mean(np.array(values, float)) for values in abilities.values()]
    mean = None if None in parts else float(np.mean(np.array(parts, float)))
    macro = figure([], "", Interval.unknown("one has none", 0, 0, value=mean), unit="share")
    (path / "summary.json").write_bytes(msgspec.json.encode({"macro_lenient": replace(macro, coverage=1.0)}))
    return run

"""Finished runs of MIRAE written by the real store, from numbers that a test chooses."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from sealegs.analysis import summarise
from sealegs.benchmarks.mirae.data import MiraeInputs
from sealegs.benchmarks.mirae.metrics import METRICS
from sealegs.harness.folder import Run
from sealegs.harness.folder.spec import FORMAT
from sealegs.harness.folder.writer import RunFolder
from sealegs.harness.registry import benchmark_class
from sealegs.page.metrics import declaration, units
from sealegs.types import Record, RunSpec, Sample, Score, Unit

NUMBERS: TypeAlias = NDArray[Any]


def noisy(shift: float = 0.0, *, seed: int = 0, questions: int = 20) -> NUMBERS:
    """Three levels of some questions, which differ among themselves."""
    own = np.random.default_rng(5).normal(0.75, 0.1, (questions, 1))
    return own + shift + np.random.default_rng(seed).normal(0, 0.02, (questions, 3))


def headline(values: NUMBERS) -> dict[str, NUMBERS]:
    return {"mean_similarity": values}


def store_run(
    path: Path,
    values: dict[str, NUMBERS],
    *,
    model: str = "one",
    embedder: str = "embed",
    asks: str = "Question",
    lang: str = "en",
    **spec: Any,
) -> Run:
    """A run of questions × levels, with a metric's value in each cell; NaN where a sample has none.

    Further parts of the spec (`options=`, `data=`, `seed=`) take the place of the usual ones.
    """
    shape = next(iter(values.values())).shape
    records = [
        _record(_sample(asks, lang, i, j), {metric: float(cells[i, j]) for metric, cells in values.items()})
        for i in range(shape[0])
        for j in range(shape[1])
    ]
    with RunFolder.open(path, _spec({"model": model, "embedder": embedder}, spec), fresh=True) as folder:
        with folder.writing("records.jsonl") as file:
            file.writelines(msgspec.json.encode(record) + b"\n" for record in records)
        scores = [record.score for record in records]
        by_metric: dict[str, Unit] = {metric: units(METRICS).get(metric, "cosine") for metric in values}
        breakdown = {metric: [()] for metric in values}
        folder.write_json("summary.json", summarise(scores, breakdown, units=by_metric))
    return Run(path)


def store_pair(
    folder: Path,
    old: NUMBERS | dict[str, NUMBERS],
    new: NUMBERS | dict[str, NUMBERS],
    *,
    names: tuple[str, str] = ("old", "new"),
    **changed: Any,
) -> tuple[Run, Run]:
    """Two runs; numbers without a name are of the headline. What is changed is so in the second one."""
    old, new = (values if isinstance(values, dict) else headline(values) for values in (old, new))
    return store_run(folder / names[0], old), store_run(folder / names[1], new, **changed)


def _spec(roles: dict[str, str], given: dict[str, Any]) -> RunSpec:
    usual: dict[str, Any] = {
        "benchmark": "mirae",
        "options": {"temperature": 0.7},
        "data": {"source": "starter", "sha256": ["0"], "lang": None},
        "seed": 0,
        "limit": None,
        "provenance": {},
    }
    models = {
        role: {"name": name, "spec": f"openai:{name}", "identity": {"spec": f"openai:{name}"}}
        for role, name in roles.items()
    }
    fields = {**usual, **given}
    subjects = (roles["model"],) if "model" in roles else tuple(fields["options"].get("method", ()))
    return RunSpec(format=FORMAT, models=models, subjects=subjects, **fields)


def _sample(asks: str, lang: str, question: int, level: int) -> Sample:
    text = f"{asks} {question}, told in {level} ways?"
    return Sample(
        id=f"{lang}-{question}-L{level}", group=str(question), tags={"lang": lang, "level": level},
        inputs=MiraeInputs(question_id=str(question), question_text=text, samples=1, first_repeat=0),
    )  # fmt: skip


def _record(sample: Sample, values: dict[str, float]) -> Record:
    known = {metric: None if np.isnan(value) else value for metric, value in values.items()}
    answered = int(None not in known.values())
    score = Score(
        sample_id=sample.id, group=sample.group, tags=sample.tags, values=known, answered=answered,
        statuses={"ok" if answered else "error": 1},
    )  # fmt: skip
    return Record(sample=sample, answers=(), score=score)


def undeclared(run: Run) -> list[str]:
    """What a run's samples and summary have that its benchmark does not declare."""
    metrics = benchmark_class(run.spec.benchmark).layout.metrics
    names = {name for record in run.records() for name in record.score.values} | set(run.summary)
    return sorted(name for name in names if declaration(metrics, name) is None)

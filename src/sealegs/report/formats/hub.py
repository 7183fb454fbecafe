"""A run for the Hugging Face Hub: `.eval_results/BENCHMARK.yaml`, and a `model-index` block for a model card.

Both hold the figures that the run's page shows first. An entry of `.eval_results/` belongs to a data set of
the Hub; where the run's data is not known to be one, the file has a placeholder and says so.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sealegs.analysis.intervals import CONFIDENCE
from sealegs.errors import UsageError
from sealegs.files.cache import distinct_slug, slug, write_whole
from sealegs.harness.benchmark import subject_models
from sealegs.harness.folder import Run
from sealegs.harness.registry import load_stored
from sealegs.page.format import capitalised
from sealegs.page.metrics import declaration
from sealegs.report.formats.subjects import Subject, hub_data, sampling, seed_of, subjects
from sealegs.types import Figure, RunSpec

PLACEHOLDER = "OWNER"
COMMENT = """\
# Replace {dataset} by the data set of the Hub that these results belong to: the data of the run is not known
# to be one.
"""
TASKS = {"generate": "text-generation", "embed": "sentence-similarity", "rank": "text-ranking"}
"""The Hub's name of the task, by what the model under test does."""


def write(run: Run, folder: Path) -> list[Path]:
    """The files of a run in `folder`; of several methods, each in a folder of its own."""
    listed = [subject for subject in subjects(run) if subject.main]
    if not listed:
        raise UsageError(f"{run.path}: none of its main figures has a value, so there is nothing to export.")
    written, taken = [], set[str]()
    for subject in listed:
        part = distinct_slug(subject.name, taken)
        written += _write(run, subject, folder / part if len(listed) > 1 else folder)
    return written


def _write(run: Run, subject: Subject, folder: Path) -> list[Path]:
    import yaml

    entries = folder / ".eval_results" / f"{slug(run.spec.benchmark)}.yaml"
    card = folder / f"model-index-{slug(run.spec.benchmark)}.yaml"
    dataset, known = _dataset(run.spec)
    comment = "" if known else COMMENT.format(dataset=dataset)
    dumped = yaml.safe_dump(
        [_entry(run, subject, name, dataset) for name in subject.main], sort_keys=False, allow_unicode=True
    )
    index = {"model-index": [_model(run, subject, dataset if known else "")]}
    name = yaml.safe_dump({"name": subject.model}, allow_unicode=True)
    if card.exists() and name not in card.read_text(encoding="utf-8"):
        raise UsageError(f"{card}: this is of another model. Give each its own --out.")
    write_whole(entries, comment + dumped)
    write_whole(card, yaml.safe_dump(index, sort_keys=False, allow_unicode=True))
    return [entries, card]


def _entry(run: Run, subject: Subject, name: str, dataset: str) -> dict[str, Any]:
    """One figure as an entry of `.eval_results/`."""
    about: dict[str, Any] = {"id": dataset, "task_id": name}
    hub = hub_data(run.spec)
    if hub and hub.revision:
        about["revision"] = hub.revision
    figure = subject.figures[name]
    entry: dict[str, Any] = {"dataset": about, "value": figure.value}
    if created := str(run.spec.provenance.get("created", "")):
        entry["date"] = created
    entry["notes"] = "; ".join((*_uncertainty(figure), *_setting(run.spec, subject)))
    return entry


def _model(run: Run, subject: Subject, dataset: str) -> dict[str, Any]:
    """The element of `model-index` for one model."""
    spec = run.spec
    benchmark = load_stored(spec)
    title = spec.benchmark.upper()
    source = str(spec.data.get("source", ""))
    about: dict[str, Any] = {"name": f"{title} ({source})", "type": dataset or spec.benchmark}
    arguments = {
        "sha256": list(spec.data.get("sha256", ())),
        "lang": spec.data.get("lang"),
        "limit": spec.limit,
    }
    hub = hub_data(spec)
    if hub:
        about |= {"config": hub.config, "split": hub.split, "revision": hub.revision}
    about["args"] = {name: value for name, value in arguments.items() if value}
    about = {name: value for name, value in about.items() if value}
    metrics = []
    for name in subject.main:
        figure = subject.figures[name]
        declared = declaration(benchmark.layout.metrics, name)
        metrics.append(
            {
                "type": name,
                "value": figure.value,
                "name": capitalised(declared.title) if declared else name,
                "args": {
                    "low": figure.low,
                    "high": figure.high,
                    "confidence": CONFIDENCE,
                    "interval": figure.method_or_reason,
                    "n": figure.n,
                    "coverage": figure.coverage,
                },
            }
        )
    task = {"type": _task(run, subject), "name": benchmark.layout.question}
    return {
        "name": subject.model,
        "results": [{"task": task, "dataset": about, "metrics": metrics}],
    }


def _task(run: Run, subject: Subject) -> str:
    benchmark = load_stored(run.spec)
    roles = subject_models(benchmark)[subject.name] if run.subjects else ["model"]
    needs = {capability for role in roles for capability in benchmark.roles.get(role, ())}
    return next((task for capability, task in TASKS.items() if capability in needs), "text-ranking")


def _dataset(spec: RunSpec) -> tuple[str, bool]:
    """The id of the run's data on the Hub, and whether it is known."""
    hub = hub_data(spec)
    return (hub.repo, True) if hub else (f"{PLACEHOLDER}/{slug(spec.benchmark)}", False)


def _uncertainty(figure: Figure) -> list[str]:
    known = figure.low is not None and figure.high is not None
    limits = f"{CONFIDENCE:.0%} interval {figure.low:.4g} to {figure.high:.4g}" if known else "no interval"
    return [
        f"{limits} ({figure.method_or_reason})",
        f"n = {figure.n}",
        f"coverage {figure.coverage:.1%}",
    ]


def _setting(spec: RunSpec, subject: Subject) -> list[str]:
    settings = {**sampling(spec), **seed_of(spec)}
    return [
        *([f"method {subject.name}"] if subject.suffix else []),
        *(f"{name}={value}" for name, value in settings.items()),
        f"sealegs {spec.provenance.get('sealegs') or 'unknown'}",
    ]

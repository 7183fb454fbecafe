"""A run in the format of Every Eval Ever (schema 0.3.0): a file of figures for each model that was tested.

Only what the run says is written. A figure without a value has no record: the format has no way to say that a
score is missing, and a failure is not a score.
"""

from __future__ import annotations

import hashlib
import math
import uuid
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from sealegs.analysis.intervals import AMOUNTS, CONFIDENCE, RANGES
from sealegs.files.cache import slug, write_whole
from sealegs.files.datasets import published_sets
from sealegs.harness.folder import Run
from sealegs.harness.registry import benchmark_class
from sealegs.page.format import capitalised
from sealegs.page.metrics import declaration, scope_name
from sealegs.report.formats.subjects import Subject, hub_data, sampling, seed_of, subjects
from sealegs.types import Figure, RunSpec

SCHEMA = "0.3.0"
UNITS = {"share": "proportion", "score": "points", "signed_bits": "bits"}
"""Units that have another name there."""


def write(run: Run, folder: Path) -> list[Path]:
    """The files of a run below `folder`, at the paths that the shared collection has: `data/…`."""
    written = []
    for subject in subjects(run):
        if subject.figures:
            content = msgspec.json.encode((run.spec, subject.name), order="deterministic")
            name = uuid.UUID(bytes=hashlib.sha256(content).digest()[:16], version=4)
            path = folder / "data" / slug(run.spec.benchmark) / subject.id / f"{name}.json"
            write_whole(path, msgspec.json.format(msgspec.json.encode(_log(run, subject)), indent=2) + b"\n")
            written.append(path)
    return written


def _log(run: Run, subject: Subject) -> dict[str, Any]:
    """The file of one model."""
    provenance = run.spec.provenance
    created = str(provenance.get("created", ""))
    timestamp = {"evaluation_timestamp": created} if created else {}
    seconds = str(_seconds(created, run.path))
    log_id = f"{run.spec.benchmark}/{subject.id}/{seconds}"
    source = source_data(run.spec, max(figure.n for figure in subject.figures.values()))
    generation = {"generation_args": sampling(run.spec), "additional_details": seed_of(run.spec)}
    recorded = run.spec.data.get("source") == "recorded"
    return {
        "schema_version": SCHEMA,
        "evaluation_id": log_id,
        **timestamp,
        "retrieved_timestamp": seconds,
        "source_metadata": {
            "source_name": "Sealegs",
            "source_type": "evaluation_run",
            "source_organization_name": "unknown",
            "evaluator_relationship": "other",
        },
        "eval_library": {
            "name": "sealegs",
            "version": str(provenance.get("sealegs") or "unknown"),
            "additional_details": texts(
                {name: provenance.get(name) for name in ("commit", "python", "platform")}
                | dict(provenance.get("packages") or {})
            ),
        },
        "model_info": model_info(subject),
        "evaluation_results": [
            {
                "evaluation_result_id": f"{log_id}#{name}",
                "evaluation_name": scope_name(f"{run.spec.benchmark}{subject.suffix}", _scope(run, figure)),
                "source_data": source,
                "metric_config": _metric(run, figure),
                "score_details": _score(figure),
                **timestamp,
                **({} if recorded else {"generation_config": generation}),
            }
            for name, figure in subject.figures.items()
            if math.isfinite(figure.value or 0.0)
        ],
    }


def _scope(run: Run, figure: Figure) -> dict[str, str]:
    return {tag: value for tag, value in figure.scope.items() if not run.subjects or tag != run.subject}


def _metric(run: Run, figure: Figure) -> dict[str, Any]:
    layout = benchmark_class(run.spec.benchmark).layout
    declared = declaration(layout.metrics, figure.metric)
    better = declared.better if declared else None
    low, high = bounds(figure)
    helpers = {role: model["spec"] for role, model in run.spec.models.items() if role != "model"}
    details = {
        "interval": figure.method_or_reason,
        "unit": figure.unit,
        "basis": figure.basis or None,
        **helpers,
    }
    if better is None:
        details["direction"] = "neither higher nor lower is better"
    return {
        "evaluation_description": layout.question,
        "metric_id": f"sealegs.{run.spec.benchmark}.{figure.metric}",
        "metric_name": capitalised(declared.title) if declared else figure.metric,
        "metric_unit": UNITS.get(figure.unit, figure.unit),
        "metric_parameters": _scope(run, figure),
        "lower_is_better": better == "lower",
        "score_type": "continuous",
        "min_score": low,
        "max_score": high,
        "additional_details": texts(details),
    }


def _score(figure: Figure) -> dict[str, Any]:
    uncertainty: dict[str, Any] = {"num_samples": figure.n}
    if figure.low is not None and figure.high is not None:
        uncertainty["confidence_interval"] = {
            "lower": figure.low,
            "upper": figure.high,
            "confidence_level": CONFIDENCE,
            "method": figure.method,
        }
    statuses = {f"requests_{status}": count for status, count in figure.statuses.items()}
    details = {"coverage": figure.coverage, "groups": figure.clusters, **statuses}
    if figure.p is not None:
        details |= {"p": figure.p, "tests": figure.tests}
    return {"score": figure.value, "details": texts(details), "uncertainty": uncertainty}


def bounds(figure: Figure) -> tuple[float | str, float | str]:
    """The least and the greatest that a figure of this unit can be; a difference may be negative."""
    if figure.unit not in RANGES:
        return (0.0 if figure.unit in AMOUNTS and (figure.low or 0.0) >= 0 else "-Infinity"), "Infinity"
    low, high = RANGES[figure.unit]
    known = [each for each in (figure.value, figure.low, figure.high) if each is not None]
    if figure.p is not None or min(known) < low:
        low = -high
    # A ratio such as a rescaled score has no bounds, whatever its unit.
    return (low if min(known) >= low else "-Infinity"), (high if max(known) <= high else "Infinity")


def model_info(subject: Subject) -> dict[str, Any]:
    known = {
        "deployment_type": "self_deployed" if subject.local else "unknown",
        "model_availability": "unknown",
        "spec": subject.spec,
        "sha256": subject.sha256,
    }
    details = {name: value for name, value in known.items() if value}
    return {"name": subject.model, "id": subject.id, "additional_details": details}


def source_data(spec: RunSpec, samples: int) -> dict[str, Any]:
    """Where the samples are from: a data set of the Hub, the published files, or any other."""
    source = str(spec.data.get("source", ""))
    hashes = ", ".join(map(str, spec.data.get("sha256", ())))
    details = {"sha256": hashes, "limit": spec.limit, "languages": spec.data.get("lang"), "source": source}
    published = published_sets().get(spec.benchmark) if source == "published" else None
    if hub := hub_data(spec):
        details |= {"revision": hub.revision or None, "config": hub.config or None}
        return {
            "dataset_name": published.title if published else hub.repo,
            "source_type": "hf_dataset",
            "hf_repo": hub.repo,
            **({"hf_split": hub.split} if hub.split else {}),
            "samples_number": samples,
            "additional_details": texts(details),
        }
    if published:
        addresses = [published.origin(file) for file in published.files if file.samples]
        name, kind = published.title, {"source_type": "url", "url": addresses}
    else:
        name, kind = f"{spec.benchmark} {source}".strip(), {"source_type": "other"}
    return {"dataset_name": name, **kind, "additional_details": texts(details)}


def texts(values: Mapping[str, Any]) -> dict[str, str]:
    """Values as texts, which is all that the format's further details may hold; None is left out."""
    return {
        str(name): value if isinstance(value, str) else msgspec.json.encode(value).decode()
        for name, value in values.items()
        if value is not None
    }


def _seconds(created: str, path: Path) -> int:
    """When a run was made, in seconds since 1970: as its spec says, or by its summary."""
    try:
        return int(datetime.fromisoformat(created).timestamp())
    except (ValueError, OverflowError, OSError):
        return int((path / "summary.json").stat().st_mtime)

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
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from evenkeel.analysis.intervals import AMOUNTS, CONFIDENCE, RANGES
from evenkeel.files.cache import slug, write_whole
from evenkeel.files.datasets import published_sets
from evenkeel.harness.benchmark import Benchmark
from evenkeel.harness.folder import Run
from evenkeel.harness.registry import load_stored
from evenkeel.page.format import capitalised
from evenkeel.page.metrics import Metric, declaration, scope_name
from evenkeel.report.formats.subjects import Identity, Subject, hub_data, subjects, was_seeded
from evenkeel.types import Figure, Generate, RunSpec

SCHEMA = "0.3.0"
UNITS = {"share": "proportion", "score": "points", "signed_bits": "bits"}
"""Units that have another name there."""


def write(run: Run, folder: Path) -> list[Path]:
    """The files of a run below `folder`, at the paths that the shared collection has: `data/…`."""
    benchmark = load_stored(run.spec)
    return [_Log(run, benchmark, subject).write(folder) for subject in subjects(run) if subject.figures]


class _Log:
    """The file of one model."""

    def __init__(self, run: Run, benchmark: Benchmark, subject: Subject) -> None:
        self.run, self.spec, self.benchmark, self.subject = run, run.spec, benchmark, subject
        self.created = str(self.spec.provenance.get("created", ""))
        model = subject.identity.id
        self.seconds = str(_seconds(self.created, run.path))
        self.id = f"{self.spec.benchmark}/{model}/{self.seconds}"
        content = msgspec.json.encode((self.spec, subject.name), order="deterministic")
        digest = hashlib.sha256(content).digest()[:16]
        name = str(uuid.UUID(bytes=digest, version=4))
        self.path = PurePosixPath("data", slug(self.spec.benchmark), model, name)

    def write(self, folder: Path) -> Path:
        path = folder / f"{self.path}.json"
        write_whole(path, msgspec.json.format(msgspec.json.encode(self._log()), indent=2) + b"\n")
        return path

    def _log(self) -> dict[str, Any]:
        provenance = self.spec.provenance
        return {
            "schema_version": SCHEMA,
            "evaluation_id": self.id,
            **({"evaluation_timestamp": self.created} if self.created else {}),
            "retrieved_timestamp": self.seconds,
            "source_metadata": {
                "source_name": "Evenkeel",
                "source_type": "evaluation_run",
                "source_organization_name": "unknown",
                "evaluator_relationship": "other",
            },
            "eval_library": {
                "name": "evenkeel",
                "version": str(provenance.get("evenkeel") or "unknown"),
                "additional_details": texts(
                    {name: provenance.get(name) for name in ("commit", "python", "platform")}
                    | dict(provenance.get("packages") or {})
                ),
            },
            "model_info": model_info(self.subject.identity),
            "evaluation_results": [
                self._result(name, figure)
                for name, figure in self.subject.figures.items()
                if math.isfinite(figure.value or 0.0)
            ],
        }

    def _result(self, name: str, figure: Figure) -> dict[str, Any]:
        metric, scope = figure.metric, {**figure.scope}
        if self.run.subjects:
            scope.pop(self.run.subject, None)
        declared = declaration(self.benchmark.layout.metrics, metric)
        result: dict[str, Any] = {
            "evaluation_result_id": self._result_id(name),
            "evaluation_name": self._evaluation_name(scope),
            "source_data": source_data(self.spec, self._sample_count()),
            "metric_config": self._metric(metric, figure, declared, scope),
            "score_details": _score(figure),
        }
        if self.created:
            result["evaluation_timestamp"] = self.created
        if config := self._generation:
            result["generation_config"] = config
        return result

    def _result_id(self, name: str) -> str:
        return f"{self.id}#{name}"

    def _evaluation_name(self, scope: Mapping[str, str]) -> str:
        name = f"{self.spec.benchmark}{self.subject.suffix}"
        return scope_name(name, scope)

    def _metric(
        self, name: str, figure: Figure, declared: Metric | None, scope: Mapping[str, str]
    ) -> dict[str, Any]:
        low, high = bounds(figure)
        better = declared.better if declared else None
        helpers = {role: model["spec"] for role, model in self.spec.models.items() if role != "model"}
        details = {"interval": figure.method, "unit": figure.unit, "basis": figure.basis or None, **helpers}
        if better is None:
            details["direction"] = "neither higher nor lower is better"
        return {
            "evaluation_description": self.benchmark.layout.question,
            "metric_id": f"evenkeel.{self.spec.benchmark}.{name}",
            "metric_name": capitalised(declared.title) if declared else name,
            "metric_unit": UNITS.get(figure.unit, figure.unit),
            "metric_parameters": dict(scope),
            "lower_is_better": better == "lower",
            "score_type": "continuous",
            "min_score": low,
            "max_score": high,
            "additional_details": texts(details),
        }

    @cached_property
    def _generation(self) -> dict[str, Any]:
        """How texts were sampled, from the requests themselves; nothing where others asked for them."""
        if self.spec.data.get("source") == "recorded":
            return {}
        record = next(self.run.records(), None)
        requests = self.benchmark.requests(record.sample) if record else ()
        request = next((each for each in requests if isinstance(each, Generate)), None)
        identity = self.spec.models.get("model", {}).get("identity", {})
        seed = {"seed": str(self.spec.seed)} if was_seeded(self.spec) else {}
        if request is None:
            return {"additional_details": seed}
        sampling = request.sampling
        args: dict[str, Any] = {"temperature": sampling.temperature}
        args |= {name: value for name in ("top_p", "top_k") if (value := identity.get(name)) is not None}
        if len(self._token_limits()) == 1:
            args["max_tokens"] = sampling.max_tokens
        repeats = sum(isinstance(each, Generate) for each in requests)
        details = {**seed, "answers_to_a_prompt": str(repeats)}
        if sampling.stop:
            details["stop"] = msgspec.json.encode(sampling.stop).decode()
        return {"generation_args": args, "additional_details": details}

    def _token_limits(self) -> set[int]:
        """The token limits of the requests for texts: some benchmarks ask each sample for another length."""
        requests = (each for r in self.run.records() for each in self.benchmark.requests(r.sample))
        return {each.sampling.max_tokens for each in requests if isinstance(each, Generate)}

    def _sample_count(self) -> int:
        return max((figure.n for figure in self.subject.figures.values()), default=0)


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


def model_info(model: Identity) -> dict[str, Any]:
    info: dict[str, Any] = {"name": model.name, "id": model.id}
    if model.platform:
        info["inference_platform"] = model.platform
    if model.engine:
        version = {"version": model.engine_version} if model.engine_version else {}
        info["inference_engine"] = {"name": model.engine, **version}
    info["additional_details"] = {
        "deployment_type": model.deployment,
        "model_availability": "open_weights" if model.bundled else "unknown",
        **texts({"spec": model.spec or None, "sha256": model.sha256 or None}),
    }
    return info


def source_data(spec: RunSpec, samples: int) -> dict[str, Any]:
    """Where the samples are from: a data set of the Hub, the published files, or any other."""
    source = str(spec.data.get("source", ""))
    hashes = ", ".join(map(str, spec.data.get("sha256", ())))
    details = texts(
        {"sha256": hashes, "limit": spec.limit, "languages": spec.data.get("lang"), "source": source}
    )
    published = published_sets().get(spec.benchmark) if source == "published" else None
    if hub := hub_data(spec):
        return {
            "dataset_name": published.title if published else hub.repo,
            "source_type": "hf_dataset",
            "hf_repo": hub.repo,
            **({"hf_split": hub.split} if hub.split else {}),
            "samples_number": samples,
            "additional_details": {
                **details,
                **texts({"revision": hub.revision or None, "config": hub.config or None}),
            },
        }
    if published:
        addresses = [published.origin(file) for file in published.files if file.samples]
        return {
            "dataset_name": published.title,
            "source_type": "url",
            "url": addresses,
            "additional_details": details,
        }
    return {
        "dataset_name": f"{spec.benchmark} {source}".strip(),
        "source_type": "other",
        "additional_details": details,
    }


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

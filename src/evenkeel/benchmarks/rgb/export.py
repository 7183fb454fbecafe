"""A run in the files that the published script writes: predictions, and their rates beside them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from evenkeel.benchmarks.rgb import checks, data
from evenkeel.cache import slug
from evenkeel.types import Record, Records

FIELDS = ("dataset", "noise", "passages", "correct")


def prediction_files(
    model: str, temperature: float, records: Records
) -> Iterator[tuple[str, Iterator[bytes]]]:
    """For every data set and setting the predictions as JSON lines, and `…_result.json` with the rates."""
    for settings in dict.fromkeys(_settings(record) for record in records()):
        dataset, noise, passages, correct = settings
        stem = data.Setting(dataset, slug(model), temperature, noise, passages, correct).stem
        yield f"{stem}.json", (_line(record) for record in _answered(records, settings))
        yield f"{stem}_result.json", _rates(records, settings)


def _settings(record: Record) -> tuple[str, float, int, float]:
    dataset, noise, passages, correct = (record.sample.inputs[name] for name in FIELDS)
    return dataset, float(noise), passages, float(correct)


def _answered(records: Records, settings: tuple[str, float, int, float]) -> Iterator[Record]:
    """As in the published script, what failed is not in the file."""
    return (record for record in records() if _settings(record) == settings and record.score.answered)


def _line(record: Record) -> bytes:
    inputs, detail = record.sample.inputs, record.score.detail
    line: dict[str, Any] = {
        "id": inputs["instance"],
        "query": inputs["query"],
        "ans": inputs["answer"],
        "label": detail["label"],
        "prediction": checks.published_text(record.answers[0].text, str(record.sample.tags["lang"])),
        "docs": inputs["docs"],
        "noise_rate": inputs["noise"],
        "factlabel": detail["factlabel"],
    }
    return msgspec.json.encode(line) + b"\n"


def _rates(records: Records, settings: tuple[str, float, int, float]) -> Iterator[bytes]:
    labels = [
        checks.Published(tuple(record.score.detail["label"]), record.score.detail["factlabel"])
        for record in _answered(records, settings)
    ]
    fact = any(record.sample.tags["ability"] == "counterfactual" for record in _answered(records, settings))
    rates = checks.published_rates(labels, settings[1], fact=fact)
    yield msgspec.json.format(msgspec.json.encode(rates), indent=4)

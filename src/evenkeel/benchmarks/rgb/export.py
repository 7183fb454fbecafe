"""A run in the files that the published script writes: predictions, and their rates beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from evenkeel.benchmarks.rgb import checks
from evenkeel.benchmarks.rgb import files as data
from evenkeel.files.cache import slug
from evenkeel.types import Record, Records


def prediction_files(
    model: str, temperature: float, records: Records
) -> Iterator[tuple[str, Iterator[bytes]]]:
    """For every data set and setting the predictions as JSON lines, and `…_result.json` with the rates."""

    def setting_of(record: Record) -> data.Setting:
        inputs = record.sample.inputs
        return data.Setting(
            inputs["dataset"],
            slug(model),
            float(inputs.get("temperature", temperature)),
            float(inputs["noise"]),
            inputs["passages"],
            float(inputs["correct"]),
        )

    def members(setting: data.Setting) -> Iterator[Record]:
        return _answered(record for record in records() if setting_of(record) == setting)

    for setting in dict.fromkeys(map(setting_of, records())):
        yield f"{setting.stem}.json", map(_line, members(setting))
        yield f"{setting.stem}_result.json", _rates(members(setting), setting.noise)


def _answered(records: Iterable[Record]) -> Iterator[Record]:
    """As in the published script, what failed is not in the file.

    Each question is there once: at noise 1 it may have been asked for two abilities, with the same prompt.
    """
    seen: set[int | str] = set()
    for record in records:
        question = record.sample.inputs["instance"]
        if record.score.answered and question not in seen:
            seen.add(question)
            yield record


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


def _rates(records: Iterable[Record], noise: float) -> Iterator[bytes]:
    labels, fact = [], False
    for record in records:
        detail = record.score.detail
        labels.append(checks.Published(tuple(detail["label"]), detail["factlabel"]))
        fact = fact or record.sample.tags["ability"] == "counterfactual"
    yield msgspec.json.format(msgspec.json.encode(checks.published_rates(labels, noise, fact=fact)), indent=4)

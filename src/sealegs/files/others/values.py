"""What is read of results of other harnesses: one number for each sample and metric."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from sealegs.errors import DataError
from sealegs.files.jsonfile import NOT_JSON, check_depth, convert, repaired
from sealegs.files.tables import kind_of

LARGEST_FILE_BYTES = 2**30
"""Of a file, or of what an .eval file unpacks to."""
MOST_METRICS = 200
MARKS = {"c": 1.0, "p": 0.5, "i": 0.0, "n": 0.0, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
"""Scores of Inspect that are texts, as its own `value_to_float` reads them."""
RIGHT = ("score", "accuracy", "acc", "correct", "exact_match", "f1")
"""Metrics of which more is better, in files that do not state it."""
NAME_MARKS = str.maketrans({"/": ":", "@": "-at-"})
"""Characters that have a meaning in the name of a metric here: `pass@1` becomes `pass-at-1`."""


class OtherSample(Struct):
    """A sample with the values of each metric, one for each time that it was answered."""

    id: str
    group: str
    task: str
    asked: str
    """A digest of what it asks: samples of one id must ask the same. Empty where the file does not say."""
    values: dict[str, list[float | None]]
    ok: int = 0
    failed: int = 0


class OtherResults(Struct, kw_only=True):
    """The results of one model in a file or a folder."""

    path: Path
    harness: str
    model: str
    arguments: str = ""
    """How the task was set up, where the file says so: `fewshot=5`."""
    created: str = ""
    samples: dict[str, OtherSample]
    metrics: list[str]
    higher_is_better: dict[str, bool] = {}
    """By metric, where it is known."""
    declared_by: str = ""
    """The benchmark of Sealegs that declares the metrics, where Inspect ran its task."""
    notes: list[str] = []

    @property
    def tasks(self) -> list[str]:
        return list(dict.fromkeys(sample.task for sample in self.samples.values()))


def check_size(path: Path, size: int) -> None:
    if size > LARGEST_FILE_BYTES:
        raise DataError(path, f"it has {size:,} bytes; at most {LARGEST_FILE_BYTES:,} are read.")


def decode(path: Path, content: bytes, kind: Any, line: int | None = None) -> Any:
    """JSON as `kind`. Both harnesses write NaN for what is unknown, which JSON does not have: it is null."""
    try:
        return msgspec.json.decode(check_depth(content), type=kind)
    except NOT_JSON:
        pass
    try:
        raw = json.loads(repaired(content))
    except (ValueError, RecursionError) as error:
        line = line or getattr(error, "lineno", None)
        raise DataError(path, f"this is not JSON: {error}.", line=line) from None
    return convert(path, raw, kind, line=line)


class NotANumber(ValueError):
    """A value that is not one number."""


def _number(value: Any) -> float | None:
    """A score as a number; None where it is unknown."""
    if isinstance(value, str):
        text = value.strip()
        if not text:
            return None
        try:
            value = MARKS[text.lower()] if text.lower() in MARKS else float(text)
        except ValueError:
            raise NotANumber(text) from None
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if not isinstance(value, int | float) or abs(value) > 1e300:
        raise NotANumber(kind_of(value))
    return float(value)


class SampleValues:
    """The numbers of samples, as they are read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.samples: dict[str, OtherSample] = {}
        self.unusable: set[str] = set()
        self.higher: dict[str, bool] = {}
        """By metric: whether more is better; a mark such as `C` says that it is."""
        self.names: dict[str, None] = {}
        """Of all metrics, in the order of their first occurrence."""

    def sample(self, sample_id: str, group: Any, task: str, asked: Any) -> OtherSample:
        digest = hashlib.sha256(msgspec.json.encode(asked)).hexdigest() if asked else ""
        group = sample_id if group in (None, "") else str(group)
        return self.samples.setdefault(sample_id, OtherSample(sample_id, group, task, digest, {}))

    def add(self, sample: OtherSample, metric: str, value: Any) -> None:
        name = metric.translate(NAME_MARKS)
        self.names[name] = None
        if name in RIGHT or isinstance(value, bool) or value in ("C", "I", "P", "N"):
            self.higher[name] = True
        if len(self.names) > MOST_METRICS:
            raise DataError(self.path, f"it has more than {MOST_METRICS} metrics.")
        try:
            sample.values.setdefault(name, []).append(_number(value))
        except NotANumber:
            self.unusable.add(name)

    def results(self, **fields: Any) -> OtherResults:
        """All of them. A metric that is not one number for each sample is left out, and that is noted."""
        for sample in self.samples.values():
            sample.values = {name: v for name, v in sample.values.items() if name not in self.unusable}
        lists = (values for sample in self.samples.values() for values in sample.values.values())
        if all(value is None for values in lists for value in values):
            raise DataError(self.path, "no sample in it has a score that is a number.")
        notes = [f"{name} is not one number for each sample" for name in sorted(self.unusable)]
        fields["metrics"] = [name for name in self.names if name not in self.unusable]
        fields["higher_is_better"] = self.higher
        return OtherResults(samples=self.samples, notes=[*fields.pop("notes", ()), *notes], **fields)

"""Results that other harnesses wrote: logs of Inspect, samples of lm-evaluation-harness, plain tables.

What a file is, is seen in its fields. Files may be hostile: they are bounded, and errors name file and line.
"""

from __future__ import annotations

import re
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import msgspec
from msgspec import Struct

from sealegs.errors import DataError, UsageError, listed
from sealegs.files.jsonfile import NOT_JSON, check_depth, convert, open_file, read_bytes
from sealegs.files.others.values import NAME_MARKS, OtherResults, SampleValues, check_size, decode
from sealegs.files.tables import Row, read_rows

MODEL_MARK = "::"
"""Between a file and one of the models in it: `results.csv::model-b`."""
SAMPLES_FILE = re.compile(r"samples_(?P<task>.+)_(?P<date>\d{4}-\d\d-\d\dT[\d.-]+)")


def read_other_results(path: Path) -> list[OtherResults]:
    """The results in a file, or in a folder of lm-evaluation-harness: of one model, or of several."""
    name, mark, model = str(path).rpartition(MODEL_MARK)
    if mark and not path.exists():
        chosen = [each for each in read_other_results(Path(name)) if each.model == model]
        return chosen or _no_model(Path(name), model)
    if path.is_dir():
        return [_lm_eval(path, _sample_files(path))]
    if not path.exists():
        raise DataError(path, "cannot be read: No such file or folder.")
    check_size(path, path.stat().st_size)
    kind = _kind_of(path)
    if kind == "lm-eval":
        return [_lm_eval(path, [path])]
    return _inspect(path) if kind == "inspect" else _table(path)


def has_other_results(folder: Path) -> bool:
    return bool(next(folder.glob("samples_*.jsonl"), None) or next(folder.glob("*/samples_*.jsonl"), None))


def _no_model(path: Path, model: str) -> list[OtherResults]:
    models = [each.model for each in read_other_results(path)]
    raise UsageError(f"{path}: there are no results of '{model}'. Available: {listed(models)}.")


def _kind_of(path: Path) -> str:
    """What a file holds, by its fields: `inspect`, `lm-eval`, or rows of a table."""
    if path.suffix.lower() == ".eval":
        return "inspect"
    if path.suffix.lower() in (".csv", ".parquet"):
        return "table"
    with open_file(path) as file:
        first = next(filter(None, map(bytes.strip, file)), b"")
    try:
        fields = msgspec.json.decode(check_depth(first), type=dict[str, msgspec.Raw])
    except NOT_JSON:
        if not first.removeprefix(b"\xef\xbb\xbf").startswith((b"[", b"{")):
            raise DataError(
                path,
                "this is neither a run's folder nor a file of results. Expected: a log of Inspect, samples "
                "of lm-evaluation-harness, or a table (CSV, JSON lines, Parquet) of id and score.",
            ) from None
        return "table" if first.startswith(b"[") else "inspect"  # over many lines, as Inspect writes it
    return "inspect" if "eval" in fields else "lm-eval" if "doc_id" in fields else "table"


# Inspect


class _Eval(Struct):
    task: str
    model: str
    created: str = ""
    task_registry_name: str | None = None
    task_args: dict[str, Any] = {}


class _InspectScore(Struct):
    value: Any = None


class _InspectSample(Struct):
    id: str | int
    input: Any = None
    scores: dict[str, _InspectScore] | None = None
    metadata: dict[str, Any] = {}
    error: Any = None


class _Log(Struct):
    eval: _Eval
    status: str = ""
    samples: list[_InspectSample] | None = None


def _inspect(path: Path) -> list[OtherResults]:
    """A log of Inspect: the epochs of a sample are its answers."""
    if path.suffix.lower() == ".eval":
        try:
            with zipfile.ZipFile(path) as archive:
                check_size(path, sum(each.file_size for each in archive.infolist()))
        except (OSError, zipfile.BadZipFile) as error:
            raise DataError(path, f"this is not a log of Inspect: {error}.") from None
        content: bytes = resolve_name("sealegs.inspect.logs:read_log")(path)
    else:
        content = read_bytes(path)
    log: _Log = decode(path, content, _Log)
    values = SampleValues(path)
    for raw in log.samples or ():
        sample = values.sample(str(raw.id), _inspect_group(raw.metadata), log.eval.task, _prompt(raw.input))
        scores = raw.scores or {}
        for metric, value in _inspect_values(scores):
            values.add(sample, metric, value)
        failed = raw.error is not None or not scores
        sample.ok, sample.failed = sample.ok + (not failed), sample.failed + failed
    for sample in values.samples.values():
        if not sample.values:  # it failed each time, and was asked for every metric
            sample.values = {name: [None] for name in values.names}
    name = log.eval.task_registry_name or ""
    return [
        values.results(
            path=path,
            harness="inspect",
            model=log.eval.model,
            arguments=", ".join(f"{key}={value}" for key, value in sorted(log.eval.task_args.items())),
            created=log.eval.created,
            declared_by=name.removeprefix("sealegs/") if name.startswith("sealegs/") else "",
            notes=[] if log.status == "success" else [f"Inspect gives its status as '{log.status}'"],
        )
    ]


def _inspect_values(scores: Mapping[str, _InspectScore]) -> Iterator[tuple[str, Any]]:
    """The values of a sample by metric: of a scorer that gives several, each by its name."""
    for scorer, score in scores.items():
        if isinstance(score.value, dict):
            prefix = f"{scorer}:" if len(scores) > 1 else ""
            yield from ((f"{prefix}{name}", value) for name, value in score.value.items())
        else:
            yield scorer, score.value


def _inspect_group(metadata: Mapping[str, Any]) -> Any:
    """The metadata `group`; of a task of Sealegs, that of its sample."""
    try:
        return metadata.get("group") or metadata["sealegs"]["samples"][0]["group"]
    except (KeyError, IndexError, TypeError):
        return None


def _prompt(asked: Any) -> Any:
    """The input of a sample; of messages role and content, since each run gives them other ids."""
    if not isinstance(asked, list):
        return asked
    return [[m.get("role"), m.get("content")] if isinstance(m, dict) else m for m in asked]


# lm-evaluation-harness


class _Aggregated(Struct, rename={"shots": "n-shot"}):
    """What is read of results_*.json, which is beside the samples."""

    model_name: str = ""
    higher_is_better: dict[str, dict[str, bool | None]] = {}
    shots: dict[str, Any] = {}


def _sample_files(folder: Path) -> list[Path]:
    """The samples of each task in a folder, or in the one folder of a model below it."""
    files = sorted(folder.glob("samples_*.jsonl")) or sorted(folder.glob("*/samples_*.jsonl"))
    by_task: defaultdict[str, list[Path]] = defaultdict(list)
    for file in files:
        by_task[_task_of(file)[0]].append(file)
    if twice := next((paths for paths in by_task.values() if len(paths) > 1), None):
        raise DataError(folder, f"one task has several results: {listed(map(str, twice))}. Give one.")
    if len(folders := {file.parent for file in files}) > 1:
        raise DataError(folder, f"there are several models in it: {listed(map(str, folders))}. Give one.")
    return files


def _task_of(file: Path) -> tuple[str, str]:
    """The task of a file and its date: samples_TASK_DATE.jsonl."""
    match = SAMPLES_FILE.fullmatch(file.stem)
    return (match["task"], match["date"]) if match else (file.stem, "")


def _lm_eval(path: Path, files: Iterable[Path]) -> OtherResults:
    """The samples of one task, or of several."""
    values, arguments = SampleValues(path), []
    model, created = path.stem, ""
    for file in files:
        check_size(file, file.stat().st_size)
        task, date = _task_of(file)
        created, model, about = date[:10], file.parent.name, _Aggregated()
        beside = file.with_name(f"results_{date}.json")
        if beside.is_file():
            about = decode(beside, read_bytes(beside), _Aggregated)
            model = about.model_name or model
            arguments += [f"{task} {about.shots[task]}-shot"] if task in about.shots else []
        _read_samples(file, task, values)
        directions = about.higher_is_better.get(task, {})
        known = {name: directions.get(name.partition(",")[0]) for name in values.names}
        values.higher |= {name: higher for name, higher in known.items() if higher is not None}
    return values.results(
        path=path, harness="lm-eval", model=model, created=created, arguments=", ".join(arguments)
    )


def _read_samples(file: Path, task: str, values: SampleValues) -> None:
    """One line for each sample and filter, with a field for each of its `metrics`."""
    with open_file(file) as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            fields = decode(file, line, dict[str, Any], number)
            about: _LmEvalLine = convert(file, fields, _LmEvalLine, line=number)
            doc = fields.get("doc")
            group = doc.get("group") if isinstance(doc, dict) else None
            sample = values.sample(
                f"{task}:{about.doc_id}", group and f"{task}:{group}", task, about.doc_hash
            )
            sample.ok = 1
            for metric in about.metrics:
                if metric not in fields:
                    raise DataError(file, f"the field '{metric}' is missing.", line=number)
                name = metric if about.filter == "none" else f"{metric},{about.filter}"
                if name.translate(NAME_MARKS) in sample.values:
                    raise DataError(file, f"document {about.doc_id} appears twice.", line=number)
                values.add(sample, name, fields[metric])


class _LmEvalLine(Struct):
    doc_id: int | str
    metrics: list[str]
    filter: str = "none"
    doc_hash: str = ""


# Tables


def _table(path: Path) -> list[OtherResults]:
    """Rows of `id` and `score`, and where there are such columns, of `group`, `model`, `metric`."""
    by_model: dict[str, SampleValues] = {}
    places: dict[tuple[str, str, str], str] = {}
    for row in read_rows(path):
        sample_id, model, metric = row.text("id"), _text(row, "model"), _text(row, "metric") or "score"
        if (place := places.setdefault((model, sample_id, metric), row.place)) != row.place:
            raise row.error(f"the id '{sample_id}' duplicates {place}.")
        if "score" not in row.fields:
            raise row.error(f"the field 'score' is missing. Available: {listed(row.fields)}.")
        values = by_model.setdefault(model, SampleValues(path))
        sample = values.sample(sample_id, _text(row, "group"), "", "")
        sample.ok = 1
        values.add(sample, metric, row.fields["score"])
        if values.unusable:
            raise row.error("the score is not a number.")
    if not by_model:
        raise DataError(path, "there is no row in it.")
    several = len(by_model) > 1
    return [
        values.results(
            path=Path(f"{path}{MODEL_MARK}{model}") if several else path,
            harness="table",
            model=model or path.stem,
        )
        for model, values in by_model.items()
    ]


def _text(row: Row, field: str) -> str:
    return row.text(field) if row.fields.get(field) is not None else ""

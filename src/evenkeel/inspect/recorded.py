"""Score a log of one of our Inspect tasks: `evenkeel score rgb --from-inspect LOG`.

The log holds the samples, so that no data is read. A helper that a person does not name is never asked: what
it answered in the log counts, and what it did not is missing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from evenkeel.api.run import default_folder, score_setup
from evenkeel.api.setup import Setup, make_spec, model_refs, open_models
from evenkeel.errors import DataError, UsageError, explain
from evenkeel.files.datasets import data_file
from evenkeel.harness.benchmark import Benchmark
from evenkeel.harness.folder import Run
from evenkeel.harness.progress import Progress
from evenkeel.harness.registry import benchmark_class, load_benchmark
from evenkeel.inspect.log_file import LoggedSample, open_log
from evenkeel.inspect.outputs import response_of
from evenkeel.inspect.questions import (
    FIELD,
    Question,
    decode_answers,
    in_order,
    read_question,
)
from evenkeel.inspect.scoring import WithRecorded, is_inspect
from evenkeel.models.registry import BACKENDS
from evenkeel.models.replay import RecordedAnswers
from evenkeel.options import describe
from evenkeel.report.terminal.progress import watcher
from evenkeel.types import Response, Sample


class TaskFields(Struct):
    """What a task of ours puts into the metadata of its evaluation."""

    benchmark: str
    options: dict[str, Any]
    seed: int = 0


class Log(NamedTuple):
    """The samples of a log with what was answered."""

    benchmark: Benchmark
    model: str
    samples: list[Sample]
    answers: dict[bytes, Response]
    warnings: list[str]


def score_log(
    benchmark: str,
    path: str | Path,
    *,
    out: str | Path | None = None,
    fresh: bool = False,
    base_url: str | None = None,
    concurrency: int | None = None,
    progress: Progress | bool | None = True,
    **options: Any,
) -> Run:
    """Score a log as a run of its own: `score_log("mirae", "logs/….eval", embedder="sbert:PATH")`.

    `options` are those of the benchmark that are to be others than in the log: an embedder, a judge.
    """
    path, watching = Path(path), watcher(progress)
    log = read_log(benchmark, path, options)
    identity = {"spec": f"replay:{path.name}", "model": log.model, "sha256": data_file(path).sha256}
    recorded = RecordedAnswers(identity, log.answers, log.warnings)
    loaded = log.benchmark
    named = {each for each in load_benchmark(benchmark, options).helpers.values() if not is_inspect(each)}
    others = {role: spec for role, spec in loaded.helpers.items() if not _may_be_asked(spec, named)}
    for role, spec in others.items():
        if not loaded.roles[role] <= RecordedAnswers.capabilities:
            raise UsageError(
                f"{path}: it names the {role} '{spec}', and a log may come from anyone: nothing is asked of "
                "a model that you do not name. To use this one, give it as an option: see `evenkeel score "
                f"{benchmark} --help`."
            )
    with WithRecorded(recorded, set(others.values()), concurrency=concurrency) as engine:
        refs = model_refs(loaded, benchmark, None, base_url)
        models = open_models(engine, loaded, benchmark, refs)
        if "model" in loaded.roles:
            models = {"model": recorded, **models}
        about = {"source": "inspect", "sha256": [identity["sha256"]], "lang": None}
        asked = make_spec(benchmark, loaded, models, about, seed=loaded.seed)
        folder = Path(out) if out else default_folder(benchmark, log.model)
        return score_setup(Setup(loaded, asked, log.samples, models), folder, fresh=fresh, progress=watching)


def _may_be_asked(spec: str, named: Collection[str]) -> bool:
    """Whether a helper is bundled, or one that a person named."""
    return spec in named or (spec in BACKENDS and not BACKENDS[spec].named)


def read_log(name: str, path: Path, options: Mapping[str, Any]) -> Log:
    """The samples and the answers of a log, as the benchmark with these options reads them."""
    with open_log(path) as (header, samples):
        fields = _task_fields(path, header.eval.task, header.eval.metadata, name)
        benchmark = _benchmark(path, fields, options)
        questions: dict[str | int, Question] = {}
        answers: dict[bytes, Response] = {}
        seen: set[tuple[str | int, int]] = set()
        for where, sample in samples:
            if (sample.id, sample.epoch) in seen:
                raise DataError(path, f"epoch {sample.epoch} of '{sample.id}' appears twice.", where=where)
            seen.add((sample.id, sample.epoch))
            question = _question(path, where, sample, benchmark)
            if questions.setdefault(sample.id, question) != question:
                raise DataError(path, "the epochs of this sample differ in what they ask.", where=where)
            answers |= _answers(path, where, sample, question)
    if not questions:
        raise DataError(path, "this log holds no samples.")
    ids = [sample.id for question in questions.values() for sample in question.samples]
    if (
        twice := next((each for each in ids if ids.count(each) > 1), None)
        if len(set(ids)) < len(ids)
        else None
    ):
        raise DataError(path, f"the sample '{twice}' of {name} belongs to two samples of the log.")
    expected = header.eval.dataset.sample_ids or []
    missing = [each for each in expected if each not in questions]
    warnings = []
    if missing:
        warnings.append(
            f"{path.name}: {len(missing):,} of {len(expected):,} samples of the task are not in the log (the "
            f"first is '{missing[0]}'): they are not in the figures."
        )
    return Log(benchmark, header.eval.model, in_order(questions.values()), answers, warnings)


def _task_fields(path: Path, task: str, metadata: Mapping[str, Any] | None, name: str) -> TaskFields:
    raw = (metadata or {}).get(FIELD)
    if raw is None:
        raise DataError(path, f"this is a log of the task '{task}'. Expected one of evenkeel/{name}.")
    try:
        fields = msgspec.convert(raw, TaskFields)
    except msgspec.ValidationError as error:
        fault = explain(error, raw)
        raise DataError(path, f"{fault.problem}.", where=f"eval.metadata.{FIELD}, {fault.field}") from None
    if fields.benchmark != name:
        raise DataError(
            path,
            f"this is a log of {fields.benchmark}: evenkeel score {fields.benchmark} --from-inspect {path}",
        )
    return fields


def _benchmark(path: Path, fields: TaskFields, options: Mapping[str, Any]) -> Benchmark:
    """The benchmark with the log's options; files that these name are not read, the samples hold all."""
    known = describe(benchmark_class(fields.benchmark).Options)
    usable = {option.name for option in known if not option.file}
    stored = {name: value for name, value in fields.options.items() if name in usable}
    try:
        load_benchmark(fields.benchmark, stored, seed=fields.seed)
    except UsageError as error:
        raise DataError(path, str(error), where=f"eval.metadata.{FIELD}.options") from None
    return load_benchmark(fields.benchmark, {**stored, **options}, seed=fields.seed)


def _question(path: Path, where: str, sample: LoggedSample, benchmark: Benchmark) -> Question:
    try:
        return read_question(benchmark, sample.metadata)
    except msgspec.ValidationError as error:
        fault = explain(error, sample.metadata.get(FIELD))
        place = ", ".join(filter(None, (where, f"metadata.{FIELD}", fault.field)))
        raise DataError(path, f"{fault.problem}.", where=place) from None
    except Exception as error:  # noqa: BLE001  # fields of the right types may still make no sense together
        problem = f"this is not a sample of {type(benchmark).__name__} ({type(error).__name__}: {error})."
        raise DataError(path, problem, where=where) from None


def _answers(path: Path, where: str, sample: LoggedSample, question: Question) -> dict[bytes, Response]:
    """What one epoch of a sample was answered."""
    try:
        answers = decode_answers(sample.store.get(FIELD, {}))
    except msgspec.ValidationError as error:
        raise DataError(path, f"{error}.", where=f"{where}, store.{FIELD}") from None
    request = question.request(sample.epoch)
    if question.epochs and request is None:
        count = len(question.epochs)
        raise DataError(path, f"epoch {sample.epoch}: the prompt is asked {count} times.", where=where)
    if request is not None:
        _check_input(path, where, sample, request.prompt)
        plain = isinstance(request.prompt, str)
        response = response_of(sample.output, plain=plain)
        if sample.error is not None:
            response = Response(status="error", reason=sample.error.reason)
        answers.setdefault(RecordedAnswers.key(request), response)
    return answers


def _check_input(path: Path, where: str, sample: LoggedSample, prompt: Any) -> None:
    """Refuse answers to something else than what the benchmark asks."""
    asked = prompt if isinstance(prompt, str) else "\n".join(message.content for message in prompt)
    parts = sample.input if isinstance(sample.input, list) else [{"content": sample.input}]
    texts = [part.get("content") if isinstance(part, dict) else None for part in parts]
    if "\n".join(text if isinstance(text, str) else "" for text in texts) != asked:
        raise DataError(
            path, "the input is not what the benchmark asks for this sample.", where=f"{where}, input"
        )

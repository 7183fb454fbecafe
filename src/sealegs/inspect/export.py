"""A run as a log of Inspect, which `inspect view` opens: `sealegs export RUN --to inspect`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import sealegs
from sealegs.errors import MissingExtra, UsageError
from sealegs.files.cache import replacing, slug
from sealegs.files.columns import EXPECTED, exported_inputs
from sealegs.files.jsonfile import strings_in
from sealegs.harness.benchmark import Benchmark
from sealegs.harness.folder import Run
from sealegs.harness.inputs import Inputs
from sealegs.harness.registry import load_stored
from sealegs.inspect.questions import (
    FIELD,
    InspectQuestion,
    encode_answers,
    make_questions,
)
from sealegs.inspect.scoring import explain, standard_error, with_intervals
from sealegs.models.replay import RecordedAnswers
from sealegs.types import Figure, Generate, Record, Response, Sample, to_jsonable

SCORER = "sealegs"
STOP_REASONS = {"ok": "stop", "truncated": "max_tokens", "refused": "content_filter"}


def export_log(run: Run, out: Path | None = None) -> Path:
    """Write a run as `.eval` (or, by the name of `out`, `.json`)."""
    try:
        from inspect_ai.log import write_eval_log
    except ImportError:
        raise MissingExtra(
            "export --to inspect", package="inspect-ai", install="pip install inspect-ai"
        ) from None
    target = out or run.path / "export" / f"{slug(run.spec.benchmark)}.eval"
    if target.is_dir() or target.suffix not in (".eval", ".json"):
        raise UsageError(f"--out {target}: give a file that ends in .eval or .json.")
    with replacing(target) as draft:
        named = draft.with_name(f"{draft.name}{target.suffix}")  # Inspect goes by the ending
        try:
            write_eval_log(make_log(run), str(named))
            named.replace(draft)
        finally:
            named.unlink(missing_ok=True)
    return target


def make_log(run: Run) -> Any:
    """The log of a run: samples with their repeats as epochs, scores, figures, tokens."""
    from inspect_ai.log import EvalLog, EvalPlan, EvalPlanStep, EvalStats

    spec, benchmark = run.spec, load_stored(run.spec)
    records = {record.sample.id: record for record in run.records()}
    questions = make_questions(benchmark, [record.sample for record in records.values()])
    model = spec.models["model"]["spec"] if "model" in spec.models else spec.subject
    samples = [
        _sample(question, epoch, records, benchmark, model)
        for question in questions
        for epoch in range(1, max(1, len(question.epochs)) + 1)
    ]
    created = spec.provenance.get("created") or "1970-01-01T00:00:00+00:00"
    log = EvalLog(
        status="success",
        eval=_eval_spec(run, benchmark, questions, model, created),
        plan=EvalPlan(steps=[EvalPlanStep(solver="sealegs/ask")]),
        results=_results(run, benchmark, len(questions), samples),
        stats=EvalStats(started_at=created, model_usage=_sum_usage(samples, model)),
        samples=samples,
    )
    log.reductions = _reductions(questions, records)
    return log


def _eval_spec(
    run: Run, benchmark: Benchmark, questions: Sequence[InspectQuestion], model: str, created: str
) -> Any:
    """What was asked, of whom and with which settings."""
    from inspect_ai.log import EvalConfig, EvalDataset, EvalSpec, HeadlineMetric

    spec = run.spec
    ids = [question.id for question in questions]
    settings = {
        "benchmark": spec.benchmark,
        "options": spec.options,
        "seed": spec.seed,
        "data": spec.data,
        "models": {role: each["spec"] for role, each in spec.models.items()},
    }
    return EvalSpec(
        created=created,
        task=f"sealegs/{spec.benchmark}",
        task_id=run.path.name,
        run_id=run.path.name,
        eval_id=run.path.name,
        task_version=sealegs.__version__,
        task_description=benchmark.layout.question,
        task_args={**spec.options, "seed": spec.seed, "limit": spec.limit},
        dataset=EvalDataset(name=str(spec.data.get("source", "")), samples=len(ids), sample_ids=ids),
        model=model,
        config=EvalConfig(epochs=max([1, *(len(question.epochs) for question in questions)])),
        packages={"sealegs": str(spec.provenance.get("sealegs", ""))},
        headline_metric=HeadlineMetric(scorer=SCORER, metric=next(iter(run.headlines))),
        metadata={FIELD: settings},
    )


def _results(run: Run, benchmark: Benchmark, count: int, samples: Sequence[Any]) -> Any:
    from inspect_ai.log import EvalMetric, EvalResults, EvalScore, HeadlineMetric

    chosen = [name for name in with_intervals(run.summary, run.subject) if name in run.summary]
    headline = next(iter(run.headlines))
    metrics = {
        name: EvalMetric(name=name, value=figure.value, metadata=figure_metadata(figure))
        for name in sorted(chosen, key=lambda each: each != headline)
        if (figure := run.summary[name]).value is not None
    }
    if (error := standard_error(run.headlines[headline])) is not None:
        metrics["stderr"] = EvalMetric(name="stderr", value=error)
    scored = sum(sample.scores is not None and sample.error is None for sample in samples)
    return EvalResults(
        total_samples=len(samples),
        completed_samples=scored,
        scores=[
            EvalScore(
                name=SCORER,
                scorer=SCORER,
                scored_samples=count,
                metrics=metrics,
                metadata={"coverage": run.headline.coverage},
            )
        ],
        headline=HeadlineMetric(scorer=SCORER, score=SCORER, metric=headline)
        if headline in metrics
        else None,
        metadata={"figures": {name: figure_metadata(each) for name, each in run.summary.items()}},
    )


def figure_metadata(figure: Figure) -> dict[str, Any]:
    """A figure with its 95 % interval and its standard error."""
    known = figure.low is not None and figure.high is not None
    fields = to_jsonable(figure)
    return {
        **{
            name: fields[name]
            for name in ("value", "method", "n", "clusters", "coverage", "unit", "statuses")
        },
        **({"basis": figure.basis} if figure.basis else {}),
        **({"p": figure.p} if figure.p is not None else {}),
        "ci": [figure.low, figure.high] if known else None,
        "stderr": standard_error(figure),
    }


def _sample(
    question: InspectQuestion,
    epoch: int,
    records: Mapping[str, Record],
    benchmark: Benchmark,
    model: str,
) -> Any:
    """One epoch of a question, with what the model under test was asked and answered in it."""
    from inspect_ai.log import EvalError, EvalSample
    from inspect_ai.model import ChatMessageUser

    asked = question.epochs[epoch - 1] if question.epochs else ()
    answers = _answers(question, records, benchmark)
    responses = {RecordedAnswers.key(each): answers[RecordedAnswers.key(each)] for each in asked}
    request = question.request(epoch)
    whole = [each for each in question.samples if _is_whole(benchmark, each, responses)] or question.samples
    prompt: list[Any] = messages(request) if request else []
    output = as_output(responses[RecordedAnswers.key(request)], model) if request else None
    failed = [each for each in responses.values() if each.status == "error"]
    failure = "; ".join(dict.fromkeys(each.reason for each in failed))
    usage = _usage(responses.values())
    return EvalSample(
        id=question.id,
        epoch=epoch,
        input=prompt or [ChatMessageUser(content=_as_text(question.samples[0]))],
        target=targets(question.samples[0]),
        messages=[*prompt, output.message] if output else [],
        events=[_event(prompt, output, model)] if output else [],
        **({"output": output} if output is not None else {}),
        scores={SCORER: _score([records[each.id] for each in whole], list(responses.values()), benchmark)},
        metadata=question.metadata,
        store={FIELD: encode_answers(responses)},
        model_usage={model: usage} if usage else {},
        error=EvalError(message=failure, traceback="", traceback_ansi="") if failed else None,
    )


def _event(prompt: list[Any], output: Any, model: str) -> Any:
    """A call of a model, which Inspect's data frames of messages are made of."""
    from inspect_ai.event import ModelEvent
    from inspect_ai.model import GenerateConfig

    return ModelEvent(
        model=model, input=prompt, tools=[], tool_choice="none", config=GenerateConfig(), output=output
    )


def _answers(
    question: InspectQuestion, records: Mapping[str, Record], benchmark: Benchmark
) -> dict[bytes, Response]:
    return {
        RecordedAnswers.key(request): response
        for sample in question.samples
        for request, response in zip(benchmark.requests(sample), records[sample.id].answers, strict=True)
    }


def _is_whole(benchmark: Benchmark, sample: Sample, responses: Mapping[bytes, Response]) -> bool:
    requests = list(benchmark.requests(sample))
    return bool(requests) and all(RecordedAnswers.key(request) in responses for request in requests)


def messages(request: Generate) -> list[Any]:
    """The prompt of a request as Inspect's messages."""
    from inspect_ai.model import ChatMessageAssistant, ChatMessageSystem, ChatMessageUser

    kinds = {"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant}
    if isinstance(request.prompt, str):
        return [ChatMessageUser(content=request.prompt)]
    return [kinds[message.role](content=message.content) for message in request.prompt]


def as_output(response: Response, model: str) -> Any:
    """A response as the output of a model."""
    from inspect_ai.model import (
        ChatCompletionChoice,
        ChatMessageAssistant,
        ContentReasoning,
        ContentText,
        ModelOutput,
    )

    text: Any = response.text
    if response.reasoning:
        text = [ContentReasoning(reasoning=response.reasoning), ContentText(text=response.text)]
    return ModelOutput(
        model=model,
        choices=[
            ChatCompletionChoice(
                message=ChatMessageAssistant(content=text, model=model, source="generate"),
                stop_reason=STOP_REASONS.get(response.status, "unknown"),
            )
        ],
        usage=_usage([response]),
        error=response.reason if response.status in ("refused", "error") else None,
    )


def _usage(responses: Iterable[Response]) -> Any:
    """The tokens of some responses; None where none of them was counted."""
    from inspect_ai.model import ModelUsage

    counts = [(each.tokens_in or 0, each.tokens_out or 0) for each in responses]
    read, written = (sum(each) for each in zip(*counts, strict=True)) if counts else (0, 0)
    if not read + written:
        return None
    return ModelUsage(input_tokens=read, output_tokens=written, total_tokens=read + written)


def _sum_usage(samples: Sequence[Any], model: str) -> dict[str, Any]:
    usages = [sample.model_usage[model] for sample in samples if model in sample.model_usage]
    return {model: sum(usages[1:], usages[0])} if usages else {}


def _score(records: Sequence[Record], responses: Sequence[Response], benchmark: Benchmark) -> Any:
    from inspect_ai.scorer import Score

    failed = [each.status for each in responses if each.status not in ("ok", "truncated")]
    return Score(
        value=_values(records),
        answer="\n\n".join(response.text for response in responses if response.text) or None,
        explanation="\n\n".join(explain(benchmark.metrics, each, each.score.values) for each in records),
        reason=failed[0] if failed else None,
    )


def _values(records: Sequence[Record]) -> dict[str, float | None]:
    """The values of a sample; of several that share their answers, the mean of each."""
    names = dict.fromkeys(name for record in records for name in record.score.values)
    known = {
        name: [value for record in records if (value := record.score.values.get(name)) is not None]
        for name in names
    }
    return {name: sum(values) / len(values) if values else None for name, values in known.items()}


def _reductions(questions: Sequence[InspectQuestion], records: Mapping[str, Record]) -> Any:
    """One score for all epochs of each question."""
    from inspect_ai.log import EvalSampleReductions, EvalSampleScore

    scores = [
        EvalSampleScore(value=_values([records[each.id] for each in question.samples]), sample_id=question.id)
        for question in questions
    ]
    return [EvalSampleReductions(scorer=SCORER, reducer="all_epochs", samples=scores)]


def targets(sample: Sample) -> list[str]:
    """What is right, for the eye."""
    if isinstance(sample.inputs, Inputs):
        return list(sample.inputs.targets())
    return strings_in(exported_inputs(sample).get(EXPECTED))


def _as_text(sample: Sample) -> str:
    """The texts of a sample's inputs, each under its name."""
    inputs = exported_inputs(sample)
    return "\n\n".join(f"{name}: {text}" for name, text in inputs.items() if isinstance(text, str) and text)

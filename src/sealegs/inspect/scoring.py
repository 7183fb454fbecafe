"""Scores and figures of an Inspect task, by the very functions that score a run of Sealegs.

Inspect scores one epoch of one sample at a time, and its metrics see all of them at the end. So a score holds
the answers and those values that need no other sample; the figures are made of all answers together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from itertools import chain
from typing import Any

import msgspec

from sealegs.api.run import summarise
from sealegs.api.setup import make_spec, model_refs, open_models, probe
from sealegs.harness.benchmark import helper_specs, record_type, subject_models
from sealegs.harness.dispatcher import by_role
from sealegs.harness.gate import RequestGate
from sealegs.harness.model import Model
from sealegs.harness.progress import Progress
from sealegs.harness.registry import load_benchmark
from sealegs.harness.scoring import Scored, in_chunks, score_portion
from sealegs.inspect.questions import (
    NOT_RECORDED,
    Answers,
    InspectQuestion,
    answered,
    in_order,
    read_question,
)
from sealegs.models.engines.engine import Engine
from sealegs.models.replay import RecordedAnswers
from sealegs.page.format import number_or_dash
from sealegs.page.metrics import Metric, declaration, scope_name, scope_of
from sealegs.types import (
    Answered,
    Asking,
    Figure,
    ModelRef,
    Record,
    Request,
    Response,
    Sample,
    Score,
    Summary,
)

INSPECT = "inspect"
"""The spec of a helper that is Inspect's model, `inspect:ROLE` of the model in a role there."""
NORMAL = 1.959964
"""Standard errors from a mean to the end of its 95 % interval, where that is symmetric."""


def is_inspect(spec: str) -> bool:
    return spec.partition(":")[0] == INSPECT


class WithoutInspect(Engine):
    """Opens models as ever; Inspect's, which Inspect itself asks, are empty recordings."""

    def _make(self, ref: ModelRef) -> Model:
        return RecordedAnswers({}, {}) if is_inspect(ref.spec) else super()._make(ref)


class ScoringSession:
    """A benchmark with its options and its helpers, for as long as a task runs."""

    def __init__(self, name: str, settings: str) -> None:
        raw = msgspec.json.decode(settings, type=dict[str, Any])
        self.name, self.settings = name, settings
        self._source: dict[str, Any] = raw["source"]
        self.benchmark = load_benchmark(name, raw["options"], seed=raw["seed"])
        refs = model_refs(self.benchmark, name)
        self._helpers = open_models(WithoutInspect(), self.benchmark, name, refs)
        probe(self.benchmark, self._helpers, Progress(), RequestGate())
        self._responses: dict[tuple[str, bytes], Response] = {}
        self._questions: dict[str, InspectQuestion] = {}
        self._subjects = subject_models(self.benchmark)

    @property
    def inspected(self) -> dict[str, str]:
        """The roles that a model of Inspect has, each with the name of its role there, if it has one."""
        specs = helper_specs(self.benchmark).items()
        return {role: spec.partition(":")[2] for role, spec in specs if is_inspect(spec)}

    def expected_headline(self, samples: Sequence[Sample]) -> str:
        """The headline's name before anything is asked: the names of figures need no answers."""

        def unanswered(requests: Sequence[Request]) -> list[Response]:
            return [NOT_RECORDED] * len(requests)

        items = [answered(self.benchmark, sample, {}) for sample in samples]
        scored = score_portion(self.benchmark, items, unanswered)
        return self._headline(summarise(self.benchmark, [each.score for each in scored]))

    def _headline(self, summary: Summary) -> str:
        """The name of the figure that sums up a task: of several methods, that of the first."""
        models = {role: model for role, model in self._helpers.items() if role not in self.inspected}
        spec = make_spec(self.name, self.benchmark, models, self._source, label="model")
        name, subjects = self.benchmark.layout.of_run(spec, summary).headline, [*self._subjects]
        return scope_name(name, {self.benchmark.subjects.tag: subjects[0]}) if subjects else name

    def add(self, questions: Iterable[InspectQuestion]) -> None:
        """Keep questions, to be found by their ids."""
        self._questions.update((question.id, question) for question in questions)

    def question(self, question_id: str | int | None, metadata: Any) -> InspectQuestion:
        """The question of an id; where a log is scored again, it is read from the sample's metadata."""
        if question_id not in self._questions:
            self.add([read_question(self.benchmark, metadata or {})])
        return self._questions[str(question_id)]

    def whole_samples(self, question: InspectQuestion, epoch: int) -> list[Sample]:
        """The samples all of whose requests are asked in one epoch."""
        asked = chain.from_iterable(question.epochs[epoch - 1 : epoch])
        keys = set(map(RecordedAnswers.key, asked))
        requests = self.benchmark.requests
        return [
            each for each in question.samples if keys.issuperset(map(RecordedAnswers.key, requests(each)))
        ]

    def helpers_of_inspect(self, items: Sequence[Answered], answers: Answers) -> Asking[None]:
        """What scoring asks of Inspect's models: yields those requests, and is sent their responses."""
        all_answers = dict(answers)
        scoring: Any = self.benchmark.score(items)
        requests = next(scoring, None) if not isinstance(scoring, list) else None
        while requests is not None:
            asked = [
                r for r in requests if r.role in self.inspected and RecordedAnswers.key(r) not in all_answers
            ]
            if asked:
                responses = yield asked
                all_answers.update(zip(map(RecordedAnswers.key, asked), responses, strict=True))
            try:
                requests = scoring.send(self._answer(requests, all_answers))
            except StopIteration:
                return

    def score(self, questions: Sequence[InspectQuestion], answers: Answers) -> list[Scored]:
        """The scores of all samples of some questions, together."""
        return self.score_samples(in_order(questions), answers)

    def score_samples(self, samples: Sequence[Sample], answers: Answers) -> list[Scored]:
        def answer(requests: Sequence[Request]) -> list[Response]:
            return self._answer(requests, answers)

        portions = (
            [answered(self.benchmark, sample, answers) for sample in chunk]
            for chunk in in_chunks(self.benchmark, samples)
        )
        return [scored for items in portions for scored in score_portion(self.benchmark, items, answer)]

    def figures(self, questions: Sequence[InspectQuestion], answers: Answers) -> dict[str, float]:
        """The figures of all samples of some questions, each with its interval, and the coverage."""
        scores = [scored.score for scored in self.score(questions, answers)]
        summary = summarise(self.benchmark, scores)
        figures = {**with_intervals(summary, self.benchmark.subjects.tag), "coverage": coverage(scores)}
        headline = summary.get(self._headline(summary))
        if headline is not None and (error := standard_error(headline)) is not None:
            figures["stderr"] = error
        return figures

    def values(self, samples: Sequence[Sample], answers: Answers) -> tuple[dict[str, float | None], str]:
        """The values that samples have by themselves, the mean of each, and what to say of them."""
        scored = self.score_samples(samples, answers)
        values: defaultdict[str, list[float]] = defaultdict(list)
        for score, _ in scored:
            for name, value in score.values.items():
                if not self._by_others(name):
                    values[name] += [] if value is None else [value]
        means = {name: sum(each) / len(each) if each else None for name, each in values.items()}
        return means, "\n\n".join(self._explanation(each, means) for each in scored)

    def _by_others(self, name: str) -> bool:
        """Whether a value depends on which other samples there are."""
        metric = declaration(self.benchmark.metrics, name)
        subjects = [name.partition("@")[2]] if "@" in name else list(self._subjects)
        computed = any(not self._subjects.get(subject) for subject in subjects)
        joint = metric is not None and bool(metric.depends_on not in ("", "answers") or metric.mean_over)
        return joint or computed

    def _explanation(self, scored: Scored, names: Collection[str]) -> str:
        record: Record = msgspec.json.decode(scored.line, type=record_type(type(self.benchmark)))
        return explain(self.benchmark.metrics, record, names)

    def _answer(self, requests: Sequence[Request], answers: Answers) -> list[Response]:
        """Answers to what scoring asks: of Inspect's models those in `answers`, of others asked once."""
        for role, group in by_role(requests).items():
            if role not in self.inspected:
                new = {RecordedAnswers.key(r): r for r in group}
                missing = [request for key, request in new.items() if (role, key) not in self._responses]
                for request, response in self._helpers[role].answer(missing) if missing else ():
                    self._responses[role, RecordedAnswers.key(request)] = response
        recorded = RecordedAnswers({}, answers)
        return [
            next(recorded.answer([request]))[1]
            if request.role in self.inspected
            else self._responses[request.role, RecordedAnswers.key(request)]
            for request in requests
        ]


def explain(metrics: Sequence[Metric], record: Record, names: Collection[str]) -> str:
    """Some values of a sample with what they measure, and what went wrong with it; Markdown."""
    lines = [f"**{record.sample.id}**", ""]
    for name in names:
        metric, value = declaration(metrics, name), record.score.values.get(name)
        if metric is not None and value is not None:
            lines.append(f"- `{name}` {number_or_dash(value, metric.unit)}: {metric.title}")
    failed = [answer for answer in record.answers if answer.status not in ("ok", "truncated")]
    reasons = [f"{each.status}: {each.reason}" if each.reason else each.status for each in failed]
    failures = dict.fromkeys([*record.score.failures, *reasons])
    return "\n".join([*lines, *(f"- {failure}" for failure in failures)])


def with_intervals(summary: Summary, subject: str) -> dict[str, float]:
    """The figures of a summary that are not of some samples only, each with the ends of its interval."""
    values: dict[str, float] = {}
    for name, figure in summary.items():
        if figure.value is None or set(scope_of(name)[1]) - {subject}:
            continue
        values[name] = figure.value
        for end, value in (("low", figure.low), ("high", figure.high)):
            if value is not None:
                values[f"{name} ({end})"] = value
    return values


def standard_error(figure: Figure) -> float | None:
    """Half of a figure's 95 % interval over 1.96, which Inspect's tables show; None without an interval."""
    if figure.low is None or figure.high is None:
        return None
    return (figure.high - figure.low) / (2 * NORMAL)


@cache
def open_session(name: str, settings: str) -> ScoringSession:
    """The session of a task; `settings` is the JSON of its options, its seed and its data."""
    return ScoringSession(name, settings)


def coverage(scores: Sequence[Score]) -> float:
    """Answered requests over requests asked."""
    asked = sum(sum(score.statuses.values()) for score in scores)
    return sum(score.answered for score in scores) / asked if asked else 0.0

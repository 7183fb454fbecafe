"""The benchmarks as tasks of Inspect: `inspect eval sealegs/rgb --model …`. Inspect loads this module.

A task asks Inspect's model what the benchmark asks, and its scorer and its metrics are the benchmark's own.
The options of a benchmark, and `data`, `lang`, `limit` and `seed`, are the parameters: `-T ability=noise`.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping, Sequence
from functools import cache
from inspect import Parameter, Signature
from typing import Any

import msgspec
from inspect_ai import Epochs, Task, task
from inspect_ai._util.error import PrerequisiteError
from inspect_ai._util.package import get_installed_package_name
from inspect_ai.dataset import MemoryDataset
from inspect_ai.dataset import Sample as InspectSample
from inspect_ai.log import HeadlineMetric
from inspect_ai.model import ChatMessageUser, GenerateConfig, ModelOutput, get_model
from inspect_ai.model import Model as InspectModel
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, metric, score_reducer, scorer
from inspect_ai.solver import Generate as GenerateFunction
from inspect_ai.solver import Solver, TaskState, solver
from inspect_ai.util import collect
from rich.markup import escape

import sealegs
from sealegs.api.setup import read_samples
from sealegs.errors import CapabilityError, SealegsError, UsageError, suggestion
from sealegs.harness.benchmark import ANSWERS
from sealegs.harness.registry import BENCHMARKS, chosen_class, load_benchmark
from sealegs.inspect.export import SCORER, messages, targets
from sealegs.inspect.outputs import response_of
from sealegs.inspect.questions import (
    FIELD,
    Answers,
    InspectQuestion,
    answered,
    decode_answers,
    encode_answers,
    make_questions,
)
from sealegs.inspect.scoring import ScoringSession, open_session
from sealegs.models.replay import RecordedAnswers
from sealegs.options import describe
from sealegs.text.answers import rule_for
from sealegs.types import Generate, Request, Response, Sample

logger = logging.getLogger(__name__)

CONTINUES = ("openai-api-completions", "vllm-completions", "mockllm")
"""Inspect's providers that continue a plain text; every other puts it into a chat."""
RUN_PARAMETERS: Mapping[str, Any] = {"data": "starter", "lang": None, "limit": None, "seed": 0}


# Tasks


def make_task(name: str) -> Any:
    """The task of a benchmark, whose parameters are its options."""
    cls = chosen_class(name)
    defaults = {option.name: option.default for option in describe(cls.Options)}
    parameters = {**RUN_PARAMETERS, **defaults, **cls.help.inspect}

    def create(**arguments: Any) -> Task:
        arguments.pop("model", None)  # Inspect offers it to every task
        if unknown := next((key for key in arguments if key not in parameters), None):
            hint = suggestion(unknown, parameters)
            raise PrerequisiteError(
                f"sealegs/{name} has no parameter '{unknown}'.{hint} Available: {', '.join(parameters)}."
            )
        try:
            return build_task(name, {**parameters, **arguments})
        except SealegsError as error:  # which Inspect prints without a traceback, as markup of rich
            raise PrerequisiteError(escape(f"sealegs/{name}: {error}")) from error

    create.__name__ = create.__qualname__ = name
    create.__doc__ = cls.layout.question
    create.__signature__ = Signature(  # type: ignore[attr-defined]
        [
            *(Parameter(key, Parameter.KEYWORD_ONLY, default=value) for key, value in parameters.items()),
            Parameter("unknown", Parameter.VAR_KEYWORD),  # refused: Inspect would only warn of them
        ],
        return_annotation=Task,
    )
    # Inspect puts the package's name before the task's, but not for an editable install of sealegs.
    return task(create) if get_installed_package_name(create) else task(name=f"sealegs/{name}")(create)


def build_task(name: str, parameters: Mapping[str, Any]) -> Task:
    """A task from the values of its parameters, as Inspect reads them off its command line."""
    kinds = {option.name: option.type for option in describe(chosen_class(name).Options)}
    options = {key: as_option(value, kinds[key]) for key, value in parameters.items() if key in kinds}
    for key in ("limit", "seed"):
        if type(parameters[key]) is not int and not (key == "limit" and parameters[key] is None):
            raise UsageError(f"{key}={parameters[key]}: must be a whole number.")
    seed = parameters["seed"]
    chosen = {key: parameters[key] for key in RUN_PARAMETERS}  # another choice of data has other questions
    benchmark, lang = load_benchmark(name, options, seed=seed), as_option(parameters["lang"], str)
    samples, source = read_samples(benchmark, name, as_list(parameters["data"]), lang, parameters["limit"])
    settings = msgspec.json.encode({"options": options, "source": source, **chosen}, order="sorted").decode()
    session = open_session(name, settings)
    if "loglikelihood" in frozenset().union(*(benchmark.roles[role] for role in inspected_roles(session))):
        fixes = {option.name: option.without.get("loglikelihood") for option in describe(benchmark.Options)}
        without = " ".join(f"-T {key}={value}" for key, value in fixes.items() if value is not None)
        raise CapabilityError(
            f"{name}: Inspect's models give no log-likelihoods. "
            f"{f'Leave that out ({without}), or use' if without else 'Use'} `sealegs run {name}`.",
            lacking=frozenset({"loglikelihood"}),
        )
    questions = make_questions(benchmark, samples)
    with contextlib.suppress(ValueError):  # no model is chosen yet: it is looked at when it is asked
        check_model(questions[0], get_model())
    session.add(questions)
    epochs = max(len(question.epochs) for question in questions)
    if epochs > 1 and any(len(question.epochs) != epochs for question in questions):
        raise UsageError(f"{name}: some prompts are asked more often than others, which epochs cannot be.")
    if session.inspected and epochs > 1 and not session.whole_samples(questions[0], 1):
        raise UsageError(f"{name}: scoring needs all answers to a prompt: name a model of Sealegs for it.")
    return Task(
        dataset=MemoryDataset([as_sample(session, question) for question in questions], name=name),
        solver=asking(name, settings),
        scorer=benchmark_scorer(name, settings),
        epochs=Epochs(max(1, epochs), [all_epochs()]),
        fail_on_error=False,
        score_on_error=True,
        version=sealegs.__version__,
        headline_metric=HeadlineMetric(scorer=SCORER, metric=session.expected_headline(samples)),
        metadata={FIELD: {"benchmark": name, "data": source, "seed": seed, "options": options}},
        description=benchmark.layout.question,
    )


def inspected_roles(session: ScoringSession) -> list[str]:
    """The roles in which a model of Inspect answers."""
    return [*session.inspected, *(["model"] if "model" in session.benchmark.roles else [])]


def as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def as_option(value: Any, kind: Any) -> Any:
    """A value as an option takes it: Inspect reads YAML, where `1,4,7` is a list and `no` is false."""
    if isinstance(value, bool) and kind is not bool:
        return "yes" if value else "no"
    if value is None or kind is not str:
        return value
    return ",".join(str(each) for each in as_list(value))


def as_sample(session: ScoringSession, question: InspectQuestion) -> InspectSample:
    """A question as Inspect's sample."""
    request = question.request(1) or first_request(session, question)
    prompt = messages(request) if request else [ChatMessageUser(content=question.id)]
    return InspectSample(
        id=question.id, input=prompt, target=targets(question.samples[0]), metadata=question.metadata
    )


def first_request(session: ScoringSession, question: InspectQuestion) -> Generate | None:
    """What a benchmark that asks only while it scores asks Inspect's model first."""
    items = [answered(session.benchmark, sample, {}) for sample in question.samples]
    for requests in session.helpers_of_inspect(items, {}):
        return next((request for request in requests if isinstance(request, Generate)), None)
    return None


# Asking


def as_config(request: Generate) -> GenerateConfig:
    sampling = request.sampling
    return GenerateConfig(
        temperature=sampling.temperature,
        max_tokens=sampling.max_tokens,
        top_p=sampling.top_p if sampling.top_p != 1 else None,
        stop_seqs=list(sampling.stop) or None,
    )


def check_model(question: InspectQuestion, model: InspectModel) -> None:
    """Refuse a chat before anything is asked, where a plain text is to be continued."""
    request = question.request(1)
    if request is not None and isinstance(request.prompt, str):
        check_continues(model)


def check_continues(model: InspectModel) -> None:
    provider = str(model).partition("/")[0]
    if provider not in CONTINUES:
        raise CapabilityError(
            f"this benchmark has a model continue a plain text, and Inspect's provider '{provider}' puts "
            f"every text into a chat. Available: {', '.join(CONTINUES)}; or `sealegs run` without Inspect.",
            lacking=frozenset({"generate"}),
        )


async def generated(model: InspectModel, request: Generate) -> ModelOutput:
    if isinstance(request.prompt, str):
        check_continues(model)
    return await model.generate(messages(request), config=as_config(request))


def as_response(output: ModelOutput, request: Generate) -> Response:
    return response_of(output, plain=isinstance(request.prompt, str))


async def ask_helpers(
    session: ScoringSession, samples: Sequence[Sample], answers: Answers, state: TaskState | None = None
) -> dict[bytes, Response]:
    """Have Inspect's models answer what scoring these samples asks of them; the messages go into `state`."""
    items = [answered(session.benchmark, sample, answers) for sample in samples]
    asking = session.helpers_of_inspect(items, answers)
    helped: dict[bytes, Response] = {}
    requests = next(asking, None)
    while requests is not None:
        outputs = await collect(*(_ask_helper(session, request) for request in requests))
        pairs = list(zip(map(as_generate, requests), outputs, strict=True))
        responses = [as_response(output, request) for request, output in pairs]
        helped.update(zip(map(RecordedAnswers.key, requests), responses, strict=True))
        if state is not None:
            state.output = outputs[-1]
            state.messages = [
                *(state.messages if len(helped) > len(requests) else []),
                *(message for request, out in pairs for message in (*messages(request), out.message)),
            ]
        try:
            requests = asking.send(responses)
        except StopIteration:
            break
    return helped


async def _ask_helper(session: ScoringSession, request: Request) -> ModelOutput:
    role = session.inspected[request.role]
    return await generated(get_model(role=role) if role else get_model(), as_generate(request))


def as_generate(request: Request) -> Generate:
    """A request to a model of Inspect, which can only write: `build_task` refuses what needs more."""
    assert isinstance(request, Generate)
    return request


@cache
def warn_of_epochs(benchmark: str, count: int) -> None:
    """Say once that a number of epochs is the benchmark's to choose."""
    logger.warning(
        "%s asks each prompt as often as its options say (%d): further epochs ask nothing. Leave out "
        "--epochs, and set the number with -T repeats=N.",
        benchmark,
        count,
    )


def _asking(benchmark: str, settings: str) -> Solver:
    """Ask what the benchmark asks in this epoch; where it asks only while it scores, that."""
    session = open_session(benchmark, settings)

    async def solve(state: TaskState, generate: GenerateFunction) -> TaskState:
        question = session.question(state.sample_id, state.metadata)
        if not question.epochs:
            answers = await ask_helpers(session, question.samples, {}, state)
            state.store.set(FIELD, encode_answers(answers))
            return state
        request = question.request(state.epoch)
        if request is None:
            warn_of_epochs(benchmark, len(question.epochs))
            return state
        state.output = await generated(get_model(), request)
        state.messages.append(state.output.message)
        return state

    return solve


# Scoring


def _benchmark_scorer(benchmark: str, settings: str) -> Scorer:
    """The values of what one epoch asked, as far as they need no other sample, and its answers."""
    session = open_session(benchmark, settings)

    async def score(state: TaskState, target: Target) -> Score:
        question = session.question(state.sample_id, state.metadata)
        answers = decode_answers(state.store.get(FIELD, {}))
        request = question.request(state.epoch)
        if request is not None:
            answers[RecordedAnswers.key(request)] = as_response(state.output, request)
        samples = session.whole_samples(question, state.epoch)
        if session.inspected and question.epochs:
            answers |= await ask_helpers(session, samples, answers)
            state.store.set(FIELD, encode_answers(answers))
        return as_score(session, question, samples, answers)

    return score


def as_score(
    session: ScoringSession, question: InspectQuestion, samples: Sequence[Sample], answers: Answers
) -> Score:
    """The values of some samples of a question; of an epoch that is only a part of one, whether it counts."""
    rules = {RecordedAnswers.key(each): rule_for(each) for asked in question.epochs for each in asked}
    rules = rules or dict.fromkeys(answers, ANSWERS)
    responses = [answers[key] for key in rules if key in answers]
    counts = [rules[key].counts(answers[key]) for key in rules if key in answers]
    values: dict[str, float | None] = {"answered": sum(counts) / len(counts) if counts else 0.0}
    explanation = ""
    if samples:
        by_themselves, explanation = session.values(samples, answers)
        values |= by_themselves
    failed = [response for response in responses if response.status not in ("ok", "truncated")]
    return Score(
        value=values,
        answer="\n\n".join(response.text for response in responses) or None,
        explanation=explanation or None,
        reason=failed[0].status if failed else None,
        metadata={
            FIELD: {
                "benchmark": session.name,
                "settings": session.settings,
                "question": question.id,
                "answers": encode_answers(answers),
            }
        },
    )


def session_of(score: Score) -> ScoringSession:
    fields = (score.metadata or {})[FIELD]
    return open_session(fields["benchmark"], fields["settings"])


def answers_of(scores: Sequence[Score]) -> dict[bytes, Response]:
    """The answers that scores hold."""
    answers: dict[bytes, Response] = {}
    for each in scores:
        answers |= decode_answers((each.metadata or {})[FIELD]["answers"])
    return answers


def _all_epochs() -> Any:
    """All epochs of a question as one score: the values that its samples have by themselves."""

    def reduce(scores: list[Score]) -> Score:
        session = session_of(scores[0])
        question = session.question((scores[0].metadata or {})[FIELD]["question"], None)
        if len(question.epochs) <= 1:
            return scores[0]
        return as_score(session, question, question.samples, answers_of(scores))

    return reduce


def _figures() -> Metric:
    """The benchmark's figures, of all answers together, each with its 95 % interval; and the coverage."""

    def compute(scores: list[SampleScore]) -> Any:
        if not scores:
            return {}
        session = session_of(scores[0].score)
        questions = {
            each.sample_id: session.question(each.sample_id, each.sample_metadata) for each in scores
        }
        try:
            return session.figures(list(questions.values()), answers_of([each.score for each in scores]))
        except SealegsError as error:
            logger.warning("%s: no figures: %s", session.name, error)
            return {}

    return compute


def _answered() -> Metric:
    """The share of the questions' requests that were answered."""

    def compute(scores: list[SampleScore]) -> Any:
        shares = [each.score.as_dict()["answered"] for each in scores]
        return sum(float(share or 0) for share in shares) / len(shares) if shares else 0.0

    return compute


asking = solver(name="ask")(_asking)
all_epochs = score_reducer(name="sealegs/all_epochs")(_all_epochs)
all_figures = metric(name="figures", scores="unreduced")(_figures)
answered_share = metric(name="answered", scores="reduced")(_answered)
benchmark_scorer = scorer(metrics=[all_figures(), answered_share()], name=SCORER)(_benchmark_scorer)

mirae, rgb, miron, multiview = map(make_task, BENCHMARKS)

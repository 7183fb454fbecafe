"""What a benchmark is: six members to write, and defaults for the rest.

A benchmark says which samples there are, what is asked of a model for one of them, and how answers become
scores. It knows no engine, no provider and no file of the run. What scoring needs beyond the first answers
(embeddings, verdicts) it yields as further requests, which take the same path as the first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from itertools import chain
from typing import Any, ClassVar, Generic, NamedTuple, TypeAlias, get_args, get_origin

import msgspec
from msgspec import Struct

from sealegs.errors import UsageError
from sealegs.files.datasets import Starter
from sealegs.harness.data import Data
from sealegs.harness.plugins import load
from sealegs.harness.published import Publishing, Recordings
from sealegs.options import describe, document
from sealegs.page.format import TAG_WORDS, tag_name, uncapitalised
from sealegs.page.layout import Column, Layout, Note, Table
from sealegs.page.metrics import Metric
from sealegs.page.view import View, generic_view
from sealegs.text.answers import Rule
from sealegs.types import (
    Answered,
    Asking,
    Capability,
    DetailT,
    InputsT,
    Record,
    Request,
    Response,
    RunSpec,
    Sample,
    Score,
    Summary,
)

Scoring: TypeAlias = Asking[list[Score]]
ANSWERS = Rule(truncated=True)
"""Which texts count as answers, where a benchmark does not decide otherwise."""


class Subjects(NamedTuple):
    """What is under test, where it is not one model: the values of an option, set side by side.

    A subject has scores `METRIC@NAME`, and figures with the tag of its name.
    """

    tag: str = "model"
    """The option, and the tag of their figures; `model` where one model is under test."""
    models: Callable[[Any], Mapping[str, Mapping[str, str]]] = lambda options: {}
    """Of a benchmark's options: the name of each subject, with the specs of its models by their roles."""


class Help(NamedTuple):
    """What the command line says of a benchmark, and how it is run where nobody sets its options."""

    about: str = ""
    """Follows the question in the help of `run`."""
    examples: Mapping[str, Sequence[str]] = {}
    """By command: `{"run": ["sealegs run …"]}`."""
    demo: Mapping[str, Any] = {}
    """Arguments of `run` for a small run on the embedded models, in which answers may end by themselves: few
    enough tokens that all of `sealegs demo` take about a minute. Empty: not part of it."""
    inspect: Mapping[str, Any] = {}
    """Options of its task for Inspect that differ from those of `run`: Inspect's models give neither
    log-probabilities of a text nor a count of its tokens."""
    limit: str = "questions of each language"
    """What `--limit` counts."""


class Benchmark(Generic[InputsT, DetailT]):
    """A benchmark with its options set. The first line of a subclass's docstring is its question.

    Write `Options`, `roles`, `metrics`, `samples`, `requests` and `score`; everything else has a default. A
    subclass of `Benchmark[MyInputs, MyDetail]` has typed inputs (see `Inputs`) and a typed detail of scores;
    one of `Benchmark` has dictionaries.
    """

    Options: ClassVar[type[Struct]]
    """The options of the command line and of Python, each with its description."""
    roles: Mapping[str, Set[Capability]]
    """What the model in each role must be able to do. The role `model` is the one under test; an option of
    the same name says who has any other role."""
    metrics: ClassVar[Sequence[Metric]]
    """What is measured; the first is the headline, unless the layout of a run chooses another."""

    layout: ClassVar[Layout]
    """What is shown. Default: the metrics, and a table for each tag that they are broken down by."""
    starter: ClassVar[Starter] = Starter({}, lambda stem: b"")
    """The data set that its generator makes of seed 0."""
    recordings: ClassVar[Recordings | None] = Recordings()
    """Reads answers that were recorded elsewhere; None where there is no format for them."""
    publishing: ClassVar[Publishing] = Publishing()
    """Writes a run in published formats."""
    builder: ClassVar[str] = ""
    """The `Builder` class that makes its data sets, as `module:Class`: it is imported when it is used."""
    subjects: ClassVar[Subjects] = Subjects()
    """What is under test, where it is not the role `model`."""
    help: ClassVar[Help] = Help()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "metrics" in vars(cls) and "layout" not in vars(cls):
            cls.layout = _layout(cls)
        if "layout" in vars(cls):
            TAG_WORDS.update(cls.layout.words)
        if "Options" in vars(cls):
            document(cls.Options)

    def __init__(self, options: Any, *, seed: int = 0) -> None:
        self.options = options
        self.seed = seed

    # The three questions that every benchmark answers.

    def samples(self, data: Data) -> list[Sample[InputsT]]:
        """Which samples are there? All of the files, unless it returns `ChosenSamples`."""
        raise NotImplementedError

    def requests(self, sample: Sample[InputsT]) -> Sequence[Request]:
        """What is asked for one of them?"""
        raise NotImplementedError

    def score(self, answered: Sequence[Answered[InputsT]]) -> Scoring | list[Score]:
        """How do answers become scores? A generator may yield further requests."""
        raise NotImplementedError

    # Defaults.

    def summarise(self, scores: Sequence[Score]) -> Summary:
        """The figures. Empty: the mean of each metric, over all samples and by each of its tags."""
        return {}

    @staticmethod
    def notes(spec: RunSpec, summary: Summary) -> list[Note]:
        """What to say beside the figures of this very run."""
        return []

    @classmethod
    def view(cls, record: Record, related: Sequence[Record] = ()) -> View:
        """One sample as it is shown, beside related ones. Default: its texts, answers and values."""
        return generic_view(record, related, cls.metrics, msgspec.to_builtins(record.sample.inputs))


def make_score(item: Answered, rule: Rule = ANSWERS, /, **values: float | None) -> Score:
    """The score of one sample, for `Benchmark.score`: `make_score(item, right=item.text == "yes")`.

    Unless every request was answered, each value is None: a failure is never a score.
    """
    responses = item.responses
    failed = [answer for answer in responses if not rule.counts(answer) and not _other_answer(answer)]
    statuses = (rule.status(answer) if answer in failed else answer.status for answer in responses)
    return Score(
        sample_id=item.sample.id,
        group=item.sample.group,
        tags=item.sample.tags,
        values={name: None if failed or value is None else float(value) for name, value in values.items()},
        statuses=Counter(statuses),
        answered=len(responses) - len(failed),
        failures=tuple(chain.from_iterable(map(rule.failure, failed))),
    )


def _other_answer(response: Response) -> bool:
    """Log-probabilities, a vector, a rank or labels: an answer that is not a text."""
    others = (response.logprobs, response.string, response.vector, response.rank)
    return response.status == "ok" and any(other is not None for other in others)


# What is read of a benchmark


def inputs_type(cls: type[Benchmark]) -> Any:
    """The type of its samples' inputs."""
    return _types(cls)[0]


def sample_type(cls: type[Benchmark]) -> Any:
    return Sample[_types(cls)[0]]  # type: ignore[misc]


def record_type(cls: type[Benchmark]) -> Any:
    inputs, detail = _types(cls)
    return Record[inputs, detail | None]  # type: ignore[valid-type]


def _types(cls: type[Benchmark]) -> tuple[Any, Any]:
    """The inputs and the detail of `Benchmark[Inputs, Detail]`; dictionaries where they are not given."""
    for base in chain.from_iterable(vars(each).get("__orig_bases__", ()) for each in cls.__mro__):
        if get_origin(base) is Benchmark:
            inputs, detail, *_ = (*get_args(base), dict[str, Any])
            return inputs, detail
    return dict[str, Any], dict[str, Any]


def builder_class(cls: type[Benchmark]) -> Any:
    """The class that makes its data sets."""
    if not cls.builder:
        raise UsageError(f"{cls.__name__} has no builder of data sets.")
    return load(cls.builder)


def subject_models(benchmark: Benchmark) -> Mapping[str, Mapping[str, str]]:
    """The specs by role of each subject that is set side by side; empty where one model is under test."""
    return benchmark.subjects.models(benchmark.options)


def helper_specs(benchmark: Benchmark) -> dict[str, str]:
    """The spec of the model in each role but `model`."""
    if benchmark.subjects.tag != "model":
        models = subject_models(benchmark).values()
        return {role: spec for of_subject in models for role, spec in of_subject.items()}
    roles = [role for role in benchmark.roles if role != "model"]
    if missing := [role for role in roles if not hasattr(benchmark.options, role)]:
        raise UsageError(f"{type(benchmark).__name__} has a role '{missing[0]}' and no option of that name.")
    return {role: getattr(benchmark.options, role) for role in roles}


def degraded(benchmark: Benchmark, lacking: Set[Capability]) -> Benchmark | None:
    """The same with less, for a model that lacks these capabilities: each option that needs one has the value
    that it declares for that. None where a capability is needed in any case, or a person asked for it."""
    changes, dispensable = {}, set()
    for option in describe(benchmark.Options):
        for capability, value in option.without.items():
            if capability in lacking and getattr(benchmark.options, option.name) == option.default:
                changes[option.name] = value
                dispensable.add(capability)
    if dispensable != lacking:
        return None
    return type(benchmark)(msgspec.structs.replace(benchmark.options, **changes), seed=benchmark.seed)


def _layout(cls: type[Benchmark]) -> Layout:
    breakdowns = dict.fromkeys(tuple(tags) for metric in cls.metrics for tags in metric.by if len(tags) < 3)
    return Layout(
        metrics=tuple(cls.metrics),
        question=(cls.__doc__ or cls.__name__).strip().partition("\n")[0],
        name=cls.__name__,
        counted=("samples", "groups"),
        tables=tuple(
            Table(
                title=f"By {' and '.join(map(tag_name, tags))}",
                rows=tags[0],
                columns="".join(tags[1:]),
                metrics=tuple(Column(m.name, uncapitalised(m.title)) for m in cls.metrics if tags in m.by),
            )
            for tags in breakdowns
        ),
    )

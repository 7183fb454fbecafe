"""What a benchmark is: six members to write, and defaults for the rest.

A benchmark says which samples there are, what is asked of a model for one of them, and how answers become
scores. It knows no engine, no provider and no file of the run. What scoring needs beyond the first answers
(embeddings, verdicts) it yields as further requests, which take the same path as the first.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeAlias

import msgspec
from msgspec import Struct

from evenkeel.errors import DataError, UsageError, suggestion
from evenkeel.files.datasets import DataFile, Starter, data_file
from evenkeel.files.tables import Row, read_rows
from evenkeel.options import document
from evenkeel.page.layout import Column, Layout, Note, Table
from evenkeel.page.metrics import Metric
from evenkeel.page.view import View, generic_view
from evenkeel.text.answers import Rule
from evenkeel.types import (
    Answered,
    Asking,
    Capability,
    Record,
    Records,
    Request,
    Response,
    RunSpec,
    Sample,
    Score,
    Summary,
    Tag,
)

Scoring: TypeAlias = Asking[list[Score]]


class Recorded(NamedTuple):
    """Answers that were given elsewhere, read from one file in a published format."""

    model: str
    """The name of the model that gave them, as far as the file says."""
    samples: list[Sample]
    """Figures that the file itself gives are in the field `published` of a sample's inputs."""
    responses: list[list[Response]]
    """For each sample, a response to each of its requests."""
    embedder: str = ""
    """The embedder behind the figures that the file itself gives, as far as it says."""
    warnings: Sequence[str] = ()
    """What of the file could not be read, and where."""


class Data(tuple[DataFile, ...]):
    """The files to read samples from, with what a person chose of them."""

    langs: list[str] | None
    limit: int | None

    def __new__(
        cls, files: Sequence[DataFile], *, langs: list[str] | None = None, limit: int | None = None
    ) -> Data:
        data = super().__new__(cls, files)
        data.langs, data.limit = langs, limit
        return data

    @property
    def only_lang(self) -> str | None:
        """The language of files that do not state theirs: the chosen one, where it is a single one."""
        return self.langs[0] if self.langs and len(self.langs) == 1 else None

    def choose_langs(self, available: Iterable[str]) -> list[str]:
        """The chosen languages, each of which must be available; all of them where none was chosen."""
        langs = list(dict.fromkeys(available))
        for lang in self.langs or ():
            if lang not in langs:
                raise UsageError(
                    f"--lang {lang}: the data has no such language.{suggestion(lang, langs)} "
                    f"Available: {', '.join(filter(None, langs)) or 'none'}."
                )
        return self.langs or langs

    def rows(self) -> Iterator[Row]:
        """The rows of all files: JSON lines, CSV or Parquet; of several files, named after the file too."""
        for file in self:
            prefix = f"{file.path.stem}-" if len(self) > 1 else ""
            yield from (row._replace(name=f"{prefix}{row.name}") for row in read_rows(file.path))


class Benchmark:
    """A benchmark with its options set. The first line of a subclass's docstring is its question.

    Write `Options`, `roles`, `metrics`, `samples`, `requests` and `score`; everything else has a default.
    """

    Options: ClassVar[type[Struct]]
    """The options of the command line and of Python, each with its description."""
    renamed: ClassVar[Mapping[str, str]] = {}
    """Former names of options, with those of today: stored runs have them."""
    roles: Mapping[str, Set[Capability]]
    """What the model in each role must be able to do. The role `model` is the one under test; an option of
    the same name says who has any other role."""
    metrics: ClassVar[Sequence[Metric]]
    """What is measured; the first is the headline, unless `layout_for` chooses another for a run."""

    Inputs: ClassVar[Any] = dict[str, Any]
    """The struct of a sample's inputs."""
    Detail: ClassVar[Any] = dict[str, Any] | None
    """The struct of what is kept with a score to be shown."""
    answers: ClassVar[Rule] = Rule(truncated=True)
    """Which texts count as answers."""
    layout: ClassVar[Layout]
    """What is shown. Default: the metrics, and a table for each tag that they are broken down by."""
    starter: ClassVar[Starter] = Starter({}, lambda stem: b"")
    """The data set that its generator makes of seed 0."""
    tables: ClassVar[bool] = True
    """Whether `samples` reads CSV and Parquet files, as `Data.rows` does; if not, they become JSON lines."""
    subject: ClassVar[str] = "model"
    """What is under test: the role `model`, or the option (and tag) whose values are set side by side. Such a
    value has scores `METRIC@VALUE`; the roles that it needs are in its name, joined by `+`, unless `roles_of`
    says otherwise."""
    about: ClassVar[str] = ""
    """What the help of `run` says further, after the question."""
    has_recordings: ClassVar[bool] = True
    """Whether `recorded` reads files of answers."""
    covered: ClassVar[Sequence[str]] = ()
    """Metrics that must reach the coverage floor beside the headline, where the run has them."""
    usage: ClassVar[Mapping[str, Sequence[str]]] = {}
    """Examples of use by command: `{"run": ["evenkeel run …"]}`."""
    demo: ClassVar[Mapping[str, Any]] = {}
    """Arguments of `run` for a small run on the embedded models, in which answers may end by themselves: few
    enough tokens that all of `evenkeel demo` take about a minute. Empty: not part of it."""
    inspect_options: ClassVar[Mapping[str, Any]] = {}
    """Options of its task for Inspect that differ from those of `run`: Inspect's models give neither
    log-probabilities of a text nor a count of its tokens."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "metrics" in vars(cls) and "layout" not in vars(cls):
            cls.layout = _layout(cls)
        if "Options" in vars(cls):
            document(cls.Options)

    def __init__(self, options: Any, *, seed: int = 0) -> None:
        self.options = options
        self.seed = seed

    # The three questions that every benchmark answers.

    def samples(self, data: Data) -> list[Sample]:
        """Which samples are there?"""
        raise NotImplementedError

    def requests(self, sample: Sample) -> Sequence[Request]:
        """What is asked for one of them?"""
        raise NotImplementedError

    def score(self, answered: Sequence[Answered]) -> Scoring | list[Score]:
        """How do answers become scores? A generator may yield further requests."""
        raise NotImplementedError

    # Defaults.

    @cached_property
    def helpers(self) -> Mapping[str, str]:
        """The spec of the model in each role but `model`."""
        roles = [role for role in self.roles if role != "model"]
        if missing := [role for role in roles if not hasattr(self.options, role)]:
            raise UsageError(f"{type(self).__name__} has a role '{missing[0]}' and no option of that name.")
        return {role: getattr(self.options, role) for role in roles}

    @property
    def subjects(self) -> tuple[str, ...]:
        """The names of what is under test; empty where that is the model."""
        return () if self.subject == "model" else tuple(getattr(self.options, self.subject))

    def roles_of(self, subject: str) -> Sequence[str]:
        """The roles that a subject needs."""
        return subject.split("+")

    def choose(self, samples: Sequence[Sample], data: Data) -> Sequence[Sample]:
        """The samples of the chosen languages, and of each language the first `limit` groups."""
        langs = data.choose_langs(str(sample.tags.get("lang", "")) for sample in samples)
        groups: defaultdict[str, dict[str, int]] = defaultdict(dict)
        chosen = []
        for sample in samples:
            lang = str(sample.tags.get("lang", ""))
            if lang not in langs:
                continue
            number = groups[lang].setdefault(sample.group, len(groups[lang]))
            if data.limit is None or number < data.limit:
                chosen.append(sample)
        return chosen

    def about_data(self, samples: Sequence[Sample]) -> dict[str, Any]:
        """What the run's spec says of the data besides its hash: facts that `notes` speaks of."""
        return {}

    def scored(self, item: Answered, **values: float | None) -> Score:
        """The score of one sample. Unless every request was answered, each value is None: a failure is never
        a score."""
        rule, responses = self.answers, item.responses
        failed = [answer for answer in responses if not rule.counts(answer) and not _other_answer(answer)]
        statuses = (rule.status(answer) if answer in failed else answer.status for answer in responses)
        return Score(
            sample_id=item.sample.id,
            group=item.sample.group,
            tags=item.sample.tags,
            values={
                name: None if failed or value is None else float(value) for name, value in values.items()
            },
            statuses=Counter(statuses),
            answered=len(responses) - len(failed),
            failures=tuple(chain.from_iterable(map(rule.failure, failed))),
        )

    def summarise(self, scores: Sequence[Score]) -> Summary:
        """The figures. Empty: the mean of each metric, over all samples and by each of its tags."""
        return {}

    @classmethod
    def layout_for(cls, spec: RunSpec, summary: Summary) -> Layout:
        """What is shown of a run; its first metric is the run's headline. Default: `layout`.

        It has all metrics of `layout`. Runs with different headlines are compared by that of `layout`, so
        this must be valid for every run.
        """
        return cls.layout

    @staticmethod
    def notes(spec: RunSpec, summary: Summary) -> list[Note]:
        """What to say beside the figures of this very run."""
        return []

    @classmethod
    def view(cls, record: Record, related: Sequence[Record] = ()) -> View:
        """One sample as it is shown, beside related ones. Default: its texts, answers and values."""
        return generic_view(record, related, cls.metrics, msgspec.to_builtins(record.sample.inputs))

    @classmethod
    def in_short(cls, inputs: Mapping[str, Any], tags: Mapping[str, Tag]) -> tuple[str, str]:
        """The question of a sample and the expected answer, for tables. Empty: its first text, and none."""
        return "", ""

    @classmethod
    def setting(cls, inputs: Mapping[str, Any], tags: Mapping[str, Tag]) -> str:
        """What distinguishes a sample from others with the same question, in words. Default: nothing."""
        return ""

    def without(self, capabilities: frozenset[Capability]) -> Benchmark | None:
        """The same with less, for a model that lacks these capabilities; None where that makes no sense."""
        return None

    def recorded(self, path: Path, *, lang: str | None) -> Recorded:
        """Answers recorded elsewhere. Default: rows of the data with a field `answer` or `answers` more."""
        samples = list(self.samples(Data([data_file(path)], langs=[lang] if lang else None)))
        rows = list(read_rows(path))
        if len(rows) != len(samples):
            raise DataError(path, f"{len(samples)} samples in {len(rows)} rows: a row must be one sample.")
        responses = []
        for row, sample in zip(rows, samples, strict=True):
            answers = row.fields.get("answers", [row.fields.get("answer")])
            count = len(list(self.requests(sample)))
            if not isinstance(answers, list) or len(answers) != count:
                raise row.error(f"'answer' or 'answers' must hold {count}, one for each request.")
            responses.append([_recorded(answer) for answer in answers])
        return Recorded(model=path.stem, samples=samples, responses=responses)

    @classmethod
    def published_result(cls, path: Path) -> tuple[str, Summary]:
        """The model of a results file of the published data set, and its figures as the file states them."""
        raise NotImplementedError

    def combined(self, recordings: Sequence[Recorded]) -> Recorded | None:
        """Recordings of one model as one. None: they are scored one by one, as the default is."""
        return None

    @classmethod
    def asked(cls, inputs: Any) -> Any:
        """What a sample asks, made short: runs are paired by samples that ask the same. Default: a digest."""
        fields = msgspec.to_builtins(inputs)
        # The figures that a recorded file gives of its answers are not part of the question, and neither are
        # a baseline that is made from the other samples.
        fields = {name: value for name, value in fields.items() if name not in ("published", "baseline")}
        return hashlib.sha256(msgspec.json.encode(fields, order="deterministic")).digest()

    @classmethod
    def asks_same(cls, first: Any, second: Any) -> bool:
        """Whether two samples of one id ask the same, from what `asked` gives of each."""
        return bool(first == second)

    def publish(self, spec: RunSpec, records: Records) -> Iterator[tuple[str, Iterator[bytes]]]:
        """The run in the published formats, file names and contents. Default: what `recorded` reads."""
        yield "answers.jsonl", (_answers_line(record) for record in records())

    @classmethod
    def builder(cls) -> Any:
        """The `Builder` class that makes its data sets."""
        raise UsageError(f"{cls.__name__} has no builder of data sets.")

    @classmethod
    def tokenizers(cls) -> Any:
        """The module that compares tokenizers on its data, without a model; None where there is none."""
        return None


def _recorded(answer: Any) -> Response:
    if not isinstance(answer, str):
        return Response(status="error", reason="not recorded")
    return Response(status="ok", text=answer)


def _answers_line(record: Record) -> bytes:
    inputs = {"id": record.sample.id, **msgspec.to_builtins(record.sample.inputs)}
    texts = [answer.text if answer.status in ("ok", "truncated") else None for answer in record.answers]
    return msgspec.json.encode({**inputs, "answers": texts}) + b"\n"


def _layout(cls: type[Benchmark]) -> Layout:
    tags = dict.fromkeys(tag for metric in cls.metrics for tag in metric.by)
    return Layout(
        metrics=tuple(cls.metrics),
        question=(cls.__doc__ or cls.__name__).strip().partition("\n")[0],
        name=cls.__name__,
        counted=("samples", "groups"),
        tables=tuple(
            Table(
                title=f"By {tag}",
                rows=tag,
                metrics=tuple(Column(m.name, m.title.lower()) for m in cls.metrics if tag in m.by),
            )
            for tag in tags
        ),
    )


def _other_answer(response: Response) -> bool:
    """Log-probabilities, a vector, a rank or labels: an answer that is not a text."""
    others = (response.logprobs, response.string, response.vector, response.rank)
    return response.status == "ok" and any(other is not None for other in others)

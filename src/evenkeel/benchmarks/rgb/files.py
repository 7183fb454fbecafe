"""RGB's files: questions with their documents, prompts, and the predictions of the published script.

The kind of a data set is recognised by its fields, never by its name: `positive_wrong` makes it
counterfactual ("fact"), groups of documents in `positive` make it an integration set ("int"), anything else
is "plain".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import Struct, field

from evenkeel.errors import DataError, UsageError, explain
from evenkeel.files import datasets, package_data
from evenkeel.files.cache import slug
from evenkeel.files.jsonfile import convert, json_lines
from evenkeel.files.tables import read_text
from evenkeel.files.yamlfile import read_entries
from evenkeel.text.prompts import fill
from evenkeel.types import Message, Record, Sample

Kind: TypeAlias = Literal["plain", "int", "fact"]
Lang: TypeAlias = Literal["en", "zh"]
DocKind: TypeAlias = Literal["positive", "negative", "wrong"]
"""A document has the answer, does not have it, or has the false one."""
Answer: TypeAlias = tuple[tuple[str, ...], ...]
"""Parts that must all be given; of a part, any one of its alternatives."""
RawAnswer: TypeAlias = str | list[str | list[str]]
"""An answer as files write it: a text, a list of parts, or a list of lists of alternatives."""

PUBLISHED_PROMPTS = "config/instruction.yaml"
INSTANCE_SHAPE = (
    "each line is a JSON object with its own 'id', a 'query', an 'answer' (a text, a list whose parts must "
    "all be found, or a list of lists of alternatives), lists of documents 'positive' and 'negative', and, "
    "in a counterfactual set, 'fakeanswer' and as many 'positive_wrong' as 'positive'"
)
PREDICTION_SHAPE = (
    "each line is a JSON object as the published script writes it, with 'id', 'query', 'ans', 'label', "
    "'prediction', 'docs', 'noise_rate' and 'factlabel'"
)
PROMPTS_SHAPE = (
    "for each language (en, zh) a 'system' text and an 'instruction' with {DOCS} and {QUERY}, and, if "
    "wanted, a text 'closed' with {QUERY}"
)


def parts(answer: RawAnswer | None) -> Answer:
    """An answer as parts, each with its alternatives."""
    listed = [answer] if isinstance(answer, str) else answer or []
    return tuple((part,) if isinstance(part, str) else tuple(part) for part in listed)


def _check_answer(name: str, answer: RawAnswer) -> None:
    listed = parts(answer)
    if not listed or not all(listed):
        raise ValueError(f"the field '{name}' is an empty list")
    if not all(alternative.strip() for part in listed for alternative in part):
        raise ValueError(f"the field '{name}' holds an empty text")


# Prompts


class Prompts(Struct, frozen=True, forbid_unknown_fields=True):
    """What is asked in one language."""

    system: str
    instruction: str
    closed: str = ""
    """Asks without documents; empty: the instruction with none, and no system text, as published."""

    def __post_init__(self) -> None:
        for name in ("{DOCS}", "{QUERY}"):
            if name not in self.instruction:
                raise ValueError(f"the instruction lacks {name}")
        if self.closed and "{QUERY}" not in self.closed:
            raise ValueError("the text 'closed' lacks {QUERY}")

    def messages(self, query: str, docs: Sequence[str], *, closed: bool) -> tuple[Message, ...]:
        """`closed` asks for what is known; a search that found nothing is asked about like any other."""
        if closed:
            return (Message("user", fill(self.closed or self.instruction, QUERY=query, DOCS="")),)
        question = fill(self.instruction, QUERY=query, DOCS="\n".join(docs))
        return (Message("system", self.system), Message("user", question))


def load_prompts(source: str) -> dict[str, Prompts]:
    """By language: those of this package (`own`), the `published` ones from the fetched data, or a file's."""
    path = Path(source)
    if source == "own":
        path = package_data.data_path(__package__, "prompts.yaml")
    elif source == "published":
        path = datasets.published_path("rgb", PUBLISHED_PROMPTS)
    prompts: dict[str, Prompts] = {}
    for line, lang, raw in read_entries(path, read_text(path)) or ():
        if not lang:
            break
        if lang in prompts:
            raise DataError(path, f"the language '{lang}' appears twice.", line=line)
        try:
            prompts[lang] = msgspec.convert(raw, Prompts)
        except msgspec.ValidationError as error:
            fault = explain(error, raw)
            problem = f"{fault.problem}. Expected {PROMPTS_SHAPE}."
            raise DataError(path, problem, line=line, where=fault.field) from None
    if not prompts:
        raise DataError(path, f"Expected {PROMPTS_SHAPE}.")
    return prompts


# Questions


class Instance(Struct, frozen=True, kw_only=True):
    """One question with its documents, as a line of a data set has it."""

    id: int | str
    query: str
    raw_answer: RawAnswer = field(name="answer")
    raw_positive: tuple[str | tuple[str, ...], ...] = field(name="positive")
    """Documents that have the answer; in an integration set a group of them for each part of the answer."""
    negative: tuple[str, ...]
    raw_fake: RawAnswer | None = field(name="fakeanswer", default=None)
    raw_wrong: tuple[str, ...] | None = field(name="positive_wrong", default=None)
    """In a counterfactual set: the false version of each positive document, in the same order."""

    def __post_init__(self) -> None:
        if not self.query.strip():
            raise ValueError("the field 'query' is empty")
        _check_answer("answer", self.raw_answer)
        if self.raw_fake is not None:
            _check_answer("fakeanswer", self.raw_fake)

    @property
    def answer(self) -> Answer:
        return parts(self.raw_answer)

    @property
    def fake(self) -> Answer:
        return parts(self.raw_fake)

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        return tuple(part for part in self.raw_positive if isinstance(part, tuple))

    @property
    def positive(self) -> tuple[str, ...]:
        """All documents that have the answer; those of groups in turn."""
        return tuple(part for part in self.raw_positive if isinstance(part, str)) + sum(self.groups, ())

    @property
    def positive_wrong(self) -> tuple[str, ...]:
        return self.raw_wrong or ()

    def fault(self, kind: Kind) -> str:
        """What keeps the question from a data set of this kind, or nothing."""
        if kind != "int" and self.groups:
            return f"'positive' holds groups, in a file of kind '{kind}': a file holds one kind"
        if kind == "int" and not (all(self.groups) and 0 < len(self.raw_positive) == len(self.groups)):
            return "'positive' must hold groups, each with a document, as in the rest of the file"
        if kind != "fact":
            return ""
        if self.raw_wrong is None or self.raw_fake is None:
            missing = "positive_wrong" if self.raw_wrong is None else "fakeanswer"
            return f"the field '{missing}' is missing, which the rest of the file has"
        if len(self.positive_wrong) < len(self.positive):
            return "'positive_wrong' has fewer documents than 'positive'"
        return ""


class Dataset(NamedTuple):
    """A file of questions: all of one kind and one language."""

    name: str
    """The file's stem, as it enters the names of exported files."""
    kind: Kind
    lang: Lang
    instances: tuple[Instance, ...]


def read_instances(path: Path, *, lang: Lang | None = None) -> Dataset:
    """A data set. Its language, if not given, is recognised by the start of its name or by its questions."""
    rows: list[tuple[int, Instance]] = _read(path, Instance, INSTANCE_SHAPE)
    instances = tuple(instance for _, instance in rows)
    kind: Kind = "int" if any(instance.groups for instance in instances) else "plain"
    if any(instance.raw_wrong is not None for instance in instances):
        kind = "fact"
    for line, instance in rows:
        if fault := instance.fault(kind):
            raise DataError(path, f"{fault}: {INSTANCE_SHAPE}.", line=line)
    lang = lang or language(path.stem, [instance.query for instance in instances])
    return Dataset(path.stem, kind, lang, instances)


def known_language(lang: str | None) -> Lang | None:
    """A language that a person named, if it is one that RGB reads."""
    match lang:
        case None | "en" | "zh" as known:
            return known
    raise UsageError(f"--lang {lang}: RGB reads English and Chinese, en and zh.")


def language(name: str, queries: Sequence[str]) -> Lang:
    """By a name that starts with `en` or `zh`; failing that, Chinese where most queries hold Han."""
    if prefix := re.match(r"(en|zh)(?![a-z])", name, re.IGNORECASE):
        return "zh" if prefix[1].lower() == "zh" else "en"
    han = sum(bool(re.search(r"[\u3400-\u9fff]", query)) for query in queries)
    return "zh" if 2 * han > len(queries) else "en"


def _read(path: Path, kind: Any, shape: str) -> list[tuple[int, Any]]:
    """The rows with their lines, each id once; an error also says what a line should look like."""
    rows = []
    lines: dict[str, int] = {}
    try:
        for line, raw in json_lines(path):
            row = convert(path, raw, kind, line=line)
            first = lines.setdefault(str(row.id), line)  # 1 and "1" would be one sample
            if first != line:
                raise DataError(path, f"the 'id' {row.id!r} duplicates line {first}.", line=line)
            rows.append((line, row))
    except DataError as error:
        if not path.is_file():
            raise
        raise DataError(str(error).rstrip("."), f"{shape}.") from None
    if not rows:
        raise DataError(path, f"there is nothing in it: {shape}.")
    return rows


# What is stored with a sample and its score


class RgbInputs(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A question at a setting."""

    dataset: str
    instance: int | str
    query: str
    answer: RawAnswer
    fake: RawAnswer | None
    docs: tuple[str, ...]
    kinds: tuple[DocKind, ...]
    """Of each document; empty where it is not known."""
    note: str
    """What the choice of documents lacks; empty where nothing."""
    noise: float
    passages: int
    correct: float
    temperature: float | None = None
    """Of recorded answers."""
    repeat: int = 0
    prompts: Prompts | None = None
    """Where they are not those of this package: a run's folder is scored again without their file."""
    published: dict[str, float] | None = None

    def __post_init__(self) -> None:
        _check_answer("answer", self.answer)


class RgbDetail(Struct, frozen=True, omit_defaults=True):
    """How an answer was labelled."""

    label: tuple[int, ...]
    factlabel: int
    how: str = ""
    """What decided in the lenient check."""
    judge: str = ""
    """How the request to the judge ended."""


RgbSample: TypeAlias = Sample[RgbInputs]
RgbRecord: TypeAlias = Record[RgbInputs, RgbDetail]
"""Its detail is None where the question was not answered."""


# Predictions


class Prediction(Struct, frozen=True, kw_only=True):
    """One line that the published script wrote: the answer to one question at one setting."""

    id: int | str
    query: str
    answer: RawAnswer = field(name="ans")
    label: tuple[int, ...]
    prediction: str
    docs: tuple[str, ...]
    noise_rate: float
    factlabel: int | None = None
    """Whether an error was reported; the first version of the script did not write it."""

    def __post_init__(self) -> None:
        _check_answer("ans", self.answer)


def read_predictions(path: Path) -> list[Prediction]:
    return [row for _, row in _read(path, Prediction, PREDICTION_SHAPE)]


class PredictionFile(NamedTuple):
    """What the name of a prediction file says."""

    dataset: str
    model: str
    temperature: float
    noise: float
    passages: int
    correct: float

    @property
    def stem(self) -> str:
        """The published file name, without its ending; rates as Python prints a float."""
        return (
            f"prediction_{self.dataset}_{self.model}_temp{float(self.temperature)}_noise{float(self.noise)}"
            f"_passage{self.passages}_correct{float(self.correct)}"
        )

    @classmethod
    def parse(cls, stem: str) -> PredictionFile | None:
        """Read back from a stem; None where it has another form.

        Between two underscores a data set ends and a model begins: at the first `_refine`, `_int` or `_fact`
        where there is one, else a data set is taken to be one word.
        """
        rate = r"(\d+(?:\.\d+)?)"
        names = r"prediction_(.+?_(?:refine|int|fact)|[^_]+)_(.+)"
        match = re.fullmatch(rf"{names}_temp{rate}_noise{rate}_passage(\d+)_correct{rate}", stem)
        if match is None:
            return None
        dataset, model, temperature, noise, passages, correct = match.groups()
        return cls(dataset, model, float(temperature), float(noise), int(passages), float(correct))


def prediction_files(
    model: str, temperature: float, records: Callable[[], Iterator[RgbRecord]]
) -> Iterator[tuple[str, Iterator[bytes]]]:
    """For every data set and setting the predictions as JSON lines, and `…_result.json` with the rates."""

    def file_of(record: RgbRecord) -> PredictionFile:
        inputs = record.sample.inputs
        used = temperature if inputs.temperature is None else inputs.temperature
        return PredictionFile(
            inputs.dataset, slug(model), used, inputs.noise, inputs.passages, inputs.correct
        )

    def answered(file: PredictionFile) -> Iterator[RgbRecord]:
        """As in the published script without what failed, and each question once: at noise 1 it may have
        been asked for two abilities, with the same prompt."""
        seen: set[int | str] = set()
        for record in records():
            instance = record.sample.inputs.instance
            if file_of(record) == file and record.score.detail and instance not in seen:
                seen.add(instance)
                yield record

    for file in dict.fromkeys(map(file_of, records())):
        yield f"{file.stem}.json", map(_line, answered(file))
        yield f"{file.stem}_result.json", _rates(answered(file), file.noise)


def _line(record: RgbRecord) -> bytes:
    from evenkeel.benchmarks.rgb.scoring import published_text

    inputs, detail = record.sample.inputs, record.score.detail
    prediction = Prediction(
        id=inputs.instance,
        query=inputs.query,
        answer=inputs.answer,
        label=detail.label,
        prediction=published_text(record.answers[0].text, str(record.sample.tags["lang"])),
        docs=inputs.docs,
        noise_rate=inputs.noise,
        factlabel=detail.factlabel,
    )
    return msgspec.json.encode(prediction) + b"\n"


def _rates(records: Iterator[RgbRecord], noise: float) -> Iterator[bytes]:
    from evenkeel.benchmarks.rgb.scoring import Published, published_rates

    labels, fact = [], False
    for record in records:
        labels.append(Published(record.score.detail.label, record.score.detail.factlabel, noise))
        fact = fact or record.sample.tags["ability"] == "counterfactual"
    yield msgspec.json.format(msgspec.json.encode(published_rates(labels, noise, fact=fact)), indent=4)

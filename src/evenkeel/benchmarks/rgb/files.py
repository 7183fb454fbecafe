"""RGB's files: questions with their documents, and prompts for models and judges.

The kind of a data set is recognised by its fields, never by its name: `positive_wrong` makes it
counterfactual ("fact"), groups of documents in `positive` make it an integration set ("int"), anything else
is "plain".
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import Struct, field

from evenkeel.errors import DataError, UsageError, explain
from evenkeel.files import datasets, package_data
from evenkeel.files.jsonfile import convert, json_lines
from evenkeel.files.tables import read_text
from evenkeel.files.yamlfile import read_entries
from evenkeel.harness.inputs import Inputs, RowText
from evenkeel.text.answer_search.mention import Answer, RawAnswer, check_answer, parts
from evenkeel.text.prompts import fill
from evenkeel.types import Message, Record, Sample, Tag

Kind: TypeAlias = Literal["plain", "int", "fact"]
Lang: TypeAlias = Literal["en", "zh"]
DocKind: TypeAlias = Literal["positive", "negative", "wrong"]
"""A document has the answer, does not have it, or has the false one."""

DECLINE = "(decline: no document has the answer)"
"""What is expected where no document has the answer."""
PUBLISHED_PROMPTS = "config/instruction.yaml"
INSTANCE_SHAPE = (
    "each line is a JSON object with its own 'id', a 'query', an 'answer' (a text, a list whose parts must "
    "all be found, or a list of lists of alternatives), lists of documents 'positive' and 'negative', and, "
    "in a counterfactual set, 'fakeanswer' and as many 'positive_wrong' as 'positive'"
)
PROMPTS_SHAPE = (
    "for each language (en, zh) a 'system' text and an 'instruction' with {DOCS} and {QUERY}, and, if "
    "wanted, a text 'closed' with {QUERY}"
)


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
        """`closed` asks for what is known. A search that found nothing is asked about like any other; where
        there is no text `closed`, as published: there no documents are no documents."""
        if closed or not (docs or self.closed):
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
    return _read_prompts(path)


class JudgePrompt(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a judge is asked about one answer."""

    prompt: str
    yes: tuple[str, ...] = ()
    """The verdict is yes where its text has one of these, to the letter, and no otherwise, as the published
    scripts read it. Empty: the verdict is asked for as JSON."""


class _JudgePrompts(Struct, frozen=True):
    """The data file: the prompts of this package, and where the published ones are."""

    own: dict[str, JudgePrompt]
    scripts: dict[str, str]
    yes: dict[str, tuple[str, ...]]


def load_judge_prompts(source: Literal["own", "published"]) -> dict[str, JudgePrompt]:
    """For `rejection` and `detection`: those of this package (`own`) or those of the fetched scripts."""
    data = _judge_data()
    if source == "own":
        return data.own
    return {
        name: JudgePrompt(_prompt_in(datasets.published_path("rgb", script)), data.yes[name])
        for name, script in data.scripts.items()
    }


def published_yes() -> dict[str, tuple[str, ...]]:
    """The texts by which the published scripts take a verdict on rejection or on detection for a yes."""
    return _judge_data().yes


def _judge_data() -> _JudgePrompts:
    return package_data.read_json(__package__, "judge.json", type=_JudgePrompts)


def _prompt_in(script: Path) -> str:
    """The text that the function `check` of a published script assigns to `prompt`; the script is parsed and
    never executed."""
    try:
        nodes = list(ast.walk(ast.parse(read_text(script))))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        nodes = []
    checks = [node for node in nodes if isinstance(node, ast.FunctionDef) and node.name == "check"]
    for node in (node for check in checks for node in ast.walk(check)):
        match node:
            case ast.Assign(targets=[ast.Name(id="prompt")], value=ast.Constant(value=str(text))):
                return text.replace("{question}", "{QUERY}").replace("{answer}", "{REPLY}")
    raise DataError(script, "no judge prompt was found in it. Run: evenkeel data fetch rgb")


def _read_prompts(path: Path) -> dict[str, Prompts]:
    prompts: dict[str, Prompts] = {}
    for line, name, raw in read_entries(path, read_text(path)) or ():
        if not name:
            break
        try:
            prompts[name] = msgspec.convert(raw, Prompts)
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
    private: bool = False
    """Whether it is about documents that no model can have read."""

    def __post_init__(self) -> None:
        if not self.query.strip():
            raise ValueError("the field 'query' is empty")
        check_answer("answer", self.raw_answer)
        if self.raw_fake is not None:
            check_answer("fakeanswer", self.raw_fake)

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
    rows: list[tuple[int, Instance]] = read_lines(path, Instance, INSTANCE_SHAPE)
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
        case None | "en" | "zh":
            return lang
    raise UsageError(f"--lang {lang}: RGB reads English and Chinese, en and zh.")


def language(name: str, queries: Sequence[str]) -> Lang:
    """By a name that starts with `en` or `zh`; failing that, Chinese where most queries hold Han."""
    if prefix := re.match(r"(en|zh)(?![a-z])", name, re.IGNORECASE):
        return "zh" if prefix[1].lower() == "zh" else "en"
    han = sum(bool(re.search(r"[\u3400-\u9fff]", query)) for query in queries)
    return "zh" if 2 * han > len(queries) else "en"


def read_lines(path: Path, kind: Any, shape: str) -> list[tuple[int, Any]]:
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


class RgbInputs(Inputs, frozen=True, kw_only=True, omit_defaults=True):
    """A question at a setting."""

    not_asked: ClassVar[Set[str]] = frozenset(
        ("joins", "prompts", "temperature", "judge", "evaluation", "published")
    )
    """The prompt around the question and its documents, what a judge is asked or said about the answer, and
    which other files were read."""

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
    variant: str = ""
    """Which of several answers to the question at the setting: `repeat3`; the first has none."""
    joins: tuple[str, ...] = ()
    """The groups of the questions that it was made from by joining them."""
    prompts: Prompts | None = None
    """Where they are not those of this package: a run's folder is scored again without their file."""
    judge: JudgePrompt | None = None
    """The same, for what a judge is asked about the answer."""
    evaluation: str | None = None
    """A judge's verdict that was recorded with the answer."""
    published: dict[str, float] | None = None
    private: bool = False
    """Whether it is about documents that no model can have read."""

    def __post_init__(self) -> None:
        check_answer("answer", self.answer)

    def row(self, tags: Mapping[str, Tag]) -> RowText:
        """The expected answer, or that the documents do not have it; the setting, and which answer it is."""
        rejects = tags.get("ability") == "rejection"
        expected = DECLINE if rejects else "; ".join(part[0] for part in parts(self.answer))
        repeat = self.variant.replace("repeat", "repeat ")
        return RowText(self.query, expected, ", ".join(filter(None, (str(tags["setting"]), repeat))))

    def targets(self) -> list[str]:
        answers = [self.answer] if isinstance(self.answer, str) else self.answer
        return [text for part in answers for text in ([part] if isinstance(part, str) else part)]


class RgbDetail(Struct, frozen=True, omit_defaults=True):
    """How an answer was labelled."""

    label: tuple[int, ...]
    factlabel: int
    judge: str = ""
    """How the request to the judge ended."""
    evaluation: str | None = None
    """The judge's verdict in words, where it is read as the published scripts read it."""


RgbSample: TypeAlias = Sample[RgbInputs]
RgbRecord: TypeAlias = Record[RgbInputs, RgbDetail]
"""Its detail is None where the question was not answered."""

"""RGB's data: questions with their documents, which rows ask the same, and what a record holds.

A question, a line of a data set (`answer` as text, list of parts that must all be found, or list of lists of
alternatives; here of a counterfactual set):

    {"id":0,"query":"On which river does Harwick stand?","answer":[["Ell","River Ell"]],
     "positive":["Harwick, a town on the Ell, …"],"negative":["Harwick's market is held on Fridays …"],
     "fakeanswer":"Tarn","positive_wrong":["Harwick, a town on the Tarn, …"]}

An answer, a line of `export/prediction_en_NAME_temp0.2_noise0.4_passage5_correct0.0.json` (`predictions`):

    {"id":0,"query":"On which river does Harwick stand?","ans":[["Ell","River Ell"]],"label":[1],
     "prediction":"It stands on the Ell.","docs":["…","…"],"noise_rate":0.4,"factlabel":0}

and its rates, `…_result.json`: `{"all_rate":0.9,"noise_rate":0.4,"tt":270,"nums":300}`.

The kind of a data set is recognised by its fields, never by its name: `positive_wrong` makes it
counterfactual ("fact"), groups of documents in `positive` make it an integration set ("int"), anything else
is "plain".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

from msgspec import Struct, field

from sealegs.benchmarks.rgb.prompts import JudgePrompt, Prompts
from sealegs.benchmarks.rgb.shapes import as_question
from sealegs.errors import DataError, UsageError
from sealegs.files.jsonfile import convert, json_lines
from sealegs.harness.inputs import Inputs, RowText
from sealegs.text.answer_search.mention import Answer, RawAnswer, check_answer, find_answer, parts
from sealegs.types import Record, Sample, Tag

Kind: TypeAlias = Literal["plain", "int", "fact"]
Lang: TypeAlias = Literal["en", "zh"]
DocKind: TypeAlias = Literal["positive", "negative", "wrong"]
"""A document has the answer, does not have it, or has the false one."""

DECLINE = "(decline: no document has the answer)"
"""What is expected where no document has the answer."""
INSTANCE_SHAPE = (
    "each line is a JSON object with a 'query', an 'answer' (a text, a list whose parts must "
    "all be found, or a list of lists of alternatives), documents 'positive', 'negative' or both, and, "
    "in a counterfactual set, 'fakeanswer' and as many 'positive_wrong' as 'positive'"
)


# Data sets


class Instance(Struct, frozen=True, kw_only=True):
    """One question with its documents, as a line of a data set has it."""

    id: int | str
    query: str
    raw_answer: RawAnswer | None = field(name="answer", default=None)
    """None where only a rejection can be asked for, since no document has it."""
    raw_positive: tuple[str | tuple[str, ...], ...] = field(name="positive", default=())
    """Documents that have the answer; in an integration set a group of them for each part of the answer."""
    negative: tuple[str, ...] = ()
    raw_fake: RawAnswer | None = field(name="fakeanswer", default=None)
    raw_wrong: tuple[str, ...] | None = field(name="positive_wrong", default=None)
    """In a counterfactual set: the false version of each positive document, in the same order."""
    private: bool = False
    """Whether it is about documents that no model can have read."""

    def __post_init__(self) -> None:
        if not self.query.strip():
            raise ValueError("the field 'query' is empty")
        if self.raw_answer is not None:
            check_answer("answer", self.raw_answer)
        elif self.raw_positive:
            raise ValueError("the field 'answer' is missing, which the documents 'positive' have")
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

    def can_ask(self, noise: float, passages: int) -> bool:
        """Whether the questions have what a setting is made of: documents with the answer, without it, or,
        where no document is shown, the answer. In plain sets one kind of documents may be missing."""
        if self.kind != "plain":
            return True
        if not passages:
            return all(instance.raw_answer is not None for instance in self.instances)
        positive, negative = (
            any(getattr(each, kind) for each in self.instances) for kind in ("positive", "negative")
        )
        if not positive and not negative:  # a search that found nothing
            return True
        return (positive or noise == 1) and (negative or noise == 0)


def read_instances(path: Path, *, lang: Lang | None = None) -> Dataset:
    """A data set. Its language, if not given, is recognised by the start of its name or by its questions."""
    prepared = partial(as_question, name=path.stem)
    rows: list[tuple[int, Instance]] = read_lines(path, Instance, INSTANCE_SHAPE, prepared)
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


def read_lines(
    path: Path, kind: Any, shape: str, prepared: Callable[..., Any] = lambda row, line: row
) -> list[tuple[int, Any]]:
    """The rows with their lines, each id once; an error also says what a line should look like."""
    rows = []
    lines: dict[str, int] = {}
    try:
        for line, raw in json_lines(path):
            try:
                fields = prepared(raw, line=line)
            except ValueError as error:
                raise DataError(path, f"{error}.", line=line) from None
            row = convert(path, fields, kind, line=line)
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


# Which prompts are about the same question: errors are taken over questions, not over rows of files.
# In a set that was built from documents, a counterfactual row repeats the question of a plain one, and an
# integration row joins two of them.


class Questions:
    """Questions by their text, each under the name of the first row that asks it."""

    def __init__(self, rows: Iterable[tuple[str, str, bool]]) -> None:
        """Of each row its name, its text, and whether it may be a part of others."""
        self._names: dict[str, str] = {}
        self._parts: dict[str, str] = {}
        for name, query, is_part in rows:
            text = _plain(query)
            self._names.setdefault(text, name)
            if is_part:
                self._parts.setdefault(text, self._names[text])

    def group(self, query: str) -> str:
        return self._names[_plain(query)]

    def joined(self, query: str) -> tuple[str, ...]:
        """The two questions that it begins and ends with, where it was made by joining two."""
        text = _plain(query)
        first = next((end for end in range(len(text) - 1, 0, -1) if text[:end] in self._parts), len(text))
        second = next((start for start in range(first, len(text)) if text[start:] in self._parts), len(text))
        return (self._parts[text[:first]], self._parts[text[second:]]) if second < len(text) else ()


def _plain(query: str) -> str:
    """In any case, with any spaces, without the question mark."""
    return " ".join(query.split()).casefold().rstrip("?？ ")


def held_by_irrelevant(samples: Iterable[RgbSample]) -> dict[str, Any]:
    """How many of the irrelevant documents shown mention the whole answer, and of which questions."""
    held: dict[str, set[str]] = {}
    asked: dict[tuple[str, str], None] = {}
    for sample in samples:
        inputs = sample.inputs
        for text, kind in zip(inputs.docs, inputs.kinds, strict=True):
            key = (f"{inputs.dataset}-{inputs.instance}", text)
            if kind == "negative" and inputs.answer and key not in asked:
                asked[key] = None
                if all(find_answer(text, parts(inputs.answer), inputs.query)):
                    held.setdefault(key[0], set()).add(text)
    if not held:
        return {}
    return {"answer_held": {"documents": sum(map(len, held.values())), "questions": list(held)}}


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
        if self.answer:  # without one only a rejection is asked for
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

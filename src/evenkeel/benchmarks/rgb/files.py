"""RGB's files: the sets of questions with their documents, and the predictions of the published script.

The kind of a set is told by its fields, never by its name: `positive_wrong` makes it counterfactual
("fact"), groups of documents in `positive` make it an integration set ("int"), anything else is "plain".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from msgspec import Struct

from evenkeel.errors import DataError, UsageError
from evenkeel.files.jsonfile import read_json_lines

Kind: TypeAlias = Literal["plain", "int", "fact"]
Lang: TypeAlias = Literal["en", "zh"]
Answer: TypeAlias = tuple[tuple[str, ...], ...]
"""Parts that must all be found; of a part, any one of its alternatives."""
RawAnswer: TypeAlias = str | list[str | list[str]]
"""An answer as files write it: a text, a list of parts, or a list of lists of alternatives."""

SHAPE = (
    "each line is a JSON object with its own 'id', a 'query', an 'answer' (a text, a list whose parts must "
    "all be found, or a list of lists of alternatives), lists of documents 'positive' and 'negative', and, "
    "in a counterfactual set, 'fakeanswer' and as many 'positive_wrong' as 'positive'"
)
PREDICTED = (
    "each line is a JSON object as the published script writes it, with 'id', 'query', 'ans', 'label', "
    "'prediction', 'docs', 'noise_rate' and 'factlabel'"
)


class Instance(Struct, frozen=True, kw_only=True):
    """One question with the documents that answer it, those that do not, and those that answer falsely."""

    id: int | str
    query: str
    kind: Kind
    answer: Answer
    raw_answer: RawAnswer
    """As the file has it, for the export."""
    positive: tuple[str, ...]
    """All documents that hold the answer; of an integration set, those of all groups in turn."""
    negative: tuple[str, ...]
    groups: tuple[tuple[str, ...], ...] = ()
    """In an integration set: the documents for each part of the answer."""
    fake: Answer = ()
    raw_fake: RawAnswer | None = None
    positive_wrong: tuple[str, ...] = ()
    """In a counterfactual set: the false twin of each positive document, in the same place."""


class Dataset(Struct, frozen=True):
    """A file of questions: all of one kind and one language."""

    name: str
    """The file's stem, as it enters the names of exported files."""
    kind: Kind
    lang: Lang
    instances: tuple[Instance, ...]


class Prediction(Struct, frozen=True, kw_only=True):
    """One line that the published script wrote: the answer to one question at one setting."""

    id: int | str
    query: str
    answer: Answer
    raw_answer: RawAnswer
    label: tuple[int, ...]
    prediction: str
    docs: tuple[str, ...]
    noise_rate: float
    factlabel: int | None
    """Whether an error was reported; the first version of the script did not write it."""


class _Item(Struct):
    id: int | str
    query: str
    answer: RawAnswer
    positive: list[str | list[str]]
    negative: list[str]
    fakeanswer: RawAnswer | None = None
    positive_wrong: list[str] | None = None

    def __post_init__(self) -> None:
        if not self.query.strip():
            raise ValueError("the field 'query' is empty")
        _check_answer("answer", self.answer)
        if self.fakeanswer is not None:
            _check_answer("fakeanswer", self.fakeanswer)

    @property
    def grouped(self) -> bool:
        return any(isinstance(part, list) for part in self.positive)

    def fault(self, kind: Kind) -> str:
        """What keeps the item from a set of this kind, or nothing."""
        if kind != "int" and self.grouped:
            return f"'positive' holds groups, in a file of kind '{kind}': a file holds one kind"
        if kind == "int" and not (self.positive and all(p and isinstance(p, list) for p in self.positive)):
            return "'positive' must hold groups, each with a document, as in the rest of the file"
        if kind != "fact":
            return ""
        if self.positive_wrong is None or self.fakeanswer is None:
            missing = "positive_wrong" if self.positive_wrong is None else "fakeanswer"
            return f"the field '{missing}' is missing, which the rest of the file has"
        if len(self.positive_wrong) < len(self.positive):
            return "'positive_wrong' has fewer documents than 'positive'"
        return ""


class _Predicted(Struct):
    id: int | str
    query: str
    ans: RawAnswer
    label: tuple[int, ...]
    prediction: str
    docs: tuple[str, ...]
    noise_rate: float
    factlabel: int | None = None

    def __post_init__(self) -> None:
        _check_answer("ans", self.ans)


def read_instances(path: Path, *, lang: Lang | None = None) -> Dataset:
    """A set of questions. Its language, if not given, is told by its name's start or by its questions."""
    items: list[_Item] = list(_read(path, _Item, SHAPE))
    if not items:
        raise DataError(path, f"there is nothing in it: {SHAPE}.")
    kind = _kind(items)
    for place, item in enumerate(items):
        if fault := item.fault(kind):
            raise DataError(path, f"{fault}: {SHAPE}.", line=_line(path, place))
    instances = tuple(_instance(item, kind) for item in items)
    return Dataset(path.stem, kind, lang or language(path.stem, [item.query for item in items]), instances)


def read_predictions(path: Path) -> list[Prediction]:
    """The lines of a prediction file."""
    rows: list[_Predicted] = list(_read(path, _Predicted, PREDICTED))
    if not rows:
        raise DataError(path, f"there is nothing in it: {PREDICTED}.")
    return [
        Prediction(
            id=row.id,
            query=row.query,
            answer=parts(row.ans),
            raw_answer=row.ans,
            label=row.label,
            prediction=row.prediction,
            docs=row.docs,
            noise_rate=row.noise_rate,
            factlabel=row.factlabel,
        )
        for row in rows
    ]


def parts(answer: RawAnswer) -> Answer:
    """An answer as parts, each with its alternatives."""
    listed = [answer] if isinstance(answer, str) else answer
    return tuple((part,) if isinstance(part, str) else tuple(part) for part in listed)


def known_language(lang: str | None) -> Lang | None:
    """A language that a person named, if it is one that RGB reads."""
    match lang:
        case None | "en" | "zh" as known:
            return known
    raise UsageError(f"--lang {lang}: RGB reads English and Chinese, en and zh.")


def language(name: str, queries: Sequence[str]) -> Lang:
    """By a name that starts with `en` or `zh`; failing that, Chinese where most queries hold Han."""
    if told := re.match(r"(en|zh)(?![a-z])", name, re.IGNORECASE):
        return "zh" if told[1].lower() == "zh" else "en"
    han = sum(bool(re.search(r"[\u3400-\u9fff]", query)) for query in queries)
    return "zh" if 2 * han > len(queries) else "en"


class Setting(NamedTuple):
    """What the name of a prediction file tells."""

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
    def of(cls, stem: str) -> Setting | None:
        """Read back from a stem; None where it has another form.

        Between two underscores a data set ends and a model begins: at the first `_refine`, `_int` or `_fact`
        where there is one, else a data set is taken to be one word.
        """
        rate = r"(\d+(?:\.\d+)?)"
        told = re.fullmatch(
            rf"prediction_(.+?_(?:refine|int|fact)|[^_]+)_(.+)"
            rf"_temp{rate}_noise{rate}_passage(\d+)_correct{rate}",
            stem,
        )
        if told is None:
            return None
        dataset, model, temperature, noise, passages, correct = told.groups()
        return cls(dataset, model, float(temperature), float(noise), int(passages), float(correct))


def _kind(items: Sequence[_Item]) -> Kind:
    if any(item.positive_wrong is not None for item in items):
        return "fact"
    return "int" if any(item.grouped for item in items) else "plain"


def _instance(item: _Item, kind: Kind) -> Instance:
    groups = tuple(tuple(part) for part in item.positive if isinstance(part, list))
    return Instance(
        id=item.id,
        query=item.query,
        kind=kind,
        answer=parts(item.answer),
        raw_answer=item.answer,
        positive=tuple(doc for doc in item.positive if isinstance(doc, str)) + sum(groups, ()),
        negative=tuple(item.negative),
        groups=groups,
        fake=() if item.fakeanswer is None else parts(item.fakeanswer),
        raw_fake=item.fakeanswer,
        positive_wrong=tuple(item.positive_wrong or ()),
    )


def _check_answer(field: str, answer: RawAnswer) -> None:
    found = parts(answer)
    if not found or not all(found):
        raise ValueError(f"the field '{field}' is an empty list")
    if not all(alternative.strip() for part in found for alternative in part):
        raise ValueError(f"the field '{field}' holds an empty text")


def _read(path: Path, kind: type[Any], shape: str) -> Iterator[Any]:
    """The lines as `kind`, each id once; an error also says what a line should look like."""
    seen: dict[str, int] = {}  # 1 and "1" would be one sample
    try:
        for place, row in enumerate(read_json_lines(path, kind)):
            if str(row.id) in seen:
                first = _line(path, seen[str(row.id)])
                raise DataError(
                    path, f"the 'id' {row.id!r} is that of line {first}.", line=_line(path, place)
                )
            seen[str(row.id)] = place
            yield row
    except DataError as error:
        if not path.is_file():
            raise
        raise DataError(str(error).rstrip("."), f"{shape}.") from None


def _line(path: Path, place: int) -> int:
    """The line of the item at a place; blank lines lie between some."""
    with path.open("rb") as file:
        filled = [number for number, line in enumerate(file, 1) if line.strip()]
    return filled[place]

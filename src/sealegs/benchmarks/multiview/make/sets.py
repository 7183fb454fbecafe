"""Document sets that are known by name, with their criteria: `--set gsm8k__arithmetic`.

`sets.json` says for each set how to get its file, which columns the file has, how the text of a document is
made of them, and under which criteria documents are compared. Some criteria have labels in the file, so that
no judge is needed. None of the sets comes with Sealegs.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping

from msgspec import Struct

from sealegs.benchmarks.multiview.make.criteria import Criterion
from sealegs.errors import UsageError, suggestion
from sealegs.files.package_data import read_json
from sealegs.files.tables import Row
from sealegs.make.documents import Content, Reader, read_labels

STEP = re.compile(r"<<([^<>=]*)=[^<>]*>>")
OPERATION = re.compile(r"(?<=[\d.)%])\s*+([-+*/x×÷])|(?<![a-z])([a-z]{2,}+)\(", re.IGNORECASE)
NAMES = {"x": "*", "X": "*", "×": "*", "÷": "/"}
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class Labels(Struct, frozen=True, forbid_unknown_fields=True):
    """Where a criterion's labels are."""

    column: str
    by: str = ""
    """The function of LABELLERS that makes a label of the column; empty: the column holds labels."""


class SetCriterion(Criterion, frozen=True, forbid_unknown_fields=True):
    """A criterion of a set, and where its labels are, if the file has any."""

    labels: Labels | None = None

    @property
    def criterion(self) -> Criterion:
        return Criterion(self.name, self.description, self.hints, self.instruction)


class Form(Struct, frozen=True, forbid_unknown_fields=True):
    """A shape of a set's file: the columns by which it is recognised, and the text with them as slots."""

    columns: tuple[str, ...]
    text: str
    until: str = ""
    """What ends the text that counts, where the column holds more."""


class DocumentSet(Struct, frozen=True, forbid_unknown_fields=True):
    title: str
    source: str
    """How to get the file, and which format it has."""
    forms: tuple[Form, ...]
    criteria: tuple[SetCriterion, ...]
    aliases: tuple[str, ...] = ()
    """Further names that the public project has for it."""


class ChosenSet(Struct, frozen=True):
    """What `--set` names: a document set, and one or all of its criteria."""

    name: str
    documents: DocumentSet
    criteria: tuple[SetCriterion, ...]

    def reader(self, first: Row) -> Reader:
        """How a row becomes a document, by the columns of the first row."""
        form = next((form for form in self.documents.forms if set(form.columns) <= set(first.fields)), None)
        if form is None:
            expected = " or ".join(", ".join(form.columns) for form in self.documents.forms)
            raise UsageError(
                f"{first.file}: --set {self.name} expects the columns {expected}. Available: "
                f"{', '.join(first.fields)}. {self.documents.source}"
            )
        return lambda row: Content(_text(row, form), self._labels(row))

    def _labels(self, row: Row) -> dict[str, tuple[str, ...]]:
        """By criterion: the labels of a row, where the file has them."""
        labels = {}
        for each in self.criteria:
            if each.labels and each.labels.by:
                labels[each.name] = LABELLERS[each.labels.by](row.text(each.labels.column))
            elif each.labels and each.labels.column in row.fields:
                labels[each.name] = read_labels(row, each.labels.column)
        return labels


WORD_COUNT = SetCriterion("word_count", "How many words the text has.")
"""A criterion of every set, where it is named."""


def document_sets() -> dict[str, DocumentSet]:
    return read_json(__package__, "sets.json", type=dict[str, DocumentSet])


def task_names() -> list[str]:
    """All names that `--set` takes for one criterion."""
    sets = document_sets().items()
    return [f"{name}__{each.name}" for name, documents in sets for each in documents.criteria]


def choose_set(name: str) -> ChosenSet:
    """A set by its name, with all its criteria; with one of them by `SET__CRITERION`."""
    docset, _, criterion = name.partition("__")
    sets = document_sets()
    docset = _real_name(docset, sets)
    chosen = sets.get(docset)
    criteria = tuple(each for each in chosen.criteria if criterion in ("", each.name)) if chosen else ()
    if chosen and criterion == WORD_COUNT.name:
        criteria = (WORD_COUNT,)
    columns = [each.labels.column for each in criteria if each.labels]
    if len(set(columns)) < len(columns):
        tasks = ", ".join(f"{docset}__{each.name}" for each in criteria)
        raise UsageError(f"--set {name}: a file of it has the labels of one criterion. Name which: {tasks}.")
    if chosen is None or not criteria:
        names = task_names()
        available = [each for each in names if each.startswith(f"{docset}__")] or [*sets]
        raise UsageError(
            f"--set {name}: this is not a known document set.{suggestion(name, [*sets, *names])} "
            f"Available: {', '.join(available)}."
        )
    return ChosenSet(docset, chosen, criteria)


def known_criterion(docset: str, criterion: str) -> Criterion | None:
    sets = document_sets()
    chosen = sets.get(_real_name(docset, sets))
    criteria = (*chosen.criteria, WORD_COUNT) if chosen else ()
    return next((each.criterion for each in criteria if each.name == criterion), None)


def _real_name(docset: str, sets: Mapping[str, DocumentSet]) -> str:
    return next((name for name, each in sets.items() if docset in each.aliases), docset)


def _text(row: Row, form: Form) -> str:
    text = re.sub(r"\{(\w+)\}", lambda slot: _value(row, slot[1]), form.text)
    return text.partition(form.until)[0].strip() if form.until else text.strip()


def _value(row: Row, column: str) -> str:
    """A cell as text; the entries of a list are lettered lines, as the choices of a question are written."""
    value = row.fields.get(column)
    if not isinstance(value, list):
        return row.text(column).strip()
    entries = [row._replace(fields={column: each}).text(column).strip() for each in value[: len(LETTERS)]]
    return "\n".join(f"({letter}) {entry}" for letter, entry in zip(LETTERS, entries, strict=False))


def operations(answer: str) -> tuple[str, ...]:
    """The operations of a GSM8K answer in the order in which they are written, as one label.

    The answer has each calculation in double angle brackets: `He has 3*4=<<3*4=12>>12 left, 12-5=<<12-5=7>>7`
    gives `* -`. A sign before a number is not an operation; a function such as sqrt is. An answer without a
    calculation has no label.
    """
    steps = STEP.findall(answer)
    found = [
        NAMES.get(sign, sign) or name.lower() for step in steps for sign, name in OPERATION.findall(step)
    ]
    return (" ".join(found),) if found else ()


def listed(text: str) -> tuple[str, ...]:
    """The texts of a list as Python writes it: `['Coco', 'Up']`."""
    try:
        values = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        values = text
    return tuple(dict.fromkeys(map(str, values))) if isinstance(values, list) else (str(values),)


LABELLERS: Mapping[str, Callable[[str], tuple[str, ...]]] = {"operations": operations, "listed": listed}

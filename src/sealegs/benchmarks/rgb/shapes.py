"""Questions with their context as others publish them, read as RGB's: documents as one text or as objects,
rows without an id, and the columns of FaithEval and NoMIRACL, which their names on the Hub tell.

FaithEval (arXiv:2410.03727), unanswerable: `{"qid":"…","question":"…","context":"…","answers":["unknown"]}`;
inconsistent: the same columns, `answers` being those that the context gives; counterfactual:
`{"id":"…","question":"…","choices":{"label":["A",…],"text":["…",…]},"answerKey":"B","context":"…"}`.

NoMIRACL (arXiv:2312.11361): `{"query_id":"…","query":"…","positive_passages":[{"docid":"…","title":"…",
"text":"…"}],"negative_passages":[…]}`, without answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

Fields: TypeAlias = Mapping[str, Any]

LISTS = ("positive", "negative", "positive_wrong")
"""The fields that hold documents."""
FIX = (
    "Name the columns that have the question and its documents: --column query=question, and "
    "--column negative=context where the context lacks the answer, --column positive=context where it has it"
)


def _inconsistent(row: Fields) -> dict[str, Any]:
    """Every context contradicts itself, as RGB's false documents contradict what is known."""
    first, *others = row["answers"]
    documents = {"positive": row["context"], "positive_wrong": row["context"]}
    return {"query": row["question"], "answer": first, "fakeanswer": [others or [first]], **documents}


def _counterfactual(row: Fields) -> dict[str, Any]:
    """The right answer is that of the context, among the choices, which are shown with the question."""
    choices = dict(zip(row["choices"]["label"], row["choices"]["text"], strict=True))
    query = f"{row['question']}\n" + "\n".join(f"({label}) {text}" for label, text in choices.items())
    return {"query": query, "answer": choices[row["answerKey"]], "positive": row["context"]}


class Shape(NamedTuple):
    """How the rows of a data set are read."""

    identity: str
    """The column of the id."""
    columns: tuple[str, ...]
    fields: Callable[[Fields], dict[str, Any]]
    """The fields of a question, of a row that has the columns."""


SHAPES = {
    "faitheval-unanswerable": Shape(
        "qid",
        ("question", "context"),
        lambda row: {"query": row["question"], "negative": row["context"]},
    ),
    "faitheval-inconsistent": Shape("qid", ("question", "context", "answers"), _inconsistent),
    "faitheval-counterfactual": Shape("id", ("question", "context", "choices", "answerKey"), _counterfactual),
    "nomiracl": Shape(
        "query_id",
        ("query", "negative_passages"),
        lambda row: {"query": row["query"], "negative": row["negative_passages"]},
    ),
}
"""By the beginning of a data set's name, in lower case."""


def as_question(row: Any, name: str, line: int) -> Any:
    """A row of a data set of this name with a question's fields; the reader refuses what is no object."""
    if not isinstance(row, dict):
        return row
    fields = dict(row)
    for beginning, shape in SHAPES.items():
        if name.casefold().startswith(beginning) and set(shape.columns) <= set(row):
            try:
                fields = shape.fields(row)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                problem = f"{type(error).__name__}: {error}"
                raise ValueError(f"this is not a row of {beginning} ({problem})") from None
            if row.get(shape.identity) is not None:
                fields["id"] = row[shape.identity]
    if "query" not in fields:
        raise ValueError(f"the field 'query' is missing. {FIX}")
    if not {"positive", "negative"} & set(fields):
        raise ValueError(f"there are no documents, neither 'positive' nor 'negative'. {FIX}")
    fields.setdefault("id", line)
    return fields | {field: _documents(fields[field]) for field in LISTS if field in fields}


def _documents(value: Any) -> Any:
    """One text or object is one document; a list is left as it is, but for objects in it."""
    listed = value if isinstance(value, list) else [value]
    return [_document(each) for each in listed]


def _document(value: Any) -> Any:
    """Of an object its title and text."""
    if not (isinstance(value, dict) and isinstance(value.get("text"), str)):
        return value
    return f"{value['title']}: {value['text']}" if value.get("title") else value["text"]

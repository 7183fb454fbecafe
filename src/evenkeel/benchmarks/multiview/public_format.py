"""Reads the `triplets.json` of the public multiview project (sarahlc888/multiview).

The project writes a folder for each task, `gsm8k__arithmetic/`, with `triplets.json`, a list of

    {"triplet_id": 0, "anchor_id": 17, "positive_id": 3, "negative_id": 8,
     "anchor": "…", "positive": "…", "negative": "…",
     "quality_assessment": {"rating": 4, "label": "…", "class": "…", "reasoning": "…"},
     "anchor_annotation": {"category": "…", "tags": {"…": true}, "summary": {"final_summary": "…"}}, …}

whose ids are those of `documents.jsonl` ({"doc_id": 0, "document": "…"}) beside it, and `triplet_config.json`
with the criterion. A document is a text, or an object whose `text` is.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from evenkeel.benchmarks.multiview.files import (
    IDS,
    ROLES,
    Location,
    Triplet,
    with_defaults,
)
from evenkeel.errors import DataError, explain
from evenkeel.files.jsonfile import json_lines, read_json
from evenkeel.files.tables import kind_of

RATINGS = ("quality_assessment", "quality_assessment_with_annotations")


def read_public(path: Path) -> Iterator[tuple[Location, Triplet]]:
    """Each triplet of the list in a file, with its location."""
    entries = read_json(path)
    view = _view(path)
    texts = _documents(path)
    for number, entry in enumerate(entries, 1):
        location = Location(path, number, "entry")
        if isinstance(entry, list) and len(entry) == len(ROLES):
            entry = dict(zip(IDS, entry, strict=True))
        if not isinstance(entry, dict):
            raise location.error(f"expected a triplet, not {kind_of(entry)}.")
        fields = with_defaults(_fields(location, entry, texts, view), str(number))
        if "criterion" not in fields:
            raise location.error(
                "the file does not name its criterion. Put it into a folder named DOCSET__CRITERION, as the "
                "public project does, or give each entry a field 'criterion'."
            )
        yield location, _convert(location, fields)


def _convert(location: Location, fields: dict[str, Any]) -> Triplet:
    try:
        return msgspec.convert(fields, Triplet)
    except msgspec.ValidationError as error:
        fault = explain(error, fields)
        raise location.error(f"{fault.problem}.", fault.field) from None


def _view(path: Path) -> dict[str, str]:
    """Task, criterion and description, from the configuration beside the file and the folder's name."""
    config: Any = {}
    if (path.parent / "triplet_config.json").is_file():
        config = read_json(path.parent / "triplet_config.json")
    config = config if isinstance(config, dict) else {}
    docset, _, rest = path.resolve().parent.name.partition("__")
    docset = _text(config.get("document_set")) or docset
    criterion = _text(config.get("criterion")) or rest.partition("__")[0]
    if not criterion:
        return {}
    description = _text(config.get("criterion_description")) or _known(docset, criterion)
    return {"task": f"{docset}__{criterion}", "criterion": criterion, "description": description}


def _known(docset: str, criterion: str) -> str:
    """The description of a criterion that comes with Evenkeel; else its name in words."""
    from evenkeel.benchmarks.multiview.make.sets import known_criterion

    known = known_criterion(docset, criterion)
    return known.description if known else criterion.replace("_", " ")


def _documents(path: Path) -> dict[int, Any]:
    """The documents of the whole set by their ids, where their file is beside the triplets."""
    beside = path.parent / "documents.jsonl"
    if not beside.is_file():
        return {}
    texts: dict[int, Any] = {}
    for line, row in json_lines(beside):
        if not isinstance(row, dict) or type(row.get("doc_id")) is not int or "document" not in row:
            raise DataError(beside, "expected an object with 'doc_id' and 'document'.", line=line)
        if row["doc_id"] in texts:
            raise DataError(beside, f"the 'doc_id' {row['doc_id']} appears twice.", line=line)
        texts[row["doc_id"]] = row["document"]
    return texts


def _fields(
    location: Location, entry: dict[str, Any], texts: dict[int, Any], view: dict[str, str]
) -> dict[str, Any]:
    """An entry as the fields of a triplet. Those that Evenkeel writes besides are taken as they are."""
    fields = {**view, **entry}
    labels: dict[str, dict[str, str]] = {}
    tags: dict[str, list[str]] = {}
    for role in ROLES:
        number = entry.get(f"{role}_id")
        if role not in entry and not (isinstance(number, int) and number in texts):
            problem = f"there is no text, and the document {number} is not in a documents.jsonl beside it."
            raise location.error(problem, f"field '{role}'")
        document = _document(entry[role] if role in entry else texts[entry[f"{role}_id"]])
        if not isinstance(document, str):
            raise location.error("the document has no text.", f"field '{role}'")
        fields[role] = document
        annotation = entry.get(f"{role}_annotation")
        if isinstance(annotation, dict):
            fields.setdefault(f"{role}_summary", _summary(annotation.get("summary", "")))
            if category := _text(annotation.get("category")):
                labels[role] = {str(fields.get("criterion")): category}
            if isinstance(active := annotation.get("tags"), dict):
                tags[role] = [name for name, holds in active.items() if holds]
    if isinstance(rating := _rating(entry), int):
        fields.setdefault("quality", rating)
    return {"labels": labels, "tags": tags, **fields}


def _document(document: Any) -> Any:
    """The text of a document, which may be an object."""
    return document.get("text") if isinstance(document, dict) else document


def _rating(entry: dict[str, Any]) -> Any:
    for name in RATINGS:
        if isinstance(assessment := entry.get(name), dict):
            return assessment.get("rating")
    return entry.get("quality_rating")


def _summary(summary: Any) -> str:
    """The final summary of an annotation, never the reasoning before it."""
    if isinstance(summary, list):
        summary = summary[0] if summary else ""
    if isinstance(summary, dict):
        summary = summary.get("final_summary", "")
    if summary is None or isinstance(summary, str):
        return summary or ""
    return msgspec.json.encode(summary).decode()


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""

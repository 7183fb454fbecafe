"""Reads the `triplets.json` of the public multiview project (sarahlc888/multiview).

The project writes a folder for each task, `gsm8k__arithmetic/`, with `triplets.json`, a list of

    {"triplet_id": 0, "anchor_id": 17, "positive_id": 3, "negative_id": 8,
     "anchor": "…", "positive": "…", "negative": "…",
     "quality_assessment": {"rating": 4, "label": "…", "class": "…", "reasoning": "…"},
     "anchor_annotation": {"category": "…", "tags": {"…": true}, "summary": {"final_summary": "…"}}, …}

and `triplet_config.json` with the criterion. A document is a text, or an object whose `text` is.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from sealegs.benchmarks.multiview.data import ROLES
from sealegs.files.jsonfile import read_json
from sealegs.files.tables import Row

RATINGS = ("quality_assessment", "quality_assessment_with_annotations")


def public_view(path: Path) -> dict[str, str]:
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
    """The description of a criterion that comes with Sealegs; else its name in words."""
    from sealegs.benchmarks.multiview.make.sets import known_criterion

    known = known_criterion(docset, criterion)
    return known.description if known else criterion.replace("_", " ")


def public_fields(row: Row, view: dict[str, str]) -> dict[str, Any]:
    """An entry as the fields of a triplet. Those that Sealegs writes besides are taken as they are."""
    entry = row.fields
    fields = {**view, **entry}
    if "criterion" not in fields:
        raise row.error(
            "the file does not name its criterion. Put it into a folder named DOCSET__CRITERION, as the "
            "public project does, or give each entry a field 'criterion'."
        )
    labels: dict[str, dict[str, str]] = {}
    tags: dict[str, list[str]] = {}
    for role in ROLES:
        document = entry.get(role)
        text = document.get("text") if isinstance(document, dict) else document
        if not isinstance(text, str):
            raise row.error(f"the document in the field '{role}' has no text.")
        fields[role] = text
        annotation = entry.get(f"{role}_annotation")
        if isinstance(annotation, dict):
            fields.setdefault(f"{role}_summary", _summary(annotation.get("summary", "")))
            if category := _text(annotation.get("category")):
                labels[role] = {str(fields["criterion"]): category}
            if isinstance(active := annotation.get("tags"), dict):
                tags[role] = [name for name, holds in active.items() if holds]
    if isinstance(rating := _rating(entry), int):
        fields.setdefault("quality", rating)
    return {"labels": labels, "tags": tags, **fields}


def _rating(entry: Mapping[str, Any]) -> Any:
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

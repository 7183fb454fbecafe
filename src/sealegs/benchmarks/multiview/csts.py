"""Pairs of sentences under conditions, as C-STS has them (Deshpande and others, EMNLP 2023), as triplets:

    sentence1,sentence2,condition,label
    A man plays a harp.,A man plays a piano.,the instrument,1
    A man plays a harp.,A man plays a piano.,whether music is made,5

Two conditions of a pair are two triplets about the same documents with opposite answers. The anchor has both
sentences, the condition is the criterion, and the candidates say that they are alike and that they differ;
where the label is higher they are alike. So accuracy both ways is the share of pairs whose two conditions a
method tells apart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from sealegs.files.tables import Row

FIELDS = ("sentence1", "sentence2", "condition", "label")
TASK = "csts__condition"


def is_pair(row: Row) -> bool:
    return "anchor" not in row.fields and set(FIELDS) <= set(row.fields)


def pair_fields(rows: Sequence[Row]) -> Iterator[tuple[Row, dict[str, Any]]]:
    """Each row as the fields of a triplet, where its pair has a row with another label."""
    pairs: defaultdict[tuple[str, str], list[tuple[float, Row]]] = defaultdict(list)
    for row in rows:
        try:
            label = float(row.text("label"))
        except ValueError:
            raise row.error(f"the label is {row.fields['label']!r}: expected a number from 1 to 5.") from None
        if label < 0:
            raise row.error("the label is hidden: use the split for training or validation.")
        pairs[row.text("sentence1"), row.text("sentence2")].append((label, row))
    for (first, second), labelled in pairs.items():
        labels = [label for label, _ in labelled]
        middle = (min(labels) + max(labels)) / 2
        sentences = f"1. {first}\n2. {second}"
        alike, differ = (
            f"These two sentences {each} in this respect.\n{sentences}" for each in ("are alike", "differ")
        )
        for label, row in labelled:
            if label != middle:
                candidates = (alike, differ) if label > middle else (differ, alike)
                condition = row.text("condition").strip()
                yield (
                    row,
                    {
                        "task": TASK,
                        "criterion": condition,
                        "description": f"Are the two sentences alike in this respect: {condition}",
                        "anchor": sentences,
                        "positive": candidates[0],
                        "negative": candidates[1],
                    },
                )

"""Labelled replies, and how often the lenient check of RGB is right on them.

Language models wrote the replies and their labels; none was sampled from a real run. `labelled/` has them by
language and in two parts: `learned`, from which the weights are learned, and `heldout`, by other writers or
set aside before anything was tuned, on which the check is only measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from msgspec import Struct

from evenkeel.analysis.intervals import wilson
from evenkeel.benchmarks.rgb.check.lenient import lenient
from evenkeel.benchmarks.rgb.files import Lang
from evenkeel.files.jsonfile import read_json_lines
from evenkeel.text.answer_search.mention import RawAnswer, parts

Part: TypeAlias = Literal["learned", "heldout"]
DECISIONS = {"rejected": "rejection", "right": "right answer", "detected": "error detection"}
LANGUAGES: dict[Lang, str] = {"en": "English", "zh": "Chinese"}
FOLDER = Path(__file__).parent / "labelled"


class Labelled(Struct, frozen=True, forbid_unknown_fields=True):
    """A reply with the labels that a language model gave it."""

    id: str
    style: str
    query: str
    answer: RawAnswer
    fake: RawAnswer
    reply: str
    right: bool
    rejected: bool
    detected: bool


class Accuracy(NamedTuple):
    """The share of a check's decisions that are right, or of the right ones that it takes."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


def labelled(lang: Lang, part: Part) -> list[Labelled]:
    return list(read_json_lines(FOLDER / f"{lang}.{part}.jsonl", Labelled))


def precision_recall(rows: Sequence[Labelled]) -> dict[str, tuple[Accuracy, Accuracy]]:
    """Of each decision: precision TP/(TP + FP) and recall TP/(TP + FN), with Wilson's intervals."""
    verdicts = [lenient(row.reply, parts(row.answer), fake=parts(row.fake), query=row.query) for row in rows]
    figures = {}
    for decision in DECISIONS:
        pairs = [
            (bool(getattr(row, decision)), bool(getattr(verdict, decision)))
            for row, verdict in zip(rows, verdicts, strict=True)
        ]
        hits = pairs.count((True, True))
        taken, present = hits + pairs.count((False, True)), hits + pairs.count((True, False))
        figures[decision] = _accuracy(hits, taken), _accuracy(hits, present)
    return figures


def _accuracy(hits: int, n: int) -> Accuracy:
    return Accuracy(hits / n, *wilson(hits / n, n))

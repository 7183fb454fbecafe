"""How often the lenient check is right: precision and recall on labelled replies.

The replies are in `labelled/`, by language and in two halves: `learned`, from which the
check was made, and `heldout`, by other writers, on which it was only measured. `accuracy.json` holds the
figures; `tools/train_check.py` writes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias, get_args

import msgspec
from msgspec import Struct

from evenkeel.analysis.intervals import wilson
from evenkeel.benchmarks.rgb.check.lenient import lenient
from evenkeel.benchmarks.rgb.files import Lang, RawAnswer, parts
from evenkeel.files.jsonfile import read_json_lines
from evenkeel.files.package_data import data_path, read_json

Half: TypeAlias = Literal["learned", "heldout"]
Decision: TypeAlias = Literal["rejected", "right", "detected"]
DECISIONS: dict[Decision, str] = {
    "rejected": "rejection",
    "right": "right answer",
    "detected": "error detection",
}
LANGUAGES: dict[Lang, str] = {"en": "English", "zh": "Chinese"}


class Labelled(Struct, frozen=True, forbid_unknown_fields=True):
    """A reply with the labels that a person gave it."""

    id: str
    style: str
    query: str
    answer: RawAnswer
    fake: RawAnswer
    reply: str
    right: bool
    rejected: bool
    detected: bool


class Accuracy(Struct, frozen=True, forbid_unknown_fields=True):
    """The share of a check's decisions that are right, or of the right ones that it takes."""

    value: float
    low: float
    high: float
    n: int

    def __str__(self) -> str:
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


class Figures(Struct, frozen=True, forbid_unknown_fields=True):
    """One language and half, one decision."""

    lang: Lang
    half: Half
    decision: Decision
    replies: int
    precision: Accuracy
    recall: Accuracy


def labelled(lang: Lang, half: Half) -> list[Labelled]:
    return list(read_json_lines(data_path(__package__, "labelled", f"{lang}.{half}.jsonl"), Labelled))


def measured(halves: Sequence[Half] = get_args(Half)) -> list[Figures]:
    """The figures, measured anew: precision TP/(TP + FP) and recall TP/(TP + FN), with Wilson's intervals."""
    listed = []
    for lang in LANGUAGES:
        for half in halves:
            rows = labelled(lang, half)
            verdicts = [
                lenient(row.reply, parts(row.answer), fake=parts(row.fake), query=row.query) for row in rows
            ]
            for decision in DECISIONS:
                pairs = [
                    (bool(getattr(row, decision)), bool(getattr(verdict, decision)))
                    for row, verdict in zip(rows, verdicts, strict=True)
                ]
                hits = pairs.count((True, True))
                precision = _accuracy(hits, hits + pairs.count((False, True)))
                recall = _accuracy(hits, hits + pairs.count((True, False)))
                listed.append(Figures(lang, half, decision, len(rows), precision, recall))
    return listed


def _accuracy(hits: int, n: int) -> Accuracy:
    low, high = wilson(hits / n, n)
    return Accuracy(round(hits / n, 4), round(low, 4), round(high, 4), n)


def write() -> None:
    """Measure, keep the figures and print them."""
    listed = measured()
    content = msgspec.json.format(msgspec.json.encode(listed), indent=1)
    data_path(__package__, "labelled", "accuracy.json").write_bytes(content + b"\n")
    for item in listed:
        print(f"{item.lang} {item.half:8}{item.decision:10}precision {item.precision}  recall {item.recall}")


def figures() -> tuple[Figures, ...]:
    """The figures that were measured last."""
    return read_json(__package__, "labelled", "accuracy.json", type=tuple[Figures, ...])


def cautions() -> list[str]:
    """For the report: how far the lenient check can be trusted, in each language."""
    listed = []
    for lang, language in LANGUAGES.items():
        held_out = [f for f in figures() if f.lang == lang and f.half == "heldout"]
        shares = "; ".join(
            f"{DECISIONS[f.decision]} precision {f.precision}, recall {f.recall}" for f in held_out
        )
        listed.append(
            f"The lenient check on {held_out[0].replies} labelled replies in {language} that it did not "
            f"learn from: {shares} (95 % intervals)."
        )
    return listed

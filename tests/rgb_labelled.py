"""Labelled replies, and how often the lenient check of RGB is right on them.

`labelled/` has them by kind and language: `heldout`, written and labelled by language models that did not
know the rules; `plain`, right answers in many wordings, and `plain_other`, replies that decline, report an
error or are wrong, in the words of current models; `real`, replies of a small model to the starter sets, and
`negated`, those of its replies that have a word of negation or correction; `fresh`, replies of all kinds,
written when the rules were there by writers who had read none of them. The errors on them were read since, so
that none of these is unseen; `natural`, replies as models give them in such a task, by which no rule was
changed; `real_7301`, replies of a small model to a set of seed 7301, questions drawn at random;
`real_unseen` and `real_60317`, the same to sets of seeds 8812 and 9127, 60317 and 60893, labelled by
readers of no rule; `real_71933`, the same to sets of seeds 71933 and 72277, labelled by one who had changed
rules before; `chat_style`, wordings after the manner of current chat models by a writer who had read no
rule, each filled with three facts (`wording` begins with their class; `debatable`: a careful reader may
differ), and in `chat_style.mirae.jsonl` the same for closed questions of MIRAE; `asides.mirae.jsonl`, for
MIRAE too, answers of yes or no in a sentence, and values with others beside them, by a writer who knew the
rules (the errors on those called `second` were counted and not read); `hedged`, declines, and values given
with a hedge, by another such writer, whose errors were counted, and those on English declines read later;
`set_aside`, answers that name another value to set it aside, the right one or a wrong one, written before
the rules for them; `named`, and for MIRAE `named.mirae`, answers beside another value that is only named,
each also the other way round, titles of words of silence, headings over errors or none, units, and
surnames, by a writer who knew the rules, before rules were changed for them (errors on wordings of even
numbers were counted and not read); `reworded`, values set aside before another one, declines of what is
more or other, and reports without a word for an error, each kind beside replies that only look so, by the
same writer in the same way; `rag_style`, wordings of current models that answer from documents, by a writer
who had read no rule, each filled with twelve facts or ten in Chinese. All but the first were labelled by
reading before the check was applied; that documents disagree counts as a report since, which changed eight
labels of `chat_style` and `set_aside`. Of `chat_style` the errors on wordings of odd numbers were read
since, and of the others the missed declines; the rest were counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from msgspec import Struct, field

from sealegs.analysis.intervals import wilson
from sealegs.benchmarks.rgb.check.lenient import lenient
from sealegs.benchmarks.rgb.data import Lang
from sealegs.benchmarks.rgb.make.generator import compose
from sealegs.files.jsonfile import read_json_lines
from sealegs.text.answer_search.mention import RawAnswer, parts

Part: TypeAlias = Literal[
    "heldout",
    "natural",
    "fresh",
    "plain",
    "plain_other",
    "real",
    "negated",
    "real_7301",
    "real_unseen",
    "real_60317",
    "real_71933",
    "chat_style",
    "hedged",
    "set_aside",
    "named",
    "reworded",
    "rag_style",
]
DECISIONS = {"rejected": "rejection", "right": "right answer", "detected": "error detection"}
LANGUAGES: dict[Lang, str] = {"en": "English", "zh": "Chinese"}
FOLDER = Path(__file__).parent / "labelled"
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s*")


class Labelled(Struct, frozen=True):
    """A reply with its labels."""

    query: str = field(name="question")
    answer: RawAnswer
    reply: str
    right: bool
    rejected: bool = field(name="declined")
    detected: bool = field(name="reports_error")
    fake: RawAnswer | None = None
    debatable: bool = False


class Accuracy(NamedTuple):
    """The share of a check's decisions that are right, or of the right ones that it takes."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def labelled(lang: Lang, part: Part) -> list[Labelled]:
    """The replies of a set but those on which careful readers may differ."""
    return [row for row in read_json_lines(FOLDER / f"{part}.{lang}.jsonl", Labelled) if not row.debatable]


def precision_recall(rows: Sequence[Labelled]) -> dict[str, tuple[Accuracy | None, Accuracy | None]]:
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


def table(languages: Iterable[Lang], part: Part) -> list[str]:
    """The lines of a table of precision and recall, as docs/tables/rgb-check.md has it."""
    figures = {lang: precision_recall(labelled(lang, part)) for lang in languages}
    heads = [f"{LANGUAGES[lang]} {what}" for lang in figures for what in ("precision", "recall")]
    lines = [f"| | {' | '.join(heads)} |", f"|{' --- |' * (1 + len(heads))}"]
    for decision, title in DECISIONS.items():
        cells = [str(accuracy or "–") for lang in figures for accuracy in figures[lang][decision]]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return lines


class AsReplies(NamedTuple):
    """What the check says of documents of a starter set that stand in place of replies."""

    irrelevant: int
    declining: int
    """Irrelevant documents that are said to decline, and to report an error."""
    reporting: int
    stating: int
    """Sentences of the other documents that have the right answer, and how many are not right."""
    missed: int


def as_replies(lang: Lang, *, seed: int, size: int | None = None) -> AsReplies:
    irrelevant, stating = [], []
    for row in (row for kind in ("plain", "fact") for row in compose(lang, kind, seed=seed, size=size)):
        answer, fake = parts(row["answer"]), parts(row.get("fakeanswer"))
        check = partial(lenient, answer=answer, fake=fake, query=row["query"])
        irrelevant += [check(document) for document in row["negative"][:6]]
        sentences = [part for document in row["positive"] for part in _SENTENCE_END.split(document)]
        stating += [check(part) for part in sentences if any(spelling in part for spelling in answer[0])]
    return AsReplies(
        len(irrelevant),
        sum(verdict.rejected for verdict in irrelevant),
        sum(verdict.detected for verdict in irrelevant),
        len(stating),
        sum(not verdict.right for verdict in stating),
    )


def _accuracy(hits: int, n: int) -> Accuracy | None:
    return Accuracy(hits / n, *wilson(hits / n, n)) if n else None

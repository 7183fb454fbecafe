"""What people say of a run's scores: marks.jsonl beside the run, one line for each mark, the last one last.

A line has all that it is about (inputs, answers, values), so that it keeps its meaning when the run is made
afresh, and so that marked answers of many runs can be put together.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias, get_args

import msgspec
from msgspec import Struct

from sealegs.errors import UsageError, suggestion
from sealegs.files.cache import write_whole
from sealegs.files.jsonfile import read_bytes, read_json_lines
from sealegs.files.lock import writing_file
from sealegs.harness.folder import Run
from sealegs.harness.folder.layout import MARKS, run_file
from sealegs.types import Record, Response, RunSpec, Tag, to_jsonable

LONGEST_COMMENT_CHARS = 10_000
"""Characters of a comment."""
PATIENCE = 5.0
"""Seconds that a mark waits for others who mark the same run."""

Verdict: TypeAlias = Literal["wrong", "right", ""]


class Mark(Struct, frozen=True, kw_only=True):
    """What a person says of one sample's score."""

    sample: str
    group: str
    tags: dict[str, Tag]
    metric: str = ""
    """The value that the verdict is about; empty for the score as a whole."""
    verdict: Verdict
    """Whether the score is wrong or right; empty where the person took an earlier mark back."""
    comment: str = ""
    created: str
    benchmark: str
    subject: str
    """What was under test: the name of the model."""
    inputs: Any
    answers: tuple[Response, ...]
    """As they were, without what is no text."""
    values: dict[str, float | None]

    def is_about(self, record: Record) -> bool:
        """Whether the record still has the answers and the values that were marked. Values that came later,
        such as those of an embedder that is asked at the end, make no other mark of it."""
        marked = {self.metric} if self.metric else self.values.keys() & record.score.values.keys()
        return (
            self.sample == record.sample.id
            and self.answers == _texts_of(record.answers)
            and all(self.values.get(name) == record.score.values.get(name) for name in marked)
        )


def add_mark(run: Run, sample_id: str, verdict: Verdict, metric: str, comment: str) -> Mark:
    """Append a mark to the run's file."""
    if verdict not in get_args(Verdict):
        raise UsageError(f"'{verdict}' is not a verdict. Available: wrong, right, or '' to take a mark back.")
    if len(comment) > LONGEST_COMMENT_CHARS:
        raise UsageError(
            f"a comment has at most {LONGEST_COMMENT_CHARS:,} characters; this has {len(comment):,}."
        )
    samples = run.samples()
    if (row := samples.row_of(sample_id)) is None:
        raise UsageError(f"there is no sample '{sample_id}' in {run.path}.")
    mark = _mark_of(samples.record(row), run.spec, verdict, metric, comment)
    content = msgspec.json.encode(mark) + b"\n"
    path = run.home / MARKS
    with writing_file(path, seconds=PATIENCE):
        before = read_bytes(path) if run_file(run.home, MARKS) else b""
        if before and not before.endswith(b"\n"):  # an editor left no line end
            before += b"\n"
        write_whole(path, before + content)
    return mark


def _mark_of(record: Record, spec: RunSpec, verdict: Verdict, metric: str, comment: str) -> Mark:
    values = record.score.values
    if metric and metric not in values:
        raise UsageError(
            f"the sample '{record.sample.id}' has no value '{metric}'.{suggestion(metric, values)} "
            f"Available: {', '.join(values)}."
        )
    return Mark(
        sample=record.sample.id, group=record.sample.group, tags=record.sample.tags | record.score.tags,
        metric=metric, verdict=verdict, comment=_storable(comment), inputs=to_jsonable(record.sample.inputs),
        answers=_texts_of(record.answers), values=values, benchmark=spec.benchmark, subject=spec.subject,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )  # fmt: skip


def _texts_of(answers: Iterable[Response]) -> tuple[Response, ...]:
    """Answers without vectors and probabilities, which are large and say nothing to a person."""
    return tuple(
        Response(status=answer.status, text=answer.text, reasoning=answer.reasoning, reason=answer.reason)
        for answer in answers
    )


def _storable(text: str) -> str:
    """A text that a file can hold: half of a surrogate pair becomes U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def read_marks(run: Run) -> list[Mark]:
    """The last mark of each sample and metric, in the order of the file, without those taken back."""
    path = run_file(run.home, MARKS)
    marks: dict[tuple[str, str], Mark] = {}
    for mark in read_json_lines(path, Mark) if path else ():
        marks.pop((mark.sample, mark.metric), None)
        marks[mark.sample, mark.metric] = mark
    return [mark for mark in marks.values() if mark.verdict]

"""The values of a run's samples, metric by metric, as arrays in the order of its records."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from msgspec import Struct

from evenkeel.analysis.links import Group, group_of, independent_groups
from evenkeel.errors import DataError
from evenkeel.files.jsonfile import NOT_JSON
from evenkeel.harness.folder import Run
from evenkeel.harness.registry import benchmark_class
from evenkeel.page.metrics import Metric, declaration, scope_name, scope_of
from evenkeel.types import Figure, Score, Tag

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Values(Struct, frozen=True, kw_only=True):
    """One metric of samples: the same position in each array is the same sample."""

    values: NDArray[np.float64]
    """NaN where a sample has none."""
    groups: NDArray[np.object_]
    parts: NDArray[np.object_] | None
    """Of a macro-average: the part that each sample belongs to."""
    in_scope: NDArray[np.bool_]
    about: NDArray[np.bool_]
    """Samples that the metric is about, with a value or not."""
    answered: NDArray[np.intp]
    """Requests answered, 0 where the sample has no value."""
    asked: NDArray[np.intp]
    ratio: bool
    """Whether each run decides itself which samples count."""
    coverage: float | None
    """Of the figure, or counted over the samples; None where no sample is in the scope."""

    @property
    def known(self) -> NDArray[np.bool_]:
        return ~np.isnan(self.values)

    def taken(self, samples: NDArray[np.intp] | NDArray[np.bool_]) -> Values:
        """The same of some samples."""
        arrays = {
            name: getattr(self, name)[samples]
            for name in ("values", "groups", "in_scope", "about", "answered", "asked")
        }
        parts = None if self.parts is None else self.parts[samples]
        return msgspec.structs.replace(self, parts=parts, **arrays)

    def by_part(self) -> list[NDArray[np.intp]]:
        """The positions of each part's samples; all are one part where there are no parts."""
        if self.parts is None:
            return [np.arange(len(self.values))] if len(self.values) else []
        return [np.flatnonzero(self.parts == part) for part in dict.fromkeys(self.parts.tolist())]

    @property
    def mean(self) -> float | None:
        """The mean of known values; of a macro-average, the mean of its parts' means."""
        of_known = self.taken(self.known)
        # Added up one by one, as the figures of a benchmark may be.
        means = [sum(of_known.values[part].tolist()) / len(part) for part in of_known.by_part()]
        return sum(means) / len(means) if means else None

    @property
    def clusters(self) -> int:
        return independent_groups(self.groups[self.known].tolist())

    @property
    def parts_asked(self) -> set[str]:
        return set() if self.parts is None else set(self.parts[self.about].tolist())

    @property
    def parts_known(self) -> set[str]:
        return set() if self.parts is None else set(self.parts[self.known].tolist())


class RunValues(Struct, frozen=True, kw_only=True):
    """What a comparison needs of a run's records."""

    samples: dict[str, int]
    """The position of each sample."""
    asked: list[Any]
    """What each sample asks, made short."""
    groups: list[tuple[str, Mapping[str, Tag]]]
    """The group of each sample, and its tags."""
    metrics: set[str]
    """Every metric that samples have, without scopes."""
    tags: dict[str, dict[Tag, None]]
    """Every tag that samples have, with its values."""
    by_metric: dict[str, Values]
    """The metrics to compare."""


def read_values(run: Run, names: Sequence[str], declared: Sequence[Metric]) -> RunValues:
    """The values of some metrics (`mean_similarity`, `mean_similarity/lang=en`), read as a stream.

    A figure that the run gives as unknown is unknown here too, and a sample outside the denominator of a
    ratio has no value.
    """
    benchmark = benchmark_class(run.spec.benchmark)
    declarations = {name: declaration(declared, name) for name in names}
    decode_inputs = msgspec.json.Decoder(benchmark.Inputs).decode
    samples: dict[str, int] = {}
    asked: list[Any] = []
    groups: list[Group] = []
    tagged: list[tuple[str, Mapping[str, Tag]]] = []
    metrics: set[str] = set()
    tags: defaultdict[str, dict[Tag, None]] = defaultdict(dict)
    cells: dict[str, list[_Cell]] = {name: [] for name in names}
    for record in run.scores():
        sample, score = record.sample, record.score
        samples[sample.id] = len(samples)
        try:
            asked.append(benchmark.asked(decode_inputs(sample.inputs)))
        except NOT_JSON as error:
            where = f"sample '{sample.id}'"
            raise DataError(run.path / "records.jsonl", f"its inputs: {error}.", where=where) from None
        groups.append(group_of(score))
        tagged.append((sample.group, sample.tags))
        metrics.update(score.values)
        for tag, value in score.tags.items():
            tags[tag][value] = None
        for name, metric in declarations.items():
            cells[name].append(_cell(name, metric, score))
    grouped = np.empty(len(groups), dtype=object)
    grouped[:] = groups
    return RunValues(
        samples=samples,
        asked=asked,
        groups=tagged,
        metrics=metrics,
        tags=tags,
        by_metric={
            name: _values(cells[name], grouped, metric, figure_of(run, name))
            for name, metric in declarations.items()
        },
    )


class _Cell(Struct, frozen=True):
    """One metric of one sample."""

    value: float | None = None
    part: str = ""
    in_scope: bool = False
    about: bool = False
    answered: int = 0
    asked: int = 0


def _cell(name: str, declared: Metric | None, score: Score[Any]) -> _Cell:
    metric = name
    if name not in score.values:
        metric, scope = split_name(name, score.values)
        if any(str(score.tags.get(tag)) != value for tag, value in scope.items()):
            return _Cell()
    part = str(score.tags.get(declared.mean_over)) if declared and declared.mean_over else ""
    if metric not in score.values:
        return _Cell(part=part)
    value = decisive = score.values[metric]
    ratio = bool(declared and declared.ratio_to)
    if declared and declared.ratio_to:
        decisive = score.values.get(declared.ratio_to)
        value = value if decisive else None
    answered, asked = _requests(score, metric)
    known = decisive is not None
    return _Cell(value, part, True, known or not ratio, answered if known else 0, asked)


def _requests(score: Score[Any], metric: str) -> tuple[int, int]:
    """How many requests of a sample were answered and asked; of `accuracy@bm25`, those of that subject."""
    if score.requests and (subject := metric.partition("@")[2]) in score.requests:
        return score.requests[subject]
    return score.answered, sum(score.statuses.values())


def _values(
    cells: Sequence[_Cell], groups: NDArray[np.object_], declared: Metric | None, figure: Figure | None
) -> Values:
    unknown = figure is not None and figure.value is None
    answered, asked = (np.array([getattr(c, n) for c in cells], dtype=np.intp) for n in ("answered", "asked"))
    in_scope = np.array([cell.in_scope for cell in cells], dtype=bool)
    counted = int(answered.sum()) / int(asked.sum()) if asked.sum() else 0.0
    parts = np.array([cell.part for cell in cells], dtype=object) if declared and declared.mean_over else None
    return Values(
        values=np.array([None if unknown else cell.value for cell in cells], dtype=float),
        groups=groups,
        parts=parts,
        in_scope=in_scope,
        about=np.array([cell.about for cell in cells], dtype=bool),
        answered=answered,
        asked=asked,
        ratio=bool(declared and declared.ratio_to),
        coverage=None if not in_scope.any() else figure.coverage if figure else counted,
    )


def tag_order(value: Tag) -> tuple[bool, Tag]:
    """Numbers before texts, each in their own order."""
    return isinstance(value, str), value


def split_name(name: str, metrics: Iterable[str]) -> tuple[str, Mapping[str, str]]:
    """The metric and the scope of a name; a metric may itself have a slash: `accuracy@embed:a/b`."""
    head, slash, scope = name.rpartition("/")
    return (name, {}) if name in metrics or not slash else (head, scope_of(f"/{scope}")[1])


def figure_of(run: Run, name: str) -> Figure | None:
    """The summary's figure of a metric of samples: `accuracy@bm25` is `accuracy/method=bm25` there."""
    metric, _, subject = name.partition("@")
    return run.summary.get(name) or run.summary.get(scope_name(metric, {run.subject: subject}))

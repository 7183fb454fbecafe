"""The values of a run's samples, metric by metric, as arrays in the order of its records."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cached_property
from math import isclose
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from msgspec import Struct

from sealegs.analysis.links import Group, Labels, independent_groups, units_or_group
from sealegs.errors import UsageError
from sealegs.harness.folder import Run
from sealegs.harness.inputs import fingerprint
from sealegs.harness.registry import benchmark_class
from sealegs.page.metrics import Metric, declaration, scope_name, scope_of
from sealegs.types import Figure, Tag

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Values(Struct, frozen=True, kw_only=True):
    """One metric of samples: the same position in each array is the same sample."""

    values: NDArray[np.float64]
    """NaN where a sample has none."""
    groups: Labels
    parts: Labels
    """Of a macro-average: the part that each sample belongs to; else all belong to one."""
    in_scope: NDArray[np.bool_]
    about: NDArray[np.bool_]
    """Samples that the metric is about, with a value or not."""
    answered: NDArray[np.intp]
    """Requests answered, 0 where the sample has no value."""
    asked: NDArray[np.intp]
    weights: NDArray[np.float64]
    """What each sample counts for in the mean: 1, but for metrics that declare a weight."""
    metric: Metric
    coverage: float
    """Of the figure, or counted over the samples."""

    @property
    def known(self) -> NDArray[np.bool_]:
        return ~np.isnan(self.values)

    def taken(self, samples: NDArray[np.intp] | NDArray[np.bool_]) -> Values:
        """The same of some samples."""
        if samples.dtype == bool and samples.all():
            return self
        names = ("values", "groups", "parts", "in_scope", "about", "answered", "asked", "weights")
        return msgspec.structs.replace(self, **{name: getattr(self, name)[samples] for name in names})

    @property
    def known_parts(self) -> set[str]:
        """The parts of which a sample has a value."""
        return {*self.parts[self.known].in_order().names}

    def by_part(self) -> list[NDArray[np.intp]]:
        """The positions of each part's samples."""
        parts = self.parts.in_order()
        return [np.flatnonzero(parts.numbers == number) for number in range(len(parts.names))]

    @property
    def mean(self) -> float | None:
        """The mean of known values by their weights; of a macro-average, the mean of its parts' means."""
        of_known = self.taken(self.known)
        sums, weights = of_known.values * of_known.weights, of_known.weights
        # Added up one by one, as the figures of a benchmark may be.
        means = [sum(sums[part].tolist()) / sum(weights[part].tolist()) for part in of_known.by_part()]
        return sum(means) / len(means) if means else None

    @property
    def clusters(self) -> int:
        return independent_groups(self.groups[self.known])


class RunValues:
    """What a comparison needs of a run's records."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.layout = run.layout
        self.columns = run.columns
        self.ids = self.columns.ids
        self.metrics = set(self.columns.values)
        """Every metric that samples have, without scopes."""
        groups: list[Group] = [*self.columns.groups]
        for row, links in self.columns.links.items():
            groups[row] = units_or_group(self.columns.groups[row], links)
        self._groups = Labels.of(groups)
        self._by_name: dict[str, Values] = {}
        self._fingerprints: dict[int, Any] = {}

    def __getitem__(self, name: str) -> Values:
        """The values of a metric: `mean_similarity`, `mean_similarity/lang=en`.

        A figure that the run gives as unknown is unknown here too, and a sample outside the denominator of a
        ratio has no value.
        """
        if name not in self._by_name:
            self._by_name[name] = self._values(name)
        return self._by_name[name]

    def _values(self, name: str) -> Values:
        metric, figure = declaration(self.layout.metrics, name), self.figure(name)
        if metric is None:
            raise UsageError(f"'{name}' cannot be compared: the benchmark does not declare it, nor its unit.")
        own_name, scope = split_name(name, self.metrics)
        in_scope = self.columns.measured.get(own_name, np.zeros(len(self.ids), dtype=bool))
        for tag, wanted in scope.items():
            labels = self._tag(tag)
            in_scope = in_scope & np.array([name == wanted for name in labels.names])[labels.numbers]

        def column(name: str) -> NDArray[np.float64]:
            return np.where(in_scope, self.columns.values.get(name, np.nan), np.nan)

        values = column(own_name)
        decisive = column(metric.ratio_to) if metric.ratio_to else values
        decided = ~np.isnan(decisive)
        if metric.ratio_to:
            values = np.where(decided & (decisive != 0), values, np.nan)
        if figure is not None and figure.value is None:
            values = np.full_like(values, np.nan)
        subject = own_name.partition("@")[2]
        whole = (self.columns.answered, self.columns.asked)
        answered, asked = np.where([decided, in_scope], self.columns.requests.get(subject, whole), 0)
        counted = int(answered.sum()) / int(asked.sum()) if asked.any() else 0.0
        return Values(
            values=values,
            groups=self._groups,
            parts=self._tag(metric.mean_over),
            in_scope=in_scope,
            about=decided if metric.ratio_to else in_scope,
            answered=answered,
            asked=asked,
            weights=column(metric.weight) if metric.weight else np.ones(len(values)),
            metric=metric,
            coverage=figure.coverage if figure and in_scope.any() else counted,
        )

    def _tag(self, tag: str) -> Labels:
        """The value of a tag in each sample, as text; all alike without a tag."""
        if tag in self.columns.tags:
            return Labels.of(map(str, self.columns.tags[tag]))
        return Labels(np.zeros(len(self.ids), dtype=np.intp), [str(None) if tag else ""])

    def tags_of(self, tag: str) -> set[Tag]:
        """The values of a tag that samples have."""
        return {value for value in self.columns.tags.get(tag, ()) if value is not None}

    @cached_property
    def rows(self) -> dict[str, int]:
        """The row of each sample by its id; of several with one id, the last."""
        return {name: row for row, name in enumerate(self.ids)}

    def fingerprints(self, rows: list[int]) -> list[Any]:
        """What some samples ask, made short. Read where the inputs of two runs are not the same bytes."""
        if unread := [row for row in rows if row not in self._fingerprints]:
            self._fingerprints.update(zip(unread, map(fingerprint, self.run.inputs(unread)), strict=True))
        return [self._fingerprints[row] for row in rows]

    def figure(self, name: str) -> Figure | None:
        """The summary's figure of a metric of samples: `accuracy@bm25` is `accuracy/method=bm25` there."""
        metric, _, subject = name.partition("@")
        summary = self.run.summary
        return summary.get(name) or summary.get(scope_name(metric, {self.run.subject: subject}))

    def doubts(self, name: str) -> list[str]:
        """Why the headline of the run, which a reader knows by this name, is in doubt."""
        notes = benchmark_class(self.run.spec.benchmark).notes(self.run.spec, self.run.summary)
        return [f"{name}: {note.doubt}." for note in notes if note.doubt]

    def is_mean(self, name: str) -> bool:
        """Whether a figure, where the summary has it, is the mean of the samples' values."""
        figure, mean = self.figure(name), self[name].mean
        if figure is None or figure.value is None or mean is None:
            return True
        return isclose(figure.value, mean, rel_tol=1e-9, abs_tol=1e-12)


def tag_order(value: Tag) -> tuple[bool, Tag]:
    """Numbers before texts, each in their own order."""
    return isinstance(value, str), value


def split_name(name: str, metrics: Collection[str]) -> tuple[str, Mapping[str, str]]:
    """The metric and the scope of a name; a metric may itself have a slash: `accuracy@embed:a/b`."""
    head, slash, scope = name.rpartition("/")
    return (name, {}) if name in metrics or not slash else (head, scope_of(f"/{scope}")[1])

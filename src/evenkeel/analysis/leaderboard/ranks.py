"""The entries of a board in their order: every pair tested as `compare` tests it, and ranked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from hashlib import sha256
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from evenkeel import analysis as stats
from evenkeel.analysis import combined
from evenkeel.analysis.comparability import path_ends, run_names
from evenkeel.analysis.comparison import MIN_GROUPS, SIGNIFICANT, compare_values
from evenkeel.analysis.leaderboard.grouping import Runs
from evenkeel.analysis.links import Links, independent_groups, numbered
from evenkeel.analysis.pairing import unlike_samples
from evenkeel.page.metrics import Metric
from evenkeel.types import Figure

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Standing(Struct, frozen=True, kw_only=True):
    """A row of a board: a run, or one method of it."""

    rank: int | None
    """1 + the number of entries that are significantly better; None for one without a value, and where
    neither direction of the metric is better."""
    name: str
    path: str
    figure: Figure
    """Of the run alone, as in its summary; ranks are decided on the samples that two runs have in common."""


class _Entry(Struct):
    """What is ranked: a run, or one of its subjects, with its values by the number of the sample."""

    name: str
    index: int
    metric: str
    figure: Figure
    values: NDArray[np.float64]
    """NaN where a sample has none."""
    order: NDArray[np.intp]
    """The samples that have a value, in the order of the records."""
    counted: NDArray[np.bool_]
    parts: NDArray[np.intp] | None
    """The number of the part of each sample."""


def rows_of(runs: Runs, group: Sequence[int]) -> tuple[tuple[Standing, ...], list[str]]:
    """The entries of the runs of a board in their order, and what was left out."""
    members = [runs.entrants[index] for index in group]
    declared, layout = members[0].declared, members[0].layout
    entries = _entries(runs, group)
    special = declared.ratio_to or declared.against or declared.by_repeats or declared.by_others
    notes: list[str] = []
    better: list[int] = [0] * len(entries)
    """How many entries are significantly better than each."""
    worse_by = -1 if declared.better == "lower" else 1
    pairs = list(combinations(range(len(entries)), 2))
    if special and len(members) == len(entries) > 1:
        comparison, _ = compare_values([member.run for member in members], [layout.headline])
        notes += [f"{note}." for note in comparison.notes]
        tested = [(each.p_holm, each.difference) for each in comparison.differences]
    elif special:
        tested = [(None, None)] * len(pairs)
    else:
        notes += _leave_out(runs, group, entries)
        groups = _Groups(runs)
        tests = [_tested(entries[a], entries[b], groups, declared) for a, b in pairs]
        corrected = stats.holm([p for p, _ in tests])
        tested = [(p, difference) for p, (_, difference) in zip(corrected, tests, strict=True)]
    for (a, b), (p, difference) in zip(pairs, tested, strict=True):
        if p is not None and p < SIGNIFICANT and difference:
            better[a if worse_by * difference > 0 else b] += 1
    rows = [
        Standing(
            rank=None if entry.figure.value is None or declared.better is None else 1 + count,
            name=entry.name,
            path=str(runs.entrants[entry.index].run.path),
            figure=entry.figure,
        )
        for entry, count in zip(entries, better, strict=True)
    ]
    return tuple(sorted(rows, key=lambda row: _sort_key(row, worse_by))), notes


def _sort_key(row: Standing, sign: int) -> tuple[bool, int, float]:
    value = row.figure.value
    return value is None, row.rank or 0, 0.0 if value is None else -sign * value


def _entries(runs: Runs, group: Sequence[int]) -> list[_Entry]:
    members = [runs.entrants[index] for index in group]
    subjects = [each for member in members for each in member.run.subjects or (member.run.spec.subject,)]
    labels = path_ends([member.run for member in members])
    entries = []
    for index, member, label in zip(group, members, labels, strict=True):
        columns = runs.columns[index]
        for metric, figure in member.figures.items():
            subject = metric.partition("@")[2] if member.run.subjects else member.run.spec.subject
            values = np.full(len(runs.samples), np.nan)
            order = columns[np.array(member.values.positions[metric], dtype=np.intp)]
            values[order] = member.values.values[metric]
            counted = np.zeros(len(runs.samples), dtype=bool)
            counted[columns[np.array(member.values.counted[metric], dtype=np.intp)]] = True
            shown = subject if subjects.count(subject) == 1 else f"{subject} ({label})"
            entries.append(
                _Entry(
                    name=shown, index=index, metric=metric, figure=figure,
                    values=values, order=order, counted=counted, parts=_parts(runs, index, metric),
                )
            )  # fmt: skip
    return entries


def _parts(runs: Runs, index: int, metric: str) -> NDArray[np.intp] | None:
    """The numbers of the parts, alike in all runs: by the digest of a part's name."""
    names = runs.entrants[index].values.parts[metric]
    if not names:
        return None
    parts = np.zeros(len(runs.samples), dtype=np.intp)
    numbers = {name: int.from_bytes(sha256(name.encode()).digest()[:7]) for name in set(names)}
    parts[runs.columns[index]] = [numbers[name] for name in names]
    return parts


def _leave_out(runs: Runs, group: Sequence[int], entries: Iterable[_Entry]) -> list[str]:
    """Remove samples that do not ask the same from the later of two runs, as `check_pairing` does."""
    notes = []
    names = dict(zip(group, run_names([runs.entrants[index].run for index in group]), strict=True))
    by_run: defaultdict[int, list[_Entry]] = defaultdict(list)
    for entry in entries:
        by_run[entry.index].append(entry)
    for a, b in combinations(group, 2):
        common, unlike = runs.unlike(a, b)
        if unlike:
            named = [runs.samples[number] for number in unlike]
            sentence = unlike_samples(named, common, runs.entrants[a].layout)
            notes.append(f"Left out of {names[b]}: {sentence}.")
            runs.asked[b, unlike] = -1
            for entry in by_run[b]:
                entry.values[unlike] = np.nan
                entry.counted[unlike] = False
    return list(dict.fromkeys(notes))


class _Groups:
    """The groups of samples, numbered as `links.numbered` does. Most pairs of runs have the same samples."""

    def __init__(self, runs: Runs) -> None:
        self.runs = runs
        self._labels: dict[int, list[Any]] = {}
        self._plain: dict[int, NDArray[np.intp] | None] = {}
        self._last: dict[int, tuple[bytes, tuple[NDArray[np.intp], Links | None]]] = {}

    def labels(self, index: int) -> list[Any]:
        """The group of each sample by a run."""
        index = self.runs.grouping[index]
        if index not in self._labels:
            labels: list[Any] = [None] * len(self.runs.samples)
            groups = self.runs.entrants[index].values.groups
            for column, group in zip(self.runs.columns[index].tolist(), groups, strict=True):
                labels[column] = group
            self._labels[index] = labels
        return self._labels[index]

    def plain(self, index: int) -> NDArray[np.intp] | None:
        """A number for the group of each sample; None where groups have links."""
        index = self.runs.grouping[index]
        if index not in self._plain:
            labels = self.labels(index)
            linked = any(isinstance(label, tuple) for label in labels)
            self._plain[index] = None if linked else numbered(labels)[0]
        return self._plain[index]

    def numbered(self, index: int, columns: NDArray[np.intp]) -> tuple[NDArray[np.intp], Links | None]:
        """The numbers of some samples' groups, from 0 on in the order of these samples, and their links."""
        index, key = self.runs.grouping[index], columns.tobytes()
        if index not in self._last or self._last[index][0] != key:
            self._last[index] = (key, self._numbered(index, columns))
        return self._last[index][1]

    def _numbered(self, index: int, columns: NDArray[np.intp]) -> tuple[NDArray[np.intp], Links | None]:
        plain = self.plain(index)
        if plain is None:
            labels = self.labels(index)
            return numbered(labels[column] for column in columns.tolist())
        _, first, inverse = np.unique(plain[columns], return_index=True, return_inverse=True)
        position = np.empty(len(first), dtype=np.intp)
        position[np.argsort(first)] = np.arange(len(first))
        return position[inverse], None

    def independent(self, index: int, columns: NDArray[np.intp]) -> int:
        """To how many independent groups some samples amount."""
        if self.plain(index) is not None:
            return int(self.numbered(index, columns)[0].max()) + 1
        labels = self.labels(index)
        return independent_groups(labels[column] for column in columns.tolist())


def _tested(a: _Entry, b: _Entry, groups: _Groups, declared: Metric) -> tuple[float | None, float | None]:
    """The p-value of the difference of two entries, and the difference itself: as in `compare`."""
    change = b.values[a.order] - a.values[a.order]
    known = ~np.isnan(change)
    columns, change = a.order[known], change[known]
    if not len(columns):
        return None, None
    if a.parts is not None and b.parts is not None:
        return _tested_by_part(a, b, columns, change, groups, declared)
    if min(groups.independent(each.index, columns) for each in (a, b)) < 2:
        return None, None
    estimate = stats.Side(change, *groups.numbered(a.index, columns)).estimate
    return stats.paired_test(estimate, unit=declared.unit).p, float(change.mean())


def _tested_by_part(
    a: _Entry, b: _Entry, columns: NDArray[np.intp], change: NDArray[np.float64],
    groups: _Groups, declared: Metric,
) -> tuple[float | None, float | None]:  # fmt: skip
    """The same of macro-averages; unknown where a part that any side was asked has no value in both."""
    asked: set[int] = set()
    for each in (a, b):
        assert each.parts is not None
        asked |= set(np.unique(each.parts[each.counted]).tolist())
    if any(set(np.unique(e.parts[columns]).tolist()) != asked for e in (a, b) if e.parts is not None):
        return None, None
    assert a.parts is not None
    parts = a.parts[columns]
    by_part = [parts == part for part in dict.fromkeys(parts.tolist())]
    if min(groups.independent(a.index, columns[part]) for part in by_part) < MIN_GROUPS:
        return None, None
    plain, labels = groups.plain(a.index), groups.labels(a.index)
    terms = []
    for part in by_part:
        samples = columns[part]
        of_part = [labels[c] for c in samples.tolist()] if plain is None else plain[samples].tolist()
        terms.append(combined.Term(1 / len(by_part), change[part].tolist(), of_part))
    estimate = combined.estimate(terms)
    if estimate is None:
        return None, None
    return stats.paired_test(estimate, unit=declared.unit).p, estimate.value

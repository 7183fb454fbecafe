"""Runs in order of their headline: those that do not differ significantly share a rank.

Every pair of a board is tested as `compare` tests it. What a board needs of a run's records is kept in the
user's cache, by the records' size and time, because the records of many runs take seconds to read.
"""

from __future__ import annotations

import contextlib
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from hashlib import sha256
from itertools import combinations
from math import isclose
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from msgspec import Struct

from evenkeel import analysis as stats
from evenkeel.analysis import combined
from evenkeel.analysis.comparability import read_values, run_names
from evenkeel.analysis.comparison import MIN_GROUPS, SIGNIFICANT, compare_values
from evenkeel.analysis.links import Links, independent_groups, numbered
from evenkeel.analysis.pairing import Settings, mostly, settings_between, unlike_samples
from evenkeel.errors import EvenkeelError, UsageError, place_of
from evenkeel.files.cache import cache_dir, write_whole
from evenkeel.page.format import FLOOR, share
from evenkeel.page.layout import Layout
from evenkeel.page.metrics import Metric
from evenkeel.page.notebook import Displayed
from evenkeel.run.folder import Run
from evenkeel.run.registry import benchmark_class
from evenkeel.types import MIXED, Figure

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_ENTRIES = 100
"""On a board, each tested against each. Further runs have a further board."""
FORMAT = 1
"""Of the cached values: another number when they or the digests of what is asked change."""


class Standing(Struct, frozen=True, kw_only=True):
    """A row of a board: a run, or one method of it."""

    rank: int | None
    """1 + the number of entries that are significantly better; None for one without a value, and where
    neither direction of the metric is better."""
    name: str
    path: str
    figure: Figure
    """Of the run alone, as in its summary; ranks are decided on the samples that two runs have in common."""


class Leaderboard(Displayed, Struct, frozen=True, kw_only=True):
    """Runs of one benchmark that were asked the same, the best first."""

    benchmark: str
    metric: str
    title: str
    rows: tuple[Standing, ...]
    note: str
    """Which runs are on other boards and why, what was left out, which coverage is low."""


def leaderboard(runs: Iterable[Run | str | Path]) -> list[Leaderboard]:
    """A board for each benchmark and each set of runs that `compare` takes together.

    All pairs of a board are tested by the headline, paired by sample, with Holm's correction. Methods that a
    run sets side by side are entries of their own. A run that cannot be read is named in the note of a last
    board, which has no rows.

    `ek.leaderboard(["runs/one", "runs/two"])[0].rows[0].rank`
    """
    if isinstance(runs, Run | str | Path):
        raise UsageError("leaderboard takes a list of runs: leaderboard([run, …]).")
    by_benchmark: defaultdict[str, list[_Entrant]] = defaultdict(list)
    problems: list[str] = []
    paths: set[Path] = set()
    asked: dict[bytes, Any] = {}
    for each in runs:
        path = each.path if isinstance(each, Run) else Path(each)
        try:
            if path.resolve() not in paths:
                paths.add(path.resolve())
                entrant = _Entrant(each if isinstance(each, Run) else Run(each), asked)
                by_benchmark[entrant.run.spec.benchmark].append(entrant)
        except (EvenkeelError, OSError) as error:
            problems.append(str(error))
        except Exception as error:  # noqa: BLE001  # a folder may hold anything; the others are still ranked
            problems.append(f"{path} is not as Evenkeel writes it ({place_of(error)}).")
    boards = [board for entrants in by_benchmark.values() for board in _boards(entrants)]
    if problems:
        note = f"Left out: {' '.join(problems)}"
        boards.append(Leaderboard(benchmark="", metric="", title="Left out", rows=(), note=note))
    return boards


# What is needed of a run


class _Values(Struct):
    """The samples of a run by its headline, as they are kept in the cache. Samples are named by position."""

    key: str
    samples: list[str]
    asked: list[bytes]
    """Digests of what each sample asks."""
    groups: list[str | tuple[str, ...]]
    positions: dict[str, list[int]]
    """By metric (`accuracy@bm25`): the samples that have a value, in the order of the records."""
    values: dict[str, list[float]]
    counted: dict[str, list[int]]
    """By metric: the samples that it is about, whether they have a value or not."""
    parts: dict[str, list[str]]
    """By metric: the part of a macro-average that each sample belongs to; empty where there are none."""


class _Entrant:
    """A run that is to be ranked, and the values of its samples."""

    def __init__(self, run: Run, asked: dict[bytes, Any]) -> None:
        self.run = run
        self.benchmark = benchmark_class(run.spec.benchmark)
        self.layout: Layout = self.benchmark.layout
        headline = self.layout.headline
        self.metrics = [f"{headline}@{subject}" for subject in run.subjects] or [headline]
        """The headline as samples have it: of each subject, where there are any."""
        if len(self.metrics) > MOST_ENTRIES:
            count = f"{len(self.metrics):,} {run.subject}s"
            raise UsageError(f"{run.path} has {count}; a board has at most {MOST_ENTRIES} entries.")
        self.figures = dict(zip(self.metrics, run.headlines.values(), strict=True))
        self.values = self._read(asked)
        self.signature = self._signature()
        self.bases = sorted({figure.basis for figure in self.figures.values()})
        self.not_a_mean = self._is_not_a_mean()

    @property
    def declared(self) -> Metric:
        return self.layout.metrics[0]

    def _is_not_a_mean(self) -> bool:
        """Whether a figure is not the mean of its samples, so that it cannot be compared by them."""
        return any(
            figure.value is not None
            and self.values.values[metric]
            and not isclose(figure.value, self._mean(metric), rel_tol=1e-9, abs_tol=1e-12)
            for metric, figure in self.figures.items()
        )

    def _mean(self, metric: str) -> float:
        values, parts = self.values.values[metric], self.values.parts[metric]
        by_part: defaultdict[str, list[float]] = defaultdict(list)
        for position, value in zip(self.values.positions[metric], values, strict=True):
            by_part[parts[position] if parts else ""].append(value)
        means = [sum(each) / len(each) for each in by_part.values()]
        return sum(means) / len(means)

    def _signature(self) -> bytes:
        """Everything in the spec but what is under test: runs with the same were set up alike."""
        spec, subject = self.run.spec, self.run.subject
        tested = subject == "model"
        models = {role: model for role, model in spec.models.items() if tested and role != "model"}
        options = {name: option for name, option in spec.options.items() if tested or name != subject}
        settings = (spec.format, options, models, spec.data, spec.seed, spec.limit)
        return msgspec.json.encode(settings, order="deterministic")

    def _read(self, asked: dict[bytes, Any]) -> _Values:
        """The values from the cache, or from the records, and then into the cache."""
        records = self.run.path / "records.jsonl"
        state = records.lstat() if records.exists() else None
        store = cache_dir() / "leaderboard" / f"{sha256(os.fsencode(records.resolve())).hexdigest()}.msgpack"
        key = state and repr((FORMAT, state.st_size, state.st_mtime_ns, state.st_ino, self.metrics))
        key = f"{key} {sorted((metric, figure.value is None) for metric, figure in self.figures.items())}"
        with contextlib.suppress(OSError, msgspec.MsgspecError):
            values = msgspec.msgpack.decode(store.read_bytes(), type=_Values)
            if state and values.key == key:
                return values
        values = self._from_records(key, asked)
        with contextlib.suppress(OSError):
            write_whole(store, msgspec.msgpack.encode(values))
        return values

    def _from_records(self, key: str, asked: dict[bytes, Any]) -> _Values:
        run_values = read_values(self.run, self.metrics, self.layout.metrics, asked)
        samples = list(run_values.asked)
        position = {sample: number for number, sample in enumerate(samples)}
        by_metric = run_values.by_metric
        return _Values(
            key=key,
            samples=samples,
            asked=_digests(run_values.asked.values()),
            groups=[run_values.groups[sample] for sample in samples],  # type: ignore[misc]
            positions={
                metric: [position[sample] for sample in each.values] for metric, each in by_metric.items()
            },
            values={metric: list(each.values.values()) for metric, each in by_metric.items()},
            counted={
                metric: sorted(position[sample] for sample in each.samples)
                for metric, each in by_metric.items()
            },
            parts={
                metric: [] if each.parts is None else [each.parts.get(sample, "") for sample in samples]
                for metric, each in by_metric.items()
            },
        )


def _digests(asked: Iterable[Any]) -> list[bytes]:
    """Of what samples ask, of which many may be one object."""
    objects = list(asked)
    digests = {id(each): _digest(each) for each in {id(each): each for each in objects}.values()}
    return [digests[id(each)] for each in objects]


def _digest(asked: Any) -> bytes:
    """Equal digests ask the same. What cannot be encoded has one of its own, and is compared itself."""
    try:
        return sha256(msgspec.msgpack.encode(asked, order="deterministic")).digest()
    except TypeError:
        return os.urandom(32)


# Which runs are on a board


def _alike(entrants: Sequence[_Entrant], *fields: str) -> list[int | None]:
    """For each run the first of those before it that has the same in some fields of its values, if any."""
    first: list[int] = []
    alike: list[int | None] = []
    for index, entrant in enumerate(entrants):
        same = (
            other
            for other in first
            if all(getattr(entrant.values, f) == getattr(entrants[other].values, f) for f in fields)
        )
        alike.append(next(same, None))
        if alike[-1] is None:
            first.append(index)
    return alike


class _Runs:
    """The runs of one benchmark with their samples numbered alike."""

    def __init__(self, entrants: Sequence[_Entrant]) -> None:
        self.entrants = entrants
        columns: dict[str, int] = {}
        digests: dict[bytes, int] = {}
        self.columns: list[NDArray[np.intp]] = []
        """The number of each sample of a run."""
        for entrant, alike in zip(entrants, _alike(entrants, "samples"), strict=True):
            if alike is None:
                samples = entrant.values.samples
                numbers = [columns.setdefault(sample, len(columns)) for sample in samples]
                self.columns.append(np.array(numbers, dtype=np.intp))
            else:
                self.columns.append(self.columns[alike])
        self.samples = list(columns)
        self.asked = np.full((len(entrants), len(columns)), -1)
        """By run and sample: the number of what it asks; −1 where the run does not have it."""
        for index, alike in enumerate(_alike(entrants, "samples", "asked")):
            if alike is None:
                asked = entrants[index].values.asked
                numbers = [digests.setdefault(digest, len(digests)) for digest in asked]
                self.asked[index, self.columns[index]] = numbers
            else:
                self.asked[index] = self.asked[alike]
        self.grouping = [
            index if alike is None else alike
            for index, alike in enumerate(_alike(entrants, "samples", "groups"))
        ]
        """By run: one whose samples are the same and fall into the same groups."""
        self._settings: dict[tuple[bytes, bytes], Settings] = {}
        self._asked: dict[int, Mapping[str, Any]] = {}

    def reasons(self, a: int, b: int) -> list[str]:
        """Why two runs cannot be on one board."""
        first, second = self.entrants[a], self.entrants[b]
        settings = self._settings_between(a, b)
        reasons = list(settings.reasons)
        for name, patterns in settings.partial.items():
            metrics = {*first.metrics, *second.metrics}
            if any(fnmatchcase(metric, pattern) for metric in metrics for pattern in patterns):
                reasons.append(settings.by_name[name])
        bases = sorted({*first.bases, *second.bases})
        if len(bases) > 1 or any(basis.startswith(MIXED) for basis in bases):
            reasons.append(f"their figures differ in kind: {'; '.join(map(repr, bases))}")
        if first.not_a_mean or second.not_a_mean:
            reasons.append("the headline is not the mean of its samples")
        common, unlike = self.unlike(a, b)
        if not common or mostly(len(unlike), common):
            named = [self.samples[number] for number in unlike]
            reasons += [unlike_samples(named, common, first.layout), *settings.by_name.values()]
        return list(dict.fromkeys(reasons))

    def _settings_between(self, a: int, b: int) -> Settings:
        first, second = self.entrants[a], self.entrants[b]
        key = (first.signature, second.signature)
        if key not in self._settings:
            self._settings[key] = settings_between(first.run, second.run)
        return self._settings[key]

    def unlike(self, a: int, b: int) -> tuple[int, list[int]]:
        """How many samples two runs have in common, and those of them that do not ask the same."""
        first, second = self.asked[a], self.asked[b]
        common = (first >= 0) & (second >= 0)
        suspects = np.flatnonzero(common & (first != second)).tolist()
        if suspects:  # a recorded prompt may be the beginning of a whole one
            asks_same = self.entrants[a].benchmark.asks_same
            asked_a, asked_b = self._asked_by(a), self._asked_by(b)
            samples = [(number, self.samples[number]) for number in suspects]
            suspects = [number for number, name in samples if not asks_same(asked_a[name], asked_b[name])]
        return int(common.sum()), suspects

    def _asked_by(self, index: int) -> Mapping[str, Any]:
        """What the samples of a run ask, from its records."""
        if index not in self._asked:
            self._asked[index] = read_values(self.entrants[index].run, [], ()).asked
        return self._asked[index]

    def fits(self, group: Sequence[int], index: int) -> bool:
        """Whether a run can be on a board with others."""
        if sum(len(self.entrants[each].metrics) for each in (*group, index)) > MOST_ENTRIES:
            return False
        if any(self._settings_between(each, index).reasons for each in group):
            return False
        return not any(self.reasons(each, index) for each in group)

    def grouped(self) -> list[list[int]]:
        """The runs in sets in which each can be compared with each, in their order."""
        groups: list[list[int]] = []
        for index in range(len(self.entrants)):
            group = next((group for group in groups if self.fits(group, index)), None)
            if group is None:
                groups.append([index])
            else:
                group.append(index)
        return groups

    def apart(self, group: Sequence[int], index: int) -> str:
        """Why a run is not on the board of others, in words."""
        for each in group:
            if reasons := self.reasons(each, index):
                name = self.entrants[each].run.path.name
                return f"Not compared with {name} (there), because {'; '.join(reasons)}."
        return f"The first board is full: a board has at most {MOST_ENTRIES} entries."


def _boards(entrants: Sequence[_Entrant]) -> list[Leaderboard]:
    runs = _Runs(entrants)
    groups = runs.grouped()
    boards = []
    for number, group in enumerate(groups):
        notes = []
        if number:
            notes.append(runs.apart(groups[0], group[0]))
        layout = entrants[group[0]].layout
        rows, more = _rows(runs, group)
        few = [row.name for row in rows if row.figure.coverage < FLOOR]
        notes += more
        if few:
            notes.append(f"Coverage below {share(FLOOR)}: {', '.join(few)}.")
        name = entrants[group[0]].run.spec.benchmark
        title = f"{name}: {layout.headline_title}{f' ({number + 1})' if len(groups) > 1 else ''}"
        boards.append(
            Leaderboard(
                benchmark=name, metric=layout.headline, title=title, rows=rows, note=" ".join(notes)
            )
        )  # fmt: skip
    return boards


# Ranks


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


def _rows(runs: _Runs, group: Sequence[int]) -> tuple[tuple[Standing, ...], list[str]]:
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


def _entries(runs: _Runs, group: Sequence[int]) -> list[_Entry]:
    members = [runs.entrants[index] for index in group]
    subjects = [subject for member in members for subject in member.run.subjects]
    folders = [member.run.path.name for member in members]
    distinct = len(set(folders)) == len(folders)
    labels = folders if distinct else [str(member.run.path) for member in members]
    names = run_names([member.run for member in members])
    entries = []
    for index, member, label, name in zip(group, members, labels, names, strict=True):
        columns = runs.columns[index]
        for metric, figure in member.figures.items():
            subject = metric.partition("@")[2]
            values = np.full(len(runs.samples), np.nan)
            order = columns[np.array(member.values.positions[metric], dtype=np.intp)]
            values[order] = member.values.values[metric]
            counted = np.zeros(len(runs.samples), dtype=bool)
            counted[columns[np.array(member.values.counted[metric], dtype=np.intp)]] = True
            shown = subject if subjects.count(subject) == 1 else f"{subject} ({label})"
            entries.append(
                _Entry(
                    name=shown if member.run.subjects else name, index=index, metric=metric, figure=figure,
                    values=values, order=order, counted=counted, parts=_parts(runs, index, metric),
                )
            )  # fmt: skip
    return entries


def _parts(runs: _Runs, index: int, metric: str) -> NDArray[np.intp] | None:
    """The numbers of the parts, alike in all runs: by the digest of a part's name."""
    names = runs.entrants[index].values.parts[metric]
    if not names:
        return None
    parts = np.zeros(len(runs.samples), dtype=np.intp)
    numbers = {name: int.from_bytes(sha256(name.encode()).digest()[:7]) for name in set(names)}
    parts[runs.columns[index]] = [numbers[name] for name in names]
    return parts


def _leave_out(runs: _Runs, group: Sequence[int], entries: Iterable[_Entry]) -> list[str]:
    """Remove samples that do not ask the same from the later of two runs, as `check_pairing` does."""
    notes = []
    by_run: defaultdict[int, list[_Entry]] = defaultdict(list)
    for entry in entries:
        by_run[entry.index].append(entry)
    for a, b in combinations(group, 2):
        common, unlike = runs.unlike(a, b)
        if unlike:
            named = [runs.samples[number] for number in unlike]
            sentence = unlike_samples(named, common, runs.entrants[a].layout)
            notes.append(f"Left out of {runs.entrants[b].run.path.name}: {sentence}.")
            runs.asked[b, unlike] = -1
            for entry in by_run[b]:
                entry.values[unlike] = np.nan
                entry.counted[unlike] = False
    return list(dict.fromkeys(notes))


class _Groups:
    """The groups of samples, numbered as `links.numbered` does. Most pairs of runs have the same samples."""

    def __init__(self, runs: _Runs) -> None:
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

"""Which runs of a benchmark are on one board: those of which each can be compared with each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import numpy as np

from evenkeel.analysis.comparability import read_values, run_names
from evenkeel.analysis.leaderboard.entrants import MOST_ENTRIES, Entrant
from evenkeel.analysis.pairing import Settings, mostly, settings_between, unlike_samples
from evenkeel.types import MIXED

if TYPE_CHECKING:
    from numpy.typing import NDArray


def _alike(entrants: Sequence[Entrant], *fields: str) -> list[int | None]:
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


class Runs:
    """The runs of one benchmark with their samples numbered alike."""

    def __init__(self, entrants: Sequence[Entrant]) -> None:
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
                name = run_names([self.entrants[each].run, self.entrants[index].run])[0]
                return f"Not compared with {name} (there), because {'; '.join(reasons)}."
        return f"The first board is full: a board has at most {MOST_ENTRIES} entries."

"""Whether runs were asked the same, and by which of their samples they can be compared."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from evenkeel.analysis.sample_values import RunValues, Values, tag_order
from evenkeel.errors import UsageError
from evenkeel.harness.folder import Run
from evenkeel.harness.registry import benchmark_class
from evenkeel.harness.spec import spec_changes
from evenkeel.options import describe
from evenkeel.page.examples import shortened
from evenkeel.page.format import counted
from evenkeel.types import Tag

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_LISTED = 3
"""Samples that a message names."""
VISIBLE_IN_SAMPLES = ("data.", "limit", "seed")
"""Parts of a spec that decide which samples there are and what they ask, which the samples show."""
SETTINGS = {"data.lang": "Language", "data.sha256": "Data"}
"""Settings whose names are not words for people."""
UNLIKE = {
    "answers": "each run has another number of answers to them",
    "samples": "they depend on the other samples, and each run has others",
}
"""Why samples are left out, by what their values depend on."""
LONGEST = 40
"""Characters of a setting in a message."""


class Pair(NamedTuple):
    """Two runs that were asked the same."""

    names: tuple[str, str]
    runs: tuple[RunValues, RunValues]
    rows: tuple[NDArray[np.intp], NDArray[np.intp]]
    """Where the samples that both have are in each run, in the order of the first."""

    def sides(self, name: str, other_name: str = "") -> tuple[Values, Values]:
        """A metric of the common samples. In the second run it may have another name: that of another
        subject."""
        return (
            self.runs[0][name].taken(self.rows[0]),
            self.runs[1][other_name or name].taken(self.rows[1]),
        )


def paired(names: tuple[str, str], runs: tuple[RunValues, RunValues]) -> Pair:
    """The samples that both runs have; an error where the runs were asked different things.

    Settings must be equal. Whether the data are is seen in the samples: those that both runs have must ask
    the same, whatever file they came from and however many others there are. What recorded answers do not
    state is unknown, and no difference.
    """
    first, second = runs
    positions = {score.sample_id: row for row, score in enumerate(second.scores)}
    common = [row for row, score in enumerate(first.scores) if score.sample_id in positions]
    others = [positions[first.scores[row].sample_id] for row in common]
    changes = _changes(first.run, second.run)
    hidden = _options(first.run, "in_samples")
    reasons = [
        words
        for name, words in changes.items()
        if not name.startswith(VISIBLE_IN_SAMPLES) and name not in hidden
    ]
    if unlike := _unlike(first, second, common, others):
        reasons = [unlike, *changes.values()]
    if reasons:
        raise UsageError(
            f"{names[0]} (A) and {names[1]} (B) were asked differently: {'; '.join(dict.fromkeys(reasons))}. "
            "Compare runs over the same data with the same settings."
        )
    return Pair(names, runs, (np.array(common, dtype=np.intp), np.array(others, dtype=np.intp)))


def _unlike(first: RunValues, second: RunValues, common: Sequence[int], others: Sequence[int]) -> str:
    """Which of the samples in both runs do not ask the same, in words; empty where all do."""
    if not common:
        return "they have no sample in common"
    benchmark = benchmark_class(first.run.spec.benchmark)
    unlike = [
        first.scores[row].sample_id
        for row, other in zip(common, others, strict=True)
        if not benchmark.asks_same(first.asked[row], second.asked[other])
    ]
    if not unlike:
        return ""
    more = ", …" if len(unlike) > MOST_LISTED else ""
    shared = counted(len(common), f"shared {benchmark.layout.counted[0]}")
    return f"{len(unlike):,} of {shared} ask different things: {', '.join(unlike[:MOST_LISTED])}{more}"


def _changes(first: Run, second: Run) -> dict[str, str]:
    """What two runs were asked differently, in words by setting, except what is under test and what is not
    recorded."""
    tested = ("models.model.",) if first.subject == "model" else ("models.", f"options.{first.subject}")
    unknown = [*_unrecorded(first), *_unrecorded(second)]
    return {
        name: _difference(name, *change)
        for name, change in spec_changes(first.spec, second.spec).items()
        if not name.startswith(("subjects", *tested)) and name not in unknown
    }


def differing_settings(runs: Sequence[Run]) -> list[str]:
    """In what each two of comparable runs differ nevertheless: another file of the same questions, say."""
    changes = (words for pair in combinations(runs, 2) for words in _changes(*pair).values())
    return list(dict.fromkeys(changes))


def _options(run: Run, kind: str) -> list[str]:
    """The names of the options of a kind, as a spec has them: `asking`, or `in_samples`."""
    options = describe(benchmark_class(run.spec.benchmark).Options)
    return [f"options.{option.name}" for option in options if getattr(option, kind)]


def _unrecorded(run: Run) -> list[str]:
    """The options about asking that a run of recorded answers does not state."""
    recorded = run.spec.data.get("source") == "recorded"
    stated = {f"options.{name}" for name in run.spec.options}
    return [name for name in _options(run, "asking") if name not in stated] if recorded else []


def unknown_settings(name: str, run: Run) -> list[str]:
    """What a run of recorded answers does not state, and its samples do not show."""
    hidden = _options(run, "in_samples")
    unknown = [option.removeprefix("options.") for option in _unrecorded(run) if option not in hidden]
    return [f"not recorded in {name}: {', '.join(unknown)}"] if unknown else []


def sizes_note(pair: Pair) -> list[str]:
    """How many samples two runs have in common, where one has others."""
    sizes, common = [len(run.scores) for run in pair.runs], len(pair.rows[0])
    if sizes == [common, common]:
        return []
    shared = counted(common, f"shared {pair.runs[0].layout.counted[0]}")
    listed = ", ".join(f"{size:,} in {name}" for size, name in zip(sizes, pair.names, strict=True))
    return [f"Compared on the {shared} ({listed})"]


def excluded(pair: Pair, sides: tuple[Values, Values]) -> tuple[NDArray[np.bool_], str]:
    """Which of the common samples two runs cannot be compared by, and why: what their values depend on,
    beside their own answers, is not the same in both."""
    depends, (first, second) = sides[0].metric.depends_on, pair.runs
    unlike = np.zeros(len(sides[0].values), dtype=bool)
    if depends == "answers":
        unlike = sides[0].answered != sides[1].answered
    elif depends == "samples":
        unlike[:] = {score.sample_id for score in first.scores} != {each.sample_id for each in second.scores}
    elif depends:
        before, after = (_lowest(run, rows, depends) for run, rows in zip(pair.runs, pair.rows, strict=True))
        unlike[:] = [a != b for a, b in zip(before, after, strict=True)]
    reason = UNLIKE.get(depends, f"each run compares them with another {depends}")
    return unlike & sides[0].known & sides[1].known, reason


def _lowest(of_run: RunValues, rows: NDArray[np.intp], tag: str) -> list[Tag | None]:
    """For some samples: the lowest value of a tag in the group and language of each."""
    families = [(score.group, score.tags.get("lang")) for score in of_run.scores]
    lowest: dict[tuple[str, Tag | None], Tag] = {}
    for family, score in zip(families, of_run.scores, strict=True):
        if (value := score.tags.get(tag)) is not None:
            lowest[family] = min(lowest.get(family, value), value, key=tag_order)
    return [lowest.get(families[row]) for row in rows]


def _difference(name: str, first: Any, second: Any) -> str:
    """What a setting is in two runs, in words: `Language: A en, B all`."""
    words = [part for part in name.split(".")[1:] if part not in ("name", "spec", "identity")]
    title = SETTINGS.get(name) or " ".join(words or [name]).replace("_", " ").capitalize()
    unset = "all" if name in ("data.lang", "limit") else "none"
    a, b = (
        shortened(", ".join(map(str, value)) if isinstance(value, list) else str(value), LONGEST)
        if value not in (None, "", [])
        else unset
        for value in (first, second)
    )
    return f"{title}: A {a}, B {b}"

"""Whether runs were asked the same, and by which of their samples they can be compared."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from evenkeel.analysis.sample_values import RunValues
from evenkeel.errors import UsageError
from evenkeel.harness.folder import Run, spec_changes
from evenkeel.harness.registry import benchmark_class
from evenkeel.options import describe
from evenkeel.page.layout import Layout
from evenkeel.page.metrics import declaration

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_SAMPLES = 3
"""Samples that a message names, and members of a list in a setting."""
LONGEST = 80
"""Characters of a setting in a message."""
VISIBLE_IN_SAMPLES = ("data.", "limit", "seed")
"""Parts of a spec that decide which samples there are and what they ask, which the samples show."""
SETTINGS = {"data.lang": "Language", "data.sha256": "Data"}
"""Settings whose names are not words for people."""
DIGEST = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{20,}\b")
"""A digest; the first characters are shown."""


class Pair(NamedTuple):
    """Two runs that were asked the same."""

    names: tuple[str, str]
    runs: tuple[RunValues, RunValues]
    first: NDArray[np.intp]
    second: NDArray[np.intp]
    """Where the samples that both have are in each run, in the order of the first."""
    refused: dict[str, Sequence[str]]
    """Settings in which they differ that decide some metrics only, in words, with patterns of these."""

    def why_not(self, metric: str) -> str:
        """Why they cannot be compared by a metric; empty where they can."""
        for reason, patterns in self.refused.items():
            if any(fnmatchcase(metric, pattern) for pattern in patterns):
                return reason
        return ""


def paired(
    names: tuple[str, str], runs: tuple[Run, Run], values: tuple[RunValues, RunValues], *, strict: bool
) -> Pair:
    """The samples that both runs have; an error where the runs were asked different things.

    Settings must be equal. Whether the data are is seen in the samples: those that both runs have must ask
    the same, whatever file they came from and however many others there are. What recorded answers do not
    state is unknown, and a difference only where that is `strict`.
    """
    reasons, refused = settings_between(*runs, strict=strict)
    first, second = (
        np.array([of_run.samples[sample] for sample in values[0].samples if sample in values[1].samples], int)
        for of_run in values
    )
    if unlike := unlike_samples(values, first, second, benchmark_class(runs[0].spec.benchmark)):
        reasons = [unlike, *differing_settings(runs)]
    if reasons:
        raise UsageError(
            f"{names[0]} (A) and {names[1]} (B) were asked differently: {'; '.join(dict.fromkeys(reasons))}. "
            "Compare runs over the same data with the same settings."
        )
    return Pair(names, values, first, second, refused)


def unlike_samples(
    values: tuple[RunValues, RunValues],
    first: NDArray[np.intp],
    second: NDArray[np.intp],
    benchmark: Any,
) -> str:
    """Which of the samples in both runs do not ask the same, in words; empty where all do."""
    if not len(first):
        return "they have no sample in common"
    asked = [
        [of_run.asked[row] for row in rows] for of_run, rows in zip(values, (first, second), strict=True)
    ]
    ids = list(values[0].samples)
    unlike = [
        ids[row]
        for row, before, after in zip(first, *asked, strict=True)
        if before is not after and not benchmark.asks_same(before, after)
    ]
    if not unlike:
        return ""
    more = ", …" if len(unlike) > MOST_SAMPLES else ""
    samples = benchmark.layout.counted[0]
    listed = ", ".join(unlike[:MOST_SAMPLES])
    return f"{len(unlike):,} of {len(first):,} {samples} in both do not ask the same: {listed}{more}"


def settings_between(
    stored: Run, current: Run, *, strict: bool = False
) -> tuple[list[str], dict[str, Sequence[str]]]:
    """In which settings two runs differ, apart from what is under test: those because of which they cannot be
    paired, and those that decide some metrics only, with the patterns of these."""
    decides = benchmark_class(stored.spec.benchmark).decides
    reasons: list[str] = []
    partial: dict[str, Sequence[str]] = {}
    in_samples = [f"options.{name}" for name in _options(stored, "in_samples")]
    for name, (there, here) in _changes(stored, current, strict=strict).items():
        if name.startswith(VISIBLE_IN_SAMPLES) or (name in in_samples and not strict):
            continue
        text = _difference(name, there, here)
        metrics = next((decides[pattern] for pattern in decides if fnmatchcase(name, pattern)), ())
        if metrics and not strict:
            partial[text] = metrics
        else:
            reasons.append(text)
    return reasons, partial


def _changes(stored: Run, current: Run, *, strict: bool) -> dict[str, tuple[Any, Any]]:
    """What two runs were asked differently, by name, except what is under test and what is not recorded."""
    tested = ("models.model.",) if stored.subject == "model" else ("models.", f"options.{stored.subject}")
    unknown = () if strict else [f"options.{name}" for run in (stored, current) for name in _unrecorded(run)]
    return {
        name: change
        for name, change in spec_changes(stored.spec, current.spec).items()
        if not name.startswith(("subjects", *tested)) and name not in unknown
    }


def differing_settings(runs: Sequence[Run]) -> list[str]:
    """In what each two of comparable runs differ nevertheless: another file of the same questions, say."""
    changes = (
        _difference(name, *change)
        for number, stored in enumerate(runs)
        for current in runs[number + 1 :]
        for name, change in _changes(stored, current, strict=False).items()
    )
    return list(dict.fromkeys(changes))


def _options(run: Run, kind: str) -> list[str]:
    """The names of the options of a kind: `asking`, or `in_samples`."""
    options = describe(benchmark_class(run.spec.benchmark).Options)
    return [option.name for option in options if getattr(option, kind)]


def _unrecorded(run: Run) -> list[str]:
    """The options about asking that a run of recorded answers does not state."""
    if run.spec.data.get("source") != "recorded":
        return []
    return [name for name in _options(run, "asking") if name not in run.spec.options]


def unknown_settings(runs: Mapping[str, Run]) -> list[str]:
    """For each run of recorded answers: what it does not state."""
    return [
        f"not recorded in {name}: {', '.join(unrecorded)}"
        for name, run in runs.items()
        if (unrecorded := [o for o in _unrecorded(run) if o not in _options(run, "in_samples")])
    ]


def sizes_note(pair: Pair, layout: Layout) -> list[str]:
    """How many samples two runs have in common, where one has others."""
    sizes = [len(of_run.samples) for of_run in pair.runs]
    if sizes == [len(pair.first)] * 2:
        return []
    listed = ", ".join(f"{size:,} in {name}" for size, name in zip(sizes, pair.names, strict=True))
    return [f"Compared on the {len(pair.first):,} shared {layout.counted[0]} ({listed})"]


def excluded(pair: Pair, name: str, layout: Layout, other_name: str = "") -> tuple[NDArray[np.bool_], str]:
    """Which of the common samples two runs cannot be compared by, and why: each run compares them with
    another sample or with all of its own, or has another number of answers. In the second run the metric may
    have another name: that of another subject."""
    declared = declaration(layout.metrics, name)
    whole = pair.runs[0].by_metric[name], pair.runs[1].by_metric[other_name or name]
    stored, current = whole[0].taken(pair.first), whole[1].taken(pair.second)
    none = np.zeros(len(pair.first), dtype=bool)
    if declared and declared.against:
        lowest = [of_run.lowest.get(declared.against, {}) for of_run in pair.runs]
        families = {key for key in lowest[0] if lowest[0][key] != lowest[1].get(key, lowest[0][key])}
        unlike = np.array([pair.runs[1].families[row] in families for row in pair.second], dtype=bool)
        return unlike, f"each run compares them with another prompt or {declared.against}"
    if declared and declared.by_repeats:
        unlike = (stored.answered != 0) & (stored.answered != current.answered)
        return unlike & current.known, "each run has another number of answers to them"
    if declared and declared.by_others:
        about = [
            {sample for sample, row in of_run.samples.items() if values.about[row]}
            for of_run, values in zip(pair.runs, whole, strict=True)
        ]
        if about[0] != about[1]:
            return ~none, f"it depends on the other {layout.counted[0]}, and each run has others"
    return none, ""


def _difference(name: str, first: Any, second: Any) -> str:
    """What a setting is in two runs, in words: `Language: A en, B all`."""
    section, _, rest = name.partition(".")
    words = [part for part in rest.split(".") if part not in ("name", "spec", "identity")]
    title = " ".join(words if section == "models" else (rest or name).split(".")[-1:])
    title = SETTINGS.get(name) or title.replace("_", " ").capitalize()
    return f"{title}: A {_words(first, name)}, B {_words(second, name)}"


def _words(value: Any, name: str = "") -> str:
    """A setting as a person reads it: `none`, at most three members of a list, short digests."""
    if isinstance(value, list) and value:
        return ", ".join([*map(_words, value[:MOST_SAMPLES]), *(["…"] if value[MOST_SAMPLES:] else [])])
    if value in (None, "", []):
        return "all" if name in ("data.lang", "limit") else "none" if value is None else "empty"
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    text = DIGEST.sub(r"\1", text)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"

"""Whether runs were asked the same, and by which of their samples they can be compared."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from evenkeel.analysis.sample_values import RunValues, Values, tag_order
from evenkeel.errors import UsageError
from evenkeel.harness.folder import Run, spec_changes
from evenkeel.harness.registry import benchmark_class
from evenkeel.options import describe
from evenkeel.page.layout import Layout
from evenkeel.page.metrics import declaration
from evenkeel.types import Tag

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
UNLIKE = {
    "answers": "each run has another number of answers to them",
    "samples": "they depend on the other samples, and each run has others",
}
"""Why samples are left out, by what their values depend on."""
DIGEST = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{20,}\b")
"""A digest; the first characters are shown."""


class Pair(NamedTuple):
    """Two runs that were asked the same."""

    names: tuple[str, str]
    runs: tuple[RunValues, RunValues]
    first: NDArray[np.intp]
    second: NDArray[np.intp]
    """Where the samples that both have are in each run, in the order of the first."""


def paired(
    names: tuple[str, str], runs: tuple[Run, Run], values: tuple[RunValues, RunValues], *, strict: bool
) -> Pair:
    """The samples that both runs have; an error where the runs were asked different things.

    Settings must be equal. Whether the data are is seen in the samples: those that both runs have must ask
    the same, whatever file they came from and however many others there are. What recorded answers do not
    state is unknown, and a difference only where that is `strict`.
    """
    reasons = settings_between(*runs, strict=strict)
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
    return Pair(names, values, first, second)


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
        if not benchmark.asks_same(before, after)
    ]
    if not unlike:
        return ""
    more = ", …" if len(unlike) > MOST_SAMPLES else ""
    samples = benchmark.layout.counted[0]
    listed = ", ".join(unlike[:MOST_SAMPLES])
    return f"{len(unlike):,} of {len(first):,} {samples} in both do not ask the same: {listed}{more}"


def settings_between(stored: Run, current: Run, *, strict: bool) -> list[str]:
    """The settings in which two runs differ so that they cannot be paired, in words."""
    in_samples = [] if strict else [f"options.{name}" for name in _options(stored, "in_samples")]
    return [
        _difference(name, there, here)
        for name, (there, here) in _changes(stored, current, strict=strict).items()
        if not name.startswith(VISIBLE_IN_SAMPLES) and name not in in_samples
    ]


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
    """Which of the common samples two runs cannot be compared by, and why: what their values depend on,
    beside their own answers, is not the same in both. In the second run the metric may have another name:
    that of another subject."""
    declared = declaration(layout.metrics, name)
    depends = declared.depends_on if declared else ""
    if not depends:
        return np.zeros(len(pair.first), dtype=bool), ""
    first, second = pair.runs[0].by_metric[name], pair.runs[1].by_metric[other_name or name]
    before, after = _contexts(pair.runs[0], first, depends), _contexts(pair.runs[1], second, depends)
    reason = UNLIKE.get(depends, f"each run compares them with another {depends}")
    unlike = [before[a] != after[b] for a, b in zip(pair.first, pair.second, strict=True)]
    return np.array(unlike, dtype=bool) & first.known[pair.first] & second.known[pair.second], reason


def _contexts(of_run: RunValues, values: Values, depends: str) -> Sequence[object]:
    """What the value of each sample depends on, as `Metric.depends_on` says."""
    if depends == "answers":
        return list(values.answered)
    if depends == "samples":
        return [hash(frozenset(of_run.samples))] * len(of_run.samples)
    families = [(group, tags.get("lang")) for group, tags in of_run.groups]
    lowest: dict[object, Tag] = {}
    for family, (_, tags) in zip(families, of_run.groups, strict=True):
        if depends in tags:
            lowest[family] = min(lowest.get(family, tags[depends]), tags[depends], key=tag_order)
    return [lowest.get(family) for family in families]


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

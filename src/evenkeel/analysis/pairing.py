"""Whether runs can be paired by their samples: what both were asked, and what is not known of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import combinations
from typing import Any, NamedTuple

import msgspec

from evenkeel.analysis.comparability import RunValues, run_names, split_name
from evenkeel.errors import UsageError
from evenkeel.harness.folder import Run, spec_changes
from evenkeel.harness.registry import benchmark_class
from evenkeel.options import describe
from evenkeel.page.layout import Layout
from evenkeel.page.metrics import declaration

VISIBLE_IN_SAMPLES = ("data.", "limit", "seed")
"""Parts of a spec that decide which samples there are and what they ask, which the samples show."""

MOST_SAMPLES = 3
"""Samples that a message names."""
MOST_MEMBERS = 3
"""Of a list in a setting, in a message."""
LONGEST = 80
"""Characters of a setting in a message."""
DIGEST = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{20,}\b")
"""A digest; the first characters are shown."""


class Unpairable(UsageError):
    """The runs were asked different things, so that their samples cannot be paired."""


class Pairing(NamedTuple):
    """How far runs were asked the same."""

    differs: list[str]
    """What they were asked differently."""
    notes: list[str]
    """Which samples the comparison is about, and what is not known of how they were asked."""
    left_out: dict[tuple[int, int], dict[str, set[str]]]
    """By pair of runs and metric: the samples that these two cannot be compared by."""


def check_pairing(
    runs: Sequence[Run], values: Sequence[RunValues], layout: Layout, *, paired: bool, strict: bool
) -> Pairing:
    """What the runs were asked differently, in words; an error where they are to be paired.

    Settings must be equal. Whether the data are is seen in the samples: those that both runs have must ask
    the same, whatever file they came from and however many others there are. Where most do, the others are
    removed from the later run, and settings that recorded answers leave unknown are named, unless `strict`.
    So are metrics that alone depend on a setting in which the runs differ.
    """
    differs: list[str] = []
    names = run_names(runs)
    notes = _unknown_settings(dict(zip(names, runs, strict=True)))
    left_out: dict[tuple[int, int], dict[str, set[str]]] = {}
    for a, b in combinations(range(len(runs)), 2):
        by_setting, partial, reasons = settings_between(runs[a], runs[b], strict=strict)
        common = [sample for sample in values[a].asked if sample in values[b].asked]
        benchmark = benchmark_class(runs[a].spec.benchmark)
        unlike = [
            sample
            for sample in common
            if not benchmark.asks_same(values[a].asked[sample], values[b].asked[sample])
        ]
        sentence = unlike_samples(unlike, len(common), layout)
        if not common or (unlike and (strict or mostly(len(unlike), len(common)))):
            reasons = [sentence, *by_setting.values()]
        if paired and reasons:
            raise Unpairable(
                f"{names[b]} was not asked what {names[a]} was: {'; '.join(reasons)}. "
                f"Compare runs over the same data with the same settings.{_advice(runs[a], runs[b])}"
            )
        if paired:
            notes += [f"left out: {sentence}"] if unlike else []
            _leave_out(unlike, values[b])
            left = left_out[a, b] = {}
            notes += _leave_out_metrics(
                partial, by_setting, (names[a], names[b]), (values[a], values[b]), left
            )
            notes += _overlap((names[a], names[b]), values[a], values[b], layout)
            notes += _leave_out_of_metrics(values[a], values[b], unlike, layout, left)
        elif unlike or not common:
            differs.append(sentence)
        differs += by_setting.values()
    return Pairing(list(dict.fromkeys(differs)), list(dict.fromkeys(notes)), left_out)


class Settings(NamedTuple):
    """What two runs were asked differently, apart from the model under test, and what follows from it."""

    by_name: dict[str, str]
    """Every setting that differs, in words."""
    partial: dict[str, Sequence[str]]
    """Those that decide some metrics only, with the patterns of these."""
    reasons: list[str]
    """Those because of which the runs cannot be paired, whatever their samples."""


def settings_between(stored: Run, current: Run, *, strict: bool = False) -> Settings:
    by_name = _settings(stored, current, strict=strict)
    visible = [] if strict else [f"options.{name}" for name in _in_samples(stored)]
    partial = {} if strict else _partial(stored, by_name)
    reasons = [
        text
        for name, text in by_name.items()
        if not name.startswith(VISIBLE_IN_SAMPLES) and name not in visible and name not in partial
    ]
    return Settings(by_name, partial, reasons)


def _settings(stored: Run, current: Run, *, strict: bool) -> dict[str, str]:
    """What two runs were asked differently, by name, except what is under test.

    What recorded answers do not state is unknown, and a difference only where that is `strict`.
    """
    tested = ("models.model.",) if stored.subject == "model" else ("models.", f"options.{stored.subject}")
    unknown = () if strict else [f"options.{name}" for run in (stored, current) for name in _not_stated(run)]
    return {
        name: _difference(name, there, here)
        for name, (there, here) in spec_changes(stored.spec, current.spec).items()
        if not name.startswith(("subjects", *tested)) and name not in unknown
    }


def _in_samples(run: Run) -> list[str]:
    """The options that the samples of a run show."""
    options = describe(benchmark_class(run.spec.benchmark).Options)
    return [option.name for option in options if option.in_samples]


def _not_stated(run: Run) -> list[str]:
    """The options about asking that a run of recorded answers does not state."""
    if run.spec.data.get("source") != "recorded":
        return []
    options = describe(benchmark_class(run.spec.benchmark).Options)
    return [option.name for option in options if option.asking and option.name not in run.spec.options]


def _unknown_settings(runs: Mapping[str, Run]) -> list[str]:
    """For each run of recorded answers: what it does not state, and what that is in the others."""
    notes = []
    for run_name, run in runs.items():
        if names := [name for name in _not_stated(run) if name not in _in_samples(run)]:
            others = [
                f"{other_name}: {', '.join(f'{name} {other.spec.options[name]}' for name in known)}"
                for other_name, other in runs.items()
                if (known := [name for name in names if name in other.spec.options])
            ]
            elsewhere = f" ({'; '.join(others)})" if others else ""
            notes.append(f"not recorded in {run_name}: {', '.join(names)}{elsewhere}")
    return notes


def _partial(run: Run, settings: Iterable[str]) -> dict[str, Sequence[str]]:
    """The settings that decide some metrics only, with the patterns of these."""
    decides = benchmark_class(run.spec.benchmark).decides
    return {
        name: metrics
        for name in settings
        for pattern, metrics in decides.items()
        if fnmatchcase(name, pattern)
    }


def _leave_out_metrics(
    partial: Mapping[str, Sequence[str]],
    by_setting: Mapping[str, str],
    names: tuple[str, str],
    values: tuple[RunValues, RunValues],
    left: dict[str, set[str]],
) -> list[str]:
    """Leave out the metrics that depend on a setting in which two runs differ; each with one reason."""
    reasons: dict[str, list[str]] = {}
    for metric in sorted(values[0].metrics | values[1].metrics):
        for name, patterns in partial.items():
            if any(fnmatchcase(metric, pattern) for pattern in patterns):
                reasons.setdefault(by_setting[name], []).append(metric)
                break
    metrics = {metric for each in reasons.values() for metric in each}
    for name, metric_values in values[1].by_metric.items():
        if split_name(name, metrics)[0] in metrics:
            left.setdefault(name, set()).update(metric_values.requests)
    pair = f"{names[0]} (there) and {names[1]} (here)"
    return [
        f"{', '.join(each)}: left out between {pair}, because {reason}" for reason, each in reasons.items()
    ]


def mostly(unlike: int, common: int) -> bool:
    """Whether most of the samples that two runs have in common do not ask the same."""
    return 2 * unlike > common


def unlike_samples(unlike: Sequence[str], common: int, layout: Layout) -> str:
    """Which of the samples in common do not ask the same, in words."""
    if not common:
        return "they have no sample in common"
    more = ", …" if len(unlike) > MOST_SAMPLES else ""
    named = f"{', '.join(unlike[:MOST_SAMPLES])}{more}"
    return f"{len(unlike):,} of {common:,} {layout.counted[0]} in both do not ask the same: {named}"


def _leave_out(samples: Iterable[str], values: RunValues) -> None:
    """Remove samples from a run's values: they are in no pair then."""
    for sample in samples:
        del values.asked[sample]
        for metric_values in values.by_metric.values():
            metric_values.leave_out(sample)


def _overlap(names: tuple[str, str], first: RunValues, second: RunValues, layout: Layout) -> list[str]:
    """How many samples two runs have in common, where one has others."""
    common = len(first.asked.keys() & second.asked.keys())
    if common == len(first.asked) == len(second.asked):
        return []
    sizes = f"{len(first.asked):,} in {names[0]}, {len(second.asked):,} in {names[1]}"
    return [f"compared are the {common:,} {layout.counted[0]} that both have: {sizes}"]


def _leave_out_of_metrics(
    first: RunValues, second: RunValues, unlike: Iterable[str], layout: Layout, left: dict[str, set[str]]
) -> list[str]:
    """Leave samples out of metrics by which they cannot be compared, and say so.

    Each run compares them with another sample or with all of its own, or has another number of answers.
    """
    notes = []
    for name, current in second.by_metric.items():
        declared, stored = declaration(layout.metrics, name), first.by_metric[name]
        samples: list[str] = []
        if declared and declared.against:
            lowest = [run.lowest[declared.against] for run in (first, second)]
            families = {key for key in lowest[0] if lowest[0][key] != lowest[1].get(key, lowest[0][key])}
            families |= {second.families[sample] for sample in unlike}  # its shortest may be among them
            samples = [sample for sample in current.values if second.families[sample] in families]
            reason = f"each run compares them with another prompt or {declared.against}"
        elif declared and declared.by_repeats:
            scored = {sample: answered for sample, (answered, _) in stored.requests.items()}
            samples = [s for s in current.values if scored.get(s, 0) not in (0, current.requests[s][0])]
            reason = "each run has another number of answers to them"
        elif declared and declared.by_others and stored.samples != current.samples:
            samples = list(current.values)
            reason = f"it depends on the other {layout.counted[0]}, and each run has others"
        common = sum(sample in stored.values and sample not in left.get(name, ()) for sample in samples)
        left.setdefault(name, set()).update(samples)
        if common:
            notes.append(f"{name}: {common:,} {layout.counted[0]} left out, because {reason}")
    return notes


def _advice(stored: Run, current: Run) -> str:
    """What helps where helpers differ and a run is of recorded answers, which can be scored with any."""
    recorded = [run for run in (stored, current) if run.spec.data.get("source") == "recorded"]
    options = [option.name for option in describe(benchmark_class(stored.spec.benchmark).Options)]
    helpers = [role for role in stored.spec.models if role in options]
    differ = [r for r in helpers if stored.spec.models[r] != current.spec.models.get(r)]
    if not recorded or not differ:
        return ""
    other = current if recorded[0] is stored else stored
    role = differ[0]
    spec = other.spec.models.get(role, {}).get("spec", "SPEC")
    return f" Recorded answers can be scored with the other run's {role}: evenkeel score … --{role} {spec}."


def _difference(name: str, there: Any, here: Any) -> str:
    """What a setting is in two runs, in words: `other data: 0f3a… there and 91cc… here`."""
    what = "other data:" if name == "data.sha256" else f"{name} is"
    return f"{what} {_words(there)} there and {_words(here)} here"


def _words(value: Any) -> str:
    """A setting as a person reads it: `none`, at most three members of a list, short digests."""
    if isinstance(value, list) and value:
        return ", ".join([*map(_words, value[:MOST_MEMBERS]), *(["…"] if value[MOST_MEMBERS:] else [])])
    if value in (None, "", []):
        return "none" if value is None else "empty"
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    text = DIGEST.sub(r"\1", text)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"

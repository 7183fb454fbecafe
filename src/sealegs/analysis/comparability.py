"""What runs are called, whether they were asked the same, and by which metrics and samples they compare."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sealegs.analysis.sample_values import RunValues, Values, split_name, tag_order
from sealegs.errors import UsageError, suggestion
from sealegs.harness.folder import Run, shared_layout
from sealegs.harness.folder.spec import refused_settings, spec_changes
from sealegs.harness.registry import benchmark_class
from sealegs.models.registry import split_spec
from sealegs.options import describe
from sealegs.page.examples import shortened
from sealegs.page.format import nouns
from sealegs.page.layout import Layout
from sealegs.page.metrics import scope_name
from sealegs.types import Tag

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
LONGEST_SETTING_CHARS = 40
LONGEST_SPEC_CHARS = 120
"""Characters of a setting in a message, and of a model's spec."""
DIGITS = 12
"""Of a digest, in a list of several."""
UNSET: tuple[Any, ...] = (None, "", [])
MOST_DIFFERENCE_ROWS = 50
"""Values of a tag that metrics are broken down by."""


def run_names(runs: Sequence[Run]) -> list[str]:
    """The names of the models, or of the folders where those are not distinct.

    Where neither are, the model with the end of the path: `SmolLM2 (20261116-demo/rgb)`.
    """
    models = [run.spec.subject for run in runs]
    for names in (models, [run.path.name for run in runs]):
        if len(set(names)) == len(runs):
            return names
    ends = path_ends([run.path for run in runs])
    return [f"{model} ({end})" for model, end in zip(models, ends, strict=True)]


def path_ends(paths: Sequence[Path]) -> list[str]:
    """The shortest ends of paths, of as many parts each, that are distinct."""
    parts = [path.resolve().parts[1:] for path in paths]
    for length in range(1, max(map(len, parts), default=0) + 1):
        ends = ["/".join(each[-length:]) for each in parts]
        if len(set(ends)) == len(set(parts)):
            return ends
    return [path.name for path in paths]


def layout_of(runs: Sequence[Run]) -> Layout:
    """The layout of runs that can be compared, which must be of one benchmark."""
    if len(runs) < 2:
        raise UsageError("compare needs at least two runs.")
    if len({run.path.resolve() for run in runs}) < len(runs):
        raise UsageError("the same run is given twice.")
    benchmarks = list(dict.fromkeys(run.spec.benchmark for run in runs))
    if len(benchmarks) > 1:
        raise UsageError(
            f"runs of {' and '.join(benchmarks)} cannot be compared: give runs of one benchmark."
        )
    return shared_layout(runs)


def usual_metrics(layout: Layout, runs: Sequence[Run]) -> list[str]:
    """The metrics of a comparison that names none: all that are shown, or each subject that all runs have.

    Runs of one subject each are compared by it, whatever it is called. What a table shows row by row, without
    a row for all together, means nothing when pooled.
    """
    if not any(run.subjects for run in runs):
        whole = [table for table in layout.tables if table.total]
        columns = [column.metric for table in whole for column in table.metrics]
        main = [scope_name(f.metric, f.scope) for _, f in layout.main_figures(runs[0].summary)]
        names = [layout.headline, *(table.metric for table in whole), *columns, *main]
        return [name for name in dict.fromkeys(names) if name]
    common = [name for name in runs[0].subjects if all(name in run.subjects for run in runs)]
    if common:
        return [f"{layout.headline}@{name}" for name in common]
    if all(len(run.subjects) == 1 for run in runs):
        return [layout.headline]
    names = path_ends([run.path for run in runs])
    listed = "; ".join(f"{name}: {', '.join(run.subjects)}" for name, run in zip(names, runs, strict=True))
    kind = runs[0].subject
    raise UsageError(f"these runs have no {kind} in common. Their {kind}s are: {listed}.")


def first_known(layout: Layout, values: Sequence[RunValues]) -> str:
    """The headline; where fewer than two runs have a value of it, the first main figure of which two have."""

    def known(name: str) -> bool:
        return sum(bool(of_run[name].known.any()) for of_run in values) > 1

    main = [scope_name(each.metric, each.scope) for _, each in layout.main_figures(values[0].run.summary)]
    common = set.intersection(*(of_run.metrics for of_run in values))
    directed = [name for name in main if name in common and values[0][name].metric.better is not None]
    return next((name for name in (layout.headline, *directed) if known(name)), layout.headline)


def broken_down(names: Sequence[str], tags: Sequence[str], values: Sequence[RunValues]) -> list[str]:
    """Each metric by itself, then within each value of the tags that all runs have: `drift/level=2`."""
    if not tags:
        return list(names)
    scopes: list[dict[str, Tag]] = [{}]
    for tag in tags:
        common = sorted(set.intersection(*(run.tags_of(tag) for run in values)), key=tag_order)
        if not 0 < len(common) <= MOST_DIFFERENCE_ROWS:
            available = list(_tags(values[0]))
            hint = "" if tag in available else suggestion(tag, available)
            raise UsageError(
                f"--by {tag}: the runs have {len(common):,} values of this tag in common. Give one that has "
                f"from 1 to {MOST_DIFFERENCE_ROWS}.{hint} Available: {', '.join(available)}."
            )
        scopes += [{tag: value} for value in common]
    metrics = set.union(*(run.metrics for run in values))
    split = [split_name(name, metrics) for name in names]
    return [scope_name(metric, {**scope, **more}) for metric, scope in split for more in scopes]


def comparable(names: Sequence[str], values: Sequence[RunValues], *, explicit: Collection[str]) -> list[str]:
    """The metrics that can be compared sample by sample; those that a person named must be among them.

    A row of a breakdown that has no value in any run is left out.
    """
    common = set.intersection(*(of_run.metrics for of_run in values))
    usable = [name for name in names if _is_usable(name, common, values)]
    for name in explicit if usable else names:
        if name in usable:
            continue
        if methods := sorted(each for each in common if each.startswith(f"{name}@")):
            raise UsageError(
                f"'{name}' is of several methods, each with a figure of its own. Give one of: "
                f"{', '.join(methods)}."
            )
        tags = _tags(values[0]).items()
        scopes = "; ".join(f"{tag}: {shortened(', '.join(listed))}" for tag, listed in tags)
        raise UsageError(
            f"'{name}' cannot be compared sample by sample: it must be a value that samples of all "
            f"these runs have, and its figure their mean.{suggestion(name, common)} "
            f"Available: {', '.join(sorted(common)) or 'none'}. Tags: {scopes}."
        )
    return usable


def _is_usable(name: str, common: Collection[str], values: Sequence[RunValues]) -> bool:
    return (
        split_name(name, common)[0] in common
        and all(of_run.is_mean(name) for of_run in values)
        and any(of_run[name].in_scope.any() for of_run in values)
    )


def _tags(values: RunValues) -> dict[str, list[str]]:
    """The tags of a run's samples, each with its values in order."""
    names = values.columns.tags
    return {name: [str(each) for each in sorted(values.tags_of(name), key=tag_order)] for name in names}


# The samples of two runs


def check_comparable(first: RunValues, second: RunValues) -> None:
    """Raise the error with which a comparison of two runs is refused, if it is: without any statistics."""
    runs, values = [first.run, second.run], [first, second]
    names = usual_metrics(layout_of(runs), runs)
    common = first.metrics & second.metrics
    if not any(_is_usable(name, common, values) for name in names):
        comparable(names, values, explicit=())
    before, after = run_names(runs)
    paired((before, after), (first, second))


class RunPair(NamedTuple):
    """Two runs that were asked the same."""

    names: tuple[str, str]
    runs: tuple[RunValues, RunValues]
    rows: tuple[NDArray[np.intp], NDArray[np.intp]]
    """Where the samples that both have are in each run, in the order of the first."""
    differs: list[str]
    """In what they differ nevertheless: another file of the same questions, say."""

    def sides(self, name: str, other_name: str = "") -> tuple[Values, Values]:
        """A metric of the common samples. In the second run it may have another name: that of another
        subject."""
        return (
            self.runs[0][name].taken(self.rows[0]),
            self.runs[1][other_name or name].taken(self.rows[1]),
        )


def paired(
    names: tuple[str, str], runs: tuple[RunValues, RunValues], *, same_settings: bool = False
) -> RunPair:
    """The samples that both runs have; an error where the runs were asked different things.

    Whether the data are equal is seen in the samples: those that both runs have must ask the same, whatever
    file they came from and however many others there are. How they are asked (the prompt around a question,
    the temperature) may differ and is noted, unless `same_settings` is wanted; how answers are scored may
    not. What recorded answers do not state is unknown, and no difference.
    """
    first, second = runs
    if first.ids == second.ids and len(second.rows) == len(second.ids):  # as of nearly all pairs: at once
        in_second = np.arange(len(first.ids))
    else:
        in_second = np.array([second.rows.get(name, -1) for name in first.ids], dtype=np.intp)
    rows = np.flatnonzero(in_second >= 0)
    others = in_second[rows]
    changes = _changes(first.run, second.run)
    allowed = _options(first.run, "in_samples" if same_settings else "asking")
    reasons = [
        words
        for name, words in changes.items()
        if not name.startswith(VISIBLE_IN_SAMPLES) and name not in allowed
    ]
    if unlike := _unlike(first, second, rows, others):
        reasons = [unlike]
    if reasons:
        listed = "; ".join(dict.fromkeys([*reasons, *changes.values()]))
        raise UsageError(
            f"{names[0]} (A) and {names[1]} (B) were asked differently: {listed}. "
            "Compare runs over the same data with the same settings."
        )
    return RunPair(names, runs, (rows, others), list(changes.values()))


def _unlike(first: RunValues, second: RunValues, rows: NDArray[np.intp], others: NDArray[np.intp]) -> str:
    """Which of the samples in both runs do not ask the same, in words; empty where all do."""
    if not len(rows):
        return "they have no sample in common"
    benchmark = benchmark_class(first.run.spec.benchmark)
    differ = first.columns.inputs[rows] != second.columns.inputs[others]
    chosen = rows[differ].tolist()
    asked = zip(first.fingerprints(chosen), second.fingerprints(others[differ].tolist()), strict=True)
    unlike = [first.ids[row] for row, (one, other) in zip(chosen, asked, strict=True) if one != other]
    if not unlike:
        return ""
    more = ", …" if len(unlike) > MOST_LISTED else ""
    shared = nouns(len(rows), f"shared {benchmark.layout.counted[0]}")
    return f"{len(unlike):,} of {shared} ask different things: {', '.join(unlike[:MOST_LISTED])}{more}"


def _changes(first: Run, second: Run) -> dict[str, str]:
    """What two runs were asked differently, in words by setting, except what is under test and what is not
    recorded. Of another model in a role (an embedder, a judge) its spec is all that is said."""
    tested = ("models.model.",) if first.subject == "model" else ("models.", f"options.{first.subject}")
    stated = [f"data.{role}" for role in first.spec.models]  # what a recorded file says of its embedder
    unknown = [name for run in (first, second) for name in (*_unrecorded(run), *_refused(run))]
    changes = {
        name: change
        for name, change in spec_changes(first.spec, second.spec).items()
        if not name.startswith(("subjects", *tested)) and name not in (*unknown, *stated)
        if not all(value in UNSET for value in change)
    }
    for role in dict.fromkeys(name.split(".")[1] for name in changes if name.startswith("models.")):
        before, after = (run.spec.models.get(role, {}).get("spec") for run in (first, second))
        if before != after:
            about = f"models.{role}.", f"options.{role}."
            changes = {name: each for name, each in changes.items() if not f"{name}.".startswith(about)}
            names = [spec and split_spec(spec)[0] for spec in (before, after)]
            changes[f"models.{role}.spec"] = (before, after) if names[0] == names[1] else (names[0], names[1])
    unset = _with_default(first)
    return {
        name: _difference(name, *change, "default" if name in unset else "none")
        for name, change in changes.items()
    }


def _options(run: Run, kind: str) -> list[str]:
    """The names of the options of a kind, as a spec has them: `asking`, or `in_samples`."""
    options = describe(benchmark_class(run.spec.benchmark).Options)
    return [f"options.{option.name}" for option in options if getattr(option, kind)]


def _with_default(run: Run) -> list[str]:
    """The options of which a run that gives none has a default that is only worked out later."""
    options = describe(benchmark_class(run.spec.benchmark).Options)
    return [f"options.{option.name}" for option in options if "[default: " in option.description]


def _unrecorded(run: Run) -> list[str]:
    """The options about asking that a run of recorded answers does not state."""
    recorded = run.spec.data.get("source") == "recorded"
    stated = {f"options.{name}" for name in run.spec.options}
    return [name for name in _options(run, "asking") if name not in stated] if recorded else []


def _refused(run: Run) -> list[str]:
    """The options that were not sent, since the server refused them; a note says so."""
    return [f"options.{name}" for name in refused_settings(run.spec)]


def unknown_settings(name: str, run: Run) -> list[str]:
    """What a run of recorded answers does not state, and its samples do not show; what a server refused."""
    hidden = _options(run, "in_samples")
    unknown = [option.removeprefix("options.") for option in _unrecorded(run) if option not in hidden]
    refused = refused_settings(run.spec)
    return [
        *([f"not recorded in {name}: {', '.join(unknown)}"] if unknown else ()),
        *([f"not sent in {name}, whose server refused it: {', '.join(refused)}"] if refused else ()),
    ]


def sizes_note(pair: RunPair) -> list[str]:
    """How many samples two runs have in common, where one has others."""
    sizes, common = [len(run.ids) for run in pair.runs], len(pair.rows[0])
    if sizes == [common, common]:
        return []
    shared = nouns(common, f"shared {pair.runs[0].layout.counted[0]}")
    listed = ", ".join(f"{size:,} in {name}" for size, name in zip(sizes, pair.names, strict=True))
    return [f"Compared on the {shared} ({listed})"]


def excluded(pair: RunPair, sides: tuple[Values, Values]) -> tuple[NDArray[np.bool_], str]:
    """Which of the common samples two runs cannot be compared by, and why: what their values depend on,
    beside their own answers, is not the same in both."""
    depends, (first, second) = sides[0].metric.depends_on, pair.runs
    unlike = np.zeros(len(sides[0].values), dtype=bool)
    if depends == "answers":
        unlike = sides[0].answered != sides[1].answered
    elif depends == "samples":
        unlike[:] = set(first.ids) != set(second.ids)
    elif depends:
        before, after = (_lowest(run, rows, depends) for run, rows in zip(pair.runs, pair.rows, strict=True))
        unlike[:] = [a != b for a, b in zip(before, after, strict=True)]
    reason = UNLIKE.get(depends, f"each run compares them with another {depends}")
    return unlike & sides[0].known & sides[1].known, reason


def _lowest(of_run: RunValues, rows: NDArray[np.intp], tag: str) -> list[Tag | None]:
    """For some samples: the lowest value of a tag in the group and language of each."""
    nowhere: list[Tag | None] = [None] * len(of_run.ids)
    languages, values = (of_run.columns.tags.get(name, nowhere) for name in ("lang", tag))
    families = list(zip(of_run.columns.groups, languages, strict=True))
    lowest: dict[tuple[str, Tag | None], Tag] = {}
    for family, value in zip(families, values, strict=True):
        if value is not None:
            lowest[family] = min(lowest.get(family, value), value)  # of one type
    return [lowest.get(families[row]) for row in rows.tolist()]


def _difference(name: str, first: Any, second: Any, unset: str = "none") -> str:
    """What a setting is in two runs, in words: `Language: A en, B all`; `unset` where it was not given."""
    words = [part for part in name.split(".")[1:] if part not in ("name", "spec", "identity")]
    title = SETTINGS.get(name) or " ".join(words or [name]).replace("_", " ").capitalize()

    def shown(value: Any, other: Any) -> str:
        if value in UNSET:
            return "all" if name in ("data.lang", "limit") else unset
        text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        if (
            isinstance(value, list) and isinstance(other, list) and len(text) > LONGEST_SETTING_CHARS
        ):  # digests, mostly
            text = ", ".join(str(each)[:DIGITS] for each in value if each not in other) or "fewer"
        return shortened(text, LONGEST_SPEC_CHARS if name.endswith(".spec") else LONGEST_SETTING_CHARS)

    return f"{title}: A {shown(first, second)}, B {shown(second, first)}"

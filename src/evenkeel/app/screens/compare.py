"""Two or more runs of one benchmark: paired differences, the samples that changed, both answers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import streamlit as st

import evenkeel as ek
from evenkeel.app import data, show
from evenkeel.app.settings import Settings
from evenkeel.page.format import capitalised, visible

if TYPE_CHECKING:
    from evenkeel.harness.stored.listing import ListedRun
    from evenkeel.report.samples.flips import Flip

MOST_SHOWN = 200
"""Samples in the list of changes: the largest ones."""
MOST_NAMED = 8
"""Runs that are named as comparable with one."""


def page(settings: Settings) -> None:
    show.title("Compare")
    finished = data.finished(settings)
    names = sorted({run.benchmark for run in finished})
    several = [name for name in names if sum(run.benchmark == name for run in finished) > 1]
    if not several:
        show.text("A comparison needs two finished runs of one benchmark.", "warn")
        if not settings.read_only:
            st.page_link(st.session_state["pages"]["new-run"], label="Start a run")
        return
    asked = _asked(finished)
    first = asked or _newest_pair(finished) or [run for run in finished if run.benchmark in several]
    anew = st.query_params.get_all("runs") != st.session_state.get("compared")  # by another than this page
    if anew or st.session_state.get("compare-benchmark") not in several:
        st.session_state["compare-benchmark"] = first[0].benchmark
    benchmark = st.selectbox("Benchmark", several, key="compare-benchmark")
    listed = [run for run in finished if run.benchmark == benchmark]
    usual = [run for run in first if run.benchmark == benchmark] or _newest_pair(listed)
    chosen = _chosen(listed, usual, key=f"compare-{benchmark}", anew=anew)
    if len(chosen) < 2:
        show.text("Choose two or more runs.", "soft")
        return
    st.query_params["runs"] = st.session_state["compared"] = [run.name for run in chosen]
    with show.problems():
        try:
            comparison = data.comparison([run.path for run in chosen])
        except ek.UsageError as error:
            _explain_incomparable(listed, chosen, show.without_folder(str(error)))
            return
        sides = zip(comparison.runs, chosen, strict=True)  # named as in the list: a reader may be a stranger
        named = tuple(msgspec.structs.replace(side, path=run.name) for side, run in sides)
        show.result(msgspec.structs.replace(comparison, runs=named))
        show.explained(benchmark)
        _changes(settings, chosen)


def _asked(finished: list[ListedRun]) -> list[ListedRun]:
    """The runs that the address names, where they can be compared; otherwise it is said why they cannot."""
    by_name = {run.name: run for run in finished}
    names = list(dict.fromkeys(st.query_params.get_all("runs")))
    if absent := [name for name in names if name not in by_name]:
        show.text(f"Not the name of a finished run here: {', '.join(absent)}", "warn")
    asked = [by_name[name] for name in names if name in by_name]
    if len({run.benchmark for run in asked}) > 1:
        runs = ", ".join(f"{run.name} ({run.benchmark})" for run in asked)
        show.text(f"Only runs of one benchmark can be compared, and these are not: {runs}", "error")
        return []
    return asked if len(asked) > 1 else []


def _settings(run: ListedRun, *, samples: bool = True) -> bytes:
    """What a run was asked with, apart from the model or the methods under test; without `samples` also
    apart from what these show."""
    spec = ek.load_run(run.path).spec
    benchmark = ek.list_benchmarks()[run.benchmark]
    shown = {option.name for option in ek.describe(benchmark.Options) if option.in_samples and not samples}
    apart = {benchmark.subject, "methods"} | shown
    options = {name: value for name, value in spec.options.items() if name not in apart}
    data_and_seed = (spec.data.get("sha256"), spec.seed) if samples else ()
    return msgspec.json.encode((run.benchmark, options, data_and_seed), order="deterministic")


def _newest_pair(listed: list[ListedRun]) -> list[ListedRun]:
    """The newest two runs that were asked the same, or with the same settings; empty where none were."""
    for samples in (True, False):
        by_settings: defaultdict[bytes, list[ListedRun]] = defaultdict(list)
        for run in listed:  # newest first
            by_settings[_settings(run, samples=samples)].append(run)
        if pair := next((runs[:2] for runs in by_settings.values() if len(runs) > 1), None):
            return pair
    return []


def _explain_incomparable(listed: list[ListedRun], chosen: list[ListedRun], problem: str) -> None:
    show.text(f"These runs cannot be compared. {capitalised(problem)}", "error")
    for run in chosen:
        alike = [each.name for each in listed if each != run and _settings(each) == _settings(run)]
        words = ", ".join(alike[:MOST_NAMED]) if alike else "none here"
        show.text(f"Runs that were asked the same as {run.name}: {words}", "soft")


def _chosen(listed: list[ListedRun], usual: list[ListedRun], *, key: str, anew: bool) -> list[ListedRun]:
    by_name = {run.name: run for run in listed}
    if anew or not by_name.keys() >= set(st.session_state.get(key, [""])):
        st.session_state[key] = [run.name for run in usual] or list(by_name)[:2]
    picked = st.multiselect("Runs", list(by_name), key=key, format_func=lambda name: _label(by_name[name]))
    return [by_name[name] for name in picked]


def _label(run: ListedRun) -> str:
    return visible(f"{run.model} · {run.created[:16].replace('T', ' ')} · {run.name}")


def _changes(settings: Settings, chosen: list[ListedRun]) -> None:
    """The samples that changed most between two of the runs."""
    show.heading("Samples that changed")
    by_name = {run.name: run for run in chosen}
    first, second, third = st.columns(3)
    a = first.selectbox("From", list(by_name), format_func=lambda name: _label(by_name[name]))
    others = [name for name in by_name if name != a]
    b = second.selectbox("To", others, format_func=lambda name: _label(by_name[name]))
    runs = (ek.open_run(settings.runs, a), ek.open_run(settings.runs, b))
    values = [name for name in data.samples(runs[0]).values if name in data.samples(runs[1]).values]
    if not values:
        show.text("The samples of these runs have no value in common.", "soft")
        return
    metric = third.selectbox("Metric", values, format_func=visible)
    changes = ek.flips(*runs, metric)
    changed = [change for change in changes if change.difference]
    flipped = sum(change.flipped for change in changed)
    words = f"{len(changes):,} samples have a value in both, of which {len(changed):,} changed"
    words += f" and {flipped:,} flipped between 0 and 1" if flipped else ""
    show.text(f"{words}; the largest changes come first.", "soft")
    _beside(runs, changed)


def _beside(runs: tuple[ek.Run, ek.Run], changes: Sequence[Flip]) -> None:
    listed = changes[:MOST_SHOWN]
    if not listed:
        return
    titles = {"sample": "Sample", "a": "From", "b": "To", "difference": "Difference"}
    event: Any = st.dataframe(
        {title: [getattr(change, name) for change in listed] for name, title in titles.items()},
        hide_index=True,
        on_select="rerun",
        selection_mode="single-row",
        key="changes",
        height=min(280, 37 + 35 * len(listed)),
        alt="Samples with their value in both runs and the difference",
    )
    ids = [change.sample for change in listed]
    selected = event.selection.rows
    index = selected[0] if selected and selected[0] < len(ids) else 0  # a choice among other rows
    current = st.selectbox("Sample", ids, index=index, format_func=visible)
    show.result(ek.compare_sample(*runs, current))

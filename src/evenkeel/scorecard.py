"""A model's runs of several benchmarks side by side: each with its own figures, and no overall score."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from evenkeel.benchmarks import BENCHMARKS, benchmark_class
from evenkeel.cache import write_whole
from evenkeel.errors import DataError, UsageError
from evenkeel.report.layout import Layout
from evenkeel.report.tables import figure, summaries, values_of
from evenkeel.store import Run, served_at
from evenkeel.types import Figure


class Line(Struct, frozen=True, kw_only=True):
    """A figure and the words for it."""

    metric: str
    title: str
    figure: Figure


class Entry(Struct, frozen=True, kw_only=True):
    """One run on the card: its headline, and what its benchmark tells beside it."""

    benchmark: str
    name: str
    """What tells it from the other runs of its benchmark: its model, its folder or its path."""
    subject: str
    path: str
    created: str
    headline: Line
    facts: list[Line]

    @property
    def made(self) -> str:
        return self.created[:16].replace("T", " ") or "–"


class Scorecard(Struct, frozen=True, kw_only=True):
    """Runs in the order of the benchmarks, those of one benchmark next to each other."""

    model: str
    """The one model under test; empty where there are several, or none."""
    entries: list[Entry]
    notes: list[str]

    def __repr__(self) -> str:
        from evenkeel.report.inline import scorecard_text

        return scorecard_text(self)

    def _repr_html_(self) -> str:
        from evenkeel.report.inline import scorecard_html

        return scorecard_html(self)


def scorecard(
    runs: Sequence[Run | str | Path], *, mixed: bool = False, out: str | Path | None = None
) -> Scorecard:
    """Put runs on one card, and with `out` on a page. Those of different models are refused unless `mixed`
    says that this is meant.

    A benchmark without a model under test sets methods side by side; it goes with any model.

    `ek.scorecard(["runs/mirae", "runs/rgb"], out="scorecard.html").entries[0].headline`
    """
    if isinstance(runs, Run | str | Path):
        raise UsageError("scorecard takes a list of runs: scorecard([run, …]).")
    card = _card([given if isinstance(given, Run) else Run(given) for given in runs], mixed=mixed)
    if out is not None:
        from evenkeel.report.scorecard import render

        write_whole(Path(out), render(card, Path(out)))
    return card


def _card(runs: Sequence[Run], *, mixed: bool) -> Scorecard:
    runs = list({run.path.resolve(): run for run in runs}.values())
    if not runs:
        raise UsageError("scorecard needs at least one run.")
    models = list(dict.fromkeys(run.spec.subject for run in runs if "model" in run.spec.models))
    if len(models) > 1 and not mixed:
        raise UsageError(
            f"these runs are of different models: {', '.join(models)}. "
            "With --mixed they stand on one page all the same."
        )
    by_benchmark = [[run for run in runs if run.spec.benchmark == name] for name in _benchmarks(runs)]
    return Scorecard(
        model=models[0] if len(models) == 1 else "",
        entries=[
            _entry(run, name)
            for beside in by_benchmark
            for run, name in zip(beside, summaries(beside), strict=True)
        ],
        notes=[note for model in models for note in _notes(model, runs)],
    )


def _benchmarks(runs: Sequence[Run]) -> list[str]:
    """The benchmarks of some runs, in their usual order; an unknown one is an error."""
    found = {run.spec.benchmark for run in runs}
    for name in sorted(found - set(BENCHMARKS)):
        benchmark_class(name)
    return [name for name in BENCHMARKS if name in found]


def _entry(run: Run, name: str) -> Entry:
    spec, summary = run.spec, run.summary
    layout: Layout = benchmark_class(spec.benchmark).layout
    if layout.headline not in summary:
        raise DataError(
            run.path / "summary.json", f"there is no '{layout.headline}' in it: `evenkeel rescore` the run."
        )
    facts = [
        Line(metric=column.metric, title=column.title, figure=summary[column.metric])
        for column in layout.facts
        if column.metric in summary
    ]
    return Entry(
        benchmark=spec.benchmark,
        name=name,
        subject=spec.subject,
        path=str(run.path),
        created=str(spec.provenance.get("created", "")),
        headline=Line(metric=layout.headline, title=_title(run, layout), figure=summary[layout.headline]),
        facts=[*([] if "model" in spec.models else _methods(run, layout.headline)), *facts],
    )


def _title(run: Run, layout: Layout) -> str:
    """The headline's words; where methods are under test, with the one whose figure it is."""
    methods = run.spec.options.get("method") if "model" not in run.spec.models else None
    return f"{layout.headline_title} by {methods[0]}" if methods else layout.headline_title


def _methods(run: Run, metric: str) -> list[Line]:
    """The headline of each method, where methods and not a model are under test."""
    return [
        Line(metric=f"{metric}/method={method}", title=method, figure=found)
        for method in values_of(run.summary, metric, "method")
        if (found := figure(run.summary, metric, {"method": method})) is not None
    ]


def _notes(model: str, runs: Sequence[Run]) -> list[str]:
    """Whether one name stands for the model in different states: another data type, another server."""
    identities = [
        {**run.spec.models["model"]["identity"], "base_url": served_at(run.spec).get("model")}
        for run in runs
        if "model" in run.spec.models and run.spec.subject == model and run.spec.data["source"] != "recorded"
    ]
    differing = [
        key
        for key in dict.fromkeys(key for identity in identities for key in identity)
        if len({msgspec.json.encode(identity.get(key)) for identity in identities}) > 1
    ]
    if not differing:
        return []
    return [f"{model} is not the same in all of its runs; they differ in: {', '.join(differing)}."]

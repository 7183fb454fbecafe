"""A model's runs of several benchmarks side by side: each with its own figures, and no overall score."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from evenkeel.analysis import scope_of
from evenkeel.errors import UsageError
from evenkeel.files.cache import write_whole
from evenkeel.page.format import chance
from evenkeel.page.layout import Layout
from evenkeel.page.tables import summaries
from evenkeel.run.folder import Run, served_at
from evenkeel.run.registry import BENCHMARKS, benchmark_class
from evenkeel.types import Figure


class Line(Struct, frozen=True, kw_only=True):
    """A figure and the words for it."""

    metric: str
    title: str
    figure: Figure


class Entry(Struct, frozen=True, kw_only=True):
    """A run on the card, or one method of it: its headline, and what its benchmark tells beside it."""

    benchmark: str
    name: str
    """What tells it from the other entries of its benchmark: its model, method, folder or path."""
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
    others: list[Entry]
    """Methods of these runs that the models had no part in, such as BM25 beside a judge."""
    notes: list[str]

    def __repr__(self) -> str:
        from evenkeel.report.notebook import scorecard_text

        return scorecard_text(self)

    def _repr_html_(self) -> str:
        from evenkeel.report.notebook import scorecard_html

        return scorecard_html(self)


def scorecard(
    runs: Sequence[Run | str | Path], *, mixed: bool = False, out: str | Path | None = None
) -> Scorecard:
    """Put runs on one card, and with `out` on a page. Those of different models are refused unless `mixed`
    says that this is meant.

    A benchmark without a model under test sets methods side by side: those in which a model of the card
    judges, writes, ranks or embeds are its entries, and the others stand apart. Where no run has a model
    under test, all methods are entries.

    `ek.scorecard(["runs/mirae", "runs/rgb"], out="scorecard.html").entries[0].headline`
    """
    if isinstance(runs, Run | str | Path):
        raise UsageError("scorecard takes a list of runs: scorecard([run, …]).")
    card = _card([given if isinstance(given, Run) else Run(given) for given in runs], mixed=mixed)
    if out is not None:
        from evenkeel.report.scorecard_page import render

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
    entries: list[Entry] = []
    others: list[Entry] = []
    for benchmark in _benchmarks(runs):
        beside = [run for run in runs if run.spec.benchmark == benchmark]
        for run, name in zip(beside, summaries(beside), strict=True):
            for method, entry in _entries(run, name, alone=len(beside) == 1):
                foreign = models and method and not _took_part(run, method, models)
                (others if foreign else entries).append(entry)
    return Scorecard(
        model=models[0] if len(models) == 1 else "",
        entries=entries,
        others=others,
        notes=[note for model in models for note in _notes(model, runs)],
    )


def _benchmarks(runs: Sequence[Run]) -> list[str]:
    """The benchmarks of some runs, in their usual order; an unknown one is an error."""
    found = {run.spec.benchmark for run in runs}
    for name in sorted(found - set(BENCHMARKS)):
        benchmark_class(name)
    return [name for name in BENCHMARKS if name in found]


def _took_part(run: Run, method: str, models: Sequence[str]) -> bool:
    """Whether one of the models judges, writes, ranks or embeds for a method: `rewrite:A+embed:B` has two."""
    roles = (run.spec.models.get(part) for part in method.split("+"))
    return any(role.get("name") in models for role in roles if role)


def _entries(run: Run, name: str, *, alone: bool) -> list[tuple[str, Entry]]:
    """A run's entry, or one for each method that is under test, by the method."""
    spec = run.spec
    layout: Layout = benchmark_class(spec.benchmark).layout
    facts = [
        Line(metric=column.metric, title=column.title, figure=run.summary[column.metric])
        for column in layout.facts
        if column.metric in run.summary
    ]
    guessed = chance(layout.metrics[0])
    title = f"{layout.headline_title} ({guessed})" if guessed else layout.headline_title
    found = []
    for metric, figure in run.headlines.items():
        method = scope_of(metric)[1].get("method", "")
        found.append(
            (
                method,
                Entry(
                    benchmark=spec.benchmark,
                    name=name if not method else method if alone else f"{method} ({name})",
                    subject=method or spec.subject,
                    path=str(run.path),
                    created=str(spec.provenance.get("created", "")),
                    # Under one name in every entry, so that methods have their figures in one row.
                    headline=Line(metric=layout.headline, title=title, figure=figure),
                    facts=facts,
                ),
            )
        )
    return found


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

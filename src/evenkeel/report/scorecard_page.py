"""A scorecard as one table for the terminal and as one HTML file: no script, nothing to load."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from evenkeel.page.examples import shortened
from evenkeel.page.format import FLOOR, interval, p_value, share, value, visible
from evenkeel.report.html import environment
from evenkeel.report.scorecard import Entry, Line, Scorecard
from evenkeel.report.terminal import show_table
from evenkeel.run.registry import benchmark_class
from evenkeel.types import Figure


def render(card: Scorecard, out: Path) -> str:
    """The page, to be written to `out`: what lies below its folder is linked."""
    return (
        environment()
        .get_template("scorecard.html")
        .render(
            title=title(card),
            card=card,
            sections=[
                *(_section(name, name, entries) for name, entries in by_benchmark(card.entries)),
                *(
                    _section(f"{name}-others", f"{name}: {apart(card)}", entries)
                    for name, entries in by_benchmark(card.others)
                ),
            ],
            named=names_subjects(card),
            links={entry.path: link(Path(entry.path), out) for entry in (*card.entries, *card.others)},
        )
    )


def _section(mark: str, heading: str, entries: Sequence[Entry]) -> dict[str, Any]:
    return {
        "id": mark,
        "heading": heading,
        "layout": benchmark_class(entries[0].benchmark).layout,
        "entries": entries,
        "lines": [(words, [_figure(line) for line in lines]) for words, lines in beside(entries)],
    }


def show_scorecard(console: Console, card: Scorecard) -> None:
    """The table: a row for each headline and each further figure, runs of one benchmark under each other."""
    console.print(Text(visible(title(card)), style="bold"), soft_wrap=True)
    for note in card.notes:
        console.print(Text(visible(note), style="yellow"), soft_wrap=True)
    console.print()
    show_table(console, _table(card.entries, card.model))
    if card.others:
        console.print()
        console.print(Text(visible(f"{apart(card).capitalize()}"), style="bold"), soft_wrap=True)
        console.print()
        show_table(console, _table(card.others, ""))
    console.print()
    for path, entry in {entry.path: entry for entry in (*card.entries, *card.others)}.items():
        line = f"{entry.made[:10]}  {entry.benchmark:<9}  {visible(path)}"
        console.print(Text(line, style="dim"), soft_wrap=True, highlight=False)


def _table(entries: Sequence[Entry], model: str) -> Table:
    """Where not all rows are of one model's single runs, a column says what each is of."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    sections = by_benchmark(entries)
    named = not model or any(len(found) > 1 for _, found in sections)
    for head in ("benchmark", "figure", *(["of"] if named else []), "value", "95% interval", "coverage"):
        right = head in ("value", "95% interval", "coverage")
        table.add_column(head, justify="right" if right else "left", no_wrap=True)
    for name, found in sections:
        table.add_section()
        for row in _rows(name, found, model, named=named):
            table.add_row(*row)
    return table


def apart(card: Scorecard) -> str:
    """The heading of methods that are not the models' own."""
    return f"methods without {card.model}" if card.model else "methods without these models"


def title(card: Scorecard) -> str:
    return f"Scorecard of {card.model or f'{len(card.entries)} runs'}"


def names_subjects(card: Scorecard) -> bool:
    """Whether a row must say whose it is: several models, or methods beside a model."""
    return len({entry.subject for entry in card.entries}) > 1


def by_benchmark(entries: Sequence[Entry]) -> list[tuple[str, list[Entry]]]:
    return [(name, list(found)) for name, found in groupby(entries, key=lambda entry: entry.benchmark)]


def beside(entries: Sequence[Entry]) -> list[tuple[str, list[Line | None]]]:
    """The figures of runs of one benchmark: for each its words, and what each run has of it."""
    lines = [{line.metric: line for line in (entry.headline, *entry.facts)} for entry in entries]
    titles = {metric: line.title for found in lines for metric, line in found.items()}
    return [(words, [found.get(metric) for found in lines]) for metric, words in titles.items()]


def link(run: Path, out: Path) -> str:
    """Where a page at `out` finds a run's own report; empty where there is none below the page's folder."""
    report, folder = (run / "report.html").resolve(), out.resolve().parent
    if not report.is_file() or not report.is_relative_to(folder):
        return ""
    return quote(os.fsencode(report.relative_to(folder).as_posix()))


def _rows(benchmark: str, entries: Sequence[Entry], model: str, *, named: bool) -> list[list[Text]]:
    """A figure's row says whose it is; where a benchmark has one run, its first row says it for all."""
    rows = []
    for words, lines in beside(entries):
        for entry, line in zip(entries, lines, strict=True):
            if line is None:
                continue
            top = line is entry.headline
            whose = shortened(entry.name if len(entries) > 1 else entry.subject if top else "", 40)
            by = f" by {whose}" if whose and not named and entry.subject != model else ""
            rows.append(
                [
                    Text(benchmark if top and entry is entries[0] else ""),
                    Text(visible(f"{words}{by}") if top else f"  {visible(words)}"),
                    *([Text(visible(whose))] if named else []),
                    Text(value(line.figure), style="bold" if top else ""),
                    Text(" ".join(filter(None, (interval(line.figure, short=True), p_value(line.figure))))),
                    _coverage(line.figure.coverage) if top else Text(""),
                ]
            )
    return rows


def _coverage(covered: float) -> Text:
    return Text(share(covered), style="bold red" if covered < FLOOR else "")


def _figure(line: Line | None) -> Figure | None:
    return line.figure if line else None

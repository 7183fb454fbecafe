"""A comparison as tables for the terminal: bold where two runs are told apart, whichever way."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from evenkeel.analysis.comparison import Comparison, Difference, Place
from evenkeel.page.format import chance, number, probability, share, signed, signed_bound, visible
from evenkeel.page.metrics import declaration
from evenkeel.report.terminal import show_table
from evenkeel.run.registry import benchmark_class
from evenkeel.types import Unit


def show_comparison(console: Console, found: Comparison, *, counted: tuple[str, str]) -> None:
    """The runs, every difference and, for more than two runs, their ranking.

    `counted` are the benchmark's words for samples and for groups.
    """
    how = "paired by sample" if found.paired else "as unrelated samples"
    _line(console, Text.assemble((f"{found.benchmark}: {len(found.runs)} runs", "bold"), f", {how}"))
    several = len(found.runs) > 2
    for letter, side in zip("AB" if not several else " " * len(found.runs), found.runs, strict=True):
        partly = f", coverage {share(side.coverage)}" if side.coverage < 1 else ""
        _line(console, Text(visible(f"  {letter} {side.name} ({side.path}){partly}")))
    for said in found.differs:
        _line(console, Text(visible(f"  {said}"), style="yellow"))
    for table in _by_pair(found) if several else [_by_metric(found.differences)]:
        console.print()
        show_table(console, table)
    for metric in found.metrics if several else ():
        console.print()
        show_table(console, _ranking(found, metric))
    console.print()
    console.print(Text(_footnote(found, counted), style="dim"), highlight=False)


def _line(console: Console, text: Text) -> None:
    console.print(text, highlight=False, soft_wrap=True)


def _by_metric(differences: Sequence[Difference]) -> Table:
    """Two runs: a row for each metric."""
    return _table("", ["metric"], [([found.metric], found) for found in differences], "A", "B")


def _by_pair(found: Comparison) -> list[Table]:
    """Several runs: a table for each metric, with a row for each pair."""
    return [
        _table(
            metric,
            ["A", "B"],
            [([d.a, d.b], d) for d in found.differences if d.metric == metric],
            "of A",
            "of B",
        )
        for metric in found.metrics
    ]


def _table(
    title: str, heads: Sequence[str], rows: Sequence[tuple[list[str], Difference]], first: str, second: str
) -> Table:
    """A row for each difference; no cell is ever broken."""
    table = _empty(title)
    for head in heads:
        table.add_column(head, no_wrap=True)
    for head in (first, second, "B − A", "95% interval", "p", "could\nshow", "told\napart"):
        table.add_column(head, justify="right", no_wrap=True)
    for names, found in rows:
        table.add_row(*(Text(visible(name)) for name in names), *_cells(found))
    return table


def _cells(found: Difference) -> list[Text]:
    unit = found.unit
    style = "bold" if found.different else ""
    change = "–" if found.difference is None else signed(found.difference, unit)
    return [
        Text(_number(found.value_a, unit)),
        Text(_number(found.value_b, unit)),
        Text(change, style),
        Text(_limits(found), "dim"),
        Text(probability(found.p_holm)),
        Text(_number(found.detectable, unit)),
        Text("yes" if found.different else "no", style=style),
    ]


def _limits(found: Difference) -> str:
    if found.low is None or found.high is None:
        return ""
    return f"[{signed_bound(found.low, found.unit)}, {signed_bound(found.high, found.unit)}]"


def _ranking(found: Comparison, metric: str) -> Table:
    table = _empty(f"By {visible(metric)}")
    table.add_column("", justify="right")
    table.add_column("run", no_wrap=True)
    for head in ("mean", "95% interval"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("group", no_wrap=True)
    unit = next(difference.unit for difference in found.differences if difference.metric == metric)
    for rank, place in enumerate((place for place in found.ranking if place.metric == metric), 1):
        name = Text(visible(place.name))
        table.add_row(str(rank), name, _number(place.value, unit), _interval(place, unit), place.letters)
    return table


def _interval(place: Place, unit: Unit) -> str:
    if place.low is None or place.high is None:
        return "–"
    return f"{number(place.low, unit)} to {number(place.high, unit)}"


def _number(amount: float | None, unit: Unit) -> str:
    return "–" if amount is None else number(amount, unit)


def _footnote(found: Comparison, counted: tuple[str, str]) -> str:
    """What the columns mean and stand on."""
    samples, groups = counted
    largest = max(found.differences, key=lambda difference: difference.n)
    methods = dict.fromkeys(d.method for d in found.differences if d.p is not None)
    parts = [
        f"Up to {largest.n:,} {samples} of {largest.clusters:,} {groups}. "
        f"p: {', '.join(methods) or 'no test'}; after Holm's correction for all rows. "
        "could show: the smallest difference that four of five such samples would show."
    ]
    declared = [declaration(benchmark_class(found.benchmark).layout.metrics, name) for name in found.metrics]
    if guessed := next(filter(None, map(chance, declared)), ""):
        parts.append(f"{guessed[0].upper()}{guessed[1:]}.")
    if len(found.runs) > 2:
        parts.append("Runs that share a letter are not told apart.")
    return " ".join(parts)


def _empty(title: str) -> Table:
    return Table(
        title=title or None,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )

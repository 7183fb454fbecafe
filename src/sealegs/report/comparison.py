"""What is said of runs compared with each other."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from sealegs.analysis.comparison import FEW_IN_A_PART, Comparison, Difference
from sealegs.analysis.intervals import TOO_FEW
from sealegs.harness.registry import benchmark_class
from sealegs.page.format import (
    TOO_WIDE,
    counts,
    difference_text,
    number_or_dash,
    p_value_text,
    probability,
    share,
)
from sealegs.page.grid import Cell, Content, Grid, Overview, Style
from sealegs.page.layout import Layout
from sealegs.page.metrics import meaning_of, scope_of, title_of, unit_of
from sealegs.page.scale import listed

TEST = re.compile("^paired | over (linked )?groups")
"""What is said of all tests at once."""
HEADS = ["B − A", "95% interval", "p"]


def comparison_overview(comparison: Comparison) -> Overview:
    """The answer in a sentence, the runs, and every difference: bold where it is significant."""
    layout = replace(benchmark_class(comparison.benchmark).layout, counted=comparison.counted)
    meaning = meaning_of(layout.metrics, comparison.metrics[0]) if comparison.metrics else ""
    return Overview(
        f"{layout.name or comparison.benchmark}: {len(comparison.runs)} runs compared",
        _run_lines(comparison),
        _tables(comparison, layout),
        list(filter(None, (_footnote(comparison, layout), meaning))),
        verdicts=_sentences(comparison, layout),
        warnings=(*comparison.differs, *comparison.notes),
    )


def _sentences(comparison: Comparison, layout: Layout) -> list[str]:
    """For each pair of runs the headline's difference: `Answer consistency: B is worse (B 0.83, A 0.94).`"""
    letters = len(comparison.runs) == 2
    return [
        _sentence(each, layout, ("A", "B") if letters else (each.a, each.b))
        for each in comparison.leading
        if each.value_a is not None and each.value_b is not None
    ]


def _sentence(difference: Difference, layout: Layout, names: tuple[str, str]) -> str:
    a, b = names
    title, values, change = _title(difference, layout), "", ""
    if difference.value_a is not None and difference.value_b is not None:
        limits = difference.low, difference.high
        words = difference_text(difference.value_a, difference.value_b, difference.unit, limits)
        values = f"{b} {words.b}, {a} {words.a}"
        if difference.coverage < 1:  # then the values are not those of the runs
            values += f", both over the {counts(difference, layout)} that both answered"
        if words.limits:
            change = f"; difference {words.change}{words.unit}, 95% interval {' to '.join(words.limits)}"
            change += _why_unclear(difference)
    return f"{title}: {answer(difference, layout, names)} ({values}{change})."


def _why_unclear(difference: Difference) -> str:
    """Why a difference whose interval excludes 0 is not significant: it is one of several."""
    low, high = difference.low or 0.0, difference.high or 0.0
    if difference.different or low <= 0 <= high:
        return ""
    return f" by itself; with Holm's correction for several comparisons {p_value_text(difference.p_holm)}"


def answer(difference: Difference, layout: Layout, names: tuple[str, str] = ("A", "B")) -> str:
    """`B is worse`, `no clear difference`, `too few to tell, about 40 questions would do`."""
    if difference.outcome == "no clear difference":
        return difference.outcome
    if difference.outcome == "not compared":
        return f"{difference.outcome}: {difference.reason}"
    if difference.outcome == "too few to tell":
        needed = f", about {difference.needed:,} {layout.counted[1]} would do" if difference.needed else ""
        return f"{difference.outcome}{needed}"
    return f"{names[1]} is {difference.outcome}"


def _title(difference: Difference, layout: Layout) -> str:
    title = title_of(layout.metrics, difference.metric)
    return f"{title}, {difference.part}" if difference.part else title


def _run_lines(comparison: Comparison) -> list[str]:
    """A line for each run: its letter where there are two, its folder, and its coverage if it is partial."""
    letters = ("A: ", "B: ") if len(comparison.runs) == 2 else ("",) * len(comparison.runs)
    lines = []
    for letter, side in zip(letters, comparison.runs, strict=True):
        coverage = f", coverage {share(side.coverage)}" if side.coverage < 1 else ""
        folder = "" if side.name.endswith(f"({side.path})") else f" ({side.path})"
        lines.append(f"{letter}{side.name}{folder}{coverage}")
    return lines


def _tables(comparison: Comparison, layout: Layout) -> list[Grid]:
    """Two runs: a row for each metric. More: for each metric a row for each pair."""
    if len(comparison.runs) == 2:
        rows = [(_title(each, layout), _row(each, layout)) for each in _distinct(comparison.differences)]
        return [Grid("", "metric", ["answer", "A", "B", *HEADS], rows, left=2)]
    return [
        Grid(
            title_of(layout.metrics, metric),
            "A",
            ["B", "answer", "of A", "of B", *HEADS],
            [
                (each.a, [each.b, *_row(each, layout)])
                for each in comparison.differences
                if each.metric == metric
            ],
            left=3,
        )
        for metric in comparison.metrics
    ]


def _distinct(differences: Sequence[Difference]) -> list[Difference]:
    """Without the rows of a part where the row of the whole is of this part alone."""
    partial = {each.metric for each in differences if each.part and " and " not in each.part}
    return [each for each in differences if scope_of(each.metric)[0] not in partial or each.part]


def _row(difference: Difference, layout: Layout) -> list[Content]:
    unit, low, high = difference.unit, difference.low, difference.high
    style: Style = "strong" if difference.different else ""
    a, b, change, limits = (
        *(number_or_dash(v, unit) for v in (difference.value_a, difference.value_b)),
        "–",
        "",
    )
    if difference.value_a is not None and difference.value_b is not None:
        words = difference_text(difference.value_a, difference.value_b, unit, (low, high))
        a, b, change = words.a, words.b, words.change
        limits = f"[{', '.join(words.limits)}]" if words.limits else TOO_WIDE if low is not None else ""
    if not limits and difference.reason in (FEW_IN_A_PART, TOO_FEW) and difference.difference is not None:
        limits = f"too few {layout.counted[1]}"
    p = probability(difference.p_holm)
    return [Cell(answer(difference, layout), style), a, b, Cell(change, style), Cell(limits, "soft"), p]


def _footnote(comparison: Comparison, layout: Layout) -> str:
    """What the columns mean, and how many samples are behind them."""
    first, largest = (
        max(differences, key=lambda difference: difference.n)
        for differences in (comparison.leading, comparison.differences)
    )
    others = f"; other rows on up to {counts(largest, layout)}" if first.n < largest.n else ""
    most = "up to " if len({each.n for each in comparison.leading}) > 1 else ""
    words = [f"Compared on {most}{counts(first, layout)}{others}."]
    if any(each.unit == "share" for each in comparison.differences):
        words.append("B − A of shares is in points: from 4% to 9% is +5.")
    words.append(_tests(comparison, layout))
    if comparison.references:
        words.append(
            f"For orientation: {listed(comparison.references, unit_of(layout.metrics, comparison.headline))}."
        )
    return " ".join(words)


def _tests(comparison: Comparison, layout: Layout) -> str:
    """Where the p-values are from, or why there are none."""
    methods = dict.fromkeys(each.method for each in comparison.differences if each.p is not None)
    if methods:
        alone = ""
        if comparison.alone and len(comparison.metrics) > 1:
            of_pairs = "those of the first table, which are"
            first = "the first, which is" if len(comparison.runs) == 2 else of_pairs
            alone = f" but {first} tested alone"
        corrected = f"corrected for all rows (Holm){alone}"
        names = ", ".join(dict.fromkeys(TEST.sub("", method) for method in methods))
        tests = f"paired tests over {layout.counted[1]} ({names})"
        return f"p-values: {tests}, {corrected}; intervals are not corrected."
    amounts = [each.difference for each in comparison.differences if each.difference is not None]
    if amounts and not any(amounts):
        return "There is nothing to test: no value differs."
    return "No test was possible: there are too few samples." if amounts else "Nothing was compared."

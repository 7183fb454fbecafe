"""The verdict on a run: one plain sentence that says how good the figure is and whether to trust it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from evenkeel.page.format import FLOOR, TOO_WIDE, counted, counts, interval, number
from evenkeel.page.layout import Layout, Note
from evenkeel.types import Figure, Summary, Unit

CUT_OFF = 0.05
"""The share of answers that were cut off from which a figure is in doubt."""
WIDE: dict[Unit, float] = {"share": 0.25, "cosine": 0.25, "score": 25}
"""Intervals wider than this are of too few samples."""
TEST_RUN = "so treat this as a test run"
"""How the verdict on a figure in doubt ends."""
NUMBERS = {2: "two", 3: "three", 4: "four", 5: "five", 6: "six"}
COUNTED = 100
"""Up to so many samples a share is given as a count: 1 of 8 prompts."""


def verdict(
    layout: Layout,
    summary: Summary,
    headlines: Mapping[str, Figure],
    *,
    subjects: str = "methods",
    notes: Sequence[Note] = (),
) -> str:
    """`Right in 1 of 8 prompts; 8 of 12 answers were cut off, so treat this as a test run.`

    `headlines` has the headline of each subject by its name; of several, the best one is described.
    """
    scored = {name: figure for name, figure in headlines.items() if figure.value is not None}
    if not scored:
        reason = next(iter(headlines.values())).method.removeprefix("none: ")
        return f"There is no score: {reason}."
    sign = -1 if layout.metrics[0].better == "lower" else 1
    best = max(scored, key=lambda name: sign * (scored[name].value or 0.0))
    figure = scored[best]
    text = (layout.verdict or f"{layout.headline_title} {{}}").format(_amount(figure, layout, summary))
    if part := layout.part(summary):
        text = f"{text} ({part})"
    if len(headlines) > 1:
        text = f"Best of {len(headlines)} {subjects}: {best}, {text[:1].lower()}{text[1:]}"
    doubts = [*_request_doubts(summary[layout.headline]), *(note.doubt for note in notes if note.doubt)]
    doubts += _few(figure, layout)
    if doubts:
        listed = " and ".join(filter(None, (", ".join(doubts[:-1]), doubts[-1])))
        text = f"{text}{baseline_words(layout, summary)}; {listed}, {TEST_RUN}."
    else:
        text = f"{text} (95% interval {interval(figure)}){baseline_words(layout, summary)}."
    return " ".join((text, *(layout.remarks(summary) if layout.remarks else ())))


def _amount(figure: Figure, layout: Layout, summary: Summary) -> str:
    """`1 of 8 prompts`, `63% of 1,200 prompts`, `33%, averaged over four abilities`, `0.87`."""
    value = figure.value or 0.0
    if figure.unit != "share":
        return number(value, figure.unit)
    parts = _parts(layout, summary)
    if parts > 1:
        plural = re.sub("y$", "ie", layout.metrics[0].mean_over) + "s"
        return f"{number(value, 'share')}, averaged over {NUMBERS.get(parts, parts)} {plural}"
    samples = counted(figure.n, layout.counted[0])
    count = value * figure.n
    if figure.n <= COUNTED and abs(count - round(count)) < 1e-6:
        return f"{round(count)} of {samples}"
    return f"{number(value, 'share')} of {samples}"


def _parts(layout: Layout, summary: Summary) -> int:
    """How many parts the headline is the mean of: each counts as much as another, whatever its size."""
    metric = layout.metrics[0]
    scopes = [figure.scope for figure in summary.values() if figure.metric == metric.name]
    return sum(set(scope) == {metric.mean_over} for scope in scopes)


def baseline_words(layout: Layout, summary: Summary) -> str:
    """What little effort gives: `, where guessing gives 50%`; empty where that is not known."""
    if (chance := layout.metrics[0].chance) is not None:
        return f", where guessing gives {number(chance, layout.metrics[0].unit)}"
    figure = summary.get(layout.baseline.metric) if layout.baseline else None
    if layout.baseline is None or figure is None or figure.value is None:
        return ""
    return f", where {layout.baseline.title} gives {number(figure.value, figure.unit)}"


def _request_doubts(figure: Figure) -> list[str]:
    """What is missing of the answers, or cut off."""
    total, cut = sum(figure.statuses.values()), figure.statuses.get("truncated", 0)
    doubts = []
    if figure.coverage < FLOOR:
        missing = round((1 - figure.coverage) * total)
        doubts.append(f"{missing:,} of {counted(total, 'requests')} brought no usable answer")
    if cut > CUT_OFF * total:
        share = f"all {cut:,}" if cut == total else f"{cut:,} of {total:,}"
        doubts.append("the answer was cut off" if total == 1 else f"{share} answers were cut off")
    return doubts


def _few(figure: Figure, layout: Layout) -> list[str]:
    """That there are too few samples to be sure, and where the true figure may be."""
    linked = layout.counted[1].startswith("independent ")
    samples = counted(figure.n, layout.counted[0]) if linked else counts(figure, layout)
    samples = f"there {'is' if figure.n == 1 else 'are'} only {samples}"
    limits = interval(figure)
    if not limits or limits == TOO_WIDE:
        return [samples]
    if (figure.high or 0.0) - (figure.low or 0.0) <= WIDE.get(figure.unit, float("inf")):
        return []
    return [f"{samples} (95% interval {limits})"]

"""The verdict on a run: one plain sentence that says how good the figure is and whether to trust it."""

from __future__ import annotations

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
    """`1 of 8 prompts`, `63% of 1,200 prompts`, `0.87`."""
    value = figure.value or 0.0
    if figure.unit != "share":
        return number(value, figure.unit)
    samples = counted(figure.n, layout.counted[0])
    count = value * figure.n
    if figure.n <= COUNTED and abs(count - round(count)) < 1e-6 and _even_parts(layout, summary):
        return f"{round(count)} of {samples}"
    return f"{number(value, 'share')} of {samples}"


def _even_parts(layout: Layout, summary: Summary) -> bool:
    """Whether every sample counts the same: a macro-average may be over parts of different sizes."""
    metric = layout.metrics[0]
    parts = {f.n for f in summary.values() if f.metric == metric.name and set(f.scope) == {metric.mean_over}}
    return not metric.mean_over or len(parts) <= 1


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

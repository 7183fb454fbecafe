"""The verdict on a run: one plain sentence that says how good the figure is and whether to trust it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sealegs.page.format import FLOOR, TOO_WIDE, counts, interval, nouns, number, share, uncapitalised
from sealegs.page.layout import Layout, Note
from sealegs.types import Figure, Summary, Unit

CUT_OFF = 0.05
"""The share of answers that were cut off from which a figure is in doubt."""
WIDE: dict[Unit, float] = {"share": 0.25, "cosine": 0.25, "score": 25}
"""Intervals wider than this are of too few samples."""
NUMBERS = {2: "two", 3: "three", 4: "four", 5: "five", 6: "six"}
ROUNDING = 1e-9
"""Values that differ by less are equal."""
COUNTED = 100
"""Up to so many samples a share is given as a count: 1 of 8 prompts."""


class Verdict(NamedTuple):
    """A sentence on a run, and what speaks against its headline: where anything does, it is a test run."""

    text: str
    doubts: tuple[str, ...]
    figure: Figure
    """What it is about; of several subjects, that of the best, or the widest of those that tie."""


def judge(
    layout: Layout,
    summary: Summary,
    headlines: Mapping[str, Figure],
    *,
    subjects: str = "methods",
    notes: Sequence[Note] = (),
) -> Verdict:
    """`Right in 1 of 8 prompts; 8 of 12 answers were cut off, so treat this as a test run.`

    `headlines` has the headline of each subject by its name; of several, the highest is described, or those
    that tie, without the subjects that took part in making the data.
    """
    scored = {name: figure for name, figure in headlines.items() if figure.value is not None}
    remarks = layout.remarks(summary) if layout.remarks else []
    if not scored:
        first = next(iter(headlines.values()))
        return Verdict(" ".join((f"There is no score: {first.reason}.", *remarks)), (first.reason,), first)
    involved = {name for note in notes for name in note.involved if name in headlines}
    others = {name: each for name, each in scored.items() if name not in involved}
    leading = _leading(others or scored, layout)
    figure = max(leading.values(), key=_width)
    amount = _amount(figure, layout, summary)
    # A title may have braces of its own.
    text = layout.verdict.replace("{}", amount) if layout.verdict else f"{layout.headline_title}: {amount}"
    if part := layout.part(summary):
        text = f"{text}, {part}"
    if len(headlines) > 1:
        left_out = sorted(involved) if others else ()
        text = f"{_names(leading, len(headlines), left_out, layout, subjects)}, {uncapitalised(text)}"
    doubts = [*_request_doubts(summary[layout.headline]), *(note.doubt for note in notes if note.doubt)]
    doubts += _few(figure, layout)
    if doubts:
        listed = " and ".join(filter(None, (", ".join(doubts[:-1]), doubts[-1])))
        text = f"{text}{baseline_words(layout, summary)}; {listed}, so treat this as a test run."
    else:
        limits = list(dict.fromkeys(map(interval, leading.values())))
        widest = "the widest " if len(limits) > 1 else ""
        text = f"{text} ({widest}95% interval {interval(figure)}){baseline_words(layout, summary)}."
    return Verdict(" ".join((text, *remarks)), tuple(doubts), figure)


def _leading(scored: Mapping[str, Figure], layout: Layout) -> dict[str, Figure]:
    """The subjects with the best value: more than one where they tie."""
    values = [figure.value or 0.0 for figure in scored.values()]
    best = min(values) if layout.metrics[0].better == "lower" else max(values)
    return {name: each for name, each in scored.items() if abs((each.value or 0.0) - best) < ROUNDING}


def _width(figure: Figure) -> float:
    """How wide the interval is; without one, nothing is known."""
    return float("inf") if figure.low is None or figure.high is None else figure.high - figure.low


def _names(
    leading: Mapping[str, Figure], total: int, left_out: Sequence[str], layout: Layout, subjects: str
) -> str:
    """`Highest of 3 methods: bm25`; `All 3 methods tie`; who made the data is named, and left out."""
    if len(leading) == total:
        return f"Both {subjects} tie" if total == 2 else f"All {total} {subjects} tie"
    end = "Lowest" if layout.metrics[0].better == "lower" else "Highest"
    without = f" (without {', '.join(left_out)}, which helped to make the data)" if left_out else ""
    *others, last = leading
    tied = f"{', '.join(others)} and {last} (a tie)" if others else last
    return f"{end} of {total} {subjects}{without}: {tied}"


def _amount(figure: Figure, layout: Layout, summary: Summary) -> str:
    """`1 of 8 prompts`, `63% of 1,200 prompts`, `33%, averaged over four abilities`, `0.87`."""
    value = figure.value or 0.0
    if figure.unit != "share":
        return number(value, figure.unit)
    if layout.metrics[0].within_sample:
        return number(value, "share")
    parts = _parts(layout, summary)
    if parts > 1:
        plural = re.sub("y$", "ie", layout.metrics[0].mean_over) + "s"
        return f"{number(value, 'share')}, averaged over {NUMBERS.get(parts, parts)} {plural}"
    samples = nouns(figure.n, layout.counted[0])
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
        # Not how many requests failed: one that did may cost others their value, as in a pair, or a judge's.
        doubts.append(f"coverage is only {share(figure.coverage)}")
    if cut > CUT_OFF * total:
        of_all = f"the {total:,} answers to all prompts" if total > figure.n else f"{total:,} answers"
        cut_words = f"all {cut:,} answers" if cut == total else f"{cut:,} of {of_all}"
        doubts.append("the answer was cut off" if total == 1 else f"{cut_words} were cut off")
    return doubts


def _few(figure: Figure, layout: Layout) -> list[str]:
    """That there are too few samples to be sure, and where the true figure may be."""
    samples = nouns(figure.n, layout.counted[0]) if layout.linked else counts(figure, layout)
    samples = f"there {'is' if figure.n == 1 else 'are'} only {samples} {layout.counting}".rstrip()
    limits = interval(figure)
    if not limits or limits == TOO_WIDE:
        return [samples]
    if (figure.high or 0.0) - (figure.low or 0.0) <= WIDE.get(figure.unit, float("inf")):
        return []
    return [f"{samples} (95% interval {limits})"]

"""MIRAE's figures: scores by level, domain, language and padding, and the trend over lengths."""

from __future__ import annotations

from collections.abc import Sequence
from math import log, log2

import msgspec

from evenkeel import analysis
from evenkeel.analysis.figures import scopes
from evenkeel.analysis.repeats import Repeated, repeat_figures
from evenkeel.benchmarks.mirae.files import LEVELS, METRICS, TARGETS
from evenkeel.benchmarks.mirae.page import ESTIMATED, FLOOR, LAYOUT, NOMINAL, are_identical, unread_languages
from evenkeel.benchmarks.mirae.scoring import probe_sentences
from evenkeel.page.metrics import scope_of, unit_of
from evenkeel.types import Score, Summary, Tag

BY_LEVEL: list[tuple[str, ...]] = [(), ("level",)]
BY_LANG: list[tuple[str, ...]] = [("lang",), ("lang", "level")]
BY_DOMAIN: list[tuple[str, ...]] = [("domain",), ("level", "domain"), ("lang", "domain")]
BY_PADDING: list[tuple[str, ...]] = [("padding",), ("padding", "level")]
CHANCE = ("chance_floor", "corrected_similarity")
TREND, DRIFT = "trend_per_doubling", "drift"


def summarise(scores: Sequence[Score]) -> Summary:
    """The figures by level, language and padding, the published and the corrected ones by domain too; the
    trend along the lengths of the prompts."""
    metrics = list(dict.fromkeys(name for score in scores for name in score.values))
    breakdown = {
        name: [*BY_LEVEL, *BY_LANG, *BY_PADDING, *(BY_DOMAIN if name in (*METRICS, *CHANCE) else ())]
        for name in metrics
    }
    if "embedder_reads" in breakdown:
        breakdown["embedder_reads"] = [("lang",)]
    units = {name: unit_of(LAYOUT.metrics, name) for name in metrics}
    summary = analysis.summarise(scores, breakdown, units=units)
    summary.update(_trends(scores))
    known = [_repeated(score) for score in scores if score.values.get("right_rate") is not None]
    summary.update(repeat_figures(known, *BY_LEVEL, *BY_LANG))
    # The probe is one measurement of the embedder, not one of every prompt: no interval over questions.
    size = len(probe_sentences()["en"])
    answers = max((score.answered for score in scores), default=1) or 1
    possible = {"judged_meanings": (1.0, float(answers)), "judged_entropy": (0.0, log(answers))}
    for name, figure in summary.items():
        if name.startswith(CHANCE):
            summary[name] = msgspec.structs.replace(figure, basis=FLOOR)
        if name.startswith("embedder_reads"):
            summary[name] = msgspec.structs.replace(
                figure,
                low=None,
                high=None,
                n=size,
                clusters=size,
                method="none: a count of sentences",
            )
        least, most = possible.get(figure.metric, (0.0, 0.0))
        if most and figure.low is not None and figure.high is not None:
            low, high = max(figure.low, least), min(figure.high, most)
            summary[name] = msgspec.structs.replace(figure, low=low, high=high)
    if are_identical(summary):
        headline = summary["mean_similarity"]
        method = f"{headline.method}; repeats not independent"
        summary["mean_similarity"] = msgspec.structs.replace(headline, method=method)
    return _by_language(summary) if unread_languages(summary) else summary


def _by_language(summary: Summary) -> Summary:
    """The summary of several languages of which the embedder does not read one: cosines in each by itself."""
    scopes_of = {name: scope_of(name) for name in summary}
    langs = {scope["lang"] for _, scope in scopes_of.values() if "lang" in scope}
    cosines = (*METRICS, *CHANCE, TREND, DRIFT)
    return {
        name: msgspec.structs.replace(
            figure, value=None, low=None, high=None, p=None, method="none: one figure for each language"
        )
        if len(langs) > 1 and scopes_of[name][0] in cosines and "lang" not in scopes_of[name][1]
        else figure
        for name, figure in summary.items()
    }


def _repeated(score: Score) -> Repeated:
    """How many answers to a prompt give what is expected."""
    answers = score.answered
    return Repeated(score, round((score.values["right_rate"] or 0.0) * answers), answers)


def _trends(scores: Sequence[Score]) -> Summary:
    """The slope of the consistency over log₂ of the prompts' lengths: of all, of each language, of each
    padding.

    Lengths are estimates, one way for all prompts. Where a recorded file has only the beginning of a prompt,
    the nominal lengths of the levels stand in for all of them.
    """
    if len({score.tags["level"] for score in scores}) < 2:
        return {}
    known = [score for score in scores if score.values.get("mean_similarity") is not None]
    estimated = all(score.values.get("prompt_tokens") for score in known)
    nominal: dict[Tag, int] = dict(zip(LEVELS, TARGETS, strict=True))

    def length(score: Score) -> float:
        tokens = score.values["prompt_tokens"] if estimated else nominal[score.tags["level"]]
        return log2(tokens or 1)

    summary: Summary = {}
    for scope, members in scopes(scores, (), ("lang",), ("padding",)):
        trend = analysis.slope(members, "mean_similarity", "level", length, unit="cosine")
        summary[analysis.scope_name(TREND, scope)] = msgspec.structs.replace(
            trend, basis=ESTIMATED if estimated else NOMINAL
        )
    return summary

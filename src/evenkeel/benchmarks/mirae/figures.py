"""MIRAE's figures: scores by level, domain, language and padding, and the trend over lengths."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from math import log2

import msgspec

from evenkeel import analysis
from evenkeel.analysis.within import scopes
from evenkeel.benchmarks.mirae import chance
from evenkeel.benchmarks.mirae.files import LEVELS, TARGETS
from evenkeel.benchmarks.mirae.page import ESTIMATED, LAYOUT, NOMINAL
from evenkeel.benchmarks.mirae.scoring import probe_sentences
from evenkeel.page.metrics import unit_of
from evenkeel.types import Score, Summary, Tag

BY_LEVEL: list[tuple[str, ...]] = [(), ("level",)]
BY_LANG: list[tuple[str, ...]] = [("lang",), ("lang", "level")]
BY_DOMAIN: list[tuple[str, ...]] = [("domain",), ("level", "domain"), ("lang", "domain")]
BY_PADDING: list[tuple[str, ...]] = [("padding",), ("padding", "level")]
CHANCE = ("chance_floor", "corrected_similarity")


def summarise(scores: Sequence[Score], *, seed: int) -> Summary:
    """The figures by level, domain, language, padding and position of the question; the trend along the
    lengths of the prompts; how far embedders agree."""
    metrics = list(dict.fromkeys(name for score in scores for name in score.values))
    breakdown = {name: [*BY_LEVEL, *BY_LANG, *BY_PADDING, ("position",)] for name in metrics}
    breakdown["mean_similarity"] += BY_DOMAIN
    if "embedder_reads" in breakdown:
        breakdown["embedder_reads"] = [("lang",)]
    bases_taken = chance.bases_taken(scores)
    floor_over = {basis for each in bases_taken.values() for basis in each if basis}
    for name in metrics:
        if name.partition("@")[0] in CHANCE:
            breakdown[name] = _within_strata([*BY_LEVEL, *BY_LANG, *BY_DOMAIN, *BY_PADDING], floor_over)
    units = {name: unit_of(LAYOUT.metrics, name) for name in metrics}
    summary = analysis.summarise(scores, breakdown, units=units)
    summary.update(_trends(scores))
    for name in metrics:
        if name.startswith("mean_similarity@"):
            summary[name.replace("mean_similarity", "rank_correlation")] = analysis.rank_correlation(
                scores, "mean_similarity", name, seed=seed
            )
    basis = chance.described(bases_taken)
    # The probe is one measurement of the embedder, not one of every prompt: no interval over questions.
    size = len(probe_sentences()["en"])
    for name, figure in summary.items():
        if name.startswith(CHANCE):
            summary[name] = msgspec.structs.replace(figure, basis=basis)
        if name.startswith("embedder_reads"):
            summary[name] = msgspec.structs.replace(
                figure, low=None, high=None, n=size, clusters=size, method="translated sentences matched"
            )
    return summary


def _within_strata(
    scopes: Iterable[tuple[str, ...]], floor_over: Collection[chance.Basis]
) -> list[tuple[str, ...]]:
    """The scopes that have all prompts of a floor or none: a mean over some of them lacks a part of its
    error."""
    return [scope for scope in scopes if all(set(scope) <= set(basis) for basis in floor_over)]


def _trends(scores: Sequence[Score]) -> Summary:
    """The slope of the consistency over log₂ of the prompts' lengths, and its difference between the longest
    level and the shortest: of all, of each language, of each padding, and the slope at each position.

    Lengths are estimates, one way for all prompts. Where a recorded file has only the beginning of a prompt,
    the nominal lengths of the levels stand in for all of them.
    """
    levels = sorted({int(score.tags["level"]) for score in scores})
    if len(levels) < 2:
        return {}
    known = [score for score in scores if score.values.get("mean_similarity") is not None]
    estimated = all(score.values.get("prompt_tokens") for score in known)
    nominal: dict[Tag, int] = dict(zip(LEVELS, TARGETS, strict=True))

    def length(score: Score) -> float:
        tokens = score.values["prompt_tokens"] if estimated else nominal[score.tags["level"]]
        return log2(tokens or 1)

    paired = _paired_along_levels(scores)
    summary: Summary = {}
    for scope, members in (
        *scopes(paired, (), ("lang",), ("padding",)),
        *((scope, _paired_along_levels(members)) for scope, members in scopes(scores, ("position",))),
    ):
        trend = analysis.slope(members, "mean_similarity", "level", length, unit="cosine")
        summary[analysis.scope_name("trend_per_doubling", scope)] = msgspec.structs.replace(
            trend, basis=ESTIMATED if estimated else NOMINAL
        )
        if "position" not in scope:
            summary[analysis.scope_name("last_minus_first_level", scope)] = analysis.difference(
                members, "mean_similarity", "level", levels[0], levels[-1], unit="cosine"
            )
    return summary


def _paired_along_levels(scores: Sequence[Score]) -> list[Score]:
    """The scores as they are paired along the levels of a question: without the position, which differs from
    level to level; a question without padding counts in each padding that there is."""
    paddings = dict.fromkeys(score.tags["padding"] for score in scores if "padding" in score.tags)
    paired = []
    for score in scores:
        tags = {tag: value for tag, value in score.tags.items() if tag != "position"}
        each = [{}] if "padding" in tags or not paddings else [{"padding": padding} for padding in paddings]
        paired += [msgspec.structs.replace(score, tags={**tags, **padding}) for padding in each]
    return paired

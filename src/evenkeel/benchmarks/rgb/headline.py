"""RGB's headline: the mean of the abilities, each counted once and at one setting of its own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from evenkeel import analysis as stats
from evenkeel.analysis import combined
from evenkeel.benchmarks.rgb.abilities import Ability
from evenkeel.types import Figure, Sample, Score, Summary, tags_match

REFERENCE: dict[Ability, float] = {
    "noise": 0.8,
    "rejection": 1.0,
    "integration": 0.4,
    "counterfactual": 0.0,
}
"""The hardest published setting of each ability: the rate of noise, or of true documents among false ones.

One setting and not the mean of all that were asked: the headline does not depend on which others were.
"""
MACRO = {"published": "macro_published", "lenient": "macro_lenient"}


def headline_settings(samples: Iterable[Sample]) -> dict[str, str]:
    """The setting at which each ability enters: the reference, or the nearest to it that was asked."""
    asked: defaultdict[str, dict[float, str]] = defaultdict(dict)
    for sample in samples:
        ability, inputs = str(sample.tags["ability"]), sample.inputs
        if inputs["passages"]:
            rate = inputs["correct"] if ability == "counterfactual" else inputs["noise"]
            asked[ability][rate] = str(sample.tags["setting"])
    return {
        ability: rates[min(rates, key=lambda rate: (round(abs(rate - reference), 9), -rate))]
        for ability, reference in REFERENCE.items()
        if (rates := asked[ability])
    }


def with_headline(scores: Sequence[Score], settings: dict[str, str]) -> list[Score]:
    """Samples at the headline's settings have their share in it: the value of each check once more.

    Where nothing but `no documents` was asked, what is known without them is all that there is.
    """
    if not settings:
        return [_sharing(score, "known_") for score in scores]
    return [
        _sharing(score, "") if settings.get(str(score.tags["ability"])) == score.tags["setting"] else score
        for score in scores
    ]


def _sharing(score: Score, prefix: str) -> Score:
    found = {macro: f"{prefix}{check}" for check, macro in MACRO.items()}
    shares = {macro: score.values[name] for macro, name in found.items() if name in score.values}
    return msgspec.structs.replace(score, values={**score.values, **shares})


def macro_figures(scores: Sequence[Score]) -> Summary:
    """The mean of the abilities, over all samples and by language, with its parts and their settings.

    The coverage is that of everything asked: what failed at another setting must not go unseen.
    """
    found: Summary = {}
    langs = dict.fromkeys(str(score.tags["lang"]) for score in scores)
    for macro in MACRO.values():
        bearing = [score for score in scores if macro in score.values]
        if not bearing:
            continue
        for scope in ({}, *({"lang": lang} for lang in langs)):
            asked = [score for score in scores if tags_match(score.tags, scope)]
            members = [score for score in bearing if tags_match(score.tags, scope)]
            found[stats.scope_name(macro, scope)] = _macro(asked, members, macro)
        by: list[tuple[str, ...]] = [("ability",), ("ability", "lang"), ("ability", "setting")]
        found |= stats.summarise(bearing, {macro: by}, units={macro: "share"})
    return found


def _macro(asked: Sequence[Score], members: Sequence[Score], macro: str) -> Figure:
    known = {s.sample_id: value for s in members if (value := s.values[macro]) is not None}
    groups = {score.sample_id: score.group for score in members}
    parts = {score.sample_id: str(score.tags["ability"]) for score in members}
    lost = [part for part in dict.fromkeys(parts.values()) if part not in {parts[sample] for sample in known}]
    if lost or not known:
        none = f"none: nothing answered for {', '.join(lost)}" if lost else stats.NOTHING
        interval = stats.Interval(None, None, None, none, len(known), len({groups[s] for s in known}))
    else:
        terms = combined.macro_terms(known, groups, parts)
        interval = combined.interval(terms, "share")
        if len(terms) > 1:
            interval = interval._replace(method=f"mean of {len(terms)} abilities: {interval.method}")
    statuses: defaultdict[str, int] = defaultdict(int)
    for score in asked:
        for status, count in score.statuses.items():
            statuses[status] += count
    coverage = sum(score.answered for score in asked) / max(1, sum(statuses.values()))
    return Figure(coverage=coverage, statuses=dict(statuses), unit="share", **interval._asdict())

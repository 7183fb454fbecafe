"""RGB's figures: from the values of samples to a summary."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence

from evenkeel import analysis as stats
from evenkeel.analysis import combined
from evenkeel.analysis.figures import changes, scopes
from evenkeel.analysis.links import group_of, independent_groups, numbered
from evenkeel.analysis.repeats import Repeated, repeat_figures
from evenkeel.benchmarks.rgb.metrics import METRICS
from evenkeel.benchmarks.rgb.page import LINKED
from evenkeel.benchmarks.rgb.scoring import CHECKS
from evenkeel.page.metrics import unit_of
from evenkeel.types import Figure, Score, Summary

JUDGES = (*CHECKS, "judge")
NOISE_TAGS = ("noise", "integration_noise")
REPEAT = re.compile(r"-repeat\d+$")
"""Ends the id of a further answer to a prompt."""


def summarise(scores: Sequence[Score]) -> Summary:
    """Shares over questions, and what is computed from several of them."""
    by_setting: list[tuple[str, ...]] = [("setting",), ("setting", "lang")]
    right: list[tuple[str, ...]] = [(), ("lang",), ("ability",), ("ability", "lang"), *by_setting]
    for tag in (*NOISE_TAGS, "position"):
        right += [(tag,), (tag, "lang")]
    names = dict.fromkeys(
        name for score in scores for name in score.values if not name.startswith(("macro_", "corrected_"))
    )
    breakdown = {name: right if name in CHECKS else [(), *by_setting] for name in names}
    shares = stats.summarise(scores, breakdown, units={name: unit_of(METRICS, name) for name in names})
    computed = _corrections(scores) | _noise_changes(scores) | _repeats(scores)
    return _macro_figures(scores) | shares | computed


# The headline: the mean of the abilities


def _macro_figures(scores: Sequence[Score]) -> Summary:
    """The mean of the abilities, over all samples and by language, with its parts and their settings.

    The coverage is that of everything asked: what failed at another setting must not go unseen.
    """
    summary: Summary = {}
    by: list[tuple[str, ...]] = [("ability",), ("ability", "lang"), ("ability", "setting")]
    for macro in (f"macro_{check}" for check in CHECKS):
        bearing = [score for score in scores if macro in score.values]
        if not bearing:
            continue
        for scope, asked in scopes(scores, (), ("lang",)):
            members = [score for score in asked if macro in score.values]
            summary[stats.scope_name(macro, scope)] = _macro_figure(asked, members, macro)
        summary |= stats.summarise(bearing, {macro: by}, units={macro: "share"})
    return summary


def _macro_figure(asked: Sequence[Score], members: Sequence[Score], macro: str) -> Figure:
    """Of all abilities that were asked, or none: two checks never average different ones."""
    known = [(score, value) for score in members if (value := score.values[macro]) is not None]
    answered = [str(score.tags["ability"]) for score, _ in known]
    checked = {str(score.tags["ability"]) for score in members}
    leading = [score for score in asked if any(name.startswith("macro_") for name in score.values)]
    abilities = dict.fromkeys(str(score.tags["ability"]) for score in leading)
    lost = [ability for ability in abilities if ability not in answered]
    groups = [group_of(score) for score, _ in known]
    if lost or not known:
        reason = "nothing answered for" if checked.issuperset(lost) else "not checked:"
        method = f"none: {reason} {', '.join(lost)}" if lost else stats.NOTHING
        interval = stats.Interval(None, None, None, method, len(known), independent_groups(groups))
    else:
        terms = combined.macro_terms([value for _, value in known], groups, answered)
        interval = combined.interval(terms, "share")
        if len(terms) > 1:
            over = f" over {LINKED}" if numbered(groups)[1] else ""
            interval = interval._replace(method=f"mean of {len(terms)} abilities{over}: {interval.method}")
    statuses: Counter[str] = Counter()
    for score in asked:
        statuses.update(score.statuses)
    coverage = sum(score.answered for score in asked) / max(1, statuses.total())
    return Figure(coverage=coverage, statuses=dict(statuses), unit="share", **interval._asdict())


# What is computed from several values


def _corrections(scores: Sequence[Score]) -> Summary:
    """Of the errors that were detected, the share that was corrected: a ratio of two counts."""
    summary: Summary = {}
    for check in JUDGES:
        name = f"corrected_{check}"
        detectable = [score for score in scores if name in score.values]
        for scope, members in scopes(detectable, (), ("setting",), ("setting", "lang")):
            figure = stats.ratio(members, name, f"detected_{check}", unit="share")
            summary[stats.scope_name(name, scope)] = figure
    return summary


def _noise_changes(scores: Sequence[Score]) -> Summary:
    """Accuracy at each rate of noise minus that at the lowest, within questions. Without a scope, that of the
    highest rate of noise robustness. Noise 1 is left out: a rejection is right there."""
    summary: Summary = {}
    below_one = [score for score in scores if "1" not in (score.tags.get(tag) for tag in NOISE_TAGS)]
    for check in CHECKS:
        name = f"noise_change_{check}"
        for tag in NOISE_TAGS:
            for scope, members in scopes(below_one, (), ("lang",)):
                figures = changes(members, check, tag, unit="share")
                for value, figure in figures.items():
                    summary[stats.scope_name(name, {tag: value, **scope})] = figure
                if figures and tag == "noise":
                    summary[stats.scope_name(name, scope)] = [*figures.values()][-1]
    return summary


def _repeats(scores: Sequence[Score]) -> Summary:
    """How often all answers to a prompt are right by the lenient check, where it was asked several times."""
    prompts: defaultdict[str, list[Score]] = defaultdict(list)
    for score in scores:
        if "lenient" in score.values:
            prompts[REPEAT.sub("", score.sample_id)].append(score)
    repeated = [Repeated.of(answers, "lenient") for answers in prompts.values()]
    return repeat_figures(repeated, (), ("setting",))

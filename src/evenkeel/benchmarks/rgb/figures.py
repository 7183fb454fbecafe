"""RGB's figures: from the values of samples to a summary."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from evenkeel import analysis as stats
from evenkeel.analysis import combined
from evenkeel.analysis.agreement import discrimination, kappa_interval
from evenkeel.analysis.within import changes, mean, scopes, variation
from evenkeel.benchmarks.rgb.scoring import CHECKS, DECIDED
from evenkeel.types import Figure, Score, Summary

ROWS = {"detected": ": error detection", "false_alarms": ": false alarms", "known": ""}
"""Values that are rows among the settings: `detected_published/setting=false documents` is the row
`false documents: error detection` of the check `published`."""
JUDGES = (*CHECKS, "judge")
CHANGES = {"noise": "noise_change", "integration_noise": "noise_change", "position": "position_change"}
"""What is compared within questions along each tag."""


def summarise(scores: Sequence[Score]) -> Summary:
    """Shares over questions, and what is computed from several of them."""
    by_setting: list[tuple[str, ...]] = [("setting",), ("setting", "lang")]
    success: list[tuple[str, ...]] = [(), ("lang",), ("ability",), ("ability", "lang"), *by_setting]
    for tag in CHANGES:
        success += [(tag,), (tag, "lang")]
    names = dict.fromkeys(name for score in scores for name in score.values if not name.startswith("macro_"))
    breakdown = {name: success if name in JUDGES else [(), *by_setting] for name in names}
    summary = _macro_figures(scores)
    for name, figure in stats.summarise(scores, breakdown, units=dict.fromkeys(names, "share")).items():
        metric, scope = stats.scope_of(name)
        kind, _, check = metric.rpartition("_")
        if kind == "corrected":
            continue
        if scope and kind in ROWS:
            scope["setting"] += ROWS[kind]
            name = stats.scope_name(check, scope)
        summary[name] = figure
    return (
        summary
        | _corrections(scores)
        | _discrimination(scores)
        | _kappas(scores)
        | _changes(scores)
        | _knowledge(scores)
        | _variation(scores)
    )


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
    known = {score.sample_id: value for score in members if (value := score.values[macro]) is not None}
    groups = {score.sample_id: score.group for score in members}
    abilities = {score.sample_id: str(score.tags["ability"]) for score in members}
    answered = {abilities[sample] for sample in known}
    lost = [ability for ability in dict.fromkeys(abilities.values()) if ability not in answered]
    if lost or not known:
        method = f"none: nothing answered for {', '.join(lost)}" if lost else stats.NOTHING
        interval = stats.Interval(None, None, None, method, len(known), len({groups[s] for s in known}))
    else:
        terms = combined.macro_terms(known, groups, abilities)
        interval = combined.interval(terms, "share")
        if len(terms) > 1:
            interval = interval._replace(method=f"mean of {len(terms)} abilities: {interval.method}")
    statuses: Counter[str] = Counter()
    for score in asked:
        statuses.update(score.statuses)
    coverage = sum(score.answered for score in asked) / max(1, statuses.total())
    return Figure(coverage=coverage, statuses=dict(statuses), unit="share", **interval._asdict())


# Errors: detected, corrected, and told from what is no error


def _corrections(scores: Sequence[Score]) -> Summary:
    """Of the errors that were detected, the share that was corrected: a ratio of two counts."""
    summary: Summary = {}
    for check in JUDGES:
        detectable = [score for score in scores if f"corrected_{check}" in score.values]
        for scope, members in scopes(detectable, (), ("setting",), ("setting", "lang")):
            figure = stats.ratio(members, f"corrected_{check}", f"detected_{check}", unit="share")
            row = {**scope, "setting": f"{scope['setting']}: error correction"} if scope else {}
            summary[stats.scope_name(check, row) if row else f"corrected_{check}"] = figure
    return summary


def _discrimination(scores: Sequence[Score]) -> Summary:
    """Whether errors are reported rather where there are some: Youden's J and d′."""
    summary: Summary = {}
    for check in JUDGES:
        names = f"detected_{check}", f"false_alarms_{check}"
        for scope, members in scopes(scores, (), ("lang",)):
            hits, alarms = ([score for score in members if name in score.values] for name in names)
            for name, figure in zip(("youden", "dprime"), discrimination(hits, alarms, names), strict=False):
                summary[stats.scope_name(f"{name}_{check}", scope)] = figure
    return summary


def _kappas(scores: Sequence[Score]) -> Summary:
    """Cohen's κ of the judge with each check over the verdicts that could be read, of all and by what was
    judged (the ability), the language and the setting."""
    summary: Summary = {}
    for check in CHECKS:
        judged = [score for score in scores if f"judge_agrees_{check}" in score.values]
        for scope, members in scopes(judged, (), ("ability",), ("lang",), ("ability", "lang"), ("setting",)):
            interval = kappa_interval((*_decisions(score, check), score.group) for score in members)
            summary[stats.scope_name(f"judge_kappa_{check}", scope)] = stats.figure(
                members, f"judge_agrees_{check}", interval, unit="agreement"
            )
    return summary


def _decisions(score: Score, check: str) -> tuple[float | None, float | None]:
    """What a check and the judge decided about the same answer."""
    kind = next(kind for kind in DECIDED if f"{kind}_{check}" in score.values)
    return score.values[f"{kind}_{check}"], score.values["judge" if kind == "rejected" else f"{kind}_judge"]


# Within questions: along noise and positions, with and without documents, between repeats


def _changes(scores: Sequence[Score]) -> Summary:
    """Accuracy at each rate of noise minus that at the lowest, and at each position of the one true document
    minus that at the first. Without a scope, `noise_change_*` is that of the highest rate.
    """
    summary: Summary = {}
    for check in CHECKS:
        for tag, name in CHANGES.items():
            for scope, members in scopes(_below_one(scores), (), ("lang",)):
                figures = changes(members, check, tag, unit="share")
                for value, figure in figures.items():
                    summary[stats.scope_name(f"{name}_{check}", {tag: value, **scope})] = figure
                if figures and tag == "noise":
                    summary[stats.scope_name(f"{name}_{check}", scope)] = [*figures.values()][-1]
    return summary


def _below_one(scores: Sequence[Score]) -> list[Score]:
    """Without noise 1, where a rejection is right."""
    return [
        score for score in scores if "1" not in (score.tags.get("noise"), score.tags.get("integration_noise"))
    ]


def _knowledge(scores: Sequence[Score]) -> Summary:
    """With k the share of a question's answers without documents that are right: of what is not known, the
    share that is right with documents, Σ (1 − k) y / Σ (1 − k) (`learned_*`); and of what is known, the share
    that stays right, Σ k y / Σ k (`retained_*`)."""
    summary: Summary = {}
    for check in CHECKS:
        without: defaultdict[str, list[Score]] = defaultdict(list)
        for score in scores:
            if f"known_{check}" in score.values:
                without[score.group].append(score)
        weighted = [
            stats.with_values(
                score, **_weighted(score.values[check], mean(without[score.group], f"known_{check}"))
            )
            for score in _below_one(scores)
            if check in score.values and score.group in without and score.tags["ability"] != "rejection"
        ]
        for scope, members in scopes(weighted, ("ability",), ("setting",), ("setting", "lang")):
            for name in ("learned", "retained"):
                figure = stats.ratio(members, name, f"{name}_of", unit="share")
                summary[stats.scope_name(f"{name}_{check}", scope)] = figure
    return summary


def _weighted(right: float | None, known: float | None) -> dict[str, float | None]:
    if right is None or known is None:
        return dict.fromkeys(("learned", "learned_of", "retained", "retained_of"))
    learned, retained = right * (1 - known), right * known
    return {"learned": learned, "learned_of": 1 - known, "retained": retained, "retained_of": known}


def _variation(scores: Sequence[Score]) -> Summary:
    """How much answers vary between repeats, and beyond that between settings and positions."""
    summary: Summary = {}
    for check in CHECKS:
        for scope, members in scopes(_below_one(scores), ("ability",)):
            for name, figure in variation(members, check, ("setting", "position")).items():
                name = name.replace("prompt", "retrieval")
                summary[stats.scope_name(f"{name}_{check}", scope)] = figure
    return summary

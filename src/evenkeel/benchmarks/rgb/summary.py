"""RGB's figures: every ability at every setting, under every check."""

from __future__ import annotations

from collections.abc import Sequence

from evenkeel import analysis as stats
from evenkeel.benchmarks.rgb.checks import agreement
from evenkeel.benchmarks.rgb.headline import MACRO, macro_figures
from evenkeel.types import Figure, Score, Summary, tags_match

CHECKS = ("published", "lenient", "judge")


def summarise(scores: Sequence[Score]) -> Summary:
    """Shares over questions. Detection and correction stand among the settings as rows of their own."""
    by_setting: list[tuple[str, ...]] = [("setting",), ("setting", "lang")]
    success: list[tuple[str, ...]] = [(), ("lang",), ("ability",), ("ability", "lang"), *by_setting]
    success += [("noise",), ("noise", "lang"), ("integration_noise",), ("integration_noise", "lang")]
    success += [("position",), ("position", "lang")]
    metrics = dict.fromkeys(name for score in scores for name in score.values if name not in MACRO.values())
    breakdown = {name: success if name in CHECKS else [(), *by_setting] for name in metrics}
    summary = stats.summarise(scores, breakdown, units=dict.fromkeys(metrics, "share"))
    found: Summary = {}
    for name, figure in summary.items():
        found.update(_placed(name, figure))
    found |= _corrections(scores)
    found |= _kappas(scores)
    return {**macro_figures(scores), **found}


def _placed(name: str, figure: Figure) -> Summary:
    """A figure under the names by which it is shown.

    `detected_published/setting=false documents` stands as the row `false documents: error detection` of
    the check `published`, and what is known without documents as its row `no documents`.
    """
    metric, scope = stats.scope_of(name)
    kind, _, check = metric.rpartition("_")
    if kind == "known" and check in CHECKS:
        return {stats.scope_name(check, scope): figure} if scope else {metric: figure}
    if kind == "detected" and check in CHECKS:
        if not scope:
            return {metric: figure}
        return {stats.scope_name(check, {**scope, "setting": f"{scope['setting']}: error detection"}): figure}
    if kind == "corrected":
        return {}
    return {name: figure}


def _kappas(scores: Sequence[Score]) -> Summary:
    """Cohen's kappa of the judge with each check, over the verdicts that could be read."""
    found: Summary = {}
    for check in ("published", "lenient"):
        judged = [score for score in scores if f"judge_agrees_{check}" in score.values]
        if not judged:
            continue
        decisions = [_decisions(score, check) for score in judged]
        agreed = agreement([ours for ours, _ in decisions], [judges for _, judges in decisions])
        found[f"judge_kappa_{check}"] = stats.figure(
            judged,
            f"judge_agrees_{check}",
            stats.Interval(agreed.kappa, None, None, "Cohen's kappa", agreed.n, agreed.n),
            unit="agreement",
        )
    return found


def _decisions(score: Score, check: str) -> tuple[float | None, float | None]:
    """What a check and the judge decided of the same question: an error reported, or an answer declined."""
    if "detected_judge" in score.values:
        return score.values[f"detected_{check}"], score.values["detected_judge"]
    return score.values[f"rejected_{check}"], score.values["judge"]


def _corrections(scores: Sequence[Score]) -> Summary:
    """Of the errors that were detected, the share that was corrected: a ratio of two counts."""
    found: Summary = {}
    langs = dict.fromkeys(str(score.tags["lang"]) for score in scores)
    for check in ("published", "lenient"):
        detectable = [score for score in scores if f"corrected_{check}" in score.values]
        settings = dict.fromkeys(str(score.tags["setting"]) for score in detectable)
        scopes: list[dict[str, str]] = [{}] if settings else []
        scopes += [{"setting": setting} for setting in settings]
        scopes += [{"setting": setting, "lang": lang} for setting in settings for lang in langs]
        for scope in scopes:
            members = [score for score in detectable if tags_match(score.tags, scope)]
            figure = stats.ratio(members, f"corrected_{check}", f"detected_{check}", unit="share")
            row = {**scope, "setting": f"{scope['setting']}: error correction"} if scope else {}
            found[stats.scope_name(check, row) if row else f"corrected_{check}"] = figure
    return found

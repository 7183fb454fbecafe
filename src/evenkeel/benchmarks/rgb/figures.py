"""RGB's figures: from the values of samples to a summary."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from evenkeel import analysis as stats
from evenkeel.analysis import combined
from evenkeel.benchmarks.rgb.scoring import CHECKS, DECIDED, kappa
from evenkeel.types import Figure, Score, Summary, Tag, Unit, tags_match

if TYPE_CHECKING:
    from numpy.typing import NDArray

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


def _scopes(scores: Iterable[Score], *names: tuple[str, ...]) -> Iterator[dict[str, str]]:
    """Every combination of values that some tags have, for each tuple of tags; the empty one is all."""
    listed = list(scores)
    for tags in names:
        for values in dict.fromkeys(
            tuple(str(score.tags[tag]) for tag in tags)
            for score in listed
            if all(tag in score.tags for tag in tags)
        ):
            yield dict(zip(tags, values, strict=True))


def _within(scores: Iterable[Score], scope: Mapping[str, Tag]) -> list[Score]:
    return [score for score in scores if tags_match(score.tags, scope)]


# The headline: the mean of the abilities


def _macro_figures(scores: Sequence[Score]) -> Summary:
    """The mean of the abilities, over all samples and by language, with its parts and their settings.

    The coverage is that of everything asked: what failed at another setting must not go unseen.
    """
    summary: Summary = {}
    langs = dict.fromkeys(str(score.tags["lang"]) for score in scores)
    by: list[tuple[str, ...]] = [("ability",), ("ability", "lang"), ("ability", "setting")]
    for macro in (f"macro_{check}" for check in CHECKS):
        bearing = [score for score in scores if macro in score.values]
        if not bearing:
            continue
        for scope in ({}, *({"lang": lang} for lang in langs)):
            asked = [score for score in scores if tags_match(score.tags, scope)]
            members = [score for score in bearing if tags_match(score.tags, scope)]
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
        for scope in _scopes(detectable, (), ("setting",), ("setting", "lang")):
            figure = stats.ratio(
                _within(detectable, scope), f"corrected_{check}", f"detected_{check}", unit="share"
            )
            row = {**scope, "setting": f"{scope['setting']}: error correction"} if scope else {}
            summary[stats.scope_name(check, row) if row else f"corrected_{check}"] = figure
    return summary


def _discrimination(scores: Sequence[Score]) -> Summary:
    """Youden's J = H - F and d' = z(H) - z(F), with H the share of prompts with a false document whose error
    is reported and F the share of those without one where an error is reported all the same.

    z is the normal quantile of (count + 1/2) / (n + 1), the log-linear correction (Hautus 1995): so d' is
    finite where a share is 0 or 1.
    """
    summary: Summary = {}
    for check in JUDGES:
        reports = [
            [
                replace(score, values={"reported": score.values[name]})
                for score in scores
                if name in score.values
            ]
            for name in (f"detected_{check}", f"false_alarms_{check}")
        ]
        if not all(reports):
            continue
        for scope in _scopes(reports[0], (), ("lang",)):
            sides = [_within(side, scope) for side in reports]
            terms = [
                combined.Term(
                    sign,
                    [value for score in side if (value := score.values["reported"]) is not None],
                    [score.group for score in side if score.values["reported"] is not None],
                )
                for sign, side in zip((1, -1), sides, strict=True)
            ]
            if not all(term.values for term in terms):
                continue
            members = sides[0] + sides[1]
            youden = combined.interval(terms, "share")
            summary[stats.scope_name(f"youden_{check}", scope)] = stats.figure(
                members, "reported", youden, unit="share"
            )
            dprime = combined.interval(terms, "share", scale=_z)
            summary[stats.scope_name(f"dprime_{check}", scope)] = stats.figure(
                members, "reported", dprime, unit="deviations"
            )
    return summary


def _z(share: float, n: int) -> float:
    from scipy.special import ndtri

    return float(ndtri((share * n + 0.5) / (n + 1)))


# The judge's agreement with the checks


def _kappas(scores: Sequence[Score]) -> Summary:
    """Cohen's kappa of the judge with each check over the verdicts that could be read, of all and by what was
    judged (the ability), the language and the setting."""
    summary: Summary = {}
    for check in CHECKS:
        judged = [score for score in scores if f"judge_agrees_{check}" in score.values]
        for scope in _scopes(judged, (), ("ability",), ("lang",), ("ability", "lang"), ("setting",)):
            members = _within(judged, scope)
            interval = kappa_interval(
                [(*_decisions(score, check), score.group) for score in members if score.answered]
            )
            summary[stats.scope_name(f"judge_kappa_{check}", scope)] = stats.figure(
                members, f"judge_agrees_{check}", interval, unit="agreement"
            )
    return summary


def _decisions(score: Score, check: str) -> tuple[float | None, float | None]:
    """What a check and the judge decided about the same answer."""
    kind = next(kind for kind in DECIDED if f"{kind}_{check}" in score.values)
    judge = "judge" if kind == "rejected" else f"{kind}_judge"
    return score.values[f"{kind}_{check}"], score.values[judge]


def kappa_interval(decisions: Iterable[tuple[float | None, float | None, Hashable]]) -> stats.Interval:
    """Kappa of two deciders, with the group of each pair, and its interval by a jackknife over groups.

    Of G groups, group g has the pseudo-value G kappa - (G - 1) kappa(without g); their mean has an interval
    as any mean of agreements has (Efron 1982).
    """
    known = [each for each in decisions if each[0] is not None and each[1] is not None]
    n, value = kappa((first, second) for first, second, _ in known)
    groups = {group: number for number, group in enumerate(dict.fromkeys(each[2] for each in known))}
    tables = np.zeros((len(groups), 2, 2))
    for first, second, group in known:
        tables[groups[group], int(first or 0), int(second or 0)] += 1
    count = len(groups)
    if value is None or count < 2:
        method = "none: chance alone explains it" if count >= 2 else stats.TOO_FEW if n else stats.NOTHING
        return stats.Interval(value, None, None, method, n, count)
    without = _kappa_of(tables.sum(axis=0) - tables)
    pseudo = count * value - (count - 1) * without
    if np.isnan(pseudo).any():
        return stats.Interval(value, None, None, "none: it hangs on one question", n, count)
    each = stats.interval_of(pseudo, np.arange(count), "agreement")
    if each.low is None or each.high is None:
        return stats.Interval(value, None, None, each.method, n, count)
    low, high = max(-1.0, min(value, each.low)), min(1.0, max(value, each.high))
    return stats.Interval(value, low, high, f"Cohen's kappa, jackknife: {each.method}", n, count)


def _kappa_of(tables: NDArray[np.float64]) -> NDArray[np.float64]:
    """Kappa of each table of counts; NaN where chance alone explains the agreement."""
    n = tables.sum(axis=(1, 2))
    with np.errstate(invalid="ignore", divide="ignore"):  # 0 / 0
        share = np.trace(tables, axis1=1, axis2=2) / n
        chance = (tables.sum(axis=1) * tables.sum(axis=2)).sum(axis=1) / n**2
        return np.asarray(np.where(chance < 1, (share - chance) / (1 - chance), np.nan))


# Within questions: along noise and positions, with and without documents, between repeats


def _changes(scores: Sequence[Score]) -> Summary:
    """Accuracy at each rate of noise minus that at the lowest, and at each position of the one true document
    minus that at the first, paired within questions; p is corrected for the rates or positions by Holm.

    Without a scope, `noise_change_*` is that of the highest rate.
    """
    summary: Summary = {}
    for check in CHECKS:
        for tag, name in CHANGES.items():
            # At noise 1 there is no answer to be found, and a rejection is right.
            means = [
                score
                for score in _means(scores, check, tag)
                if str(score.tags[tag]) != "1" or tag == "position"
            ]
            for scope in _scopes(means, (), ("lang",)):
                members = _within(means, scope)
                first, *others = sorted({score.tags[tag] for score in members}, key=float)
                figures = [
                    stats.difference(members, check, tag, first, other, unit="share") for other in others
                ]
                corrected = stats.holm([figure.p for figure in figures])
                tests = sum(p is not None for p in corrected)
                for other, figure, p in zip(others, figures, corrected, strict=True):
                    if figure.n:
                        changed = replace(figure, p=p, tests=max(1, tests))
                        summary[stats.scope_name(f"{name}_{check}", {tag: other, **scope})] = changed
                        if tag == "noise" and other == others[-1]:
                            summary[stats.scope_name(f"{name}_{check}", scope)] = changed
    return summary


def _means(scores: Iterable[Score], metric: str, tag: str) -> list[Score]:
    """One score for each question and each value of a tag: the mean of those that there are."""
    cells: defaultdict[tuple[str, Tag], list[Score]] = defaultdict(list)
    for score in scores:
        if metric in score.values and tag in score.tags:
            cells[score.group, score.tags[tag]].append(score)
    return [
        _merged(members, {tag: value, "lang": members[0].tags["lang"]}, {metric: _mean(members, metric)})
        for (_, value), members in cells.items()
    ]


def _merged(members: Sequence[Score], tags: dict[str, Tag], values: dict[str, float | None]) -> Score:
    """Scores of one question as one, with what was asked and answered for all of them."""
    statuses: Counter[str] = Counter()
    for score in members:
        statuses.update(score.statuses)
    answered = sum(score.answered for score in members)
    return replace(members[0], tags=tags, values=values, statuses=dict(statuses), answered=answered)


def _mean(members: Iterable[Score], metric: str) -> float | None:
    known = [value for score in members if (value := score.values[metric]) is not None]
    return sum(known) / len(known) if known else None


def _knowledge(scores: Sequence[Score]) -> Summary:
    """With k the share of a question's answers without documents that are right: of what is not known, the
    share that is right with documents, sum (1 - k) y / sum (1 - k) (`learned_*`); and of what is known, the
    share that stays right, sum k y / sum k (`retained_*`)."""
    summary: Summary = {}
    for check in CHECKS:
        without: defaultdict[str, list[Score]] = defaultdict(list)
        for score in scores:
            if f"known_{check}" in score.values:
                without[score.group].append(score)
        known = {group: _mean(members, f"known_{check}") for group, members in without.items()}
        members = [
            replace(score, values=_weighted(score.values[check], known[score.group]))
            for score in scores
            if check in score.values and score.group in known and score.tags["ability"] != "rejection"
        ]
        for scope in _scopes(members, ("ability",), ("setting",), ("setting", "lang")):
            for name in ("learned", "retained"):
                figure = stats.ratio(_within(members, scope), name, f"{name}_of", unit="share")
                summary[stats.scope_name(f"{name}_{check}", scope)] = figure
    return summary


def _weighted(right: float | None, known: float | None) -> dict[str, float | None]:
    if right is None or known is None:
        return dict.fromkeys(("learned", "learned_of", "retained", "retained_of"))
    return {
        "learned": right * (1 - known),
        "learned_of": 1 - known,
        "retained": right * known,
        "retained_of": known,
    }


def _variation(scores: Sequence[Score]) -> Summary:
    """Where prompts were asked several times: how much answers vary between repeats of a prompt, and how much
    prompts of a question vary beyond that, by their documents and positions.

    In a question with prompts p of n_p repeats each, s_p^2 is the variance of the repeats (over n_p - 1):
    sampling variance W = mean s_p^2; retrieval variance B = variance of the prompts' means, less the mean of
    s_p^2 / n_p; both unbiased (B may be negative). The share of sampling is sum W / sum (W + B).
    """
    summary: Summary = {}
    for check in CHECKS:
        cells: defaultdict[tuple[str, str], defaultdict[tuple[Tag, Tag], list[Score]]]
        cells = defaultdict(lambda: defaultdict(list))
        for score in scores:
            if check in score.values:
                prompt = score.tags["setting"], score.tags.get("position", 0)
                cells[score.group, str(score.tags["ability"])][prompt].append(score)
        if not any(len(answers) > 1 for prompts in cells.values() for answers in prompts.values()):
            continue
        parts = [
            _merged(
                [score for answers in prompts.values() for score in answers],
                {"ability": ability},
                _components([[score.values[check] for score in answers] for answers in prompts.values()]),
            )
            for (_, ability), prompts in cells.items()
        ]
        for scope in _scopes(parts, ("ability",)):
            members = _within(parts, scope)
            within, between = (_known(members, name) for name in ("sampling_variance", "retrieval_variance"))
            both = _known(
                [s for s in members if s.values["retrieval_variance"] is not None], "sampling_variance"
            )
            intervals = {
                "sampling_variance": stats.interval_of(within, np.arange(len(within)), "variance"),
                "retrieval_variance": _t_interval(between),
                "sampling_share": sampling_share(both, between),
            }
            # Where each question has one prompt, there is nothing to vary between.
            several = any(len(cells[score.group, scope["ability"]]) > 1 for score in members)
            for name, interval in intervals.items() if several else [*intervals.items()][:1]:
                metric = "sampling_variance" if name == "sampling_variance" else "retrieval_variance"
                unit: Unit = "share" if name == "sampling_share" else "variance"
                figure = stats.figure(members, metric, interval, unit=unit)
                summary[stats.scope_name(f"{name}_{check}", scope)] = figure
    return summary


def _components(prompts: Sequence[Sequence[float | None]]) -> dict[str, float | None]:
    """The variances of one question; None where there are too few answers."""
    known = [[value for value in answers if value is not None] for answers in prompts]
    repeated = [np.array(answers) for answers in known if len(answers) > 1]
    variances = [float(np.var(answers, ddof=1)) for answers in repeated]
    within = float(np.mean(variances)) if repeated else None
    between = None
    if len(repeated) > 1:
        noise = np.mean([v / len(answers) for v, answers in zip(variances, repeated, strict=True)])
        between = float(np.var([answers.mean() for answers in repeated], ddof=1) - noise)
    return {"sampling_variance": within, "retrieval_variance": between}


def _known(members: Iterable[Score], metric: str) -> NDArray[np.float64]:
    return np.array([value for score in members if (value := score.values[metric]) is not None], dtype=float)


def _t_interval(values: NDArray[np.float64]) -> stats.Interval:
    """The mean of what may be negative by chance, one value for each question: a plain t interval."""
    return stats.interval_of(values, np.arange(len(values)), "deviations")


def sampling_share(within: NDArray[np.float64], between: NDArray[np.float64]) -> stats.Interval:
    """S = sum W / sum (W + B) over questions, each of which moves it by (W - S (W + B)) / mean (W + B).

    S and its limits are cut to what a share can be: a B that is negative by chance takes them beyond.
    """
    both, count = within + between, len(within)
    if not count or both.sum() <= 0:
        return stats.Interval(
            None, None, None, "none: nothing varies" if count else stats.NOTHING, count, count
        )
    share = float(within.sum() / both.sum())
    each = _t_interval(share + (within - share * both) / both.mean())
    value, low, high = (
        None if limit is None else min(1.0, max(0.0, limit)) for limit in (share, each.low, each.high)
    )
    return each._replace(value=value, low=low, high=high)

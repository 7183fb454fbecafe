"""RGB's scores: by the published check, by the lenient one and by a judge, from the same answer."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Generator, Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from evenkeel import analysis as stats
from evenkeel.analysis import combined
from evenkeel.benchmarks.rgb.files import Answer, RgbDetail, RgbInputs, RgbSample, parts
from evenkeel.benchmarks.rgb.lenient import Verdict, lenient
from evenkeel.benchmarks.rgb.selection import REFERENCE
from evenkeel.files.package_data import read_json
from evenkeel.text import judge
from evenkeel.text.prompts import user_prompt
from evenkeel.types import Answered, Figure, Request, Response, Score, Summary, Tag, tags_match

REJECTIONS = ("信息不足", "insufficient information")
ERRORS = ("事实性错误", "factual errors")
CHECKS = ("published", "lenient")
Values: TypeAlias = dict[str, float | None]


# Formulas


class Published(Struct, frozen=True):
    """The published labels of one answer: 1 or 0 for each part, or a single -1; 1 for a reported error."""

    label: tuple[int, ...]
    factlabel: int
    noise: float

    @property
    def right(self) -> bool:
        """A rejection at noise 1; otherwise, and at noise 1 as well, every part found."""
        return (self.noise == 1 and self.rejected) or (0 not in self.label and 1 in self.label)

    @property
    def rejected(self) -> bool:
        return self.label == (-1,)

    @property
    def detected(self) -> bool:
        return self.factlabel == 1

    @property
    def corrected(self) -> bool:
        """An error reported and nothing missing: so a rejection after it counts as a correction too."""
        return self.detected and 0 not in self.label


def published_text(prediction: str, lang: str) -> str:
    """The answer as the published script looks at it and stores it: Chinese without spaces."""
    return prediction.replace(" ", "") if lang == "zh" else prediction


def published(prediction: str, answer: Answer, lang: str, noise: float = 0.0) -> Published:
    """Label -1 where a rejection phrase occurs to the letter, else 1 for every part of which an alternative
    occurs in any case, 0 for the others."""
    text = published_text(prediction, lang)
    lower = text.lower()
    label = tuple(int(any(alternative.lower() in lower for alternative in part)) for part in answer)
    if any(phrase in text for phrase in REJECTIONS):
        label = (-1,)
    return Published(label, int(any(phrase in text for phrase in ERRORS)), noise)


def published_rates(results: Sequence[Published], noise: float, *, fact: bool) -> Values:
    """The published result file: all_rate = tt / nums; of counterfactual sets also
    fact_check_rate = fact_tt / nums and correct_rate = correct_tt / fact_tt (0 where nothing was reported).

    Where there is no result the published script divides by zero; here the rates are None.
    """
    nums = len(results)
    tt = sum(result.right for result in results)
    rates: Values = {"all_rate": tt / nums if nums else None, "noise_rate": noise, "tt": tt, "nums": nums}
    if not fact:
        return rates
    fact_tt = sum(result.factlabel for result in results)
    correct_tt = sum(result.corrected for result in results)
    return rates | {
        "fact_check_rate": fact_tt / nums if nums else None,
        "correct_rate": correct_tt / fact_tt if fact_tt else 0,
        "fact_tt": fact_tt,
        "correct_tt": correct_tt,
    }


def kappa(decisions: Iterable[tuple[Hashable, Hashable]]) -> tuple[int, float | None]:
    """How many pairs were decided, and Cohen's kappa of them: (p - e) / (1 - e), with p the share of equal
    decisions and e = Σ over labels of the product of both shares.

    A decision that is None (a verdict that could not be read) leaves its pair out. Where both always decide
    the same one way, chance alone explains it and kappa is None.
    """
    pairs = [(first, second) for first, second in decisions if first is not None and second is not None]
    n = len(pairs)
    share = sum(first == second for first, second in pairs) / max(1, n)
    firsts, seconds = (Counter(pair[side] for pair in pairs) for side in (0, 1))
    chance = sum(firsts[label] * seconds[label] for label in firsts) / max(1, n) ** 2
    return n, (share - chance) / (1 - chance) if n and chance < 1 else None


# Scores per sample. A judge reads the next two docstrings in the schema of its verdict: they are its prompt.


class Rejection(Struct):
    """A judge's verdict on an answer to a question with nothing to find."""

    declines: bool


class Detection(Struct):
    """A judge's verdict on an answer from false documents."""

    reports_an_error: bool


Judged: TypeAlias = judge.Verdict[Rejection] | judge.Verdict[Detection]


def judge_all(
    answered: Iterable[Answered[RgbInputs]],
) -> Generator[Sequence[Request], Sequence[Response], dict[str, Judged]]:
    """Verdicts on rejection and on error detection, by sample."""
    prompts = read_json(__package__, "judge.json", type=dict[str, str])
    judged: dict[str, Judged] = {}
    for kind, name, is_judged in (
        (Rejection, "rejection", is_rejection),
        (Detection, "detection", is_detection),
    ):
        items = [item for item in answered if is_judged(item.sample)]
        questions = [
            user_prompt(prompts[name], QUERY=item.sample.inputs.query, REPLY=item.responses[0].text)
            for item in items
        ]
        verdicts: list[Any] = yield from judge.ask(kind, questions)
        judged |= {item.sample.id: verdict for item, verdict in zip(items, verdicts, strict=True)}
    return judged


def is_rejection(sample: RgbSample) -> bool:
    return sample.tags["ability"] == "rejection"


def is_detection(sample: RgbSample) -> bool:
    """Whether the documents are false; where none were asked for there is nothing to detect."""
    return sample.tags["ability"] == "counterfactual" and sample.inputs.passages > 0


def measure(sample: RgbSample, text: str) -> tuple[Values, RgbDetail]:
    """The values of an answer under both checks.

    The lenient check needs the false answer of a counterfactual question, which the published files of
    predictions do not have.
    """
    inputs, answer, fake = sample.inputs, parts(sample.inputs.answer), parts(sample.inputs.fake)
    labels = published(text, answer, str(sample.tags["lang"]), inputs.noise)
    checks: dict[str, Published | Verdict] = {"published": labels}
    detail = RgbDetail(labels.label, labels.factlabel)
    states_fake: Values = {}
    if sample.tags["ability"] != "counterfactual" or fake:
        checks["lenient"] = verdict = lenient(text, answer, fake=fake, noise=inputs.noise, query=inputs.query)
        detail = msgspec.structs.replace(detail, how=verdict.how)
        states_fake = {"states_fake": verdict.states_fake}
    prefix = "known_" if sample.tags["ability"] == "counterfactual" and not inputs.passages else ""
    values: Values = {f"{prefix}{name}": check.right for name, check in checks.items()}
    if is_rejection(sample):
        values |= {f"rejected_{name}": check.rejected for name, check in checks.items()}
    if is_detection(sample):
        values |= {f"detected_{name}": check.detected for name, check in checks.items()}
        # Correction is a share of the detected errors: a sample without one is outside of it, not wrong.
        values |= {
            f"corrected_{name}": check.corrected if check.detected else None for name, check in checks.items()
        }
        values |= states_fake
    return values, detail


def judge_values(verdict: Judged, values: Values) -> Values:
    """The judge's decision, and whether each check decided the same question the same way."""
    kind = "detected" if "detected_published" in values else "rejected"
    decision = None if verdict.value is None else float(msgspec.structs.astuple(verdict.value)[0])
    result: Values = {"detected_judge" if kind == "detected" else "judge": decision}
    # A request that failed brought no verdict, neither one to be read nor one that could not be.
    result["judge_unparsed"] = None if verdict.status in ("error", "refused") else float(decision is None)
    for check in CHECKS:
        if (ours := values.get(f"{kind}_{check}")) is not None:
            result[f"judge_agrees_{check}"] = None if decision is None else float(ours == decision)
    return result


# The headline: the mean of the abilities, each counted once and at one setting


def headline_settings(samples: Iterable[RgbSample]) -> dict[str, str]:
    """The setting at which each ability enters: the reference, or the nearest to it that was asked."""
    settings: defaultdict[str, dict[float, str]] = defaultdict(dict)
    for sample in samples:
        ability, inputs = str(sample.tags["ability"]), sample.inputs
        if inputs.passages:
            rate = inputs.correct if ability == "counterfactual" else inputs.noise
            settings[ability][rate] = str(sample.tags["setting"])
    return {
        ability: rates[min(rates, key=lambda rate: (round(abs(rate - reference.rate), 9), -rate))]
        for ability, reference in REFERENCE.items()
        if (rates := settings[ability])
    }


def headline_values(tags: Mapping[str, Tag], values: Values, settings: Mapping[str, str]) -> Values:
    """The share of a sample in the headline: the value of each check once more.

    Where nothing but `no documents` was asked, what is known without them is all that there is.
    """
    if settings and settings.get(str(tags["ability"])) != tags["setting"]:
        return {}
    names = {f"macro_{check}": check if settings else f"known_{check}" for check in CHECKS}
    return {macro: values[name] for macro, name in names.items() if name in values}


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


# Figures


def summarise(scores: Sequence[Score]) -> Summary:
    """Shares over questions.

    Detection and correction are rows among the settings: `detected_published/setting=false documents` is
    the row `false documents: error detection` of the check `published`. What is known without documents is
    the row `no documents`.
    """
    by_setting: list[tuple[str, ...]] = [("setting",), ("setting", "lang")]
    success: list[tuple[str, ...]] = [(), ("lang",), ("ability",), ("ability", "lang"), *by_setting]
    for tag in ("noise", "integration_noise", "position"):
        success += [(tag,), (tag, "lang")]
    names = dict.fromkeys(name for score in scores for name in score.values if not name.startswith("macro_"))
    breakdown = {name: success if name in (*CHECKS, "judge") else [(), *by_setting] for name in names}
    summary = _macro_figures(scores)
    for name, figure in stats.summarise(scores, breakdown, units=dict.fromkeys(names, "share")).items():
        metric, scope = stats.scope_of(name)
        kind, _, check = metric.rpartition("_")
        if kind == "detected" and scope:
            scope["setting"] += ": error detection"
        if kind != "corrected":
            summary[stats.scope_name(check, scope) if kind in ("known", "detected") and scope else name] = (
                figure
            )
    return summary | _corrections(scores) | _kappas(scores)


def _corrections(scores: Sequence[Score]) -> Summary:
    """Of the errors that were detected, the share that was corrected: a ratio of two counts."""
    summary: Summary = {}
    langs = dict.fromkeys(str(score.tags["lang"]) for score in scores)
    for check in CHECKS:
        detectable = [score for score in scores if f"corrected_{check}" in score.values]
        settings = dict.fromkeys(str(score.tags["setting"]) for score in detectable)
        scopes: list[dict[str, str]] = [{}] if settings else []
        scopes += [{"setting": setting} for setting in settings]
        scopes += [{"setting": setting, "lang": lang} for setting in settings for lang in langs]
        for scope in scopes:
            members = [score for score in detectable if tags_match(score.tags, scope)]
            figure = stats.ratio(members, f"corrected_{check}", f"detected_{check}", unit="share")
            row = {**scope, "setting": f"{scope['setting']}: error correction"} if scope else {}
            summary[stats.scope_name(check, row) if row else f"corrected_{check}"] = figure
    return summary


def _kappas(scores: Sequence[Score]) -> Summary:
    """Cohen's kappa of the judge with each check, over the verdicts that could be read."""
    summary: Summary = {}
    for check in CHECKS:
        judged = [score for score in scores if f"judge_agrees_{check}" in score.values]
        if not judged:
            continue
        pairs = [
            (score.values[f"detected_{check}"], score.values["detected_judge"])
            if "detected_judge" in score.values
            else (score.values[f"rejected_{check}"], score.values["judge"])
            for score in judged
        ]
        n, value = kappa(pairs)
        interval = stats.Interval(value, None, None, "Cohen's kappa", n, n)
        summary[f"judge_kappa_{check}"] = stats.figure(
            judged, f"judge_agrees_{check}", interval, unit="agreement"
        )
    return summary

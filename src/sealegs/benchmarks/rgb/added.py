"""What RGB adds to the published labels: scores by the lenient check and the judge, the headline, and figures
with their intervals."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from msgspec.structs import replace

from sealegs import analysis as stats
from sealegs.analysis import combined
from sealegs.analysis.figures import changes, scopes
from sealegs.analysis.links import group_of, independent_groups, numbered
from sealegs.analysis.repeats import Repeated, repeat_figures
from sealegs.benchmarks.rgb.check.lenient import CheckVerdict, lenient
from sealegs.benchmarks.rgb.data import RgbDetail, RgbSample
from sealegs.benchmarks.rgb.metrics import METRICS
from sealegs.benchmarks.rgb.page import LINKED
from sealegs.benchmarks.rgb.published import Published, Values, published
from sealegs.benchmarks.rgb.selection import REFERENCE, Ability, Setting
from sealegs.page.metrics import unit_of
from sealegs.text.answer_search.mention import parts
from sealegs.types import Figure, Response, Score, Summary, Tag

if TYPE_CHECKING:
    from sealegs.benchmarks.rgb.judging import Judgement

CHECKS = ("published", "lenient")
JUDGES = (*CHECKS, "judge")
NOISE_TAGS = ("noise", "integration_noise")
REPEAT = re.compile(r"-repeat\d+$")
"""Ends the id of a further answer to a prompt."""
DECIDED = ("detected", "false_alarms", "rejected")
"""What a check, and a judge, decides about an answer beside its being right."""


# Scores per sample, by each check and the judge


def is_rejection(sample: RgbSample) -> bool:
    return sample.tags["ability"] == "rejection"


def is_detection(sample: RgbSample) -> bool:
    """Whether documents of a counterfactual set are asked about; without any there is nothing to detect, nor
    where nothing shows that they are false."""
    counterfactual = sample.inputs.passages > 0 and sample.tags["ability"] == "counterfactual"
    return counterfactual and not is_unknowable(sample)


def is_unknowable(sample: RgbSample) -> bool:
    """Whether all that a model can know of the answer is false: the documents are a user's own, which no
    model can have read, and none of those it is given is true."""
    return sample.inputs.private and has_false_document(sample) and not holds_answer(sample)


def setting_of(sample: RgbSample) -> Setting:
    ability, inputs = sample.tags["ability"], sample.inputs
    return Setting(cast(Ability, ability), inputs.noise, inputs.passages, inputs.correct)


def has_false_document(sample: RgbSample) -> bool:
    """Recorded answers do not say of which kind their documents are: there the rates decide."""
    inputs, setting = sample.inputs, setting_of(sample)
    if inputs.kinds or not inputs.docs:
        return "wrong" in inputs.kinds
    return setting.ability == "counterfactual" and setting.false_documents > 0


def holds_answer(sample: RgbSample) -> bool:
    """Whether the documents hold the right answer. Of recorded answers the rates decide."""
    inputs, setting = sample.inputs, setting_of(sample)
    if inputs.kinds or not inputs.docs:
        return "positive" in inputs.kinds
    match setting.ability:
        case "integration":
            return True
        case "counterfactual":
            return setting.correct > 0
        case _:
            return setting.noise < 1


def lenient_verdict(sample: RgbSample, text: str) -> CheckVerdict | None:
    """The lenient check of an answer; None for a counterfactual question without its false answer."""
    inputs, fake = sample.inputs, parts(sample.inputs.fake)
    if sample.tags["ability"] == "counterfactual" and not fake:
        return None
    # An integration question has its documents at every rate: there is always something to find.
    noise = 0.0 if sample.tags["ability"] == "integration" else inputs.noise
    return lenient(text, parts(inputs.answer), fake=fake, noise=noise, query=inputs.query)


def measure(sample: RgbSample, response: Response) -> tuple[Values, RgbDetail]:
    """The values of an answer under both checks.

    The lenient check needs the false answer of a counterfactual question, which the published files of
    predictions do not have.
    """
    inputs, answer = sample.inputs, parts(sample.inputs.answer)
    labels = published(response.text, answer, str(sample.tags["lang"]), inputs.noise)
    checks: dict[str, Published | CheckVerdict] = {"published": labels}
    detail = RgbDetail(labels.label, labels.factlabel)
    verdict = lenient_verdict(sample, response.text)
    if verdict is not None:
        checks["lenient"] = verdict
    prefix = "known_" if setting_of(sample).closed_book else ""
    if is_unknowable(sample):
        return ({"states_fake": verdict.states_fake} if verdict else {}), detail
    values: Values = {f"{prefix}{name}": check.right for name, check in checks.items()}
    if is_rejection(sample):
        values |= {f"rejected_{name}": check.rejected for name, check in checks.items()}
    if is_detection(sample):
        reported = "detected" if has_false_document(sample) else "false_alarms"
        values |= {f"{reported}_{name}": check.detected for name, check in checks.items()}
    if is_detection(sample) and has_false_document(sample):
        # Correction is a share of the detected errors: a sample without one is outside of it, not wrong.
        values |= {
            f"corrected_{name}": check.corrected if check.detected else None for name, check in checks.items()
        }
        if verdict is not None:
            values["states_fake"] = verdict.states_fake
    if verdict is not None:
        values |= outcomes(sample, verdict, cut_off=response.status == "truncated")
    return values, detail


def outcomes(sample: RgbSample, verdict: CheckVerdict, *, cut_off: bool) -> Values:
    """What became of an answer, by the lenient check: one of the outcomes is 1, the others are 0.

    Where the documents hold the answer: right, else declined, else cut off before it said either, else wrong;
    and right minus wrong, as CRAG scores (Yang and others, 2024), +100 for right, −100 for wrong, 0 for
    declined and cut off. Where they do not: declined (which is `rejected_lenient`), else the right answer
    from memory, else cut off, else invented.
    """
    if holds_answer(sample):
        order = {"right": verdict.right, "declined": verdict.rejected, "cut_off": cut_off, "wrong": True}
        outcome = next(name for name, applies in order.items() if applies)
        values: Values = {f"outcome_{name}": float(name == outcome) for name in order}
        values["right_minus_wrong"] = {"right": 100.0, "wrong": -100.0}.get(outcome, 0.0)
        return values
    if is_rejection(sample):
        known = bool(sample.inputs.answer) and verdict.given
        order = {"from_memory": known, "cut_off": cut_off, "invented": True}
        outcome = "" if verdict.rejected else next(name for name, applies in order.items() if applies)
        return {f"no_answer_{name}": float(name == outcome) for name in order}
    return {}


def empty_reply(score: Score, measured: Values) -> Score:
    """The score of an empty reply that was recorded: the published scripts take it for an answer that has no
    part of the right one. The lenient check, which reads words, has none to read."""
    values = {
        name: float(value) if name.endswith("published") and value is not None else None
        for name, value in measured.items()
    }
    return replace(score, values=values, statuses={"ok": 1}, answered=1, failures=())


def judge_values(verdict: Judgement, values: Values, labels: Published) -> Values:
    """The judge's decision; a correction is, as published, a detection that the judge saw and an answer whose
    label has every part."""
    kind = next(kind for kind in DECIDED if f"{kind}_published" in values)
    decision = None if verdict.decision is None else float(verdict.decision)
    result: Values = {f"{kind}_judge": decision}
    if kind == "detected":
        result["corrected_judge"] = float(labels.found) if decision else None
    # A request that failed brought no verdict, neither one to be read nor one that could not be.
    result["judge_unparsed"] = None if verdict.status in ("error", "refused") else float(decision is None)
    return result


# The headline: the mean of the abilities, each counted once and at one setting


def headline_settings(samples: Iterable[RgbSample]) -> dict[str, str]:
    """The setting at which each ability enters: the reference, or the nearest to it that was asked."""
    asked = dict.fromkeys(setting_of(sample) for sample in samples if not is_unknowable(sample))
    return {
        ability: min(settings, key=lambda s: (s.distance(reference), -s.noise, -s.correct)).name
        for ability, reference in REFERENCE.items()
        if (settings := [s for s in asked if s.ability == ability and not s.closed_book])
    }


def headline_values(tags: Mapping[str, Tag], values: Values, settings: Mapping[str, str]) -> Values:
    """The share of a sample in the headline: the value of each check once more.

    Where nothing but `no documents` was asked, what is known without them is all that there is.
    """
    if settings and settings.get(str(tags["ability"])) != tags["setting"]:
        return {}
    names = {f"macro_{check}": check if settings else f"known_{check}" for check in CHECKS}
    return {macro: values[name] for macro, name in names.items() if name in values}


# Figures: from the values of samples to a summary


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
        reason = f"{reason} {', '.join(lost)}" if lost else stats.NOTHING
        interval = stats.Interval.unknown(reason, len(known), independent_groups(groups))
    else:
        terms = combined.macro_terms([value for _, value in known], groups, answered)
        interval = combined.interval(terms, "share")
        if len(terms) > 1 and interval.method:
            over = f" over {LINKED}" if numbered(groups)[1] else ""
            interval = interval._replace(method=f"mean of {len(terms)} abilities{over}: {interval.method}")
    statuses: Counter[str] = Counter()
    for score in asked:
        statuses.update(score.statuses)
    coverage = sum(score.answered for score in asked) / max(1, statuses.total())
    return Figure(coverage=coverage, statuses=dict(statuses), unit="share", **interval._asdict())


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

"""RGB's scores of an answer: the published formulas first, then the lenient check and the judge."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast

from msgspec import Struct
from msgspec.structs import replace

from evenkeel.benchmarks.rgb.check.lenient import Verdict, lenient
from evenkeel.benchmarks.rgb.files import RgbDetail, RgbSample
from evenkeel.benchmarks.rgb.selection import REFERENCE, Ability, Setting
from evenkeel.text.answer_search.mention import Answer, parts
from evenkeel.types import Response, Score, Tag

if TYPE_CHECKING:
    from evenkeel.benchmarks.rgb.judging import Judgement

REJECTIONS = ("信息不足", "insufficient information")
ERRORS = ("事实性错误", "factual errors")
CHECKS = ("published", "lenient")
DECIDED = ("detected", "false_alarms", "rejected")
"""What a check, and a judge, decides about an answer beside its being right."""
Values: TypeAlias = dict[str, float | None]


# Published: labels of an answer, and rates over answers


class Published(Struct, frozen=True):
    """The published labels of one answer: 1 or 0 for each part, or a single -1; 1 for a reported error."""

    label: tuple[int, ...]
    factlabel: int
    noise: float

    @property
    def right(self) -> bool:
        """A rejection at noise 1; otherwise, and at noise 1 as well, every part found."""
        return (self.noise == 1 and self.rejected) or self.found

    @property
    def found(self) -> bool:
        """Every part found, and no rejection."""
        return 0 not in self.label and 1 in self.label

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


class PublishedMatches(NamedTuple):
    """What the published check finds in an answer."""

    parts: tuple[str | None, ...]
    """Of each part, the first alternative that occurs."""
    rejection: str | None
    """The phrase of a rejection."""
    error: str | None
    """The phrase that reports an error."""


def published_matches(prediction: str, answer: Answer, lang: str) -> PublishedMatches:
    """Alternatives occur in any case, phrases to the letter."""
    text = published_text(prediction, lang)
    lower = text.lower()
    return PublishedMatches(
        tuple(next((text for text in part if text.lower() in lower), None) for part in answer),
        next((phrase for phrase in REJECTIONS if phrase in text), None),
        next((phrase for phrase in ERRORS if phrase in text), None),
    )


def published(prediction: str, answer: Answer, lang: str, noise: float = 0.0) -> Published:
    """Label -1 where a rejection phrase occurs to the letter, else 1 for every part of which an alternative
    occurs in any case, 0 for the others."""
    matches = published_matches(prediction, answer, lang)
    label = tuple(int(part is not None) for part in matches.parts)
    return Published((-1,) if matches.rejection else label, int(matches.error is not None), noise)


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


def judged_rates(results: Sequence[tuple[Published, bool]], noise: float, *, fact: bool) -> Values:
    """The published result file of judged answers, each with whether the judge's verdict is yes:
    reject_rate = rejecttt / nums is Rej*, or ED* of a counterfactual set, whose correct_rate = correct_tt /
    rejecttt is CR: of the detections that the judge saw, those whose label has every part (0 without any).

    all_rate counts labels alone, so that at noise 1 a rejection does not count, unlike in `published_rates`.
    """
    nums, rejecttt = len(results), sum(verdict for _, verdict in results)
    tt = sum(result.found for result, _ in results)
    correct_tt = sum(result.found and verdict for result, verdict in results)
    rates: Values = {
        "reject_rate": rejecttt / nums if nums else None,
        "all_rate": tt / nums if nums else None,
    }
    if not fact:
        return rates | {"tt": tt, "rejecttt": rejecttt, "nums": nums}
    return rates | {
        "correct_rate": correct_tt / rejecttt if rejecttt else 0,
        "tt": tt,
        "rejecttt": rejecttt,
        "correct_tt": correct_tt,
        "nums": nums,
        "noise_rate": noise,
    }


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


def lenient_verdict(sample: RgbSample, text: str) -> Verdict | None:
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
    checks: dict[str, Published | Verdict] = {"published": labels}
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


def outcomes(sample: RgbSample, verdict: Verdict, *, cut_off: bool) -> Values:
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
        order = {"from_memory": verdict.given, "cut_off": cut_off, "invented": True}
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

"""RGB's published formulas (Chen, Lin, Han and Sun, AAAI 2024), to the letter: labels of an answer, and rates
over answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from sealegs.text.answer_search.mention import Answer

REJECTIONS = ("信息不足", "insufficient information")
ERRORS = ("事实性错误", "factual errors")
Values: TypeAlias = dict[str, float | None]


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

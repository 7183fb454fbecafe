"""What a model's answer is worth: by the published check, and by a lenient one, from the same text.

Both are pure functions from a text to labels; a third opinion, a judge's, comes from elsewhere, and
`agreement` tells how far any two go together.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from msgspec import Struct

from evenkeel.benchmarks.rgb import lenient as matching
from evenkeel.benchmarks.rgb import phrases as said
from evenkeel.benchmarks.rgb.files import Answer
from evenkeel.benchmarks.rgb.wording import Word, plain, words

# --- published --------------------------------------------------------------------------------------

REJECTIONS = ("信息不足", "insufficient information")
ERRORS = ("事实性错误", "factual errors")


class Published(Struct, frozen=True):
    """The published labels of one answer: 1 or 0 for each part, or a single -1; 1 for a reported error."""

    label: tuple[int, ...]
    factlabel: int

    def right(self, noise: float) -> bool:
        """A rejection at noise 1; otherwise, and at noise 1 as well, every part found."""
        return (noise == 1 and self.rejected) or (0 not in self.label and 1 in self.label)

    @property
    def rejected(self) -> bool:
        return self.label == (-1,)

    @property
    def corrected(self) -> bool:
        """An error reported and nothing missing: so a rejection after it counts as a correction too."""
        return self.factlabel == 1 and 0 not in self.label


def published_text(prediction: str, lang: str) -> str:
    """The answer as the published script looks at it and stores it: Chinese without spaces."""
    return prediction.replace(" ", "") if lang == "zh" else prediction


def published(prediction: str, answer: Answer, lang: str) -> Published:
    """Label -1 where a rejection phrase occurs to the letter, else 1 for every part of which an alternative
    occurs in any case, 0 for the others."""
    text = published_text(prediction, lang)
    lower = text.lower()
    label = tuple(int(any(alternative.lower() in lower for alternative in part)) for part in answer)
    if any(phrase in text for phrase in REJECTIONS):
        label = (-1,)
    return Published(label, int(any(phrase in text for phrase in ERRORS)))


def published_rates(
    results: Iterable[Published], noise: float, *, fact: bool
) -> dict[str, int | float | None]:
    """The published result file: all_rate = tt / nums; of counterfactual sets also
    fact_check_rate = fact_tt / nums and correct_rate = correct_tt / fact_tt (0 where nothing was reported).

    Where there is no result the published script divides by zero; here the rates are None.
    """
    listed = list(results)
    nums = len(listed)
    tt = sum(result.right(noise) for result in listed)
    rates = {"all_rate": tt / nums if nums else None, "noise_rate": noise, "tt": tt, "nums": nums}
    if not fact:
        return rates
    fact_tt = sum(result.factlabel for result in listed)
    correct_tt = sum(result.corrected for result in listed)
    return rates | {
        "fact_check_rate": fact_tt / nums if nums else None,
        "correct_rate": correct_tt / fact_tt if fact_tt else 0,
        "fact_tt": fact_tt,
        "correct_tt": correct_tt,
    }


LONGEST = 20_000
"""Characters of an answer that the lenient check reads: more is a model that does not stop."""


def _ends(text: str) -> str:
    half = LONGEST // 2
    return text if len(text) <= LONGEST else f"{text[:half]}\n{text[-half:]}"


# --- lenient ----------------------------------------------------------------------------------------


class Verdict(Struct, frozen=True):
    """What the lenient check makes of one answer."""

    parts: tuple[int, ...]
    """1 for every part of the right answer that is given, 0 for the others."""
    right: bool
    """All parts are given; at noise 1, where no document has the answer: it was rejected."""
    rejected: bool
    """It says that the documents do not answer the question."""
    detected: bool
    """It says that the documents are in error."""
    states_fake: bool
    """It names the false answer too, if only to report it."""
    how: str
    """What decided: words, overlap, strong rejection, weak rejection, false answer, not found."""

    @property
    def corrected(self) -> bool:
        """An error was reported and the right answer given."""
        return self.detected and self.right and all(self.parts)


def lenient(
    prediction: str, answer: Answer, *, fake: Answer = (), noise: float = 0.0, query: str = ""
) -> Verdict:
    """What a careful reader would say.

    The answer is sought in the whole text, except that after a strong rejection only what follows a
    "however" counts. A weak rejection ("the documents do not mention it") counts in the opening sentence
    and where no answer is given, right, false or guessed. A weak report of an error ("inconsistent") counts
    unless the false answer is given and the right one is not. Of a text without end, its two ends are read.
    With the question it can tell a denied answer ("Ada did not win") from one of whom something else is.
    """
    text = _ends(plain(_ends(prediction)))  # a character may unfold to many
    hits = said.rejections(text)
    strong = next((hit for hit in reversed(hits) if hit.strong), None)
    whole = words(text)
    counted = words(said.after_turn(text[strong.end :])) if strong else whole
    ways = [_given(part, counted, fake, query) for part in answer]
    states_fake = bool(fake) and all(_given(part, whole, answer, query, inside=True) for part in fake)
    misled = states_fake and _settles_for_fake(text, answer, fake, query)
    right = all(ways) and not misled
    weak = (
        not any(ways)
        and not states_fake
        and any(hit.sentence <= said.opening(text) for hit in hits)
        and not said.guesses(text, hits)
    )
    rejected = strong is not None or weak
    errors = said.errors(text)
    return Verdict(
        parts=tuple(int(bool(way)) for way in ways),
        right=rejected if noise == 1 else right,
        rejected=rejected,
        detected=any(hit.strong or right or not states_fake for hit in errors),
        states_fake=states_fake,
        how=_how(ways, right=right, misled=misled, strong=strong is not None, weak=weak),
    )


def _how(ways: Sequence[str], *, right: bool, misled: bool, strong: bool, weak: bool) -> str:
    if right:
        return "overlap" if "overlap" in ways else "words"
    if misled:
        return "false answer"
    return "strong rejection" if strong else "weak rejection" if weak else "not found"


def _settles_for_fake(text: str, answer: Answer, fake: Answer, query: str) -> bool:
    """Whether what is called the answer is the false one and not the right one, though both are named."""
    settled = words(said.given_as_answer(text))
    return all(_given(part, settled, answer, query, inside=True) for part in fake) and not all(
        _given(part, settled, fake, query) for part in answer
    )


def _given(
    part: Iterable[str], spoken: Sequence[Word], rivals: Answer, query: str, *, inside: bool = False
) -> str:
    """How an alternative of a part is given, or nothing.

    What is a mention of a rival is none of the part: "Palm Springs" does not give "Springs". With `inside`
    that holds for an equal rival as well: what is right is never taken for the false answer.
    """
    for alternative in part:
        own = _target(alternative, query)
        masking = [
            rival
            for rival in (_target(text, query) for other in rivals for text in other)
            if own.joined in rival.joined and (inside or own.joined != rival.joined)
        ]
        if way := matching.found(own, matching.without(masking, spoken)):
            return way
    return ""


@lru_cache(maxsize=4096)
def _target(alternative: str, query: str) -> matching.Target:
    return matching.target(alternative, query)


# --- agreement --------------------------------------------------------------------------------------


class Agreement(NamedTuple):
    """How far two checks go together over the answers that both decided."""

    n: int
    share: float | None
    """Of equal decisions."""
    kappa: float | None
    """Cohen's; None where both always decide the same one way, so that chance alone explains it."""


def agreement(first: Sequence[Hashable], second: Sequence[Hashable]) -> Agreement:
    """share p = equal / n; kappa = (p - e) / (1 - e), e = Σ over labels of the product of both shares.

    A decision that is None (a verdict that could not be read) leaves its pair out.
    """
    pairs = [(a, b) for a, b in zip(first, second, strict=True) if a is not None and b is not None]
    n = len(pairs)
    if not n:
        return Agreement(0, None, None)
    share = sum(a == b for a, b in pairs) / n
    ours, theirs = [a for a, _ in pairs], [b for _, b in pairs]
    chance = sum(ours.count(label) * theirs.count(label) for label in set(ours)) / n**2
    return Agreement(n, share, (share - chance) / (1 - chance) if chance < 1 else None)

"""What the tokenizer costs: the probability of a target as a string beside that of its own tokens."""

from __future__ import annotations

import math
from collections import Counter

import msgspec

from sealegs.benchmarks.miron.data import MironInputs
from sealegs.benchmarks.miron.metrics import STRINGS, TARGET_BYTES
from sealegs.page.layout import Note
from sealegs.types import Answered, Response, Score, StringLikelihood, StringProbability, Summary

KNOWN = 0.001
"""Bits: bounds that are no farther apart are one value."""
PART = "strings"
"""What the requests are called among the parts of a score."""

NAMES = frozenset(metric.name for metric in STRINGS)


def requests(inputs: MironInputs) -> list[StringLikelihood]:
    """One for an example; results that were recorded elsewhere have none."""
    if inputs.published is not None:
        return []
    return [StringLikelihood(prefix=inputs.prefix, continuation=inputs.target, repeat=inputs.repeat)]


def with_strings(score: Score, item: Answered[MironInputs]) -> Score:
    """The score of an example, with what the probability of its target as a string adds."""
    strings = [
        response
        for request, response in zip(item.requests, item.responses, strict=True)
        if isinstance(request, StringLikelihood)
    ]
    for response in strings:
        parts = {**score.parts, PART: response.status}
        score = msgspec.structs.replace(
            score,
            values={**score.values, **values_of(response, item.sample.inputs.target)},
            parts=parts,
            statuses=Counter(parts.values()),
            answered=score.answered + (response.string is not None),
        )
    return score


def values_of(response: Response, target: str) -> dict[str, float | None]:
    """The figures of one target. None is a figure that is not known; one that does not apply is left out."""
    string = response.string
    size = float(len(target.encode()))
    if string is None:
        return {**dict.fromkeys(NAMES), TARGET_BYTES: size}
    values: dict[str, float | None] = {
        TARGET_BYTES: size,
        "string_bits_per_byte": -string.low / math.log(2) / size,
        "strings_known": float(is_known(string)),
    }
    if string.own is not None:  # tokens that merge across the boundary are no tokens of the target alone
        values["tokenizer_cost"] = bits(string.own, string.low)
    if string.healed_low is not None:
        values["boundary_cost"] = boundary_cost(string)
    return values


def bits(canonical: float, string: float) -> float:
    """log₂ P(string) − log₂ P(its own tokens), never negative: its own tokens are part of the sum."""
    return max(0.0, (string - canonical) / math.log(2))


def boundary_cost(string: StringProbability) -> float | None:
    """log₂ P(string | the prefix as text) − log₂ P(string | the prefix's tokens); None where the bounds leave
    it open.

    Above 0 where the text is likelier to go on so than the tokens let the model see; below 0 where the last
    token's end tells the model that a word is over.
    """
    if string.healed_low is None or not is_known(string):
        return None
    return (string.healed_low - string.low) / math.log(2)


def is_known(string: StringProbability) -> bool:
    """Whether the bounds of both probabilities are as good as equal."""
    widths = [string.high - string.low]
    if string.healed_low is not None and string.healed_high is not None:
        widths.append(string.healed_high - string.healed_low)
    return max(widths) <= KNOWN * math.log(2)


def notes(summary: Summary) -> list[Note]:
    """How many targets have bounds in place of a value."""
    known = summary.get("strings_known")
    if known is None or known.value is None or known.value == 1:
        return []
    text = (
        f"The probability as a string is known only within bounds for {round((1 - known.value) * known.n)} "
        f"of {known.n} targets, which have more token sequences than are followed: what other tokens cost is "
        "at least the figure shown."
    )
    return [Note(text, warning=True)]

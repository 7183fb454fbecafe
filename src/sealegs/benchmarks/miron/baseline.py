"""What MIRON's scores are worth: a continuation that is copied from the prefix, without a model."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from sealegs.benchmarks.miron.data import MironInputs
from sealegs.page.format import interval_words, no_interval, number
from sealegs.types import Sample, Summary

WORD = re.compile(r"\w(?:\S*\w)?")
"""A word without the punctuation around it."""
MOST_WORDS = 500
"""Words at the end of a prefix that are looked at: the time is linear in their number."""


def with_baseline(samples: Sequence[Sample[MironInputs]]) -> list[Sample[MironInputs]]:
    """The samples of a data set, each with its baseline."""
    prefixes: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for sample in samples:
        prefixes[str(sample.tags["lang"])].update(set(words_of(sample.inputs.prefix)))
    return [
        replace(
            sample, inputs=replace(sample.inputs, baseline=copied(sample, prefixes[str(sample.tags["lang"])]))
        )
        for sample in samples
    ]


def words_of(prefix: str) -> list[str]:
    return WORD.findall(prefix)[-MOST_WORDS:]


def copied(sample: Sample[MironInputs], prefixes: Mapping[str, int]) -> str:
    """The word of the prefix that the fewest prefixes of the data have, the last of several; it does not see
    the target. Written as targets are: with a space before it where the target has one."""
    words = words_of(sample.inputs.prefix)
    if not words:
        return ""
    last = len(words) - 1
    index = min(range(len(words)), key=lambda index: (prefixes[words[index]], last - index))
    return f" {words[index]}" if sample.inputs.target[:1].isspace() else words[index]


def against_copying(summary: Summary) -> list[str]:
    """What separates a model from one that copies a word of the prefix, which the score alone does not: in
    Russian Morphology most of its points are for the stem.

    `Better than repeating a word of the prompt: 34.0 on the scale from there (0) to all right (100), …`
    """
    rescaled, exact = summary.get("rescaled_score"), summary.get("exact_match")
    if rescaled is None or rescaled.value is None or exact is None or exact.value is None:
        return []
    outcome = "No significant difference from repeating a word of the prompt"
    if rescaled.low is not None and rescaled.low > 0:
        outcome = "Better than repeating a word of the prompt"
    elif rescaled.high is not None and rescaled.high < 0:
        outcome = "Worse than repeating a word of the prompt"
    elif no_interval(rescaled):
        outcome = "Compared with repeating a word of the prompt"
    place = f"{number(rescaled.value, 'points')} on the scale from there (0) to all right (100)"
    exactly = f"{number(exact.value, 'share')} of continuations are the target, letter for letter"
    return [f"{outcome}: {place}, {interval_words(rescaled)}.", f"{exactly} ({interval_words(exact)})."]

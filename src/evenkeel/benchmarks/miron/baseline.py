"""What MIRON's scores are worth: a continuation that is copied from the prefix, without a model."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from evenkeel.benchmarks.miron.files import MironInputs
from evenkeel.types import Sample

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

"""What MIRON's scores are worth: continuations that are made from the data alone, without a model."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from evenkeel.benchmarks.miron.files import Baselines, MironInputs
from evenkeel.types import Sample

WORD = re.compile(r"\w(?:\S*\w)?")
"""A word without the punctuation around it."""
MOST_WORDS = 500
"""Words at the end of a prefix that are looked at: the time is linear in their number."""
LONGEST_TARGET = 1000
"""Characters of a target, beyond which the closest words are not searched for."""

Examples = Sequence[Sample[MironInputs]]


def with_baselines(samples: Examples) -> list[Sample[MironInputs]]:
    """The samples of a data set, each with its baselines."""
    rare, majority = rarity(samples), majorities(samples)
    return [
        replace(
            sample,
            inputs=replace(
                sample.inputs,
                baselines=Baselines(
                    copy=copied(sample, rare[str(sample.tags["lang"])]),
                    closest_copy=closest_copy(sample.inputs.prefix, sample.inputs.target),
                    majority=majority.get(sample.id, ""),
                ),
            ),
        )
        for sample in samples
    ]


def words_of(prefix: str) -> list[str]:
    return WORD.findall(prefix)[-MOST_WORDS:]


def rarity(samples: Examples) -> dict[str, Counter[str]]:
    """For each language, in how many prefixes a word occurs."""
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for sample in samples:
        counts[str(sample.tags["lang"])].update(set(words_of(sample.inputs.prefix)))
    return counts


def copied(sample: Sample[MironInputs], prefixes: Mapping[str, int]) -> str:
    """The word of the prefix that the fewest prefixes of the data have, the last of several; it does not see
    the target. Written as targets are: with a space before it where the target has one."""
    words = words_of(sample.inputs.prefix)
    if not words:
        return ""
    last = len(words) - 1
    index = min(range(len(words)), key=lambda index: (prefixes[words[index]], last - index))
    return _spaced(words[index], sample.inputs.target)


def closest_copy(prefix: str, target: str) -> str:
    """The words of the prefix that are closest to the target, as many as it has: the most that copying could
    reach, since it sees the target to choose."""
    from rapidfuzz.distance import Levenshtein

    words, count = words_of(prefix), len(target.split())
    if not words or len(target) > LONGEST_TARGET:
        return ""
    windows = range(max(1, len(words) - count + 1))
    texts = [_spaced(" ".join(words[start : start + count]), target) for start in windows]
    return max(texts, key=lambda text: Levenshtein.normalized_similarity(text, target))


def _spaced(text: str, target: str) -> str:
    return f" {text}" if target[:1].isspace() else text


def majorities(samples: Examples) -> dict[str, str]:
    """For each sample, the most frequent target of the other groups: of its kind, category and language, or
    of its category and language where its kind is in no other group."""
    by_kind = _Pools((sample, (*_stratum(sample), sample.inputs.kind)) for sample in samples)
    by_category = _Pools((sample, _stratum(sample)) for sample in samples)
    return {sample.id: by_kind.most(sample) or by_category.most(sample) for sample in samples}


def _stratum(sample: Sample[MironInputs]) -> tuple[str, ...]:
    return str(sample.tags["lang"]), sample.inputs.category


class _Pools:
    """How often each target occurs in a pool of samples, the most frequent first, then by its characters."""

    def __init__(self, members: Iterable[tuple[Sample[MironInputs], tuple[str, ...]]]) -> None:
        self._pool_of: dict[str, tuple[str, ...]] = {}
        self._of_group: defaultdict[tuple[tuple[str, ...], str], Counter[str]] = defaultdict(Counter)
        counts: defaultdict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
        for sample, pool in members:
            self._pool_of[sample.id] = pool
            self._of_group[pool, sample.group][sample.inputs.target] += 1
            counts[pool][sample.inputs.target] += 1
        self._ordered = {
            pool: sorted(targets.items(), key=lambda item: (-item[1], item[0]))
            for pool, targets in counts.items()
        }

    def most(self, sample: Sample[MironInputs]) -> str:
        """The most frequent target without those of the sample's own group; empty where there is no other."""
        pool = self._pool_of[sample.id]
        excluded, best, most = self._of_group[pool, sample.group], "", 0
        for target, count in self._ordered[pool]:
            if count <= most:
                break
            if count - excluded[target] > most:
                best, most = target, count - excluded[target]
        return best

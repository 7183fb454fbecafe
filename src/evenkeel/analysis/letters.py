"""Which runs do not differ significantly, as letters that they share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def group_letters(ranked: Sequence[str], different: Iterable[tuple[str, str]]) -> dict[str, str]:
    """A letter for each largest set of runs of which no two differ significantly (Piepho 2004).

    All begin in one set. A pair that differs splits every set that has both; a set within another is dropped.
    """
    sets = [frozenset(ranked)]
    for pair in different:
        split = [
            part
            for members in sets
            for part in ([members - {name} for name in pair] if members.issuperset(pair) else [members])
        ]
        sets = [part for part in dict.fromkeys(split) if not any(part < other for other in split)]
    sets.sort(key=lambda members: [name not in members for name in ranked])
    return {name: "".join(_letter(i) for i, each in enumerate(sets) if name in each) for name in ranked}


def _letter(index: int) -> str:
    return chr(ord("a") + index % 26) + "'" * (index // 26)

"""The rules of a package's `rules.json` as patterns of letters.

A rule is a row of classes as `wording` names them, a/b for one of two, between `begin` and `end` of a clause
where it says so; `any*5` is up to five tokens that are no negation, and the other groups are counted in the
same way.
"""

from __future__ import annotations

import re
from functools import cache

from sealegs.files.package_data import read_json
from sealegs.text.answer_check.lexicon import LETTERS

CLASSES = LETTERS | {
    "stating": "cZ",
    "telling": "c",
    "meta": "mV",
    "right": "G",
    "false": "K",
    "asked": "Q",
    "asked_for": "J",
    "asked_kind": "H",
    "other_kind": "O",
    "name": "M",
    "number": "#",
    "comma": ",",
}
GROUPS = {
    "any": "[^nY~]",
    "neutral": "[^nY~GKM]",
    "plain": "[^nY~GKMeyXT]",
    "own": "[^nY~GKMd]",
    "quiet": "[^nY~GdeyXc]",
    "small": "[ImVxBjpwOS]",
    "opening": "[IbxmVrHJpBiwaTS]",
    "modifier": "[IxBmVjQwH#]",
    "aside": "[^ndKf]",
    "value": "[IMKGx#wB]",
    "leading": "[IbgxmVrtS]",
    "leading_on": "[IxmVBQHJjr]",
    "giving": "[xmBjTahtrQ]",
    "saying": "[IxmVBQHJjrTtahguw]",
    "naming": "[IQHJxmV]",
    "reaching": "[^nvle]",
    "unknowing": "[^nkcsaiHJd]",
    "no_right": "[^nGde]",
    "others": "[^npGY~]",
    "on_topic": "[^nY~wMOlvuL]",
    "story": "[^ndpqaiJZ]",
    "subject": "[IxmVrQH#ickBh]",
}
"""Groups of classes that may be between those of a rule."""


class Rules:
    """The rules of a package, by tier."""

    def __init__(self, package: str) -> None:
        self._package = package

    def find(self, tier: str, letters: str) -> re.Match[str] | None:
        """The first place where a rule of a tier holds."""
        return _pattern(self._package, tier).search(letters)


@cache
def _pattern(package: str, tier: str) -> re.Pattern[str]:
    """The rules of a tier as one pattern of letters."""
    tiers = read_json(package, "rules.json", type=dict[str, tuple[str, ...]])
    return re.compile("|".join(map(_rule, tiers[tier])))


def _rule(rule: str) -> str:
    parts = []
    for item in rule.split():
        names, _, most = item.partition("*")
        if names in ("begin", "end"):
            parts.append("^" if names == "begin" else "$")
            continue
        group = GROUPS.get(names)
        if group is None:
            letters = [CLASSES[name] for name in names.split("/") if name != "end"]
            group = f"[{''.join(map(re.escape, letters))}]"
            group = f"(?:{group}|$)" if "end" in names.split("/") else group
        parts.append(f"{group}{{0,{most}}}" if most else group)
    return "".join(parts)

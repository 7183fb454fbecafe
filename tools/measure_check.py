"""Print how often RGB's lenient check is right on the labelled replies: the tables of docs/rgb.md.

python tools/measure_check.py
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from rgb_labelled import LANGUAGES, Part, as_replies, labelled, table

PARTS: dict[Part, str] = {
    "heldout": "replies held out",
    "natural": "replies that no rule was changed by",
    "fresh": "fresh replies",
    "plain": "plain right answers",
    "plain_other": "declines, reports, wrong and denied answers",
    "real": "replies of a real model",
}
SEED = 31
"""Of a starter set whose errors nobody read while the rules were written."""


def main() -> None:
    for part, title in PARTS.items():
        counts = ", ".join(f"{len(labelled(lang, part))} {name}" for lang, name in LANGUAGES.items())
        print(f"{title} ({counts})\n", *table(LANGUAGES, part), "", sep="\n")
    for lang, name in LANGUAGES.items():
        print(f"documents of a starter set in place of replies, {name}: {as_replies(lang, seed=SEED)}")


if __name__ == "__main__":
    main()

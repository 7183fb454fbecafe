"""How often do the intervals hold the truth? Samples of known truth are drawn again and again.

How often the 95 % intervals of the benchmarks' headlines hold the truth of known models; coverage of
intervals and their mean width by design and number of groups, how often equal models are said to differ,
the power at the minimum detectable difference.

    python benchmarks/intervals.py [--draws 2000] [--only headlines] [--only WORDS]
    python benchmarks/intervals.py --write    # all of them, and writes docs/tables/intervals.md: hours
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from designs import Design, designs, false_alarms, power, simulate
from headlines import SIZES, Held, coverage, headlines

PAGE = Path(__file__).parents[1] / "docs" / "tables" / "intervals.md"
ROWS = (1, 6, 12)
SLOW = ("rank correlation", "ratio", "slope")
"""Whole lists of scores are made for these: they are drawn a quarter as often."""
SLOWER = 4
"""Of the headlines, whose samples are scored by the benchmarks, so many times fewer are drawn."""

HEAD = """# How often the intervals hold the truth

<!-- Written by `python benchmarks/intervals.py --write`. -->

What is meant by each interval, and what to conclude: [statistics](../statistics.md). What lies outside 92
to 98 % is marked with \\*.

## Headlines of known models

A middling and a strong model are drawn, of which each question has its own chance of a right answer, so
that the truth is known, and `summarise` and `gate` judge them: the percentage of samples whose 95 %
interval holds the truth, and of how many samples that have one. A row called gate is how often it fails two
equally good models (2.5 % are expected)."""
DESIGNS = """
## Designs

Coverage of the 95 % interval and, in brackets, its mean width. Clustered groups have 1 to 9 samples."""
ALARMS = """
How many comparisons of equal models, by so many metrics, found any of them significantly
different; where outcomes are rare the test is conservative."""
POWER = """
One metric differs by the minimum detectable difference, the others do not; how often that one
differs significantly."""


def design_tables(chosen: Sequence[Design], draws: int) -> Iterator[str]:
    """A Markdown table for each kind of design, a row for each of its parameters."""
    yield DESIGNS
    for kind, own in groupby(chosen, key=lambda design: design.kind):
        rows: defaultdict[str, dict[int, str]] = defaultdict(dict)
        for design in own:
            held, width = simulate(design, draws // 4 if kind.startswith(SLOW) else draws)
            rows[design.parameters][design.groups] = f"{held:.1%}{mark(held)} ({width:.3g})"
        groups = sorted({number for row in rows.values() for number in row})
        yield from head(kind, [f"{number} groups" for number in groups])
        for parameters, row in rows.items():
            yield f"| {parameters} | {' | '.join(row.get(number, '') for number in groups)} |"


def headline_table(draws: int) -> Iterator[str]:
    """A row for each figure, a column for each number of questions, the known models in each cell."""
    yield from head("headline", [f"{number} questions" for number in SIZES])
    for (benchmark, asked), models in groupby(headlines(), key=lambda each: (each.benchmark, each.asked)):
        rows: defaultdict[str, defaultdict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
        for model in models:
            for questions in SIZES:
                for name, found in coverage(model, questions, draws).items():
                    rows[name][questions].append(failed(found) if name == "gate" else held(found))
        for name, cells in rows.items():
            columns = " | ".join(", ".join(cells[number]) for number in SIZES)
            yield f"| {benchmark}, {asked}: {name} | {columns} |"


def held(found: Held) -> str:
    printed = "" if found.printed == 1 else f" of {found.printed:.0%}"
    return f"{100 * found.held:.1f}{mark(found.held)}{printed}"


def failed(found: Held) -> str:
    return f"{100 * (1 - found.held):.1f}{'' if found.held >= 0.95 else MARK}"


MARK = " \\*"


def mark(held: float) -> str:
    return "" if 0.92 <= held <= 0.98 else MARK


def equal_models(draws: int) -> Iterator[str]:
    """How often equal models differ, and how often a minimum detectable difference is found."""
    columns = [f"{rows} {'row' if rows == 1 else 'rows'}" for rows in ROWS]
    yield ALARMS
    yield from head("equal models, significantly different", columns)
    for kind in ("normal cosines", "shares k/5", "rare shares 0/1"):
        shares = (f"{false_alarms(kind, rows, draws):.1%}" for rows in ROWS)
        yield f"| {kind}, 40 groups | {' | '.join(shares)} |"
    yield POWER
    yield from head("power at the minimum detectable difference", columns)
    for groups in (10, 20, 40):
        shares = (f"{power(groups, rows, draws):.1%}" for rows in ROWS)
        yield f"| normal cosines, {groups} groups | {' | '.join(shares)} |"


def head(title: str, columns: Sequence[str]) -> Iterator[str]:
    yield f"\n| {title} | {' | '.join(columns)} |\n| --- |{' ---: |' * len(columns)}"


def tables(only: str, draws: int) -> Iterator[str]:
    if only in ("", "headlines"):
        yield HEAD
        yield from headline_table(draws // SLOWER)
    if only != "headlines":
        yield from design_tables([design for design in designs() if only in design.name], draws)
    if not only:
        yield from equal_models(draws // 2)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--only", default="", help="`headlines`, or designs whose name has these words")
    parser.add_argument("--write", action="store_true", help="write docs/tables/intervals.md")
    given = parser.parse_args()
    if given.write and given.only:
        parser.error("--write is of all tables: leave out --only")
    lines = []
    for line in tables(given.only, given.draws):
        print(line, flush=True)
        lines.append(line)
    if given.write:
        PAGE.write_text("\n".join([*lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()

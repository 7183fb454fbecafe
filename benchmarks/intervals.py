"""How often do the intervals hold the truth? Samples of known truth are drawn again and again.

Prints the tables of docs/statistics.md: how often the 95 % intervals of the benchmarks' headlines hold the
truth of known models; coverage of intervals and their mean width by design and number of groups, how often
equal models are said to differ, the power at the minimum detectable difference.

    python benchmarks/intervals.py [--draws 2000] [--only headlines] [--only WORDS]
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from itertools import groupby
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from designs import Design, designs, false_alarms, power, simulate
from headlines import SIZES, Held, coverage, headlines

ROWS = (1, 6, 12)
SLOW = ("rank correlation", "ratio", "slope")
"""Whole lists of scores are made for these: they are drawn a quarter as often."""


def show(chosen: list[Design], draws: int) -> None:
    """A Markdown table for each kind of design, a row for each of its parameters."""
    rows: defaultdict[str, defaultdict[str, dict[int, str]]] = defaultdict(lambda: defaultdict(dict))
    for design in chosen:
        held, width = simulate(design, draws // 4 if design.kind.startswith(SLOW) else draws)
        mark = "" if 0.92 <= held <= 0.98 else " \\*"
        rows[design.kind][design.parameters][design.groups] = f"{held:.1%}{mark} ({width:.3g})"
    for kind, own in rows.items():
        groups = sorted({number for row in own.values() for number in row})
        print(f"\n| {kind} | {' | '.join(f'{number} groups' for number in groups)} |")
        print(f"| --- |{' ---: |' * len(groups)}")
        for parameters, row in own.items():
            print(f"| {parameters} | {' | '.join(row.get(number, '') for number in groups)} |", flush=True)


def show_headlines(draws: int) -> None:
    """A row for each figure, a column for each number of questions, the known models in each cell."""
    print(f"\n| headline | {' | '.join(f'{number} questions' for number in SIZES)} |")
    print(f"| --- |{' ---: |' * len(SIZES)}", flush=True)
    for (benchmark, asked), models in groupby(headlines(), key=lambda each: (each.benchmark, each.asked)):
        rows: defaultdict[str, defaultdict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
        for model in models:
            for questions in SIZES:
                for name, found in coverage(model, questions, draws).items():
                    rows[name][questions].append(failed(found) if name == "gate" else held(found))
        for name, cells in rows.items():
            columns = " | ".join(", ".join(cells[number]) for number in SIZES)
            print(f"| {benchmark}, {asked}: {name} | {columns} |", flush=True)


def held(found: Held) -> str:
    printed = "" if found.printed == 1 else f" of {found.printed:.0%}"
    return f"{100 * found.held:.1f}{'' if 0.92 <= found.held <= 0.98 else '*'}{printed}"


def failed(found: Held) -> str:
    return f"{100 * (1 - found.held):.1f}{'' if found.held >= 0.95 else '*'}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--only", default="", help="`headlines`, or designs whose name has these words")
    given = parser.parse_args()
    if given.only in ("", "headlines"):
        show_headlines(given.draws)
    show([design for design in designs() if given.only in design.name], given.draws)
    if given.only:
        return
    head("equal models, significantly different")
    for kind in ("normal cosines", "shares k/5", "rare shares 0/1"):
        shares = (f"{false_alarms(kind, rows, given.draws // 2):.1%}" for rows in ROWS)
        print(f"| {kind}, 40 groups | {' | '.join(shares)} |", flush=True)
    head("power at the minimum detectable difference")
    for groups in (10, 20, 40):
        shares = (f"{power(groups, rows, given.draws // 2):.1%}" for rows in ROWS)
        print(f"| normal cosines, {groups} groups | {' | '.join(shares)} |", flush=True)


def head(title: str) -> None:
    counts = (f"{rows} {'row' if rows == 1 else 'rows'}" for rows in ROWS)
    print(f"\n| {title} | {' | '.join(counts)} |\n| --- |{' ---: |' * len(ROWS)}")


if __name__ == "__main__":
    main()

"""Write docs/metrics.md: every metric of the four benchmarks, from the text that the app shows.

python tools/write_metrics.py
"""

from __future__ import annotations

from pathlib import Path

import evenkeel as ek
from evenkeel.harness.registry import BENCHMARKS, benchmark_class

PAGE = Path(__file__).parents[1] / "docs" / "metrics.md"
HEADING = """# Every metric: what it says, its formula, its source, what to be careful about

This page is written by `python tools/write_metrics.py` from `src/evenkeel/benchmarks/*/explained.json`. The
same text is in the app, in `ek.explained("mirae")` and in `evenkeel list metrics`. A name with `*` stands for
several metrics. How intervals are made is in [statistics.md](statistics.md): where all groups agree, they are
Clopper and Pearson's for what was not seen. Examples and more detail are on the page of each benchmark.
"""


def page() -> str:
    sections = [_section(name) for name in BENCHMARKS]
    return "\n".join([HEADING, *sections])


def _section(benchmark: str) -> str:
    question = benchmark_class(benchmark).layout.question
    metrics = [
        f"### `{metric.name}`: {_escaped(metric.title)}\n\n"
        f"{_escaped(metric.what)}\n\n"
        f"- Formula: {_escaped(metric.formula)}\n"
        f"- Source: {_escaped(metric.source)}\n"
        f"- Careful: {_escaped(metric.careful)}\n"
        for metric in ek.explained(benchmark)
    ]
    return "\n".join([f"## {benchmark}\n\n{question} See [{benchmark}.md]({benchmark}.md).\n", *metrics])


def _escaped(text: str) -> str:
    """Plain text as Markdown."""
    for mark in "\\*_<[|":
        text = text.replace(mark, f"\\{mark}") if "://" not in text or mark != "_" else text
    return text


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

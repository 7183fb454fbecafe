"""Write docs/metrics.md: what every metric of the four benchmarks means, from its declaration.

python tools/write_metrics.py
"""

from __future__ import annotations

from pathlib import Path

from sealegs.harness.registry import BENCHMARKS, benchmark_class
from sealegs.page.format import as_markdown, capitalised

PAGE = Path(__file__).parents[1] / "docs" / "metrics.md"
HEADING = """# Every metric: what it means, and what to be careful about

Written by `python tools/write_metrics.py` from the declarations of the benchmarks. The same is in the app and
in `sealegs list metrics`. A name with `*` stands for several metrics. Formulas are on the
page of each benchmark, intervals in [statistics.md](statistics.md).
"""


def page() -> str:
    return "\n".join([HEADING, *map(_section, BENCHMARKS)])


def _section(benchmark: str) -> str:
    question = benchmark_class(benchmark).layout.question
    parts = [f"## {benchmark}\n\n{question} See [{benchmark}.md]({benchmark}.md).\n"]
    for metric in benchmark_class(benchmark).layout.metrics:
        lines = [as_markdown(str(line)) for line in metric.overview().lines]
        parts += [
            f"### `{metric.name}`: {as_markdown(capitalised(metric.title))}\n",
            *(f"{x}\n" for x in lines),
        ]
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

"""The report: one HTML file, nothing to load. Model output is hostile, and only ever text.

Its only script is that of the table of samples, which the page's policy allows by its hash.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sealegs.harness.folder import Run
from sealegs.page.html import render as render_template
from sealegs.page.tokenized import Tokenized
from sealegs.report.describe import describe
from sealegs.report.samples.table import sample_table


def render(run: Run, *others: Run, reference: Sequence[str | Path] = (), samples: bool = True) -> str:
    """A run's page; with others of the same benchmark, their curves and figures are beside its own.

    `reference` has folders of runs, or of a suite, that are shown beside the published models. Without
    `samples` the page has figures alone, where questions, documents and answers may not be passed on.

    `Path("page.html").write_text(sl.render(sl.load_run("runs/yesterday")), encoding="utf-8")`.
    What is of one run alone (its tables, its samples) is of the first, and says so.
    """
    described = describe(run, *others, reference=reference)
    table = sample_table(run) if samples else None
    return render_template("report/page.html", title=described.title, described=described, samples=table)


def render_tokenizers(tokenized: Tokenized) -> str:
    """The page of `sealegs tokenizers`."""
    overview = describe(tokenized)
    return render_template(
        "report/tokenizers.html", title=overview.title, overview=overview, tokenized=tokenized
    )

"""A sample of a run, and what a person says of its check: a page of its own, and a part of the run's."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from aiohttp import web
from multidict import MultiMapping

from sealegs.app.live import shown_run
from sealegs.app.rendering import render_page
from sealegs.app.settings import AppSettings
from sealegs.errors import UsageError
from sealegs.harness.folder import Run
from sealegs.harness.stored.marks import Mark
from sealegs.page.view_html import view_html

CHECKS = {"right": "confirmed", "wrong": "disputed"}
"""What a mark says of the check, in a word."""


def _find(settings: AppSettings, query: MultiMapping[Any]) -> tuple[Run, str, int]:
    """The sample of an address or of a form, the first one where none is named: its run, id and row."""
    run = shown_run(settings, str(query.get("run", "")))
    samples = run.samples()
    if not len(samples):
        raise UsageError("this run has no samples.")
    wanted = str(query.get("sample", samples.index.ids[0]))
    row = samples.row_of(wanted)
    if row is None:
        raise UsageError(f"this run has no sample {wanted!r}.")
    return run, wanted, row


def page(settings: AppSettings, query: MultiMapping[Any]) -> str:
    """A sample; with `part` its details alone, for the table of samples."""
    run, sample, row = _find(settings, query)
    samples, ids = run.samples(), run.samples().index.ids
    names = {"run": str(query.get("run", "")), "sample": sample}
    form = render_page(
        settings, "mark.html", "/",
        mark=_mark_of(run, sample), decided_by=samples.decided_by, said=CHECKS, **names,
    )  # fmt: skip
    return render_page(
        settings, "sample.html" if "part" in query else "sample_page.html", "/",
        title=f"Sample {sample}",
        view=view_html(samples.view(row), styled=False, form=form),
        before=ids[row - 1] if row else None,
        after=ids[row + 1] if row + 1 < len(ids) else None,
        count=len(samples),
        number=row + 1,
        **names,
    )  # fmt: skip


def _mark_of(run: Run, sample: str) -> Mark | None:
    """What was said of a sample's check."""
    marks = [mark for mark in run.marks() if mark.sample == sample and not mark.metric]
    return marks[-1] if marks else None


def mark(settings: AppSettings, form: MultiMapping[Any]) -> str:
    """Save what a person says of a sample's check, and show the sample again. A form without a verdict saves
    its comment with the mark that is there."""
    run, sample, _ = _find(settings, form)
    if "verdict" in form:
        verdict: Any = str(form["verdict"])
    elif earlier := _mark_of(run, sample):
        verdict = earlier.verdict
    else:
        raise UsageError("nothing was saved: choose whether the check is right or wrong, then both are.")
    run.mark(sample, verdict=verdict, comment=str(form.get("comment", "")))
    if "part" in form:
        return page(settings, form)
    raise web.HTTPSeeOther(f"/sample?run={quote(str(form['run']))}&sample={quote(sample)}")

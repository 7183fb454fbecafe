"""A sample of a run, and what a person says of its check: a page of its own, and a part of the run's."""

from __future__ import annotations

from typing import Any, NamedTuple
from urllib.parse import quote

from aiohttp import web
from multidict import MultiMapping

from sealegs.app.rendering import render_page
from sealegs.app.settings import AppSettings
from sealegs.errors import UsageError
from sealegs.harness.folder import Run
from sealegs.harness.stored.listing import open_run
from sealegs.page.view_html import view_html


class _SampleAddress(NamedTuple):
    name: str
    """Of the run."""
    run: Run
    row: int
    id: str


def _find(settings: AppSettings, query: MultiMapping[Any]) -> _SampleAddress:
    """The sample of an address or of a form; the first one where none is named."""
    name = str(query.get("run", ""))
    run = open_run(settings.runs, name)
    samples = run.samples()
    if not len(samples):
        raise UsageError("this run has no samples.")
    wanted = str(query.get("sample", samples.index.ids[0]))
    row = samples.row_of(wanted)
    if row is None:
        raise UsageError(f"this run has no sample {wanted!r}.")
    return _SampleAddress(name, run, row, wanted)


def page(settings: AppSettings, query: MultiMapping[str]) -> str:
    """A sample; with `part` its details alone, for the table of samples."""
    sample = _find(settings, query)
    marks = [mark for mark in sample.run.marks() if mark.sample == sample.id and not mark.metric]
    samples = sample.run.samples()
    before, after = (
        samples.index.ids[row] if 0 <= row < len(samples) else None
        for row in (sample.row - 1, sample.row + 1)
    )
    names = {"run": sample.name, "sample": sample.id}
    form = render_page(settings, "mark.html", "/", mark=marks[-1] if marks else None, **names)
    return render_page(
        settings, "sample.html" if "part" in query else "sample_page.html", "/",
        title=f"Sample {sample.id}",
        view=view_html(samples.view(sample.row), styled=False, form=form),
        before=before,
        after=after,
        count=len(samples),
        number=sample.row + 1,
        **names,
    )  # fmt: skip


def mark(settings: AppSettings, form: MultiMapping[Any]) -> str:
    """Save what a person says of a sample's check, and show the sample again."""
    sample = _find(settings, form)
    verdict: Any = str(form.get("verdict", ""))
    sample.run.mark(sample.id, verdict=verdict, comment=str(form.get("comment", "")))
    if "part" in form:
        return page(settings, form)
    raise web.HTTPSeeOther(f"/sample?run={quote(sample.name)}&sample={quote(sample.id)}")

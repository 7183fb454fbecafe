"""One run: its report with every sample, or how far it is; stopping and resuming it."""

from __future__ import annotations

import asyncio
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import quote

import msgspec
from aiohttp import web
from multidict import MultiMapping

from sealegs.api import launch
from sealegs.api.launch import Started
from sealegs.api.so_far import SoFar, so_far
from sealegs.app import fields
from sealegs.app.progress import watched
from sealegs.app.rendering import Stamp, render_page, stamp
from sealegs.app.settings import SETTINGS, AppSettings
from sealegs.errors import SealegsError, UsageError
from sealegs.files.lock import is_written
from sealegs.harness.control import stop as ask_to_stop
from sealegs.harness.folder import Run, load_run
from sealegs.harness.folder.spec import read_spec
from sealegs.harness.registry import benchmark_class, benchmark_title
from sealegs.harness.stored.listing import open_run, path_of
from sealegs.page.examples import shortened
from sealegs.page.format import interval, nouns, value
from sealegs.report.describe import describe
from sealegs.report.samples.table import SampleTable, row_texts, sample_data

SECONDS = 1.0
"""Between two looks at a run that is being written."""


def page(settings: AppSettings, query: MultiMapping[str]) -> str:
    name, sample = query.get("run", ""), query.get("sample", "")
    if (run := _finished(settings, name)) is None:
        return _unfinished(settings, name)
    if sample and run.samples().row_of(sample) is None:
        raise UsageError(f"this run has no sample {sample!r}.")
    return _report(settings, name, run.path, stamp(run.path))


def _finished(settings: AppSettings, name: str) -> Run | None:
    """The run, if it is finished; a name that leads nowhere is an error."""
    if _process(settings, name) is not None and not (path_of(settings.runs, name) / "spec.json").exists():
        return None  # its process has just begun
    run = open_run(settings.runs, name)
    return run if (run.path / "summary.json").is_file() and not is_written(run.path) else None


def _process(settings: AppSettings, name: str) -> Started | None:
    """The process of a run or a build below the folder, if its settings can be read."""
    return None if settings.read_only else launch.stored(path_of(settings.runs, name))


@lru_cache(maxsize=64)
def _report(settings: AppSettings, name: str, path: Path, _version: Stamp) -> str:
    """The report with what only the app can do: details of all samples, marks, further runs."""
    run = load_run(path)
    samples = SampleTable(source=f"/samples?run={quote(name)}")
    described = describe(run)
    page = render_page(
        settings, "run.html", "/", title=described.title, described=described, run=name, samples=samples
    )
    return fields.page_with_titles(page, benchmark_class(run.spec.benchmark).Options)


def samples(settings: AppSettings, query: MultiMapping[str]) -> web.Response:
    body = msgspec.json.encode(_samples(settings, query))
    return web.Response(body=body, content_type="application/json")


def _samples(settings: AppSettings, query: MultiMapping[str]) -> Any:
    """The data of the table of samples; the texts of some of its rows, or the rows that hold some words."""
    name = query.get("run", "")
    run = open_run(settings.runs, name)
    if words := query.get("search"):
        return run.samples().select(search=words)
    if rows := query.get("rows"):
        return row_texts(run.samples(), _row_numbers(rows, len(run.samples())))
    marks = {mark.sample: mark.verdict for mark in run.marks() if not mark.metric}
    return sample_data(run, source=f"/sample?run={quote(name)}", marks=marks)


def _row_numbers(text: str, count: int) -> list[int]:
    try:
        rows = msgspec.json.decode(f"[{text}]", type=list[int])
    except msgspec.DecodeError:
        rows = [-1]
    if not all(0 <= row < count for row in rows):
        raise UsageError(f"rows={shortened(text)}: give numbers from 0 to {count - 1}, separated by commas.")
    return rows


# While it runs


def _unfinished(settings: AppSettings, name: str) -> str:
    folder = path_of(settings.runs, name)
    process = _process(settings, name)
    part = _so_far(folder)
    begun = process.task if process and not (folder / "spec.json").exists() else read_spec(folder)
    return render_page(
        settings, "running.html", "/",
        title=": ".join(filter(None, (benchmark_title(begun.benchmark), begun.subject))),
        run=name,
        process=watched(folder, process),
        words=_sentence(part),
        latest=part.latest if part else [],
    )  # fmt: skip


def _so_far(folder: Path) -> SoFar | None:
    try:
        return so_far(folder)
    except SealegsError:  # it is being written: the next look may find it whole
        return None


def _sentence(part: SoFar | None) -> str:
    """`8 of 24 samples answered. 12% so far (95% interval 2% to 28%).`"""
    if part is None:
        return ""
    first = "the first " if part.more else ""
    words = f"{part.answered:,} of {first}{nouns(part.samples, 'samples')} answered."
    figure = part.headline
    if figure is not None and figure.value is not None:
        limits = f"95% interval {interval(figure)}" if interval(figure) else "interval not known yet"
        words += f" {value(figure)} so far ({limits})."
    return words


async def events(request: web.Request) -> web.StreamResponse:
    """How far a run is, again and again, until it has ended: server-sent events."""
    settings, name = request.app[SETTINGS], request.query.get("run", "")
    state = await asyncio.to_thread(_state, settings, name)
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "X-Accel-Buffering": "no"})
    await response.prepare(request)
    while True:
        await response.write(b"data: " + msgspec.json.encode(state) + b"\n\n")
        if state["ended"]:
            return response
        await asyncio.sleep(SECONDS)
        state = await asyncio.to_thread(_state, settings, name)


def _state(settings: AppSettings, name: str) -> dict[str, Any]:
    """What changes on the page of a run that is being written."""
    folder = path_of(settings.runs, name)
    process = watched(folder, _process(settings, name))
    part = _so_far(folder)
    return {
        "ended": not process.active and not is_written(folder),
        "state": process.state.capitalize(),
        "words": process.words,
        "share": process.share,
        "log": process.log,
        "score": _sentence(part),
        "latest": render_page(settings, "latest.html", "/", latest=part.latest if part else []),
    }


# What is done to it


def stop(settings: AppSettings, form: MultiMapping[Any]) -> NoReturn:
    process, address = _known(settings, form)
    ask_to_stop(Path(process.path))
    raise web.HTTPSeeOther(address)


def resume(settings: AppSettings, form: MultiMapping[Any]) -> NoReturn:
    process, address = _known(settings, form)
    launch.start_again(process)
    raise web.HTTPSeeOther(address)


def dismiss(settings: AppSettings, form: MultiMapping[Any]) -> NoReturn:
    process, address = _known(settings, form)
    launch.dismiss(process)
    raise web.HTTPSeeOther("/" if process.kind == "run" else address)


def _known(settings: AppSettings, form: MultiMapping[Any]) -> tuple[Started, str]:
    """The process of the run or the build that a form names, and the page that shows it."""
    name = str(form.get("run", ""))
    process = _process(settings, name)
    if process is None:
        raise UsageError(f"{name!r} is not a run or a build whose process is known here.")
    return process, "/build" if process.kind == "build" else f"/run?run={quote(name)}"

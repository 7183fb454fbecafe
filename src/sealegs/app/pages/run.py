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
from sealegs.app import fields
from sealegs.app.live import finished_run, live_run, process_of, shown_run
from sealegs.app.progress import watched
from sealegs.app.rendering import Stamp, render_page, stamp
from sealegs.app.settings import SETTINGS, AppSettings
from sealegs.errors import UsageError
from sealegs.files.lock import is_written
from sealegs.harness.control import stop as ask_to_stop
from sealegs.harness.folder import Run, load_run
from sealegs.harness.folder.spec import read_spec
from sealegs.harness.registry import benchmark_class, benchmark_title
from sealegs.harness.stored.listing import path_of
from sealegs.page.examples import shortened
from sealegs.report.describe import describe
from sealegs.report.samples.table import SampleTable, latest_samples, row_texts, sample_data

SECONDS = 1.0
"""Between two looks at a run that is being written."""


def page(settings: AppSettings, query: MultiMapping[str]) -> str:
    """The report of a run, or of what is answered by now, below how far it is."""
    name, sample = query.get("run", ""), query.get("sample", "")
    if (run := finished_run(settings, name)) is None:
        return _unfinished(settings, name)
    if sample and run.samples().row_of(sample) is None:
        raise UsageError(f"this run has no sample {sample!r}.")
    return _report(settings, name, run.path, stamp(run.path))


@lru_cache(maxsize=64)
def _report(settings: AppSettings, name: str, path: Path, _version: Stamp) -> str:
    return _page(settings, name, load_run(path))


def _unfinished(settings: AppSettings, name: str) -> str:
    folder, started, live = path_of(settings.runs, name), process_of(settings, name), live_run(settings, name)
    begun = started.task if started and not (folder / "spec.json").exists() else read_spec(folder)
    title = ": ".join(filter(None, (benchmark_title(begun.benchmark), begun.subject)))
    process = watched(folder, started)
    if live.is_busy:
        words = "What is answered so far is being scored."
    elif live.problem:
        words = live.problem
    elif benchmark_class(begun.benchmark).subjects.tag != "model":
        words = "The figures come at the end: nothing is answered sample by sample."
    else:
        words = f"No sample is answered yet{': the report begins with the first' * process.active}."
    return _page(settings, name, live.run, title=title, process=process, words=words, live=live.is_busy)


def _page(settings: AppSettings, name: str, run: Run | None, **unfinished: Any) -> str:
    """The report with what only the app can do: details of all samples, marks, further runs."""
    described = describe(run) if run else None
    first = latest_samples(run) if run and run.part else None
    values = {"process": None, "title": described.title if described else "", **unfinished}
    page = render_page(
        settings, "run.html", "/",
        described=described, run=name, version=_version(run),
        samples=SampleTable(source=f"/samples?run={quote(name)}", first=first),
        **values,
    )  # fmt: skip
    return fields.page_with_titles(page, benchmark_class(run.spec.benchmark).Options) if run else page


def samples(settings: AppSettings, query: MultiMapping[str]) -> web.Response:
    body = msgspec.json.encode(_samples(settings, query))
    return web.Response(body=body, content_type="application/json")


def _samples(settings: AppSettings, query: MultiMapping[str]) -> Any:
    """The data of the table of samples; of some rows the texts and ids; or the rows that hold words."""
    name = query.get("run", "")
    run = shown_run(settings, name)
    if words := query.get("search"):
        return run.samples().select(search=words)
    if rows := query.get("rows"):
        numbers = _row_numbers(rows, len(run.samples()))
        texts = row_texts(run.samples(), numbers)
        return [[*each, run.samples().index.ids[row]] for row, each in zip(numbers, texts, strict=True)]
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


async def events(request: web.Request) -> web.StreamResponse:
    """How far a run is, again and again, until it has ended: server-sent events."""
    settings, name = request.app[SETTINGS], request.query.get("run", "")
    state = await asyncio.to_thread(_event, settings, name)
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "X-Accel-Buffering": "no"})
    await response.prepare(request)
    while True:
        await response.write(b"data: " + msgspec.json.encode(state) + b"\n\n")
        if state["ended"]:
            return response
        await asyncio.sleep(SECONDS)
        state = await asyncio.to_thread(_event, settings, name)


def _event(settings: AppSettings, name: str) -> dict[str, Any]:
    """What changes on the page of a run that is being written; another version has other samples."""
    folder, finished = path_of(settings.runs, name), finished_run(settings, name)
    process = watched(folder, process_of(settings, name))
    live = None if finished else live_run(settings, name)
    return {
        "ended": live is None or not (process.active or live.is_busy or is_written(folder)),
        "state": process.state.capitalize(),
        "words": process.words,
        "share": process.share,
        "log": process.log,
        "version": _version(live.run if live else finished),
    }


def _version(run: Run | None) -> str:
    """Each time that a run is scored before its end, it lies in a folder of another name."""
    return run.path.name if run else ""


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


def _known(settings: AppSettings, form: MultiMapping[Any]) -> tuple[launch.Started, str]:
    """The process of the run or the build that a form names, and the page that shows it."""
    name = str(form.get("run", ""))
    process = process_of(settings, name)
    if process is None:
        raise UsageError(f"{name!r} is not a run or a build whose process is known here.")
    return process, "/build" if process.kind == "build" else f"/run?run={quote(name)}"

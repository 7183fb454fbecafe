"""Which address is which page; a page as a response; errors of the library as a page with their own words."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import threading
import traceback
from collections.abc import Awaitable, Callable, Sequence
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from aiohttp import web
from markupsafe import escape

from sealegs.app.settings import SETTINGS, AppSettings
from sealegs.errors import SealegsError, UsageError
from sealegs.harness.registry import benchmark_title
from sealegs.page.format import escape_controls
from sealegs.page.html import compile_templates, render

log = logging.getLogger(__name__)

READING = frozenset({"GET", "HEAD"})
Stamp: TypeAlias = tuple[tuple[str, int, int], ...]
Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Page(NamedTuple):
    """What an address shows."""

    function: str
    """In a module of `pages`."""
    name: str = ""
    """In the navigation; empty where it is not there."""
    starts: bool = False
    """Whether it starts something, which a read-only app does not."""


PAGES = {
    "/": Page("runs.page", "Runs"),
    "/run": Page("run.page"),
    "/samples": Page("run.samples"),
    "/sample": Page("sample.page"),
    "/events": Page("run.events"),
    "/new-run": Page("new_run.page", "New run", starts=True),
    "/compare": Page("compare.page", "Compare"),
    "/leaderboard": Page("leaderboard.page", "Leaderboard"),
    "/scorecard": Page("scorecard.page", "Scorecard"),
    "/build": Page("build.page", "Build", starts=True),
    "/tokenizers": Page("tokenizers.page", "Tokenizers", starts=True),
    "/explained": Page("explained.page", "Explained"),
}
STATIC = {
    "app.css": ("app/static/app.css", "text/css"),
    "app.js": ("app/static/app.js", "text/javascript"),
    "table.js": ("report/samples/table.js", "text/javascript"),
    "boat.svg": ("app/static/boat.svg", "image/svg+xml"),
}
"""The files that pages load, by name: nothing else is served."""
ACTIONS = {
    "/run/mark": "sample.mark",
    "/run/stop": "run.stop",
    "/run/resume": "run.resume",
    "/run/dismiss": "run.dismiss",
    "/new-run": "new_run.again",
    "/new-run/models": "new_run.models",
    "/new-run/review": "new_run.review",
    "/new-run/test": "new_run.test",
    "/new-run/start": "new_run.start",
    "/build": "build.start",
    "/build/review": "build.review",
    "/build/change": "build.change",
    "/tokenizers": "tokenizers.compare",
}
"""What forms are sent to: functions in `pages`, as those of pages."""

LATE = (
    "sealegs.report.pictures", "sealegs.page.verdict", "sealegs.harness.stored.marks", "filelock",
    "platformdirs",
)  # fmt: skip
"""What the command line imports only where it is needed, and every page of a run needs."""
LARGEST_UPLOAD_BYTES = 20 * 2**20
PROBLEMS = {
    404: "There is no such page.",
    405: "This address takes what a form sends: begin with the form.",
    413: f"files of more than {LARGEST_UPLOAD_BYTES >> 20} MB cannot be sent here. Give the path instead.",
    500: "This page could not be made: a file that it is made from is damaged, or Sealegs has a fault. The "
    "details are on the terminal that the app was started in.",
}
"""What a page says, by the status of its response."""


def render_page(settings: AppSettings, template: str, address: str, /, **values: Any) -> str:
    """A template of the app with what every page has."""
    text = render(
        f"app/templates/{template}",
        base="app/templates/base.html",
        pages=PAGES,
        address=address,
        read_only=settings.read_only,
        form_token=settings.form_token,
        benchmark_title=benchmark_title,
        **values,
    )
    # A reader of a read-only app may be a stranger.
    return named_as_listed(settings, text) if settings.read_only else text


def named_as_listed(settings: AppSettings, text: str) -> str:
    """A page with runs under their names in the list of runs: without the folder that all are in."""
    text = text.replace(str(escape(f"{settings.runs}{os.sep}")), "")
    return text.replace(str(escape(f" ({settings.runs.name}{os.sep}")), " (")


RESULTS = ("spec.json", "summary.json", "records.jsonl", "marks.jsonl")
ANSWERS = ("spec.json", "journal.sqlite", "journal.sqlite-wal")


def stamp(folder: Path, shown: Sequence[str] = RESULTS) -> Stamp:
    """Changes with the files of a run: what is shown of it is kept for as long as they are the same."""
    with os.scandir(folder) as files:
        states = [(file.name, file.stat(follow_symlinks=False)) for file in files if file.name in shown]
    return tuple(sorted((name, state.st_mtime_ns, state.st_size) for name, state in states))


def html(text: str, status: int = 200) -> web.Response:
    return web.Response(text=text, status=status, content_type="text/html")


@web.middleware
async def with_problems(request: web.Request, handler: Handler) -> web.StreamResponse:
    """An error of Sealegs is a page with its own words; the details of any other are not for a page."""
    try:
        return await handler(request)
    except (SealegsError, OSError) as error:
        problem, status = str(error), 422
    except web.HTTPException as error:
        if error.status not in PROBLEMS:
            raise
        problem, status = PROBLEMS[error.status], error.status
    except Exception:  # noqa: BLE001  # whatever it is: the terminal has it, the page none of it
        log.error("%s %s\n%s", request.method, request.path, escape_controls(traceback.format_exc()))
        problem, status = PROBLEMS[500], 500
    settings = request.app[SETTINGS]
    text = render_page(settings, "problem.html", request.path, title="That did not work", problem=problem)
    return html(text.replace(str(settings.runs), settings.shown_runs), status)


def add_routes(app: web.Application) -> None:
    app.add_routes([web.get(address, _handler(page)) for address, page in PAGES.items()])
    app.add_routes([web.post(address, _handler(Page(action))) for address, action in ACTIONS.items()])
    app.router.add_get("/static/{name}", static)
    app.on_startup.append(_prepare)


def _handler(page: Page) -> Handler:
    """A function that takes the settings and the fields of a query or a form, and gives a page or a response.
    It is run in a thread, as it reads files and computes; one that keeps sending takes the request."""

    async def handle(request: web.Request) -> web.StreamResponse:
        settings = request.app[SETTINGS]
        if page.starts and settings.read_only:
            raise UsageError("this app is read-only: it shows runs, and starts nothing.")
        function = await asyncio.to_thread(_function, page.function)
        if asyncio.iscoroutinefunction(function):
            stream: web.StreamResponse = await function(request)
            return stream
        fields = request.query if request.method in READING else await request.post()
        shown = await asyncio.to_thread(function, settings, fields)
        return html(shown) if isinstance(shown, str) else shown

    return handle


def _function(name: str) -> Callable[..., Any]:
    """A function of `pages`, imported once the app is up."""
    module, _, function = name.partition(".")
    act: Callable[..., Any] = getattr(import_module(f"sealegs.app.pages.{module}"), function)
    return act


async def _prepare(app: web.Application) -> None:
    """Load what pages need while the browser is being opened."""
    runs = app[SETTINGS].runs
    threading.Thread(target=_load_pages, args=(runs,), name="sealegs-pages", daemon=True).start()


def _load_pages(runs: Path) -> None:
    from sealegs.app.pages.build import builders_by_name  # late: with this comes what a benchmark is

    for page in PAGES.values():
        _function(page.function)
    for name in LATE:
        import_module(name)
    compile_templates()
    builders_by_name()
    gc.freeze()  # what is loaded by now stays: no page waits until all of it is looked through for garbage
    _index(runs)


def _index(folder: Path) -> None:
    """Index the newest runs, of which one from elsewhere may have thousands of samples, before anyone opens
    them. Those that are being written are left alone."""
    from sealegs.files.record_index import MOST_STORED
    from sealegs.harness.folder import load_run
    from sealegs.harness.stored.listing import list_runs

    finished = [run for run in list_runs(folder) if run.state == "finished"]
    for run in finished[:MOST_STORED]:
        with contextlib.suppress(Exception):  # a folder may hold anything; the others are still indexed
            load_run(run.path).samples()


async def static(request: web.Request) -> web.Response:
    name = request.match_info["name"]
    if name not in STATIC:
        raise web.HTTPNotFound
    path, kind = STATIC[name]
    content = files("sealegs").joinpath(path).read_bytes()
    return web.Response(body=content, content_type=kind, headers={"Cache-Control": "max-age=60"})

"""Which address is which page."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
from collections.abc import Callable
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any

from aiohttp import web

from sealegs.app.access import READING
from sealegs.app.rendering import PAGES, Handler, html
from sealegs.app.settings import SETTINGS
from sealegs.errors import UsageError
from sealegs.page.html import compile_templates

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


def add_routes(app: web.Application) -> None:
    app.add_routes([web.get(address, _handler(*page)) for address, page in PAGES.items()])
    app.add_routes([web.post(address, _handler(action)) for address, action in ACTIONS.items()])
    app.router.add_get("/static/{name}", static)
    app.on_startup.append(_prepare)


def _handler(name: str, _title: str = "", starts: bool = False) -> Handler:
    """A function that takes the settings and the fields of a query or a form, and gives a page or a response.
    It is run in a thread, as it reads files and computes; one that keeps sending takes the request."""

    async def handle(request: web.Request) -> web.StreamResponse:
        settings = request.app[SETTINGS]
        if starts and settings.read_only:
            raise UsageError("this app is read-only: it shows runs, and starts nothing.")
        function = await asyncio.to_thread(_function, name)
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
    from sealegs.harness.registry import list_benchmarks

    for page in PAGES.values():
        _function(page.function)
    for name in LATE:
        import_module(name)
    compile_templates()
    list_benchmarks()  # their modules are imported by that
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

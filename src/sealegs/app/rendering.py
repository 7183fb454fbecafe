"""Which pages there are; a page as a response; errors of the library as a page with their own words."""

from __future__ import annotations

import logging
import os
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from aiohttp import web

from sealegs.app.settings import SETTINGS, AppSettings
from sealegs.errors import SealegsError
from sealegs.harness.registry import benchmark_title
from sealegs.page.format import escape_controls
from sealegs.page.html import render

log = logging.getLogger(__name__)

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
    shown = [
        (path, page.name)
        for path, page in PAGES.items()
        if page.name and not (page.starts and settings.read_only)
    ]
    text = render(
        f"app/templates/{template}",
        base="app/templates/base.html",
        pages=shown,
        address=address,
        read_only=settings.read_only,
        form_token=settings.form_token,
        benchmark_title=benchmark_title,
        **values,
    )
    # A reader of a read-only app may be a stranger: runs are named as in the list of runs.
    return text.replace(f"{settings.runs}{os.sep}", "") if settings.read_only else text


def stamp(folder: Path) -> Stamp:
    """Changes with the files of a run: what is shown of it is kept for as long as they are the same."""
    from sealegs.harness.folder.layout import MARKS  # late: with it comes what reads a run

    shown = ("spec.json", "summary.json", "records.jsonl", MARKS)
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

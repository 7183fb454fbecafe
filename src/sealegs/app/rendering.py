"""A page as a response: a template of the app, in a thread, with errors of the library as their own words."""

from __future__ import annotations

import asyncio
import logging
import os
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from aiohttp import web

from sealegs.app.settings import SETTINGS, AppSettings
from sealegs.errors import SealegsError
from sealegs.harness.registry import benchmark_title
from sealegs.page.format import escape_controls
from sealegs.page.html import render

log = logging.getLogger(__name__)

Stamp: TypeAlias = tuple[tuple[int, int] | None, ...]
Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]
T = TypeVar("T")

PAGES = (
    ("/", "Runs", False),
    ("/new-run", "New run", True),
    ("/compare", "Compare", False),
    ("/leaderboard", "Leaderboard", False),
    ("/scorecard", "Scorecard", False),
    ("/build", "Build", True),
    ("/tokenizers", "Tokenizers", True),
    ("/explained", "Explained", False),
)
"""Address and name of each page of the navigation, and whether it starts something."""
FAULT = (
    "This page could not be made: a file that it is made from is damaged, or Sealegs has a fault. The "
    "details are on the terminal that the app was started in."
)


def settings_of(request: web.Request) -> AppSettings:
    return request.app[SETTINGS]


def page(settings: AppSettings, template: str, address: str, /, **values: Any) -> str:
    """A template of the app with what every page has."""
    shown = [(path, name) for path, name, starts in PAGES if not (starts and settings.read_only)]
    text = render(
        f"app/templates/{template}",
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

    return tuple(
        (status.st_mtime_ns, status.st_size) if status else None
        for status in (
            _status(folder / name) for name in ("spec.json", "summary.json", "records.jsonl", MARKS)
        )
    )


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except OSError:
        return None


def html(text: str, status: int = 200) -> web.Response:
    return web.Response(text=text, status=status, content_type="text/html")


async def in_thread(act: Callable[..., T], *args: Any, **more: Any) -> T:
    """What reads files or computes, while other requests are answered."""
    return await asyncio.to_thread(act, *args, **more)


def problem_page(settings: AppSettings, address: str, error: Exception, status: int) -> web.Response:
    text = page(settings, "problem.html", address, title="That did not work", problem=str(error))
    return html(text.replace(str(settings.runs), settings.shown_runs), status)


@web.middleware
async def with_problems(request: web.Request, handler: Handler) -> web.StreamResponse:
    """An error of Sealegs is a page with its own words; the details of any other are not for a page."""
    try:
        return await handler(request)
    except (SealegsError, OSError) as error:
        return problem_page(settings_of(request), request.path, error, 422)
    except web.HTTPNotFound:
        reason = SealegsError("There is no such page.")
        return problem_page(settings_of(request), request.path, reason, 404)
    except web.HTTPMethodNotAllowed:
        reason = SealegsError("This address takes what a form sends: begin with the form.")
        return problem_page(settings_of(request), request.path, reason, 405)
    except web.HTTPRequestEntityTooLarge:
        size = f"{request.client_max_size // 2**20} MB"
        large = SealegsError(
            f"files of more than {size} cannot be sent here. Go back and give the path instead."
        )
        return problem_page(settings_of(request), request.path, large, 413)
    except web.HTTPException:
        raise
    except Exception:  # noqa: BLE001  # whatever it is: the terminal has it, the page none of it
        log.error("%s %s\n%s", request.method, request.path, escape_controls(traceback.format_exc()))
        return problem_page(settings_of(request), request.path, SealegsError(FAULT), 500)

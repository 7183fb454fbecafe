"""Make a data set as a process of its own, from a person's texts or from a seed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aiohttp import web
from multidict import MultiMapping

from evenkeel.api.launch import Started, is_built, start_build, started
from evenkeel.app import fields
from evenkeel.app.progress import watched
from evenkeel.app.rendering import html, in_thread, settings_of
from evenkeel.app.rendering import page as render_page
from evenkeel.app.settings import Settings
from evenkeel.errors import EvenkeelError, UsageError
from evenkeel.harness.registry import benchmark_class, benchmark_names

SHOWN = 6
"""Options that are not folded."""
MOST_LISTED = 8
"""Builds, the newest first."""


async def page(request: web.Request) -> web.Response:
    settings = settings_of(request)
    if settings.read_only:
        raise UsageError("this app is read-only: it shows runs, but builds nothing.")
    return html(await in_thread(_form, settings, str(request.query.get("benchmark", ""))))


def _form(settings: Settings, asked: str, problem: str = "", form: MultiMapping[Any] | None = None) -> str:
    builders = _builders()
    name = asked if asked in builders else next(iter(builders))
    given = fields.options_of(builders[name].Options, settings, form) if form is not None else {}
    shown, rest = fields.folded(fields.fields(builders[name].Options, settings, given), SHOWN)
    processes = [each for each in started(settings.runs) if each.kind == "build"][:MOST_LISTED]
    return render_page(
        settings, "build.html", "/build",
        title="Build",
        benchmark=name,
        titles={each: benchmark_class(each).layout.name or each for each in builders},
        shown=shown,
        rest=rest,
        problem=problem,
        builds=[(watched(Path(each.path), each), each.task.benchmark, _files(each)) for each in processes],
    )  # fmt: skip


def _builders() -> dict[str, Any]:
    """The builders of the benchmarks that have one."""
    builders = {}
    for name in benchmark_names():
        try:
            builders[name] = benchmark_class(name).builder()
        except UsageError:
            continue
    return builders


def _files(process: Started) -> list[str]:
    """What was built."""
    return sorted(path.name for path in Path(process.path).iterdir() if is_built(path))


async def start(request: web.Request) -> web.Response:
    settings, form = settings_of(request), await request.post()
    name = str(form.get("benchmark", ""))
    try:
        await in_thread(_started, settings, name, form)
    except EvenkeelError as error:
        return html(await in_thread(_form, settings, name, str(error), form), 422)
    raise web.HTTPSeeOther(f"/build?benchmark={name}")


def _started(settings: Settings, name: str, form: MultiMapping[Any]) -> None:
    builders = _builders()
    if name not in builders:
        raise UsageError(f"{name!r} has no builder. Available: {', '.join(builders)}.")
    chosen = fields.options_of(builders[name].Options, settings, form)
    settings.runs.mkdir(parents=True, exist_ok=True)
    start_build(settings.runs, name, **chosen)

"""Which address is which page."""

from __future__ import annotations

from importlib.resources import files

from aiohttp import web

from evenkeel.app.pages import (
    build,
    compare,
    explained,
    leaderboard,
    new_run,
    run,
    runs,
    sample,
    scorecard,
    tokenizers,
)
from evenkeel.app.rendering import Handler

STATIC = {
    "app.css": ("app/static/app.css", "text/css"),
    "app.js": ("app/static/app.js", "text/javascript"),
    "table.js": ("report/samples/table.js", "text/javascript"),
    "boat.svg": ("app/static/boat.svg", "image/svg+xml"),
}
"""The files that pages load, by name: nothing else is served."""
PAGES: dict[str, Handler] = {
    "/": runs.page,
    "/run": run.page,
    "/samples": run.samples,
    "/sample": sample.page,
    "/events": run.events,
    "/new-run": new_run.page,
    "/compare": compare.page,
    "/leaderboard": leaderboard.page,
    "/scorecard": scorecard.page,
    "/build": build.page,
    "/tokenizers": tokenizers.page,
    "/explained": explained.page,
}
ACTIONS: dict[str, Handler] = {
    "/run/mark": sample.mark,
    "/run/stop": run.stop,
    "/run/resume": run.resume,
    "/run/dismiss": run.dismiss,
    "/new-run": new_run.again,
    "/new-run/review": new_run.review,
    "/new-run/test": new_run.test,
    "/new-run/start": new_run.start,
    "/build": build.start,
    "/build/review": build.review,
    "/build/change": build.change,
    "/tokenizers": tokenizers.compare,
}
"""What forms are sent to."""


def add_routes(app: web.Application) -> None:
    app.add_routes([web.get(address, page) for address, page in PAGES.items()])
    app.add_routes([web.post(address, action) for address, action in ACTIONS.items()])
    app.router.add_get("/static/{name}", static)


async def static(request: web.Request) -> web.Response:
    name = request.match_info["name"]
    if name not in STATIC:
        raise web.HTTPNotFound(text="There is no such file.")
    path, kind = STATIC[name]
    content = files("evenkeel").joinpath(path).read_bytes()
    return web.Response(body=content, content_type=kind, headers={"Cache-Control": "max-age=60"})

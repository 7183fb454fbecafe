"""What each metric of a benchmark means."""

from __future__ import annotations

from aiohttp import web

from sealegs.api.explained import explained
from sealegs.app.rendering import html, in_thread, settings_of
from sealegs.app.rendering import page as render_page
from sealegs.harness.registry import benchmark_names


async def page(request: web.Request) -> web.Response:
    settings, names = settings_of(request), benchmark_names()
    asked = request.query.get("benchmark", "")
    name = asked if asked in names else names[0]
    metrics = await in_thread(explained, name)
    return html(
        render_page(
            settings, "explained.html", "/explained",
            title="Explained", name=name, names=names, metrics=metrics,
        )
    )  # fmt: skip

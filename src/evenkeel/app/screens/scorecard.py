"""A page that is being written."""

from __future__ import annotations

from evenkeel.app.settings import Settings


def page(settings: Settings) -> None: ...

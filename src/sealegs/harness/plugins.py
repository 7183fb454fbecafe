"""Plug-ins: classes of other packages, registered as entry points, imported when their name is asked for.

A plug-in that cannot be loaded is an error for whoever names it, and a warning for whoever lists them.
"""

from __future__ import annotations

import importlib
import warnings
from functools import cache
from typing import TYPE_CHECKING, Any

from sealegs.errors import UsageError, place_of
from sealegs.files.remote.telemetry import switch_off_telemetry

if TYPE_CHECKING:
    from importlib import metadata

UNLOADABLE = (Exception, SystemExit)
"""What importing the code of another package may raise."""


class PluginWarning(UserWarning):
    """A plug-in cannot be used."""


def load(target: str) -> Any:
    """The object of `module:name`."""
    module, _, name = target.partition(":")
    return getattr(importlib.import_module(module), name)


@cache
def entry_points(group: str, built_in: frozenset[str]) -> dict[str, metadata.EntryPoint]:
    """The plug-ins of a group by name. What is built in keeps its name; of two others, the first is used."""
    from importlib import metadata

    points: dict[str, metadata.EntryPoint] = {}
    for point in metadata.entry_points(group=group):
        if point.name in built_in or points.setdefault(point.name, point).value != point.value:
            warn(f"{origin(point)} is left out: the name '{point.name}' is taken.")
    return points


def load_plugin(point: metadata.EntryPoint) -> Any:
    switch_off_telemetry()
    try:
        return point.load()
    except UNLOADABLE as error:
        raise UsageError(f"{origin(point)} cannot be loaded: {described(error)}.") from error


def described(error: BaseException) -> str:
    """What went wrong in code of another package, and where."""
    if isinstance(error, SyntaxError):
        return f"SyntaxError in {error.filename}:{error.lineno}: {error.msg}"
    return f"{place_of(error)}: {error}"


def warn(problem: str) -> None:
    warnings.warn(problem, PluginWarning, stacklevel=3)


def origin(point: metadata.EntryPoint) -> str:
    package = f" of the package '{point.dist.name}'" if point.dist else ""
    return f"the plug-in '{point.name}' ({point.value}){package}"

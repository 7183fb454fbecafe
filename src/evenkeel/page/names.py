"""The names of figures: a metric, and the tags that it is confined to."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import unquote

from evenkeel.types import Tag


def scope_name(metric: str, scope: Mapping[str, Tag]) -> str:
    """The name of a figure in a summary: `mean_similarity`, `mean_similarity/level=3,lang=en`."""
    parts = (f"{key}={str(value).translate(_QUOTED)}" for key, value in scope.items())
    return f"{metric}/{','.join(parts)}" if scope else metric


def scope_of(name: str) -> tuple[str, dict[str, str]]:
    """The metric and the scope of a figure's name, as `scope_name` had them."""
    metric, _, scope = name.partition("/")
    pairs = (part.partition("=") for part in scope.split(",")) if scope else ()
    return metric, {key: unquote(value) for key, _, value in pairs}


_QUOTED = str.maketrans({mark: f"%{ord(mark):02X}" for mark in "%,=/"})
"""What would be misread in a scope, as addresses quote it."""

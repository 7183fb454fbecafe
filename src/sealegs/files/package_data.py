"""Data files that come with a package: JSON and text beside the code that reads them.

read_json(__package__, "bank", "en", "facts.json", type=tuple[Fact, ...])
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from sealegs.files import jsonfile

T = TypeVar("T")


def data_path(package: str, *path: str) -> Path:
    """Where a file or a folder of a package lies."""
    return Path(import_module(package).__path__[0], *path)


def read_json(package: str, *path: str, type: type[T]) -> T:
    """A JSON file of a package as `type`. It is read once: everyone gets the same object."""
    kind: Any = type  # mypy does not take `type[T]` for hashable
    content: T = _read_json(package, path, kind)
    return content


def read_text(package: str, *path: str) -> str:
    """A UTF-8 text file of a package."""
    return data_path(package, *path).read_text(encoding="utf-8")


@cache
def _read_json(package: str, path: tuple[str, ...], kind: Any) -> Any:
    return jsonfile.read_json(data_path(package, *path), kind)

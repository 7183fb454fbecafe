"""Data files that come with a package: JSON and text beside the code that reads them.

read_json(__package__, "bank", "en", "facts.json", type=tuple[Fact, ...])
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

from evenkeel.files import jsonfile

T = TypeVar("T")


def data_path(package: str, *path: str) -> Path:
    """Where a file or a folder of a package lies."""
    return Path(str(resources.files(package).joinpath(*path)))


def read_json(package: str, *path: str, type: type[T]) -> T:
    """A JSON file of a package as `type`. It is read once: everyone gets the same object."""
    content: T = _read_json(data_path(package, *path), type)
    return content


def read_text(package: str, *path: str) -> str:
    """A UTF-8 text file of a package."""
    return data_path(package, *path).read_text(encoding="utf-8")


_read_json: Any = cache(jsonfile.read_json)

"""A person's settings: `sealegs.toml` in the system's folder for settings, or the file of SEALEGS_CONFIG.

This is the only file of settings that is read. One in the working directory, which may have come with
somebody's project, is not: it could send a key to another server.
"""

from __future__ import annotations

import math
import os
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from sealegs.errors import DataError, first_line, suggestion
from sealegs.files.cache import expanded

NAME = "sealegs.toml"
SECTIONS = ("presets", "prices", "hosts")


def config_path() -> Path:
    """Where the settings are, whether or not there are any."""
    from platformdirs import user_config_path

    if named := os.environ.get("SEALEGS_CONFIG", "").strip():
        return expanded(named)
    return user_config_path("sealegs", appauthor=False) / NAME


def read_section(name: str) -> dict[str, dict[str, Any]]:
    """The tables `[name.…]` of the settings, by the rest of their names."""
    path = config_path()
    try:
        status = path.stat()
    except FileNotFoundError:
        if os.environ.get("SEALEGS_CONFIG", "").strip():
            raise DataError(path, "there is no such file. SEALEGS_CONFIG names it.") from None
        return {}
    except OSError as error:
        raise DataError(path, f"cannot be read: {error.strerror}.") from None
    return _read(path, status.st_mtime_ns).get(name, {})


def fault(section: str, entry: str, problem: str, *, field: str = "") -> DataError:
    """An error about the table `[section.entry]` or one of its fields."""
    where = f"[{section}.{entry}]{f', field {field!r}' if field else ''}"
    return DataError(config_path(), problem, where=where)


@cache
def _read(path: Path, _modified: int) -> dict[str, dict[str, dict[str, Any]]]:
    if not path.is_file():  # a pipe has no end
        raise DataError(path, "is not a file.")
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise DataError(path, f"cannot be read: {error.strerror}.") from None
    except (ValueError, RecursionError) as error:  # not TOML, not UTF-8, a number or date out of range
        raise DataError(path, f"is not TOML: {first_line(error)}.") from None
    for section, tables in content.items():
        if section not in SECTIONS:
            available = ", ".join(f"[{name}.NAME]" for name in SECTIONS)
            hint = suggestion(section, SECTIONS)
            raise DataError(path, f"there is no section '{section}'.{hint} Available: {available}.")
        for entry, table in tables.items() if isinstance(tables, dict) else ((section, tables),):
            if not isinstance(table, dict):
                problem = f"expected a table: write [{section}.NAME] and below it FIELD = VALUE."
                raise DataError(path, problem, where=f"[{section}.{entry}]")
            for field, value in table.items():
                if isinstance(value, float) and not math.isfinite(value):
                    raise fault(section, entry, f"it is {value}: write a number.", field=field)
    return content

"""Logs of Inspect in its own packed format, read by Inspect itself."""

from __future__ import annotations

from pathlib import Path

from sealegs.errors import DataError, MissingExtra, first_line

SAMPLE_FIELDS = {"id", "input", "scores", "metadata", "error"}


def read_log(path: Path) -> bytes:
    """What a comparison needs of an `.eval` file, as JSON."""
    try:
        from inspect_ai.log import read_eval_log
    except ImportError:
        install = "pip install inspect-ai"
        raise MissingExtra(f"{path}: reading .eval", package="inspect-ai", install=install) from None
    try:
        log = read_eval_log(str(path))
    except Exception as error:  # noqa: BLE001 (whatever a damaged file makes of it)
        raise DataError(path, f"Inspect cannot read it: {first_line(error)}.") from None
    include = {"eval": True, "status": True, "samples": {"__all__": SAMPLE_FIELDS}}
    content: str = log.model_dump_json(include=include)
    return content.encode()

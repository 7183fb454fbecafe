"""Whole runs of any benchmark, as small as they can be, on a loopback server or without a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import sealegs as sl
from loopback import Loopback

SMALL: dict[str, dict[str, Any]] = {
    "mirae": {"model": "openai:loop", "levels": "1", "repeats": 2, "embedder": "openai:embed"},
    "rgb": {"model": "openai:loop", "ability": "noise", "noise_rates": "0"},
    "miron": {"model": "openai:loop"},
    "multiview": {"method": "bm25"},
}
STARTER: dict[str, dict[str, Any]] = {
    "mirae": {"lang": "en", "limit": 4},
    "rgb": {"lang": "en", "limit": 4},
    "miron": {"lang": "en", "limit": 2},
    "multiview": {"limit": 3},
}
"""What is asked of the starter set; a file of the test's own is asked whole."""


def run_small(benchmark: str, out: Path, server: Loopback | None = None, **settings: Any) -> sl.Run:
    """A run with the settings above, in whose place others may be given; None leaves a setting out."""
    return sl.run(benchmark, out=out, **{"progress": False, **_small(benchmark, server, settings)})


def small_command(benchmark: str, out: Path, server: Loopback, **settings: Any) -> list[str]:
    """Such a run on the command line."""
    given = {"out": out, **_small(benchmark, server, settings)}
    flags = [(f"--{name.replace('_', '-')}", str(value)) for name, value in given.items()]
    return ["run", benchmark, *(part for flag in flags for part in flag)]


def _small(benchmark: str, server: Loopback | None, settings: dict[str, Any]) -> dict[str, Any]:
    usual = {**SMALL[benchmark], **({} if "data" in settings else STARTER[benchmark])}
    if server is not None:
        usual["base_url"] = server.url
    return {name: value for name, value in {**usual, **settings}.items() if value is not None}

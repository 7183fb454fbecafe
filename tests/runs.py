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
    usual = {**SMALL[benchmark], "progress": False, **({} if "data" in settings else STARTER[benchmark])}
    if server is not None:
        usual["base_url"] = server.url
    given = {name: value for name, value in {**usual, **settings}.items() if value is not None}
    return sl.run(benchmark, out=out, **given)

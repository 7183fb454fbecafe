"""Switches off what libraries report about their users, before they are imported and after."""

from __future__ import annotations

import os
import sys
from typing import Any

VARIABLES = {
    "DO_NOT_TRACK": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "HF_UPDATE_DOWNLOAD_COUNTS": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
}
"""Read by libraries, some of them when they are imported. Child processes inherit them."""

LOADED: dict[str, tuple[str, Any]] = {
    "huggingface_hub.constants": ("HF_HUB_DISABLE_TELEMETRY", True),
    "datasets.config": ("HF_UPDATE_DOWNLOAD_COUNTS", False),
}
"""The setting of a module that was imported before: what it read then."""


def switch_off_telemetry() -> None:
    """Call it before a library that reports something is imported or started. What a user has set to the
    contrary has no effect; whether the Hub may be used at all (HF_HUB_OFFLINE) is left to the user."""
    os.environ.update(VARIABLES)
    for module, (name, value) in LOADED.items():
        if module in sys.modules:
            setattr(sys.modules[module], name, value)

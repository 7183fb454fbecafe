"""Well-known servers that speak the OpenAI protocol: addresses, variables of keys, some of their models.

The list is data (`presets.json`). Any other server is `openai:NAME?base_url=…`. No key is read here.
"""

from __future__ import annotations

import os
from functools import cache

import msgspec
from msgspec import Struct

from evenkeel.errors import UsageError
from evenkeel.files.package_data import read_json
from evenkeel.models.registry import with_args

NO_KEY = "NO_KEY"
"""A variable that nobody sets: without one the key of OpenAI would be sent to a server of this machine."""


class Preset(Struct, frozen=True, kw_only=True):
    """A server, or a kind of server on this machine."""

    name: str = ""
    title: str
    base_url: str
    key: str = ""
    """The environment variable that holds the key; empty for a server that asks for none."""
    models: tuple[str, ...]
    """Some that it is known for. Servers add and retire models: any other name may be given."""

    @property
    def key_is_set(self) -> bool:
        """Whether a run can begin: the key's variable is set, or there is none."""
        return not self.key or bool(os.environ.get(self.key))

    def spec(self, model: str) -> str:
        """The model as `evenkeel.run` names it, with the server's address and the variable of its key."""
        if not model.strip() or "?" in model:
            raise UsageError(f"{self.title}: give the name of a model, such as {self.models[0]}.")
        args = {"base_url": self.base_url, "api_key_env": self.key or NO_KEY}
        return with_args(f"openai:{model.strip()}", args)


@cache
def _presets() -> dict[str, Preset]:
    stored = read_json(__package__, "presets.json", type=dict[str, Preset])
    return {name: msgspec.structs.replace(preset, name=name) for name, preset in stored.items()}


def presets() -> dict[str, Preset]:
    """Well-known servers by name: `ek.presets()["groq"].spec("llama-3.3-70b-versatile")`."""
    return dict(_presets())

"""Providers and local servers by name: `groq:openai/gpt-oss-20b`, all reached through the one client.

What is known of each is data (`presets.json`); a person adds or changes some in their own settings
(`files/configuration.py`). Any other server is `openai:NAME?base_url=…`. No key is read here.
"""

from __future__ import annotations

import ipaddress
import os
import re
import urllib.parse
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from sealegs.errors import UsageError, explain, suggestion
from sealegs.files import configuration
from sealegs.files.package_data import read_json

NO_KEY = "NO_KEY"
"""A variable that nobody sets: named so that no key is sent."""
RESERVED = frozenset({"embedded", "embedded-embedder", "hf", "openai", "sbert", "replay"})
"""Names that mean something else in front of a colon."""
SECTION = "presets"
NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")
VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")
EFFORT = "EFFORT"
"""Stands for `low`, `medium` or `high` in `Preset.effort`."""
TOKENS = "TOKENS"
"""Stands for the number of tokens in `Preset.reasoning_budgets`."""

Feature: TypeAlias = Literal[
    "completions", "embeddings", "rerank", "seed", "json_schema", "json_mode", "prompt_logprobs"
]


class Preset(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A provider, or a kind of server on this machine."""

    name: str = ""
    title: str = ""
    base_url: str = ""
    """Empty where each person has an address of their own: `host_variable` holds it."""
    key: str = ""
    """The environment variable that holds the key; empty for a server that asks for none."""
    key_header: Literal["Authorization", "api-key", "x-api-key"] = "Authorization"
    host_variable: str = ""
    """The environment variable that holds another address, as the server's own programs read it."""
    example: str = ""
    """An address that `host_variable` may hold, where there is none to fall back on."""
    path: str = ""
    """Put behind an address of `host_variable` that has none."""
    interface: Literal["chat", "messages", "responses"] = "chat"
    """How chats are asked: as OpenAI's chats, as Anthropic's messages, or as OpenAI's responses."""
    headers: dict[str, str] = {}
    """Sent with every request, beside the key. No setting of a person: what is there might be a key."""
    names: dict[Literal["max_tokens", "seed"], str] = {}
    """What parameters are called there, where they have another name."""
    supports: dict[Feature, bool] = {}
    """What it takes and what it does not; of a feature that is not here, nothing is known."""
    max_temperature: float | None = None
    """A higher one is lowered to this by the server."""
    extra_body: dict[str, Any] = {}
    """Fields added to every request."""
    reasoning_budgets: tuple[dict[str, Any], ...] = ()
    """Fields that allow thinking, with the number of tokens for TOKENS; where a model refuses the first, the
    next are sent."""
    effort: dict[str, Any] = {}
    """Fields that say how hard to think, with the word for EFFORT. Default: `reasoning_effort`."""
    routes: bool = False
    """Whether it passes requests on to others, which may drop parameters without saying so."""
    batches: Literal["", "openai", "anthropic"] = ""
    """The interface of its batches, if it has any."""
    batch_price: float = 1.0
    """What a token costs in a batch, as a share of the usual price."""
    sources: tuple[str, ...] = ()
    """Its documentation, for whoever checks this."""

    def __post_init__(self) -> None:
        if self.base_url and (problem := _address_problem(self.base_url)):
            raise ValueError(f"base_url {problem}")
        for field, value in (("key", self.key), ("host_variable", self.host_variable)):
            if value and not VARIABLE.fullmatch(value):
                # What is not a variable's name may be the key itself: it is not repeated.
                raise ValueError(f"{field} must be the name of an environment variable, such as MY_API_KEY")

    @property
    def key_is_set(self) -> bool:
        """Whether a run can begin: the key's variable is set, or there is none."""
        return not self.key or bool(os.environ.get(self.key))

    @property
    def on_this_machine(self) -> bool:
        """Whether its address, as it is now, is one of this machine: then nothing is paid."""
        return not self.key and is_loopback(urllib.parse.urlsplit(self.address()).hostname or "")

    def spec(self, model: str) -> str:
        """The model as `sealegs.run` names it."""
        if not model.strip() or "?" in model:
            raise UsageError(
                f"{self.title}: give the name of a model, as `sealegs list models --ask` lists them."
            )
        return f"{self.name}:{model.strip()}"

    def supports_all(self, *features: Feature) -> bool:
        """Whether nothing is known to be missing."""
        return all(self.supports.get(feature, True) for feature in features)

    def address(self) -> str:
        """The address that the environment gives, else the usual one."""
        host = os.environ.get(self.host_variable, "").strip() if self.host_variable else ""
        if host:
            return _from_host(host, self.base_url or f"https://host/{self.path}", self.host_variable)
        if not self.base_url:
            raise UsageError(
                f"{self.name}: set {self.host_variable} to the address of your resource or region, such as "
                f"{self.example}, or give --base-url."
            )
        return self.base_url

    @property
    def at_built_in_address(self) -> bool:
        """Whether a person's settings leave the provider where it is."""
        built_in = _built_in().get(self.name)
        return built_in is None or built_in.base_url == self.base_url


ANY_SERVER = Preset(name="openai", title="The server")
"""What is known of a server that no preset names."""


def presets() -> dict[str, Preset]:
    """Providers and local servers by name: `presets()["groq"].spec("openai/gpt-oss-20b")`."""
    available = dict(_built_in())
    for name, fields in configuration.read_section(SECTION).items():
        available[name] = _customised(name, fields, available.get(name))
    return available


def find_preset(name: str) -> Preset | None:
    """The preset of a name; None for `openai`, which is any server, and where there is none."""
    if name in RESERVED or not NAME.fullmatch(name):
        return None
    return presets().get(name)


def batch_preset(scheme: str) -> Preset | None:
    """What is known of the batches of a provider, `openai` included; None where it has none."""
    preset = presets().get(scheme)
    return preset if preset is not None and preset.batches else None


@cache
def _built_in() -> dict[str, Preset]:
    stored = read_json(__package__, "presets.json", type=dict[str, Preset])
    return {name: msgspec.structs.replace(preset, name=name) for name, preset in stored.items()}


def _customised(name: str, fields: Mapping[str, Any], built_in: Preset | None) -> Preset:
    """A preset of the person's settings. One that is built in keeps what they leave out, except its key where
    they give another address: a key goes only where it was meant for."""
    if name in RESERVED or not NAME.fullmatch(name):
        problem = "is taken" if name in RESERVED else "is not one: use a-z, 0-9, - and _"
        raise configuration.fault(SECTION, name, f"the name '{name}' {problem}.")
    available = [field for field in Preset.__struct_fields__ if field not in ("name", "headers")]
    for field in fields:
        if field not in available:
            problem = (
                f"there is no such field.{suggestion(field, available)} Available: {', '.join(available)}."
            )
            raise configuration.fault(SECTION, name, problem, field=field)
    former = msgspec.to_builtins(built_in) if built_in else {"title": name}
    if not built_in and (fields.get("interface") == "messages" or fields.get("batches") == "anthropic"):
        anthropic = _built_in()["anthropic"]  # its interfaces want the key, and their version, in these
        former |= {"key_header": anthropic.key_header, "headers": anthropic.headers}
    if built_in and "base_url" in fields:
        former |= {"key": "", "host_variable": ""}
    try:
        preset = msgspec.convert({**former, **fields, "name": name}, Preset)
    except msgspec.ValidationError as error:
        wrong = explain(error, fields)
        field = str(wrong.path[0]) if wrong.path else next((f for f in fields if f in str(error)), "")
        raise configuration.fault(SECTION, name, f"{wrong.problem.rstrip('.')}.", field=field) from None
    if not preset.base_url and not preset.host_variable:
        raise configuration.fault(SECTION, name, "give its address: base_url = 'http://127.0.0.1:8000/v1'.")
    return preset


def _address_problem(address: str) -> str:
    """Why a text is not the address of a server; empty if it is. The text may hold a password."""
    try:
        parts = urllib.parse.urlsplit(address)
        _ = parts.port
    except ValueError:
        return "is not a web address"
    if parts.scheme not in ("http", "https") or not parts.hostname:
        return "must begin with http:// or https:// and name a host"
    if set(address) & set("@?#"):
        return "may not hold a user, a password or a query: put the key into a variable and name that as key"
    return ""


def _from_host(value: str, usual: str, variable: str) -> str:
    """The address of `HOST`, `HOST:PORT`, `:PORT` or a whole one; what it leaves out is as usual."""
    usual_parts = urllib.parse.urlsplit(usual)
    whole = value if "://" in value else f"{usual_parts.scheme}://{value}"
    try:
        parts = urllib.parse.urlsplit(whole)
        port = parts.port
    except ValueError:
        raise UsageError(f"{variable} is not the address of a server. Example: {usual}") from None
    if parts.scheme not in ("http", "https"):
        raise UsageError(f"{variable} must begin with http:// or https://, or be HOST:PORT.")
    host = parts.hostname or usual_parts.hostname or ""
    if host in ("0.0.0.0", "::"):
        host = "127.0.0.1"  # where a server listens, not where one is
    if port is None and "://" not in value:
        port = usual_parts.port
    shown = f"[{host}]" if ":" in host else host
    path = parts.path.rstrip("/") or usual_parts.path
    return f"{parts.scheme}://{shown}{f':{port}' if port else ''}{path}"


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")

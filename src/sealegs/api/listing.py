"""Which models can be named: kinds of model, and providers with what their servers list."""

from __future__ import annotations

import os

from msgspec import Struct

from sealegs.errors import UsageError
from sealegs.models.openai.endpoint import Endpoint, endpoints
from sealegs.models.openai.listing import Listed
from sealegs.models.openai.listing import list_models as ask_servers
from sealegs.models.presets import Preset, presets
from sealegs.models.prices import price_table
from sealegs.models.registry import backend_class, backends
from sealegs.options import describe

MOST_SUGGESTED = 5


class ModelKind(Struct, frozen=True):
    """A backend: how its models are named, and its options."""

    form: str
    about: str
    options: dict[str, str]


class ListedProvider(Struct, frozen=True, kw_only=True):
    """A preset as it is here: whether its key is set, never the key."""

    name: str
    title: str
    address: str
    key: str
    key_is_set: bool
    suggested: list[str] = []
    """Some of its models, as of `suggestions_date()`."""
    models: list[str] = []
    """What its server lists, where it was asked."""
    problem: str = ""
    """Why it lists none."""


def model_kinds() -> list[ModelKind]:
    return [
        ModelKind(
            f"{scheme}:NAME" if entry.named else scheme,
            entry.about,
            {option.name: option.description for option in describe(backend_class(scheme).Options)},
        )
        for scheme, entry in backends().items()
    ]


def providers(*, ask: bool = False) -> list[ListedProvider]:
    """Every preset; with `ask`, what the servers list that need no key or whose key is set."""
    servers = {name: _server(preset) for name, preset in presets().items()}
    asked = {
        name: server
        for name, server in servers.items()
        if ask and isinstance(server, Endpoint) and presets()[name].key_is_set and not presets()[name].path
    }
    listed = ask_servers(asked) if asked else {}
    suggested = suggested_models()
    return [
        ListedProvider(
            name=name,
            title=preset.title,
            address=server.shown if isinstance(server := servers[name], Endpoint) else server,
            key=preset.key,
            key_is_set=preset.key_is_set,
            suggested=suggested.get(name, []),
            models=listed[name].models if name in listed else [],
            problem=listed[name].problem if name in listed else "",
        )
        for name, preset in presets().items()
    ]


def suggested_models() -> dict[str, list[str]]:
    """A few current models of each provider whose prices are known, the first ones of its page."""
    return {
        name: list(provider.models)[:MOST_SUGGESTED] for name, provider in price_table().providers.items()
    }


def suggestions_date() -> str:
    return price_table().date


def models_of(name: str) -> Listed:
    """What the server of a preset lists. It is asked with its own key."""
    preset = presets()[name]
    if not preset.key_is_set:
        return Listed([], f"{preset.key} is not set.")
    server = _server(preset)
    return ask_servers({name: server})[name] if isinstance(server, Endpoint) else Listed([], server)


def _server(preset: Preset) -> Endpoint | str:
    """Where its models are, or why that is not known."""
    try:
        return endpoints(None, None, preset=None if preset.name == "openai" else preset)[0]
    except UsageError as error:
        named = preset.base_url or os.environ.get(preset.host_variable)
        return str(error).rstrip(".") if named else f"{preset.host_variable} not set"

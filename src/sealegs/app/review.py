"""The last look before a start: every host that would be called, and a seal on what was looked at."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec
from multidict import MultiMapping

from sealegs.errors import UsageError
from sealegs.files.remote.sources import HUB, is_elsewhere
from sealegs.models.registry import called_hosts, split_spec
from sealegs.types import ModelRef

HUB_HOST = "huggingface.co"
SEAL_KEY = secrets.token_bytes(32)
"""Of this process, and on no page: every form has the token of forms."""


class CalledHost(NamedTuple):
    """A host that would be called."""

    host: str
    purpose: str
    key: str
    """The variable whose key goes there; empty where none does."""
    foreign: bool = False
    """Whether the key is another provider's."""


def calls_of(refs: Mapping[str, ModelRef], sources: Iterable[str]) -> list[CalledHost]:
    """Every host that models and data would call, and which key goes where."""
    calls = []
    for role, ref in refs.items():
        name = split_spec(ref.spec)[0]
        title = role if role.partition(":")[2] else f"{role} {name}"  # a role may name its model itself
        for server in called_hosts(ref):
            variable = server.variable if server.key else ""
            calls.append(CalledHost(server.host, title, variable, bool(variable and not server.belongs)))
        scheme, _, place = name.partition(":")
        if scheme in ("hf", "sbert") and place and not Path(place).expanduser().exists():
            calls.append(CalledHost(HUB_HOST, f"weights of {place}, unless they are on this machine", ""))
    for source in filter(is_elsewhere, sources):
        host = HUB_HOST if source.startswith(HUB) else urlsplit(source).netloc
        calls.append(CalledHost(host, "data, unless it is on this machine", ""))
    return calls


def sealed(fields: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The fields of a form, with a seal that only this server can make."""
    listed = list(fields)
    return [*listed, ("seal", _seal(listed))]


def check_seal(form: MultiMapping[Any]) -> None:
    """Refuse a form that is not as the page before had it."""
    fields = [(name, str(value)) for name, value in form.items() if name not in ("token", "seal")]
    if not hmac.compare_digest(_seal(fields).encode(), str(form.get("seal", "")).encode()):
        raise UsageError("these settings are not those of the page before: fill in the form again.")


def _seal(fields: Iterable[tuple[str, str]]) -> str:
    """A browser may send other line ends than it got."""
    text = msgspec.json.encode([(name, value.replace("\r", "")) for name, value in fields])
    return hmac.new(SEAL_KEY, text, hashlib.sha256).hexdigest()

"""Where a server is, and the credentials for it, which are sent in a request's header and shown nowhere."""

from __future__ import annotations

import base64
import contextlib
import os
import re
import urllib.parse
import urllib.request
from typing import TYPE_CHECKING, NamedTuple

from yarl import URL

from evenkeel.errors import UsageError
from evenkeel.models.openai.redaction import LONG, SHORTEST_SECRET, Redaction, is_random, looks_like_key
from evenkeel.models.presets import is_loopback, presets

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from evenkeel.models.presets import Preset

EXAMPLE = "http://127.0.0.1:8000/v1"
KEY_VARIABLE = "OPENAI_API_KEY"
ADDRESS_VARIABLE = "OPENAI_BASE_URL"
OPENAI_ADDRESS = "https://api.openai.com/v1"
ADDRESSES = re.compile(r"\s*,[\s,]*(?=https?://|$)", re.IGNORECASE)
"""Between two addresses, or after the last; any other comma is part of one."""
SECRETS = re.compile(r"key|token|secret|pass|pwd|auth|sig|code|jwt|cred|session|sas", re.IGNORECASE)
"""In the name of a query field: its value is a secret, even if it is a word. No value is ever shown; those of
other fields (a tenant, a model) are removed from answers only if they are unlike words."""


class Endpoint:
    """A base URL and its credentials. `shown` is the address without any of them."""

    def __init__(
        self,
        base_url: str,
        key: str,
        *,
        option: str,
        further: Iterable[str],
        key_header: str,
    ) -> None:
        url = _parsed(base_url, option)
        self._url = url.with_user(None).with_fragment(None)
        self.local = is_loopback(url.host or "")
        user, password = url.user or "", url.password or ""
        basic = base64.b64encode(f"{user}:{password}".encode()).decode() if user or password else ""
        self._key = "" if basic else key
        self.headers = {"Content-Type": "application/json", "Accept-Encoding": "gzip, deflate"}
        if basic:
            self.headers["Authorization"] = f"Basic {basic}"
        elif key:
            self.headers[key_header] = f"Bearer {key}" if key_header == "Authorization" else key
        values = [value for name, value in url.query.items() if SECRETS.search(name) or is_random(value)]
        self.has_credentials = bool(key or basic or any(len(value) >= SHORTEST_SECRET for value in values))
        # A user without a password is a key. A key that is a word is a placeholder for none.
        keys = [] if key.isalpha() and len(key) < LONG else [key]
        keys += filter(looks_like_key, url.path.split("/"))
        secrets = [*keys, password or user, basic, *values, url.fragment, *filter(is_random, further)]
        self.redacted = Redaction([*secrets, *_credentials(self.proxy())])
        self.shown = self.redacted.text(_shown(self._url, url.query))

    def __reduce__(self) -> str:
        raise TypeError("an endpoint holds credentials and cannot be pickled: pickle the model's spec.")

    def headers_with(self, key_header: str, further: Mapping[str, str]) -> dict[str, str]:
        """The headers of another interface of the same server, which has the key in its own header."""
        headers = {**self.headers, **further}
        if key_header != "Authorization" and self._key:
            headers.pop("Authorization", None)
            headers[key_header] = self._key
        return headers

    def url(self, path: str) -> URL:
        return self._url.joinpath(*path.split("/")).with_query(self._url.query)

    def proxy(self) -> str | None:
        """The proxy that the environment names, looked up once: aiohttp would do so for every request."""
        if self.local or urllib.request.proxy_bypass(self._url.host or ""):
            return None
        return urllib.request.getproxies().get(self._url.scheme)

    def hint(self) -> str:
        """What to say where this address is wrong: a better one, if it is unlike those of such an API."""
        steps = [step for step in self._url.path.split("/") if step]
        while steps and steps[-1] in ("chat", "completions", "embeddings"):
            steps.pop()
        if not any(re.fullmatch(r"v\d+\w*", step) for step in steps):
            steps.append("v1")
        better = self._url.with_path("/" + "/".join(steps))
        if better.path == self._url.path:
            return "Is this the address of an OpenAI-compatible API?"
        return f"Did you mean {self.redacted.text(_shown(better, self._url.query))}?"


def endpoints(
    base_url: str | None,
    api_key_env: str | None,
    further: Iterable[str] = (),
    *,
    preset: Preset | None = None,
) -> list[Endpoint]:
    """The servers at the addresses, which are separated by commas; `further` texts that are sent to them may
    hold secrets too. At another address than a preset's own, only a key that was named is sent."""
    secrets = list(further)
    option, pairs = _addresses(base_url, api_key_env, preset)
    header = preset.key_header if preset else "Authorization"
    return [
        Endpoint(address, _key(variable), option=option, further=secrets, key_header=header)
        for address, variable in pairs
    ]


def _addresses(
    base_url: str | None, api_key_env: str | None, preset: Preset | None
) -> tuple[str, list[tuple[str, str]]]:
    """The option that gives the addresses, and each with the variable of the key that is sent there."""
    option, addresses = "base_url", (base_url or "").strip().strip(",")
    if not addresses and preset is not None:
        option, addresses = preset.host_variable or option, preset.address()
    elif not addresses and (addresses := os.environ.get(ADDRESS_VARIABLE, "").strip()):
        option = ADDRESS_VARIABLE
    pairs = []
    listed = ADDRESSES.split(addresses or OPENAI_ADDRESS)
    for address in {address.rstrip("/"): address for address in listed if address}.values():
        variable = api_key_env
        if variable is None and preset is None:
            variable = KEY_VARIABLE
        elif variable is None and preset is not None and _is_of(preset, address):
            variable = preset.key
        pairs.append((address, variable or ""))
    return option, pairs


class SentKey(NamedTuple):
    """A key that a model's requests carry."""

    variable: str
    host: str
    """`HOST`, or `HOST:PORT` where the port is not the usual one."""
    belongs: bool
    """Whether the server is that of the provider whose key it is."""

    def __str__(self) -> str:
        return f"{self.variable} goes to {self.host}"


def sent_keys(base_url: str | None, api_key_env: str | None, preset: Preset | None) -> list[SentKey]:
    """Which keys a model's requests carry, and where to; nothing for variables that are not set."""
    keys = []
    for address, variable in _addresses(base_url, api_key_env, preset)[1]:
        if variable and os.environ.get(variable, "").strip():
            url = _parsed(address, "base_url")
            host = f"{url.host}" if url.is_default_port() else f"{url.host}:{url.port}"
            keys.append(SentKey(variable, host, _belongs(variable, address)))
    return keys


def _belongs(variable: str, address: str) -> bool:
    """Whether a variable holds the key of the provider at an address."""
    moved = os.environ.get(ADDRESS_VARIABLE, "").strip()
    if variable == KEY_VARIABLE and moved:
        return address.rstrip("/") in [each.rstrip("/") for each in ADDRESSES.split(moved)]
    return any(preset.key == variable and _is_of(preset, address) for preset in presets().values())


def _key(variable: str) -> str:
    key = os.environ.get(variable, "").strip() if variable else ""
    if not key.isprintable():  # a header is one line of text
        raise UsageError(f"{variable} holds a line break or another character that no key has.")
    return key


def _is_of(preset: Preset, address: str) -> bool:
    """Whether an address is of the server that a preset's key belongs to: same scheme, host and port as the
    preset's own, or as the one that the environment gives where the preset has none."""
    own = preset.base_url or (os.environ.get(preset.host_variable) and preset.address())
    return bool(own) and _origin(_parsed(address, "base_url")) == _origin(URL(str(own)))


def _credentials(proxy: str | None) -> list[str]:
    """The password of a proxy's address, as it is and as it is sent."""
    try:
        url = URL(proxy or "")
        user, password = url.user or "", url.password or ""
    except ValueError:
        return []
    basic = base64.b64encode(f"{user}:{password}".encode()).decode()
    return [password, basic] if password else []


def _origin(url: URL) -> tuple[str, str, int | None]:
    return url.scheme, (url.host or "").lower(), url.port


def _parsed(base_url: str, option: str) -> URL:
    with contextlib.suppress(ValueError):  # UnicodeError is one
        url = URL(base_url.strip().rstrip("/"))
        (url.raw_host or "").encode("idna")  # as it is looked up
        if url.scheme in ("http", "https") and url.host and url.port:
            return url
    # An address that may hold a password is not repeated.
    quoted = f" '{base_url}'" if not set(base_url) & set("@?#") else ""
    raise UsageError(
        f"{option}{quoted} is not a web address: expected http:// or https://, a host and a valid port. "
        f"Example: {EXAMPLE}"
    )


def _shown(url: URL, query: Iterable[str]) -> str:
    """An address with the names of its query fields; a value may be a secret whatever its name."""
    names = [urllib.parse.quote(name, safe="") for name in dict.fromkeys(query)]
    return f"{url.with_query(None)}{'?' if names else ''}{'&'.join(names)}"

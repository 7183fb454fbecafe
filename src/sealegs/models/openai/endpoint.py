"""Where a server is, and the credentials for it, which are sent in a request's header and shown nowhere."""

from __future__ import annotations

import base64
import contextlib
import os
import re
import urllib.parse
import urllib.request
from typing import TYPE_CHECKING, Any, NamedTuple

from yarl import URL

from sealegs.errors import UsageError
from sealegs.models.openai.redaction import Redaction, is_for_key
from sealegs.models.presets import ANY_SERVER, NO_KEY, is_loopback, presets

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sealegs.models.presets import Preset

EXAMPLE = "http://127.0.0.1:8000/v1"
KEY_VARIABLE = "OPENAI_API_KEY"
ADDRESS_VARIABLE = "OPENAI_BASE_URL"
OPENAI_ADDRESS = "https://api.openai.com/v1"
ADDRESSES = re.compile(r"\s*,[\s,]*(?=https?://|$)", re.IGNORECASE)
"""Between two addresses, or after the last; any other comma is part of one."""


class Endpoint:
    """A base URL and the key that is sent there. `shown` is the address without the values of its query."""

    def __init__(self, place: Destination, preset: Preset) -> None:
        self._url = _parsed(place.address, "base_url")
        self.local = is_loopback(self._url.host or "")
        key, header = place.key, preset.key_header
        self._lacks_key = place.lacks_key
        """Whether one was meant to be sent, and its variable is not set."""
        self._key_advice = "" if key else _key_advice(place.variable, preset)
        """Why none is sent, and what to do about it."""
        self.headers = {"Content-Type": "application/json", "Accept-Encoding": "gzip, deflate"}
        self.headers |= preset.headers
        if key:
            self.headers[header] = f"Bearer {key}" if header == "Authorization" else key
        self.redacted = Redaction([key, *_credentials(self.proxy())])
        self.shown = self.redacted.text(_shown(self._url, self._url.query))

    def require_key(self) -> None:
        """Refuse a model whose key is not set, before anything is sent; a local server needs none."""
        if self._lacks_key and not self.local:
            raise UsageError(f"No key for {self.shown}: {self._key_advice}")

    def key_advice(self, status: int) -> str:
        """What to say where a server refuses a request that carried no key; empty where it carried one."""
        refused = status in (401, 403) and self._key_advice
        return f"No key was sent: {self._key_advice}" if refused else ""

    def __reduce__(self) -> str:
        raise TypeError("an endpoint holds credentials and cannot be pickled: pickle the model's spec.")

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


class Destination(NamedTuple):
    """Where requests of a model go, and with which key."""

    address: str
    host: str
    """`HOST`, or `HOST:PORT` where the port is not the usual one."""
    variable: str
    """That holds the key; empty where none is sent."""
    belongs: bool
    """Whether the server is that of the provider whose key it is."""

    @property
    def key(self) -> str:
        key = os.environ.get(self.variable, "").strip() if self.variable else ""
        if not key.isprintable():  # a header is one line of text
            raise UsageError(f"{self.variable} holds a line break or another character that no key has.")
        return key

    @property
    def lacks_key(self) -> bool:
        return self.variable not in ("", NO_KEY) and not self.key


def endpoints(
    base_url: str | None, api_key_env: str | None, *, preset: Preset | None = None
) -> list[Endpoint]:
    """The servers at the addresses, which are separated by commas."""
    places = destinations(base_url, api_key_env, preset)
    return [Endpoint(place, preset or ANY_SERVER) for place in places]


def _key_advice(variable: str, preset: Preset) -> str:
    """Why no key is sent, where one may be missing."""
    usual = KEY_VARIABLE if preset is ANY_SERVER else preset.key
    if variable not in ("", NO_KEY):
        return (
            f"set the environment variable {variable} (to any word if the server needs none), or name "
            "another: --model-arg api_key_env=NAME."
        )
    if variable == NO_KEY or not usual:
        return "name its variable: --model-arg api_key_env=NAME."
    owner = f"the address in {ADDRESS_VARIABLE}, or else to OpenAI" if preset is ANY_SERVER else preset.title
    return (
        f"{usual} goes to {owner} alone. To send a key here, name its variable: --model-arg api_key_env=NAME."
    )


def destinations(base_url: str | None, api_key_env: str | None, preset: Preset | None) -> list[Destination]:
    """Every server that a model's requests go to. A key goes to the server that it belongs to, and to others
    only where its variable is named."""
    option, addresses = "base_url", (base_url or "").strip().strip(",")
    if not addresses and preset is not None:
        option, addresses = preset.host_variable or option, preset.address()
    elif not addresses and (addresses := os.environ.get(ADDRESS_VARIABLE, "").strip()):
        option = ADDRESS_VARIABLE
    listed = ADDRESSES.split(addresses or OPENAI_ADDRESS)
    places = []
    for address in {address.rstrip("/"): address for address in listed if address}.values():
        url = _parsed(address, option)
        variable = api_key_env
        if variable is None and preset is not None:
            variable = preset.key if _is_of(preset, address) else ""
        elif variable is None:
            variable = KEY_VARIABLE if _belongs(KEY_VARIABLE, address) else ""
        host = f"{url.host}" if url.is_default_port() else f"{url.host}:{url.port}"
        places.append(Destination(address, host, variable, bool(variable) and _belongs(variable, address)))
    return places


def _belongs(variable: str, address: str) -> bool:
    """Whether a variable holds the key of the provider at an address."""
    moved = os.environ.get(ADDRESS_VARIABLE, "").strip()
    if variable == KEY_VARIABLE and moved:
        return address.rstrip("/") in [each.rstrip("/") for each in ADDRESSES.split(moved)]
    return any(preset.key == variable and _is_of(preset, address) for preset in presets().values())


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
    if part := key_in_address(base_url):
        raise UsageError(
            f"{option} may not hold {part}: an address is shown and stored. Put the key into an environment "
            "variable and name that: --model-arg api_key_env=NAME."
        )
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


def key_in_address(addresses: str) -> str:
    """The part of an address, or of one of several, that is for a key, by its name; empty where none is."""
    for address in ADDRESSES.split(addresses):
        try:
            parts = urllib.parse.urlsplit(address.strip())
            fields = urllib.parse.parse_qsl(parts.query, keep_blank_values=True)
        except ValueError:  # refused where it is used
            continue
        if "@" in parts.netloc:
            return "a user or a password"
        if parts.fragment:
            return "what follows a '#'"
        if names := [name for name, _ in fields if is_for_key(name)]:
            return f"the field '{names[0]}'"
    return ""


def key_in_body(value: Any) -> str:
    """The field of a JSON value that is for a key, by its name, and holds a text; empty for none."""
    for name, part in value.items() if isinstance(value, dict) else ():
        if isinstance(part, str) and part and is_for_key(name):
            return f"the field '{name}'"
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return next(filter(None, map(key_in_body, parts)), "")


def _shown(url: URL, query: Iterable[str]) -> str:
    """An address with the names of its query fields; a value may be a secret whatever its name."""
    names = [urllib.parse.quote(name, safe="") for name in dict.fromkeys(query)]
    return f"{url.with_query(None)}{'?' if names else ''}{'&'.join(names)}"

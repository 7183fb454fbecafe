"""What the person who started the app allows: which folders, who may ask, and whether anything is written."""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path

from aiohttp import web
from msgspec import Struct

from sealegs.errors import UsageError

NAME = re.compile(r"[\w-]+(\.[\w-]+)*", re.ASCII)


class AppSettings(Struct, frozen=True, kw_only=True):
    """The folders of the app, in which names from a page are looked up and nowhere else, and where it
    listens."""

    runs: Path
    models: Path | None = None
    data: Path | None = None
    host: str = "127.0.0.1"
    port: int = 8501
    read_only: bool = False
    allow_hosts: tuple[str, ...] = ()
    """Further names of this server, as a proxy before it has."""
    open_browser: bool = False
    form_token: str = ""
    """What every form sends back."""

    def __post_init__(self) -> None:
        for name in self.allow_hosts:
            if not NAME.fullmatch(name):
                raise UsageError(f"--allow-host {name}: give a name, such as runs.example.org.")
        if not (self.read_only or self._on_loopback):
            raise UsageError(
                f"--host {self.host} lets others in: add --read-only, so that they see the runs and cannot "
                "start any with the keys of this environment."
            )

    @property
    def _on_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    def url(self, port: int) -> str:
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    @property
    def shown_runs(self) -> str:
        """The folder of runs in a message: without those above it where strangers may look."""
        return self.runs.name if self.read_only else str(self.runs)

    @property
    def built(self) -> Path:
        """Where the data sets lie that were built here, and the files that were uploaded."""
        return self.runs / "data"

    def data_sets(self) -> dict[str, Path]:
        """What can be chosen as data, by name: what was built here, and what lies in the folder of data."""
        folders = [each for each in (self.built, self.data) if each is not None and each.is_dir()]
        return {
            str(path.relative_to(folder)): path
            for folder in folders
            for listed in sorted(folder.iterdir())
            if not listed.name.startswith((".", "_")) and not listed.is_symlink()
            for path in (sorted(listed.iterdir()) if listed == self.uploads else (listed,))
            if path.exists() and not path.is_symlink() and is_plain_name(str(path.relative_to(folder)))
        }

    @property
    def uploads(self) -> Path:
        return self.built / "uploads"

    def model_folders(self) -> dict[str, Path]:
        """The models in the folder of models, by name: folders of transformers, and GGUF files."""
        if self.models is None or not self.models.is_dir():
            return {}
        candidates = [path for path in sorted(self.models.rglob("*")) if not path.is_symlink()]
        found = [path.parent for path in candidates if path.name == "config.json"]
        found += [path for path in candidates if path.suffix == ".gguf"]
        names = {str(path.relative_to(self.models)): path for path in dict.fromkeys(found)}
        return {name: path for name, path in names.items() if is_plain_name(name)}


def is_plain_name(name: str) -> bool:
    """Whether the name of a file can be shown, and be part of a spec without becoming its arguments."""
    return "?" not in name and name.isprintable()


SETTINGS: web.AppKey[AppSettings] = web.AppKey("settings", AppSettings)

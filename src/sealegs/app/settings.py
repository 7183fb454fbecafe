"""What the person who started the app allows: which folders, and whether anything may be written."""

from __future__ import annotations

from pathlib import Path

from aiohttp import web
from msgspec import Struct


class AppSettings(Struct, frozen=True):
    """The folders of the app. Names from the page are looked up in these and nowhere else."""

    runs: Path
    models: Path | None
    data: Path | None
    read_only: bool
    form_token: str = ""
    """What every form sends back."""

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

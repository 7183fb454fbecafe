"""A run's folder while a process writes it: one process at a time, and a kill harms nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import msgspec

from sealegs.errors import DataError, RunConflict, StorageError
from sealegs.files import lock
from sealegs.files.cache import drafts_in, replacing, storage_errors
from sealegs.files.jsonfile import read_json
from sealegs.harness.folder.layout import (
    BATCHES,
    FILES,
    LOG,
    LOGS,
    MARKS,
    STARTED,
    STOP,
    STOPPED,
)
from sealegs.harness.folder.spec import read_spec, shown, spec_changes
from sealegs.types import RunSpec, Summary, to_jsonable


class RunFolder:
    """The folder of a run that this process is writing."""

    def __init__(self, path: Path, spec: RunSpec) -> None:
        self.path = path
        self.spec = spec
        """As it is stored: that of the run's beginning, where this is a resumed one."""
        self._is_new = False
        """Whether no run was in the folder before this start."""
        self._is_abandoned = False

    @classmethod
    @contextlib.contextmanager
    def open(cls, path: Path, spec: RunSpec, *, fresh: bool = False) -> Iterator[RunFolder]:
        """Begin a run, or resume it if its spec is the same. One process at a time."""
        with storage_errors(path / "spec.json"):
            path.mkdir(parents=True, exist_ok=True)
        with lock.writing(path):
            folder = cls(path, spec)
            folder._begin(spec, fresh=fresh)
            try:
                yield folder
            finally:
                if folder._is_abandoned:
                    folder._remove_run(kept=STARTED if (path / LOG).exists() else "")

    def _begin(self, spec: RunSpec, *, fresh: bool) -> None:
        for name in (*FILES, *LOGS):
            if (self.path / name).is_symlink():
                raise RunConflict(
                    f"{self.path / name} is a link. The files of a run must lie in its own folder: "
                    "choose another --out."
                )
        existing = self.path / "spec.json"
        if existing.is_file():
            if not _is_spec(existing):
                raise RunConflict(f"{existing} is not the spec of a run. Choose another --out.")
            self._remove_drafts()
            if not fresh:
                self._resume(spec)
                return
            self._remove_run()
        elif strange := next((path for path in self.path.iterdir() if not _may_precede(path)), None):
            raise RunConflict(
                f"{self.path} is not empty and is not a run: it holds {strange.name}. Choose another --out."
            )
        else:
            self._is_new = True
            self._remove_drafts()
        self.write_json("spec.json", spec)

    def _resume(self, spec: RunSpec) -> None:
        self.spec = read_spec(self.path)
        changes = spec_changes(self.spec, spec).items()
        if differences := [
            f"{name}: {shown(there)} in that run, {shown(here)} here" for name, (there, here) in changes
        ]:
            if spec.benchmark != self.spec.benchmark:
                del differences[1:]  # the others follow from it
            raise RunConflict(
                f"{self.path} holds another run: {'; '.join(differences)}. "
                "Choose another --out, or start over with --fresh."
            )

    def _remove_drafts(self) -> None:
        """Remove what a killed process was writing."""
        for draft, name in drafts_in(self.path):
            if name in FILES:
                draft.unlink()
        if (self.path / "export").is_dir():
            for draft, _ in drafts_in(self.path / "export"):
                draft.unlink()

    def _remove_run(self, kept: str = "") -> None:
        """Remove what the run wrote. The spec goes last: as long as it is there, the folder is a run."""
        exported: list[str] = []
        with contextlib.suppress(DataError):  # a spec that cannot be read names none
            exported = read_spec(self.path).provenance.get("exported", [])
        for name in exported:
            if Path(name).name == name:  # the spec may be a stranger's
                (self.path / "export" / name).unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # there is none, or it holds something else
            (self.path / "export").rmdir()
        for name in (*FILES[1:], *LOGS, "spec.json"):
            if name not in ("export", kept):
                (self.path / name).unlink(missing_ok=True)

    def abandon(self) -> None:
        """Have the run removed when it is closed, if this start began it and nothing is to come back. The log
        of a process without a terminal says why: it stays, with the settings."""
        self._is_abandoned = self._is_new and not (self.path / BATCHES).exists()

    @property
    def journal(self) -> Path:
        return self.path / "journal.sqlite"

    def add_provenance(self, **parts: Any) -> None:
        """Keep in the spec what became known while the run was made; the rest of it stays."""
        provenance = {**self.spec.provenance, **parts}
        if provenance != self.spec.provenance:
            self.spec = msgspec.structs.replace(self.spec, provenance=provenance)
            self.write_json("spec.json", self.spec)

    def write_summary(self, summary: Summary) -> None:
        """summary.json: a figure's metric and scope are its key there."""
        figures = {name: to_jsonable(figure) for name, figure in summary.items()}
        for figure in figures.values():
            del figure["metric"], figure["scope"]
            for name in ("basis", "deciding"):
                if not figure[name]:
                    del figure[name]
        self.write_json("summary.json", figures)

    def write_json(self, name: str, value: Any) -> None:
        self.write_bytes(name, msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")

    def write_bytes(self, name: str, content: bytes) -> None:
        with self.writing(name) as file:
            file.write(content)

    @contextlib.contextmanager
    def writing(self, name: str) -> Iterator[IO[bytes]]:
        """A file of the run to write to: there as a whole when the block ends well, and not at all if not."""
        target = self.path / name
        if not target.resolve().is_relative_to(self.path.resolve()):
            raise StorageError(f"refusing to write '{name}' outside the run's folder.")
        with replacing(target) as draft, draft.open("wb") as file:
            yield file


def _is_spec(path: Path) -> bool:
    """Whether a file is the spec of a run, of whatever version."""
    try:
        content = read_json(path)
    except DataError:
        return False
    return isinstance(content, dict) and {"format", "benchmark", "provenance"} <= content.keys()


def _may_precede(path: Path) -> bool:
    """Whether a file may lie in a folder before a run begins there: a lock, marks, what a process was
    begun with, a request to stop, or what a killed process left of the spec."""
    if path.name in (lock.LOCK, MARKS, STARTED):
        return True
    if path.name == LOG:
        return path.with_name(STARTED).is_file()
    if path.name in (STOP, STOPPED):
        return not path.stat().st_size
    return any(draft == path and name in FILES for draft, name in drafts_in(path.parent))

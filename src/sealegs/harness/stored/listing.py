"""The runs below a folder: which there are, which state each is in, and one of them by its name.

A folder may come from a stranger: what cannot be read is listed with its problem, and a name leads to nothing
outside the folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from sealegs.errors import SealegsError, UsageError, place_of
from sealegs.files import lock
from sealegs.harness.folder import Run, load_run
from sealegs.harness.folder.layout import run_file
from sealegs.page.examples import shortened
from sealegs.types import Figure

State: TypeAlias = Literal["finished", "running", "unfinished", "broken"]


class ListedRun(Struct, frozen=True, kw_only=True):
    """A run in a list. Only a finished one has a headline."""

    path: str
    name: str
    """Its path within the folder that was listed, with slashes; `.` where that folder is the run."""
    state: State
    """`running`: a process is writing it. `unfinished`: none is, and it has no figures yet."""
    problem: str = ""
    """Why a `broken` one cannot be read."""
    benchmark: str = ""
    model: str = ""
    created: str = ""
    metric: str = ""
    part: str = ""
    """Of which parts the headline is, where it is not of all: `noise only`."""
    headline: Figure | None = None
    """Without a value where there are several subjects."""
    subjects: dict[str, Figure] = {}
    """The headline of each subject, where several can be set side by side."""


def list_runs(folder: str | Path) -> list[ListedRun]:
    """The runs below a folder, newest first: `[run.name for run in sl.list_runs("runs")]`.

    Hidden folders are left out, and links are not followed. A folder that does not exist has no runs.
    """
    root = Path(folder)
    runs = [run for path in run_folders(root) if (run := _listed(root, path)) is not None]
    return sorted(runs, key=lambda run: (run.created, run.name), reverse=True)


def open_run(folder: str | Path, name: str) -> Run:
    """A run by the name that `list_runs` gives it: `open_run("runs", "20261115-180400-mirae-embedded")`.

    The name may come from anyone: one that leads out of the folder is refused.
    """
    return load_run(path_of(folder, name))


def path_of(folder: str | Path, name: str) -> Path:
    """The folder of a run by its name; one that leads out of `folder` is refused."""
    parts = PurePosixPath(name).parts
    path = Path(folder)
    outside = not name or "\\" in name or "\0" in name or PurePosixPath(name).is_absolute() or ".." in parts
    try:
        for part in () if outside else parts:
            path /= part
            outside = outside or part.startswith(".") or path.is_symlink()
        outside = outside or not path.resolve().is_relative_to(Path(folder).resolve())
    except OSError:  # no folder can have such a name: it is too long, say
        outside = True
    if outside:
        raise UsageError(f"{shortened(name)!r} is not the name of a run below {folder}.")
    return path


def run_folders(root: Path) -> Iterator[Path]:
    """The folders that hold a spec.json."""
    for path, folders, files in os.walk(root):
        is_run = "spec.json" in files
        folders[:] = [
            name for name in folders if not name.startswith(".") and not (is_run and name == "export")
        ]
        if is_run:
            yield Path(path)


def _listed(root: Path, path: Path) -> ListedRun | None:
    """A run as it is listed; None for one that was deleted in the meantime."""
    listed = ListedRun(path=str(path), name=path.relative_to(root).as_posix(), state="broken")
    shown = os.fsencode(listed.name).decode(errors="backslashreplace")
    if shown != listed.name:
        problem = f"{shown} cannot be opened: its name is not UTF-8. Rename the folder."
        return ListedRun(path=str(root / shown), name=shown, state="broken", problem=problem)
    try:
        run = load_run(path)
        listed = msgspec.structs.replace(
            listed,
            benchmark=run.spec.benchmark,
            model=run.spec.subject,
            created=str(run.spec.provenance.get("created", "")),
        )
        state: State = "running" if lock.is_written(path) else "unfinished"
        if state == "running" or run_file(path, "summary.json") is None:
            return msgspec.structs.replace(listed, state=state)
        return msgspec.structs.replace(listed, state="finished", **_result(run))
    except SealegsError as error:
        problem = str(error)
        named = problem.startswith(str(path))  # then as in the list: a reader of it may be a stranger
        problem = f"{listed.name}{problem.removeprefix(str(path))}" if named else f"{listed.name}: {problem}"
    except OSError as error:
        problem = f"{listed.name} cannot be read: {error.strerror}."
    except Exception as error:  # noqa: BLE001  # a folder may hold anything; the others are still listed
        problem = f"{listed.name} is not as Sealegs writes it ({place_of(error)})."
    return msgspec.structs.replace(listed, problem=problem) if os.path.lexists(path / "spec.json") else None


def _result(run: Run) -> dict[str, Any]:
    return {
        "metric": run.layout.headline,
        "part": run.layout.part(run.summary),
        "headline": run.headline,
        "subjects": dict(zip(run.subjects, run.headlines.values(), strict=True)) if run.subjects else {},
    }

"""What a suite's folder holds: which run is in which folder, with what it was asked, and whether it ended."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct

from evenkeel.api.suite.runs import PlannedRun
from evenkeel.errors import DataError
from evenkeel.files.cache import write_whole
from evenkeel.files.jsonfile import read_bytes
from evenkeel.report.suite import State as RunState

FILE = "suite.json"
FORMAT = 1
LARGEST = 2**24
"""Bytes of a file that is read."""


class StoredRun(Struct, kw_only=True):
    """A run that a suite began."""

    run: str
    """Its name in the suite's file."""
    identity: str
    current: bool = True
    """Whether the file asks for it now; its options were others otherwise."""
    state: RunState = "waiting"
    """How its process ended: what one that was killed has written may not be whole."""
    problem: str = ""


class State(Struct, kw_only=True):
    """The runs by folder."""

    format: int = FORMAT
    folders: dict[str, StoredRun] = {}

    def folder_of(self, run: str) -> str | None:
        """The folder in which a run is now."""
        return next((name for name, each in self.folders.items() if each.run == run and each.current), None)


class Assigned(NamedTuple):
    """A run with its folder."""

    run: PlannedRun
    folder: str
    earlier: str = ""
    """The folder of the same run with other options, whose answers are taken over where they fit."""


def read_state(folder: Path) -> State:
    path = folder / FILE
    if not path.exists() and not path.is_symlink():
        return State()
    problem = "this is not the state of a suite. Choose another --out, or move it away: its runs stay."
    try:
        if path.is_symlink() or path.stat().st_size > LARGEST:
            raise DataError(path, problem)
        state = msgspec.json.decode(read_bytes(path), type=State)
    except (OSError, DataError, ValueError, RecursionError):
        raise DataError(path, problem) from None
    if state.format != FORMAT or any(_outside(name) for name in state.folders):
        raise DataError(path, problem)
    return state


def write_state(folder: Path, state: State) -> None:
    content = msgspec.json.format(msgspec.json.encode(state), indent=2)
    write_whole(folder / FILE, content + b"\n")


def assign_folders(state: State, runs: list[PlannedRun]) -> list[Assigned]:
    """A folder for each run: the one that it has, or a new one where its options have changed."""
    names = {run.name.casefold() for run in runs}
    for each in state.folders.values():
        each.current = False
    assigned = []
    for run in runs:
        earlier = [name for name, each in state.folders.items() if each.run == run.name]
        folder = next((name for name in earlier if state.folders[name].identity == run.identity), None)
        if folder is None:
            stored = {name.casefold() for name in state.folders}
            numbered = (f"{run.name}-{number}" for number in count(2))
            folder = run.name
            if folder.casefold() in stored:
                folder = next(name for name in numbered if name.casefold() not in stored | names)
            state.folders[folder] = StoredRun(run=run.name, identity=run.identity)
        state.folders[folder].current = True
        others = [name for name in earlier if name != folder]
        assigned.append(Assigned(run, folder, others[-1] if others else ""))
    return assigned


def _outside(name: str) -> bool:
    """Whether a name, which may be a stranger's, is more than that of a folder."""
    return not name or name.startswith(".") or any(mark in name for mark in "/\\\0")

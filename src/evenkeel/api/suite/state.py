"""What a suite's folder holds: with what each run was asked, and how its process ended."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct

from evenkeel.errors import DataError
from evenkeel.files.cache import write_whole
from evenkeel.files.jsonfile import read_bytes
from evenkeel.report.suite import State as RunState

FILE = "suite.json"
FORMAT = 2
LARGEST = 2**24
"""Bytes of a file that is read."""


class StoredRun(Struct, kw_only=True):
    """A run that a suite began."""

    identity: str
    state: RunState = "waiting"
    """How its process ended: what one that was killed has written may not be whole."""
    problem: str = ""


class State(Struct, kw_only=True):
    """The runs by name, which is that of their folder."""

    format: int = FORMAT
    runs: dict[str, StoredRun] = {}


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
    if state.format != FORMAT:
        raise DataError(path, problem)
    return state


def write_state(folder: Path, state: State) -> None:
    content = msgspec.json.format(msgspec.json.encode(state), indent=2)
    write_whole(folder / FILE, content + b"\n")

"""What a suite's folder holds: with what each run was asked, and how its process ended."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
from msgspec import Struct

from evenkeel.errors import DataError
from evenkeel.files.cache import write_whole
from evenkeel.files.jsonfile import read_json
from evenkeel.report.suite import State as RunState

FILE = "suite.json"
FORMAT = 2


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
    if not os.path.lexists(path):
        return State()
    try:
        state: State = read_json(path, State)
    except DataError:
        state = State(format=0)
    if state.format != FORMAT:
        raise DataError(
            path, "this is not the state of a suite. Choose another --out, or move it away: its runs stay."
        )
    return state


def write_state(folder: Path, state: State) -> None:
    content = msgspec.json.format(msgspec.json.encode(state), indent=2)
    write_whole(folder / FILE, content + b"\n")

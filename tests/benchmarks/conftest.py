"""Small data sets that several test files read."""

from __future__ import annotations

from pathlib import Path

import pytest

import sealegs as sl
from multiview_judge import MATH, written
from rgb_rules import Answering, troubled, write_sets
from triplets import store_tools


@pytest.fixture(scope="session")
def rgb_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small RGB set of each kind."""
    return write_sets(tmp_path_factory.mktemp("rgb"))


@pytest.fixture(scope="session")
def rgb_run(rgb_files: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[sl.Run, Answering]:
    """A whole run of all abilities, and the server that it asked."""
    with Answering(rgb_files, troubled, record=True) as server:
        out = tmp_path_factory.mktemp("whole") / "run"
        return sl.run("rgb", "openai:loop", base_url=server.url, data=rgb_files, out=out), server


@pytest.fixture(scope="session")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four triplets of one task and two of another."""
    return store_tools(tmp_path_factory.mktemp("tools"))


@pytest.fixture(scope="session")
def docs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A part of multiview's starter documents, without their labels."""
    return written(tmp_path_factory.mktemp("documents") / "my math.jsonl", list(MATH.values())[:150])

"""Runs of hostile models with hostile answers, and the app that shows them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from markup import NASTY
from runs import run_small
from scripted import Scripted
from serving import Serving, serving


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs that can be compared, a third that cannot, and one of another benchmark in a folder below."""
    folder = tmp_path_factory.mktemp("app") / "runs"
    turn = iter(range(10**9))
    with Scripted(lambda prompt: NASTY[next(turn) % len(NASTY)][:3000]) as server:
        for name in ("one", "two"):
            run_small("rgb", folder / name, server, model=f"openai:<b>{name}</b>", limit=8)
        run_small("rgb", folder / "other", server, model="openai:other", passages=3)
    run_small("multiview", folder / "suite" / "methods")
    return folder


@pytest.fixture(scope="module")
def app(runs: Path) -> Iterator[Serving]:
    with serving(runs) as app:
        yield app

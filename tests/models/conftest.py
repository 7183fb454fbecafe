"""A small model with random weights, made once for each file that asks it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from evenkeel.models.hf import HuggingFace
from models.tiny import open_hf, tiny_model


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def shared(folder: Path) -> Iterator[HuggingFace]:
    """One loaded model for the tests that leave it as it was."""
    model = open_hf(folder)
    yield model
    model.close()

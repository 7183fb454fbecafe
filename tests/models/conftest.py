"""Small models with random weights, made once for all tests; servers are retried quickly."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from dialects import PROVIDERS, Imitated, Provider, ProviderServer, named_at
from models.tiny import ARCHITECTURES, EACH_ARCHITECTURE, open_hf, tiny_gguf, tiny_model
from sealegs.models.hf import HuggingFace
from sealegs.models.openai import retry


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session")
def gguf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf")


@pytest.fixture(scope="session")
def shared(folder: Path) -> Iterator[HuggingFace]:
    """One loaded model for the tests that leave it as it was."""
    model = open_hf(folder)
    yield model
    model.close()


@pytest.fixture(scope="session", params=EACH_ARCHITECTURE)
def each(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HuggingFace]:
    """A loaded model of each architecture."""
    name = request.param
    model = open_hf(tiny_model(tmp_path_factory.mktemp(name), name, **ARCHITECTURES[name]))
    yield model
    model.close()


@pytest.fixture
def imitated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Imitated]:
    """Starts the server of a preset, and has the preset's name mean it."""
    with ExitStack() as servers:

        def start(
            name: str,
            provider: Provider | None = None,
            *,
            kind: type[ProviderServer] = ProviderServer,
            **behaviour: Any,
        ) -> ProviderServer:
            server = servers.enter_context(kind(provider or PROVIDERS[name], **{"words": 8, **behaviour}))
            for variable, value in named_at(name, server, tmp_path).items():
                monkeypatch.setenv(variable, value)
            return server

        yield start


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "BACK_OFF_S", 0.02)

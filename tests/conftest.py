"""Fixtures that several test files share."""

from __future__ import annotations

import os
import signal
from importlib.util import find_spec
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, settings

# The same examples every time, however long they take: a busy machine decides no test.
settings.register_profile(
    "steady", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("steady")

# Whoever runs the tests may ignore interrupts, as `nohup` and `&` do; processes that tests begin would too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

collect_ignore_glob = [] if find_spec("torch") else ["models/*", "engines/*"]
"""Without torch (`make core`) the tests of local models cannot even be imported."""


SLOW = ("models", "known_models")
"""Folders whose every test has a server or a model."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent.name in SLOW:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def reference() -> Path:
    """The folder of published files, which are never part of the repository."""
    given = os.environ.get("SEALEGS_REFERENCE_DATA")
    beside = Path(__file__).parents[2] / "shared" / "data"
    folder = Path(given) if given else beside
    if not folder.is_dir():
        pytest.skip("no published files: set SEALEGS_REFERENCE_DATA to a folder that holds them")
    return folder


@pytest.fixture(scope="session")
def empty_settings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("settings") / "sealegs.toml"
    path.touch()
    return path


@pytest.fixture(autouse=True)
def no_stray_settings(monkeypatch: pytest.MonkeyPatch, empty_settings: Path) -> None:
    """A developer's own keys, addresses and settings must not decide a test."""
    for name in (
        "OPENAI_API_KEY", "OPENAI_BASE_URL", "SEALEGS_MIRROR", "OLLAMA_HOST", "AZURE_OPENAI_ENDPOINT",
        "AZURE_OPENAI_API_KEY",
    ):  # fmt: skip
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SEALEGS_CONFIG", str(empty_settings))


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library of data sets, without a network and with a cache of its own."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    library = pytest.importorskip("datasets")
    monkeypatch.setattr(library.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr(library.config, "HF_HUB_OFFLINE", True)


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    """A small question file: four questions of two domains at three levels."""
    items = [
        {
            "question_id": number,
            "domain": "FACTUAL" if number < 3 else "OPINION",
            **{f"level_{level}_text": f"Question {number}, told in {level} ways?" for level in (1, 2, 3)},
            **{f"level_{level}_tokens": 8 for level in (1, 2, 3)},
        }
        for number in (1, 2, 3, 4)
    ]
    path = tmp_path / "questions.json"
    path.write_bytes(msgspec.json.encode({"metadata": {"language": "English"}, "questions": items}))
    return path

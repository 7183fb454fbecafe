"""Fixtures that several test files share."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, settings

# The same examples every time, however long they take: a busy machine decides no test.
settings.register_profile(
    "steady", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("steady")


@pytest.fixture(scope="session")
def reference() -> Path:
    """The folder of published files, which are never part of the repository."""
    given = os.environ.get("EVENKEEL_REFERENCE_DATA")
    beside = Path(__file__).parents[2] / "shared" / "data"
    folder = Path(given) if given else beside
    if not folder.is_dir():
        pytest.skip("no published files: set EVENKEEL_REFERENCE_DATA to a folder that holds them")
    return folder


@pytest.fixture(autouse=True)
def no_stray_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """A developer's own keys and addresses must not decide a test."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "EVENKEEL_MIRROR"):
        monkeypatch.delenv(name, raising=False)


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

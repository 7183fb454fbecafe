"""Heavy things load late."""

from __future__ import annotations

import subprocess
import sys

import pytest

import evenkeel

HEAVY = (
    "torch",
    "transformers",
    "sentence_transformers",
    "streamlit",
    "altair",
    "ray",
    "numpy",
    "aiohttp",
    "polars",
)


def loaded_after(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint(*(name for name in {HEAVY!r} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split("\n")[-2].split())


@pytest.mark.parametrize(
    "code",
    [
        "import evenkeel",
        "from evenkeel.cli import cli; cli(['--help'], standalone_mode=False)",
        "from evenkeel.cli import cli; cli(['run', 'mirae', '--help'], standalone_mode=False)",
        "import evenkeel.api",
        "import evenkeel; evenkeel.load_run; evenkeel.load_model",
    ],
)
def test_nothing_heavy_is_loaded_before_it_is_needed(code: str) -> None:
    assert loaded_after(code) == set()


def test_a_server_model_needs_no_torch() -> None:
    code = "import evenkeel; evenkeel.load_model('openai:x', base_url='http://127.0.0.1:1/v1').identity()"
    assert loaded_after(code) <= {"aiohttp"}


def test_the_exported_names_are_the_documented_ones_and_all_there() -> None:
    assert evenkeel.__all__ == [
        "Run", "__version__", "compare", "load_model", "load_run", "rescore", "run", "score",
    ]  # fmt: skip
    assert all(getattr(evenkeel, name) is not None for name in evenkeel.__all__)
    with pytest.raises(AttributeError):
        _ = evenkeel.nothing

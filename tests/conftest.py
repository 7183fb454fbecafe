"""Fixtures that several test files share."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Generator
from functools import cache
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


SLOW = {
    "subprocess", "browsers", "torch", "transformers", "sentence_transformers", "playwright", "nbclient",
    "ray", "loopback", "suites", "dialects", "scripted", "librarian", "multiview_judge", "rgb_rules",
    "models", "commandline.command", "commandline.evenkeel_process", "designs",
}  # fmt: skip
"""What starts a process, a server, a browser or a model, or simulates at length."""


LONG = ("test_notebook", "test_mirae", "test_app_in_browser", "test_ray", "test_page_in_browser", "test_hf")
"""Files that take longest: begun first, so that no worker is left with one at the end."""


TESTS = Path(__file__).parent
MISSING = re.compile(
    r"needs the package \\?'([\w.-]+?)\\?', which is not installed|No module named '(\w+)[.']"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    text = "leave out the tests that start a process, a server, a browser or a model, or take long"
    parser.addoption("--quick", action="store_true", help=text)
    text = (
        "in an environment without some extras: leave out the tests that need a package that is not installed"
    )
    parser.addoption("--installed", action="store_true", help=text)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With --quick a slow test file is not even imported; with --installed, none that imports what is not
    installed."""
    if not collection_path.match("test_*.py"):
        return None
    if config.getoption("--quick") and _imports(collection_path) & SLOW:
        return True
    return True if config.getoption("--installed") and not _importable(collection_path) else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """With --installed, a test that fails since a package is not installed is skipped, and says which."""
    report = yield
    if report.failed and item.config.getoption("--installed"):
        for name in _missing(f"{report.longreprtext}\n{report.capstdout}\n{report.capstderr}"):
            report.outcome = "skipped"
            report.longrepr = (str(item.path), item.reportinfo()[1] or 0, f"Skipped: {name} is not installed")
    return report


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Long files come first. With --quick, tests marked as slow are left out, and those that read the large
    published files."""
    items.sort(key=lambda item: LONG.index(item.path.stem) if item.path.stem in LONG else len(LONG))
    if config.getoption("--quick"):
        items[:] = [
            item
            for item in items
            if not item.get_closest_marker("slow") and "reference" not in getattr(item, "fixturenames", ())
        ]


@cache
def _imports(path: Path) -> frozenset[str]:
    """What a file imports, anywhere in it: `a` of `import a.b`, `a` and `a.b` of `from a import b`."""
    names = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module.partition(".")[0], *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(names)


def _importable(path: Path) -> bool:
    """Whether the packages that a test file imports at its top are installed, those of its helpers too."""
    for node in ast.parse(path.read_bytes()).body:
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
        for name in names:
            file = TESTS / f"{name.replace('.', '/')}.py"
            if not (_importable(file) if file.is_file() else (TESTS / name).is_dir() or _installed(name)):
                return False
    return True


@cache
def _installed(name: str) -> bool:
    return find_spec(name.partition(".")[0].replace("-", "_")) is not None


def _missing(text: str) -> list[str]:
    """The packages that a text says are not installed, and which are not."""
    names = ["".join(groups) for groups in MISSING.findall(text)]
    return [name for name in dict.fromkeys(names) if not _installed(name)]


@pytest.fixture(scope="session")
def reference() -> Path:
    """The folder of published files, which are never part of the repository."""
    given = os.environ.get("EVENKEEL_REFERENCE_DATA")
    beside = Path(__file__).parents[2] / "shared" / "data"
    folder = Path(given) if given else beside
    if not folder.is_dir():
        pytest.skip("no published files: set EVENKEEL_REFERENCE_DATA to a folder that holds them")
    return folder


@pytest.fixture(scope="session")
def empty_settings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("settings") / "evenkeel.toml"
    path.touch()
    return path


@pytest.fixture(autouse=True)
def no_stray_settings(monkeypatch: pytest.MonkeyPatch, empty_settings: Path) -> None:
    """A developer's own keys, addresses and settings must not decide a test."""
    for name in (
        "OPENAI_API_KEY", "OPENAI_BASE_URL", "EVENKEEL_MIRROR", "OLLAMA_HOST", "AZURE_OPENAI_ENDPOINT",
        "AZURE_OPENAI_API_KEY", "OPENAI_API_VERSION",
    ):  # fmt: skip
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("EVENKEEL_CONFIG", str(empty_settings))


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

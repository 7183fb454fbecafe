"""Folders are layers: imports point down only, those inside functions included."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "evenkeel"
LAYERS = (
    "base",  # types, errors, options
    "page",
    "files",
    "text",
    "journal",
    "harness",
    "models",
    "analysis",
    "make",
    "benchmarks",
    "report",
    "api",
    "inspect",
    "app",
    "cli",
)
BASE = {"types", "errors", "options"}
PUBLIC = {"__init__", "__main__"}
"""The public API, which may reach anywhere."""
MOST_FILES = 12
MODULES = sorted(PACKAGE.rglob("*.py"))


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


NAMES = {module_name(path) for path in MODULES}


@cache
def nodes(path: Path) -> list[ast.Import | ast.ImportFrom | ast.Constant]:
    """The imports of a file, wherever in it, and its constants."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom | ast.Constant)]


def imported(path: Path) -> Iterator[str]:
    """The modules of the package that a file imports."""
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.partition(".")[0] == "evenkeel")
        elif isinstance(node, ast.ImportFrom) and node.level:
            yield "evenkeel"  # a relative import hides its layer
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "evenkeel":
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                if inner != "evenkeel.__version__":
                    yield inner if inner in NAMES else str(node.module)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            # A module named in a string, for importlib: only the registries may do that.
            module = node.value.partition(":")[0]
            if path.name != "registry.py" and module in NAMES - {"evenkeel"}:
                yield module


def layer(module: str) -> str:
    """The layer of a module; empty for the package itself."""
    folder = module.partition(".")[2].partition(".")[0]
    return "base" if folder in BASE else folder


def upward(path: Path) -> list[str]:
    own = LAYERS.index(layer(module_name(path)))
    return [target for target in imported(path) if height(target) > own]


def height(module: str) -> int:
    """How high the layer of a module is; the package itself, which reaches anywhere, is with the API."""
    return LAYERS.index(layer(module) or "api")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_down(path: Path) -> None:
    if path.stem in PUBLIC and path.parent == PACKAGE:
        return
    assert upward(path) == []


def test_no_benchmark_imports_another() -> None:
    sideways = [
        (module_name(path), target)
        for path in MODULES
        for target in imported(path)
        if module_name(path).startswith("evenkeel.benchmarks.") and target.startswith("evenkeel.benchmarks.")
        if target.split(".")[2] != module_name(path).split(".")[2]
    ]
    assert sideways == []


def test_the_root_holds_the_public_api_and_what_lies_under_all_layers() -> None:
    assert {path.stem for path in PACKAGE.glob("*.py")} == BASE | PUBLIC
    assert {path.name for path in PACKAGE.iterdir() if path.is_dir()} - {"__pycache__"} == set(LAYERS[1:])


def test_no_folder_is_crowded() -> None:
    sizes: defaultdict[Path, int] = defaultdict(int)
    for path in MODULES:
        sizes[path.parent.relative_to(PACKAGE)] += path.stem != "__init__"
    assert {str(folder): size for folder, size in sizes.items() if size > MOST_FILES} == {}


@pytest.mark.parametrize(
    ("library", "homes"),
    [
        ("torch", {"models", "cli"}),
        ("transformers", {"models"}),
        ("sentence_transformers", {"models"}),
        ("aiohttp", {"models", "files"}),
        ("click", {"cli"}),
        ("altair", set()),
        ("scipy", set()),
        ("pandas", {"harness"}),
        ("polars", {"files", "app"}),
        ("vl_convert", {"report"}),
        ("jinja2", {"models", "report"}),
        ("sqlite3", {"journal"}),
        ("ray", {"models"}),
        ("inspect_ai", {"inspect"}),
    ],
)
def test_a_library_has_one_home(library: str, homes: set[str]) -> None:
    importers = set()
    for path in MODULES:
        for node in nodes(path):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if any(name.partition(".")[0] == library for name in names):
                importers.add(layer(module_name(path)))
    assert importers <= homes


def test_the_check_finds_a_lazy_import_that_points_up(tmp_path: Path) -> None:
    path = tmp_path / "journal.py"
    path.write_text("def late():\n    from evenkeel.report.html_page import render\n    return render\n")
    assert list(imported(path)) == ["evenkeel.report.html_page"]


@pytest.mark.parametrize(
    "line",
    [
        "from evenkeel.report.html_page import render",
        "import evenkeel.report.html_page",
        "from evenkeel.report import html_page",
        "from evenkeel import report",
        "from evenkeel import compare",
        "import evenkeel",
        "from ..report import html_page",
        "importlib.import_module('evenkeel.report.html_page')",
        "if TYPE_CHECKING:\n        from evenkeel.harness.folder import Run",
    ],
)
def test_the_check_fails_on_every_form_of_import_that_points_up(line: str, tmp_path: Path) -> None:
    path = tmp_path / "bm25.py"
    path.write_text(f"def late():\n    {line}\n")
    assert [target for target in imported(path) if height(target) > LAYERS.index("text")]

"""Folders are layers, no other code knows a benchmark by its name, and what the docs name is there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from sealegs.harness.registry import BENCHMARKS

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "sealegs"
REGISTRY = "harness/registry.py"
"""Where the benchmarks are registered."""


def names_in(source: str) -> Iterator[str]:
    """Names of benchmarks that code compares, looks up or imports."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and node.value in BENCHMARKS:
            yield str(node.value)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sealegs.benchmarks."):
            yield str(node.module)


def test_no_other_code_knows_a_benchmark_by_its_name() -> None:
    found = {
        str(path.relative_to(PACKAGE)): names
        for path in PACKAGE.rglob("*.py")
        if "benchmarks" not in path.relative_to(PACKAGE).parts
        if (names := list(names_in(path.read_text(encoding="utf-8"))))
    }
    assert set(found) == {REGISTRY}


@pytest.mark.parametrize("name", sorted(BENCHMARKS))
def test_every_benchmark_has_the_same_files_and_maps_them(name: str) -> None:
    folder = PACKAGE / "benchmarks" / name
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    assert {"benchmark", "data", "published", "added", "metrics", "page", "view"} <= modules
    assert (folder / "make").is_dir()
    shown = ast.get_docstring(ast.parse((folder / "benchmark.py").read_text(encoding="utf-8"))) or ""
    mapped = set(re.findall(r"`(\w+)(?:\.\w+)?`", shown))
    assert modules - {"benchmark"} - mapped == set()


def test_every_test_of_a_promise_is_there() -> None:
    text = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(?:tests/)?(\w+/test_\w+\.py)`", text))
    assert len(named) > 25
    assert [name for name in sorted(named) if not (ROOT / "tests" / name).is_file()] == []


def test_the_walk_of_a_request_takes_eight_files() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    walk = text.partition("## The walk of a request")[2].partition("```")[0]
    files = re.findall(r"^\| `(\S+\.py)` \|", walk, re.MULTILINE)
    assert len(files) == 8
    assert [name for name in files if not (PACKAGE / name).is_file()] == []

"""The promised versions, the name on PyPI, and the smallest installation."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
TEXTS = (".py", ".md", ".yml", ".yaml", ".toml", ".ipynb", ".txt")
INSTALLING = re.compile(r"(?:pip[3x]? install|uv add|uv tool install|uvx) [^\n`)]*")


def pins(name: str) -> dict[str, str]:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    requirements = [Requirement(line) for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(each.name): next(iter(each.specifier)).version for each in requirements}


def test_the_pinned_versions_are_within_the_bounds_of_the_project() -> None:
    extras = PROJECT["optional-dependencies"]
    texts = [*PROJECT["dependencies"], *(text for name in extras if name != "dev" for text in extras[name])]
    pinned = pins("constraints.txt")
    for requirement in map(Requirement, texts):
        if requirement.name != PROJECT["name"]:
            assert requirement.specifier.contains(pinned[canonicalize_name(requirement.name)]), requirement


def test_every_install_line_names_our_package_or_the_checkout() -> None:
    """`evenkeel` on PyPI is another project's."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = [ROOT / name for name in listed.splitlines() if name.endswith(TEXTS) or "file" in name.lower()]
    wrong = [
        (path.relative_to(ROOT), line)
        for path in paths
        if path.is_file() and path != Path(__file__)
        for line in re.findall(INSTALLING, path.read_text(encoding="utf-8", errors="replace"))
        if re.search(r"(?<![\w./$-])evenkeel(?![\w-])", line.partition("evenkeel-venv")[0])
    ]
    assert PROJECT["name"] == "evenkeel-bench"
    assert wrong == []


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    line = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder), str(ROOT)]
    if subprocess.run(line, capture_output=True).returncode:
        pytest.skip("what builds the wheel cannot be fetched here")
    [path] = folder.glob("*.whl")
    return path


def python_at_hand(version: str) -> str | None:
    pyenv = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    return str(pyenv[-1]) if pyenv else shutil.which(f"python{version}")


IMPORT_ALL = """
import importlib, pkgutil, evenkeel
extras = set()
for module in pkgutil.walk_packages(evenkeel.__path__, "evenkeel."):
    if module.name == "evenkeel.__main__":
        continue
    try:
        importlib.import_module(module.name)
    except ModuleNotFoundError as error:
        extras.add(error.name.partition(".")[0])
print(" ".join(sorted(extras)))
"""


@pytest.mark.full
@pytest.mark.parametrize("version", PYTHONS)
def test_the_wheel_alone_imports_all_that_needs_no_extra(version: str, wheel: Path, tmp_path: Path) -> None:
    python = python_at_hand(version)
    if python is None:
        pytest.skip(f"Python {version} is not here")
    subprocess.run([python, "-m", "venv", tmp_path / "venv"], check=True)
    inner = tmp_path / "venv" / "bin" / "python"
    install = [str(inner), "-m", "pip", "install", "-q", "-c", str(ROOT / "constraints.txt"), str(wheel)]
    if subprocess.run(install, capture_output=True, cwd=tmp_path).returncode:
        pytest.skip("the dependencies cannot be fetched here")
    done = subprocess.run([inner, "-c", IMPORT_ALL], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    optional = " ".join(text for each in PROJECT["optional-dependencies"].values() for text in each)
    brought = {"inspect_ai", "huggingface_hub", "safetensors", "tokenizers"}
    assert {name for name in done.stdout.split() if name.replace("_", "-") not in optional} <= brought


@pytest.mark.full
def test_the_wheel_holds_every_file_of_the_package(wheel: Path) -> None:
    listed = subprocess.run(["git", "ls-files", "src"], cwd=ROOT, capture_output=True, text=True, check=True)
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {line.removeprefix("src/") for line in listed.stdout.splitlines()} <= names

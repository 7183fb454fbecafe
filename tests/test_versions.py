"""The promised versions, and the name on PyPI."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import sealegs

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
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
    """`sealegs` on PyPI is another project's."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = [ROOT / name for name in listed.splitlines() if name.endswith(TEXTS) or "file" in name.lower()]
    wrong = [
        (path.relative_to(ROOT), line)
        for path in paths
        if path.is_file() and path != Path(__file__)
        for line in re.findall(INSTALLING, path.read_text(encoding="utf-8", errors="replace"))
        if re.search(r"(?<![\w./$-])sealegs(?![\w-])", line.partition("sealegs-venv")[0])
    ]
    assert PROJECT["name"] == "sealegs"
    assert wrong == []


def test_the_citation_and_the_action_have_the_version_and_date_of_the_changelog() -> None:
    version, date = re.findall(r"^## (\S+) \((\S+)\)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[0]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert version == sealegs.__version__
    assert f"\nversion: {version}\n" in citation
    assert f'\ndate-released: "{date}"\n' in citation
    assert f"sealegs@v{version}\n" in (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")

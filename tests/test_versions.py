"""The promised versions."""

from __future__ import annotations

import re
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


def test_the_citation_and_the_action_have_the_version_and_date_of_the_changelog() -> None:
    version, date = re.findall(r"^## (\S+) \((\S+)\)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[0]
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert version == sealegs.__version__
    assert f"\nversion: {version}\n" in citation
    assert f'\ndate-released: "{date}"\n' in citation
    assert f"sealegs@v{version}\n" in (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")

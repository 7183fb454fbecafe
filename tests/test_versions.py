"""The promised versions: of Python, of the dependencies at their lowest, and what is known of the pins."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")


def run_tool(name: str, *args: object) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, str(ROOT / "tools" / name), *map(str, args)]
    return subprocess.run(line, capture_output=True, text=True, check=False)


def pins(name: str) -> dict[str, str]:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    requirements = [Requirement(line) for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(each.name): next(iter(each.specifier)).version for each in requirements}


def main_requirements() -> list[Requirement]:
    extras = PROJECT["optional-dependencies"]
    texts = [*PROJECT["dependencies"], *(text for name in extras if name != "dev" for text in extras[name])]
    return [each for each in map(Requirement, texts) if each.name != PROJECT["name"]]


def test_the_lowest_versions_are_those_of_the_project() -> None:
    done = run_tool("lowest.py", "--check")
    assert (done.returncode, done.stderr) == (0, "")
    lowest = pins("constraints-lowest.txt")
    assert set(lowest) == {canonicalize_name(each.name) for each in main_requirements()}


def test_the_pinned_versions_are_within_the_bounds_of_the_project() -> None:
    pinned = pins("constraints.txt")
    for requirement in main_requirements():
        assert requirement.specifier.contains(pinned[canonicalize_name(requirement.name)]), requirement


def test_the_named_pythons_begin_with_the_lowest() -> None:
    assert PROJECT["requires-python"] == f">={PYTHONS[0]}"
    prefix = "Programming Language :: Python :: "
    named = [each.removeprefix(prefix) for each in PROJECT["classifiers"] if each.startswith(prefix)]
    assert tuple(named) == PYTHONS


ENTRY = {"id": "PYSEC-1", "fixed_in": ["1.1"], "withdrawn": None}
ANSWERS: dict[str, Any] = {
    "/sound/1.0/json": {"info": {"version": "1.0"}, "vulnerabilities": []},
    "/broken/1.0/json": {"info": {"version": "1.0"}, "vulnerabilities": [ENTRY]},
    "/mistaken/1.0/json": {
        "info": {"version": "1.0"},
        "vulnerabilities": [{**ENTRY, "withdrawn": "2026-01-01"}],
    },
    "/newest/json": {"info": {"version": "1.0.0"}, "vulnerabilities": []},
    "/older/json": {"info": {"version": "2.0"}, "vulnerabilities": []},
    "/garbled/1.0/json": ["not an object"],
}


class Index(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        content = ANSWERS.get(self.path)
        self.send_response(404 if content is None else 200)
        self.end_headers()
        self.wfile.write(json.dumps(content).encode())

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def index() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Index)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("names", "code", "line"),
    [
        (["sound", "mistaken", "newest"], 0, "3 pinned versions: 0 with known vulnerabilities, 3 without"),
        (["sound", "broken", "older"], 1, "broken 1.0: PYSEC-1 (fixed in 1.1)"),
        (["sound", "older"], 2, "older 1.0: not looked up: the index describes only the newest, 2.0"),
        (["unknown"], 2, "unknown 1.0: not looked up: not in the index"),
        (["garbled"], 2, "garbled 1.0: not looked up: TypeError"),
    ],
)
def test_an_audit_names_what_is_known_and_what_is_not(
    names: list[str], code: int, line: str, index: str, tmp_path: Path
) -> None:
    path = tmp_path / "constraints.txt"
    path.write_text("# pins\n" + "".join(f"{name}==1.0\n" for name in names))
    done = run_tool("audit.py", path, "--index", index)
    assert (done.returncode, done.stderr) == (code, "")
    assert line in done.stdout


def test_an_audit_refuses_what_is_not_a_pin(tmp_path: Path) -> None:
    path = tmp_path / "constraints.txt"
    path.write_text("one==1.0\ntwo>=2\n")
    done = run_tool("audit.py", path, "--index", "http://127.0.0.1:9")
    assert done.returncode == 1
    assert f"{path}:2: two>=2 does not pin a version" in done.stderr


TESTS = {
    "test_imports_it.py": "import not_there_at_all\ndef test_it(): pass\n",
    "test_needs_it.py": (
        "from evenkeel.errors import MissingExtra\n"
        "def test_needs(): raise MissingExtra('x', package='not-there-at-all', install='pip')\n"
        "def test_says(): print('x needs the package \\'msgspec\\', which is not installed'); assert False\n"
        "def test_passes(): pass\n"
    ),
}


def test_only_what_needs_a_missing_package_is_left_out(tmp_path: Path) -> None:
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path)
    for name, text in TESTS.items():
        (tmp_path / name).write_text(text)
    line = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "-p", "no:xdist"]
    done = subprocess.run(
        [*line, "--installed", "--rootdir", str(tmp_path), str(tmp_path)],
        cwd=tmp_path,
        env={**os.environ, "PYTEST_ADDOPTS": "", "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 failed, 1 passed, 1 skipped" in done.stdout, done.stdout
    assert "not-there-at-all is not installed" in done.stdout

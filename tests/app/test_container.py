"""The Dockerfile and the Space: what can be checked without a Docker."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml

from evenkeel.cli.app import app_command

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
LINES = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()


def instructions(name: str) -> list[str]:
    return [line.partition(" ")[2] for line in LINES if line.startswith(f"{name} ")]


def front_matter() -> dict[str, object]:
    text = (ROOT / "space" / "README.md").read_text(encoding="utf-8")
    _, block, _ = re.split(r"^---$", text, maxsplit=2, flags=re.MULTILINE)
    fields: dict[str, object] = yaml.safe_load(block)
    return fields


def test_everything_that_is_copied_is_there_and_not_ignored() -> None:
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    sources = [source for line in instructions("COPY") for source in line.split()[:-1]]
    assert {"src", "pyproject.toml", "constraints.txt", "README.md", "LICENSE"} <= set(sources) <= kept
    assert all((ROOT / source).exists() for source in sources)


@pytest.mark.parametrize("space", [False, True])
def test_the_command_is_one_that_the_app_takes(space: bool) -> None:
    (line,) = instructions("CMD")
    shell, flag, script = json.loads(line)
    assert (shell, flag) == ("sh", "-c")
    environment = {"SPACE_HOST": "me-it.hf.space"} if space else {}
    printing = script.replace("exec evenkeel", "exec /bin/sh -c 'env; echo \"$@\"' evenkeel")
    done = subprocess.run(
        ["/bin/sh", "-c", printing],
        env={"PATH": "/usr/bin:/bin", **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    *variables, arguments = done.stdout.splitlines()
    values = dict(line.split("=", 1) for line in variables if "=" in line)
    assert values["EVENKEEL_APP_ALLOW_HOST"] == ("me-it.hf.space" if space else "")
    name, *options = shlex.split(arguments)
    params = app_command.make_context("app", options).params
    assert name == "app"
    assert (params["host"], params["read_only"], params["open_browser"]) == ("0.0.0.0", True, False)
    assert params["port"] == front_matter()["app_port"] == int(instructions("EXPOSE")[0])
    assert instructions("USER") == ["evenkeel"], "not root"

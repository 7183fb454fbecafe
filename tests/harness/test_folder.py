"""A run's folder: whole or not at all, one writer, no surprises."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from evenkeel.errors import DataError, RunConflict, StorageError
from evenkeel.harness.folder import FORMAT, Run, RunFolder, spec_differences
from evenkeel.types import RunSpec


def spec(**changes: object) -> RunSpec:
    fields: dict[str, object] = {
        "format": FORMAT,
        "benchmark": "mirae",
        "options": {"levels": "1-7"},
        "models": {"model": {"name": "m", "spec": "openai:m", "identity": {"spec": "openai:m"}}},
        "data": {"source": "starter", "sha256": ["0"]},
        "seed": 0,
        "limit": None,
        "provenance": {"created": "now"},
        "subjects": ("m",),
    }
    return RunSpec(**{**fields, **changes})  # type: ignore[arg-type]


def test_the_same_spec_goes_on_and_time_and_versions_do_not_count(tmp_path: Path) -> None:
    with RunFolder.open(tmp_path / "run", spec()):
        pass
    with RunFolder.open(tmp_path / "run", spec(provenance={"created": "later"})) as folder:
        assert Run(folder.path).spec.provenance == {"created": "now"}


def test_an_option_that_an_older_version_did_not_have_is_at_its_default(tmp_path: Path) -> None:
    with RunFolder.open(tmp_path / "run", spec()):
        pass
    with RunFolder.open(tmp_path / "run", spec(options={"levels": "1-7", "chunked": False})):
        pass
    with (
        pytest.raises(RunConflict, match=r"options.chunked is false there and true here"),
        RunFolder.open(tmp_path / "run", spec(options={"levels": "1-7", "chunked": True})),
    ):
        pass


def test_another_spec_is_refused_with_the_difference(tmp_path: Path) -> None:
    with RunFolder.open(tmp_path / "run", spec()):
        pass
    with (
        pytest.raises(RunConflict, match=r'options.levels is "1-7" there and "1-3" here'),
        RunFolder.open(tmp_path / "run", spec(options={"levels": "1-3"})),
    ):
        pass


def test_fresh_discards_the_run_and_nothing_else(tmp_path: Path) -> None:
    with RunFolder.open(tmp_path / "run", spec()) as folder:
        folder.write_bytes("export/old.json", b"{}")
        (folder.path / "notes.txt").write_text("mine")
    with RunFolder.open(tmp_path / "run", spec(seed=1), fresh=True) as folder:
        assert sorted(os.listdir(folder.path)) == [".lock", "notes.txt", "spec.json"]


def test_a_folder_of_something_else_is_not_touched(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(RunConflict, match="not empty"), RunFolder.open(tmp_path, spec(), fresh=True):
        pass
    assert os.listdir(tmp_path) == ["thesis.tex"]


def test_a_second_process_is_told_that_the_run_is_being_written(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from evenkeel.files.lock import writing\n"
        "with writing(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()"
    )
    with RunFolder.open(tmp_path / "run", spec()) as folder:
        pass
    holder = subprocess.Popen(
        [sys.executable, "-c", code, folder.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    with (
        pytest.raises(RunConflict, match=f"use by process {holder.pid} on"),
        RunFolder.open(tmp_path / "run", spec()),
    ):
        pass
    holder.kill()
    holder.communicate()
    with RunFolder.open(tmp_path / "run", spec()):
        pass


def test_a_file_that_fails_half_way_leaves_the_old_one(tmp_path: Path) -> None:
    with RunFolder.open(tmp_path / "run", spec()) as folder:
        folder.write_bytes("summary.json", b"old")
        with pytest.raises(RuntimeError), folder.writing("summary.json") as file:
            file.write(b"ne")
            raise RuntimeError
        assert (folder.path / "summary.json").read_bytes() == b"old"
        assert sorted(os.listdir(folder.path)) == [".lock", "spec.json", "summary.json"]


def test_a_name_from_elsewhere_cannot_lead_out_of_the_folder(tmp_path: Path) -> None:
    with (
        RunFolder.open(tmp_path / "run", spec()) as folder,
        pytest.raises(StorageError, match="outside"),
    ):
        folder.write_bytes("export/../../escaped", b"")


def test_a_folder_that_is_no_run_says_so(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no spec\.json"):
        Run(tmp_path)


def test_differences_are_named_field_by_field() -> None:
    there, here = spec(limit=8), spec(limit=None, seed=2)
    assert spec_differences(there, here) == ["seed is 0 there and 2 here", "limit is 8 there and null here"]


def test_what_a_killed_process_was_writing_is_swept_away(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".spec.json.x1y2").write_text("half")
    with RunFolder.open(tmp_path / "run", spec()) as folder:
        assert sorted(os.listdir(folder.path)) == [".lock", "spec.json"]

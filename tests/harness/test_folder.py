"""A run's folder: whole or not at all, one writer, no surprises."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from killing import contents
from sealegs.errors import RunConflict, StorageError
from sealegs.files.lock import LOCK
from sealegs.harness.folder import Run
from sealegs.harness.folder.spec import FORMAT
from sealegs.harness.folder.writer import RunFolder
from sealegs.types import RunSpec

pytestmark = pytest.mark.slow


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


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


def test_another_spec_is_refused_with_the_difference(tmp_path: Path) -> None:
    with RunFolder.open(tmp_path / "run", spec()):
        pass
    with (
        pytest.raises(RunConflict, match=r'levels: "1-7" in that run, "1-3" here; limit: null in that run'),
        RunFolder.open(tmp_path / "run", spec(options={"levels": "1-3"}, limit=8)),
    ):
        pass


def test_fresh_discards_what_the_run_wrote_and_nothing_else(tmp_path: Path) -> None:
    with RunFolder.open(tmp_path / "run", spec()) as folder:
        folder.write_bytes("export/published.json", b"{}")
        folder.add_provenance(exported=["published.json", "../notes.txt"])
        folder.write_bytes("records.jsonl", b"{}")
        (folder.path / "export" / "mine.csv").write_text("mine")
        (folder.path / "notes.txt").write_text("mine")
    with RunFolder.open(tmp_path / "run", spec(seed=1), fresh=True) as folder:
        assert names(folder.path) == [LOCK, "export", "notes.txt", "spec.json"]
        assert names(folder.path / "export") == ["mine.csv"]


STRANGERS = {
    "hidden files": [".exports", ".stopwords.txt", ".summary.json.bak", ".spec.json.mine.draft"],
    "a file": ["thesis.tex"],
    "a log of their own": ["log"],
    "progress of something else": ["progress.json"],
    "a stop that says something": ["stop"],
    "another spec": ["spec.json", "report.html", "export/mine.csv", ".records.jsonl.0123456789ab.draft"],
}


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize("kind", STRANGERS)
def test_a_folder_of_something_else_is_left_as_it_is(tmp_path: Path, kind: str, fresh: bool) -> None:
    for name in STRANGERS[kind]:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text('{"openapi": "3.1.0"}')
    before = contents(tmp_path)
    with (
        pytest.raises(RunConflict, match="not a run|not the spec of a run"),
        RunFolder.open(tmp_path, spec(), fresh=fresh),
    ):
        pass
    assert contents(tmp_path) == before


def test_a_link_among_the_files_of_a_run_is_refused(tmp_path: Path) -> None:
    with RunFolder.open(tmp_path / "run", spec()):
        pass
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "run" / "export").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RunConflict, match="link"), RunFolder.open(tmp_path / "run", spec(), fresh=True):
        pass
    assert (tmp_path / "run" / "export").is_symlink()


def test_a_file_that_fails_half_way_leaves_the_old_one(tmp_path: Path) -> None:
    with RunFolder.open(tmp_path / "run", spec()) as folder:
        folder.write_bytes("summary.json", b"old")
        with pytest.raises(RuntimeError), folder.writing("summary.json") as file:
            file.write(b"ne")
            raise RuntimeError
        assert (folder.path / "summary.json").read_bytes() == b"old"
        assert names(folder.path) == [LOCK, "spec.json", "summary.json"]


def test_a_name_from_elsewhere_cannot_lead_out_of_the_folder(tmp_path: Path) -> None:
    with (
        RunFolder.open(tmp_path / "run", spec()) as folder,
        pytest.raises(StorageError, match="outside"),
    ):
        folder.write_bytes("export/../../escaped", b"")


def test_only_what_a_killed_process_was_writing_is_removed(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".spec.json.0123456789ab.draft").write_text("half")
    with RunFolder.open(tmp_path / "run", spec()) as folder:
        folder.write_bytes("export/whole.json", b"{}")
    mine = [".records.jsonl.bak", ".records.jsonl.mine.draft"]
    drafts = [".records.jsonl.0123456789ab.draft", "export/.whole.json.0123456789ab.draft"]
    for name in (*mine, *drafts):
        (tmp_path / "run" / name).write_text("half")
    with RunFolder.open(tmp_path / "run", spec()) as folder:
        assert names(folder.path) == [*mine, LOCK, "export", "spec.json"]
        assert names(folder.path / "export") == ["whole.json"]

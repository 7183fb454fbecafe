"""Runs, New run, Explore, Compare and the list of processes, driven without a browser."""

from __future__ import annotations

import os
import re
import sqlite3
from pathlib import Path

import msgspec
import pytest

import evenkeel as ek
from evenkeel.app import choose
from evenkeel.files.lock import process_began
from pages import page, press, settings_of, shown, write_rows
from scripted import Scripted

pytestmark = pytest.mark.slow


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EVENKEEL_APP_RUNS", str(tmp_path / "runs"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "data").mkdir(parents=True)
    return tmp_path / "runs"


# New run


def test_only_data_that_the_benchmark_can_read_is_listed(runs: Path) -> None:
    write_rows(runs / "data" / "mine")
    write_rows(runs / "data" / "starter")
    test = page("new_run")
    assert test.selectbox[0].options[0] == "Consistency (MIRAE)"
    assert test.selectbox(key="data-mirae").options == ["starter", "published", choose.UPLOAD]
    test.selectbox[0].select("miron").run()
    assert test.query_params["benchmark"] == "miron"
    data = test.selectbox(key="data-miron")
    assert data.options == ["starter", "published", "mine", "./starter", choose.UPLOAD]
    assert data.value == "starter"
    data.select("mine").run()
    assert "2 requests, time unknown until the first answers, runs locally: free" in shown(test)


def test_a_data_file_is_uploaded_checked_and_counted(runs: Path, questions: Path) -> None:
    test = page("new_run", benchmark="mirae")
    test.selectbox(key="data-mirae").select(choose.UPLOAD).run()
    assert "Choose the data first" in shown(test)
    for content, problem in (
        (b'{"prefix": "a", "target": "b"}', "cannot read this"),
        (b"\x89PNG\0", "'../my <b>rows</b>.jsonl' is not a text file. Give JSON, CSV, text or Parquet."),
    ):
        uploader = test.file_uploader(key="data-mirae-upload")
        uploader.set_value(("../my <b>rows</b>.jsonl", content, "text/plain")).run()
        assert problem in shown(test)
        assert not test.button, "nothing can be started with it"
        assert not any((runs / "data" / "uploads").iterdir()), "what no benchmark reads is not offered"
    uploader = test.file_uploader(key="data-mirae-upload")
    uploader.set_value(("../../q u.json", questions.read_bytes(), "application/json")).run()
    [path] = (runs / "data" / "uploads").glob("*.json")
    assert "requests, time unknown until the first answers, runs locally: free" in shown(test)
    assert [button.label for button in test.button] == ["Start the run"]
    assert path.name.startswith("q_u-")
    assert path.read_bytes() == questions.read_bytes()
    assert f"uploads/{path.name}" in page("new_run").selectbox(key="data-mirae").options


def test_an_upload_has_a_name_that_fits_and_is_written_through_no_link(runs: Path) -> None:
    settings = settings_of(runs)
    path = choose.save_upload(settings, "𠀀" * 300 + ".jso\u202en", b"1")
    assert path.parent == settings.uploads
    assert path.read_bytes() == b"1"
    (runs / "data" / "uploads").rename(runs / "elsewhere")
    (runs / "data" / "uploads").symlink_to(runs / "elsewhere")
    with pytest.raises(ek.UsageError, match="is a link"):
        choose.save_upload(settings, "a.json", b"2")


def test_a_part_of_the_abilities_and_its_size_are_chosen(runs: Path) -> None:
    test = page("new_run", benchmark="rgb")
    abilities = next(group for group in test.button_group if group.key == "run-rgb-ability")
    abilities.set_value(["rejection"]).run()
    assert "5 requests, time unknown until the first answers, runs locally: free" in shown(test)


def test_the_expected_time_is_that_of_an_earlier_run_of_the_benchmark(compared: Path) -> None:
    with sqlite3.connect(compared / "first" / "journal.sqlite") as journal:
        journal.execute("UPDATE responses SET at = rowid")  # an answer each second
    test = page("new_run", benchmark="multiview")
    assert "at the pace of" not in shown(test), "of a run of RGB"
    assert "embed:SPEC: cosine of the embeddings" in shown(test)
    test = page(
        "new_run", benchmark="rgb", **{"model-source": ek.presets()["openai"].title, "model-openai": "m"}
    )
    assert re.search("about [0-9]+ (s|min) at the pace of first", shown(test))


# Processes


def test_a_process_that_was_asked_to_stop_is_stopping(runs: Path) -> None:
    task = {"kind": "run", "benchmark": "mirae", "settings": {}}
    this_process = {"pid": os.getpid(), "began": process_began(os.getpid())}
    (runs / "x").mkdir()
    (runs / "x" / "started.json").write_bytes(
        msgspec.json.encode({"task": task, "created": "x", **this_process})
    )
    test = press(page("explore", run="x"), "Stop")
    [process] = ek.started(runs)
    assert (process.state, process.active) == ("stopping", True)
    assert "Stop" not in [button.label for button in test.run().button]
    assert test.get("progress")[0].proto.text == "Stopping…"


def test_what_failed_can_be_dismissed(runs: Path) -> None:
    (runs / "x").mkdir()
    task = {"kind": "run", "benchmark": "mirae", "settings": {}}
    (runs / "x" / "started.json").write_bytes(msgspec.json.encode({"task": task, "created": "x"}))
    [process] = ek.started(runs)
    ek.dismiss(process)
    assert ek.started(runs) == []
    assert not (runs / "x").exists()


# Runs and Explore


def test_the_list_of_runs_begins_with_a_sentence_and_sorts_by_numbers(compared: Path) -> None:
    ek.run("multiview", method=["bm25", "embed:embedded-embedder"], limit=1, out=compared / "methods")
    (compared / "unfinished").mkdir()
    (compared / "unfinished" / "spec.json").write_bytes((compared / "first" / "spec.json").read_bytes())
    test = page("runs", benchmarks="Retrieval robustness (RGB)")
    assert "5 runs of 1 model and 2 methods, 1 not finished. Newest result: Retrieval" in shown(test)
    table = test.dataframe[0].value
    assert table["Headline"].dtype.kind == "f", "as text 9 would come after 10"
    assert set(table["Benchmark"]) == {
        "Retrieval robustness (RGB)",
        "Retrieval robustness (RGB), rejection only",
    }
    boards = page("runs", list="Leaderboards")
    assert "Retrieval robustness (RGB): Accuracy (lenient check), rejection only" in shown(boards)
    assert "Not ranked: 1 run " in shown(boards)


def test_a_run_is_shown_on_its_scale_with_its_warnings(compared: Path) -> None:
    records = compared / "first" / "records.jsonl"
    cut = records.read_bytes().replace(b'"status":"ok"', b'"status":"truncated"')
    cut = cut.replace(b'"statuses":{"ok":', b'"statuses":{"truncated":')
    records.write_bytes(cut)
    spec = msgspec.json.decode((compared / "first" / "spec.json").read_bytes())
    spec["provenance"]["records_bytes"] = len(cut)
    (compared / "first" / "spec.json").write_bytes(msgspec.json.encode(spec))
    warned = shown(page("explore", run="first"))
    assert "3 of 3 answers were cut off" in warned
    assert "a larger “Longest answer (tokens)”" in warned
    assert "on a line from 0% (worst) to 100% (best)" in warned
    assert "were cut off" not in shown(page("explore", run="second"))


def test_a_suites_name_for_a_model_is_shown(runs: Path) -> None:
    with Scripted(lambda prompt: "I do not know.") as server:
        suite = {
            "models": [{"spec": "openai:m", "name": "my tuned one", "base_url": server.url}],
            "benchmarks": [{"benchmark": "rgb", "limit": 2, "options": {"ability": "rejection"}}],
        }
        (runs.parent / "suite.yaml").write_bytes(msgspec.json.encode(suite))
        ek.suite(runs.parent / "suite.yaml", out=runs / "suite", progress=False)
    assert list(page("runs").dataframe[0].value["Model or method"]) == ["my tuned one"]
    assert "Scorecard of my tuned one" in shown(page("scorecard"))


# Compare


def copy_run(source: Path, target: Path, created: str) -> None:
    """The same run at another time."""
    target.mkdir()
    for path in source.iterdir():
        if path.is_file():
            (target / path.name).write_bytes(path.read_bytes())
    stored = msgspec.json.decode((source / "spec.json").read_bytes())
    stored["provenance"]["created"] = created
    (target / "spec.json").write_bytes(msgspec.json.encode(stored))


@pytest.fixture
def compared(runs: Path) -> Path:
    """From old to new: two runs that were asked the same, and one with another option."""
    with Scripted(lambda prompt: "I do not know.") as server:
        for name, temperature in (("first", 0.2), ("other", 0.5)):
            ek.run(
                "rgb", "openai:m", base_url=server.url, lang="en", limit=3, ability="rejection",
                temperature=temperature, out=runs / name, progress=False,
            )  # fmt: skip
    copy_run(runs / "first", runs / "second", "2099-01-01T00:00:00")
    copy_run(runs / "other", runs / "third", "2099-01-02T00:00:00")
    (runs / "other").rename(runs.parent / "unused")
    return runs


def test_the_newest_pair_that_can_be_compared_is_opened(compared: Path) -> None:
    test = page("compare")
    assert test.multiselect[0].value == ["second", "first"]
    assert "2 runs compared" in shown(test)
    assert str(compared) not in shown(test)


def test_runs_that_cannot_be_compared_are_named_with_why(compared: Path) -> None:
    test = page("compare", runs=["third", "first"])
    assert test.multiselect[0].value == ["third", "first"]
    assert "Temperature" in shown(test)
    assert str(compared) not in shown(test)
    ek.run("multiview", method="bm25", limit=1, out=compared / "other", progress=False)
    test = page("compare", runs=["first", "other", "absent"])
    assert "Only runs of one benchmark can be compared" in shown(test)
    assert "Not a finished run: absent" in shown(test)


def test_a_stranger_sees_no_folder_of_the_machine(compared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENKEEL_APP_READ_ONLY", "1")
    records = compared / "first" / "records.jsonl"
    records.write_bytes(b"x" * records.stat().st_size)
    test = page("compare", runs=["second", "first"])
    assert "first/records.jsonl, line 1: " in shown(test)
    assert str(compared) not in shown(test)
    records.unlink()
    test = page("compare", runs=["second", "first"])
    assert "Not a finished run: first" in shown(test)
    assert str(compared) not in shown(test)
    assert str(compared) not in page("explore").dataframe[0].proto.id
    monkeypatch.setenv("EVENKEEL_APP_RUNS", str(compared / "absent"))
    assert "The folder absent does not exist." in shown(page("runs"))
    assert "needs two finished runs of one benchmark" in shown(page("compare"))
    assert "needs a finished run" in shown(page("scorecard"))

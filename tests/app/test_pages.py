"""New run, Compare and the list of processes, driven without a browser."""

from __future__ import annotations

import html
import os
from pathlib import Path

import msgspec
import pytest
from streamlit.testing.v1 import AppTest

import evenkeel as ek
from evenkeel.app import choose, processes
from evenkeel.app.settings import UPLOAD_MB, Settings
from evenkeel.files.lock import process_began
from scripted import Scripted

pytestmark = pytest.mark.slow

PAGE = """
import streamlit as st
from evenkeel.app import show
from evenkeel.app.screens import {name} as screen
from evenkeel.app.settings import Settings

st.session_state.setdefault("pages", {{}})
with show.problems():
    screen.page(Settings.of_environment())
"""


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EVENKEEL_APP_RUNS", str(tmp_path / "runs"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "data").mkdir(parents=True)
    return tmp_path / "runs"


def page(name: str, *asked: str, run: str = "") -> AppTest:
    test = AppTest.from_string(PAGE.format(name=name), default_timeout=60)
    if asked:
        test.query_params["runs"] = list(asked)
    if run:
        test.query_params["run"] = run
    test.run()
    assert not test.exception
    return test


def shown(test: AppTest) -> str:
    assert not test.exception
    return "\n".join(str(element.proto.body) for element in test.get("html"))


def settings_of(runs: Path) -> Settings:
    return Settings(runs=runs, models=None, data=None, read_only=False)


def write_rows(folder: Path) -> Path:
    folder.mkdir(parents=True)
    row = {"id": 1, "prefix": "a b", "target": " c", "category": "Logic"}
    (folder / "miron_en.jsonl").write_bytes(msgspec.json.encode(row))
    return folder


# New run


def test_only_data_that_the_benchmark_can_read_is_listed(runs: Path) -> None:
    write_rows(runs / "data" / "mine")
    write_rows(runs / "data" / "starter")
    test = page("new_run")
    assert test.selectbox(key="data-mirae").options == ["starter", "published", choose.UPLOAD]
    assert "• mine/miron_en.jsonl, line 1: the field 'question_id' is missing" in html.unescape(shown(test))
    test.selectbox[0].select("miron").run()
    data = test.selectbox(key="data-miron")
    assert data.options == ["starter", "published", "mine", "./starter", choose.UPLOAD]
    assert data.value == "starter"
    data.select("mine").run()
    assert "2 requests, time unknown until the first answers, runs locally: free" in shown(test)


def test_a_data_file_is_uploaded_checked_and_counted(runs: Path, questions: Path) -> None:
    test = page("new_run")
    test.selectbox(key="data-mirae").select(choose.UPLOAD).run()
    assert "Choose the data first" in shown(test)
    uploader = test.file_uploader(key="data-mirae-upload")
    uploader.set_value(("../my <b>rows</b>.jsonl", b'{"prefix": "a", "target": "b"}', "text/plain")).run()
    assert "cannot read this" in shown(test)
    assert not test.button
    assert not any((runs / "data" / "uploads").iterdir()), "what no benchmark reads is not offered"
    uploader = test.file_uploader(key="data-mirae-upload")
    uploader.set_value(("../../q u.json", questions.read_bytes(), "application/json")).run()
    [path] = (runs / "data" / "uploads").glob("*.json")
    assert "requests, time unknown until the first answers, runs locally: free" in shown(test)
    assert [button.label for button in test.button] == ["Start the run"]
    assert path.name.startswith("q_u-")
    assert path.read_bytes() == questions.read_bytes()
    assert f"uploads/{path.name}" in page("new_run").selectbox(key="data-mirae").options


def test_an_upload_has_a_largest_size_and_a_name_that_fits(runs: Path) -> None:
    settings = settings_of(runs)
    with pytest.raises(ek.UsageError, match="more than 20 MB"):
        choose.save_upload(settings, "large.json", bytes(UPLOAD_MB * 2**20 + 1))
    with pytest.raises(ek.UsageError, match="not a text file"):
        choose.save_upload(settings, "picture.json", b"\x89PNG\0")
    path = choose.save_upload(settings, "𠀀" * 300 + ".jso\u202en", b"1")
    assert path.parent == settings.uploads
    assert path.read_bytes() == b"1"
    (runs / "data" / "uploads").rename(runs / "elsewhere")
    (runs / "data" / "uploads").symlink_to(runs / "elsewhere")
    with pytest.raises(ek.UsageError, match="is a link"):
        choose.save_upload(settings, "a.json", b"2")


# Processes


def write_process(runs: Path, name: str, *, alive: bool = False) -> None:
    (runs / name).mkdir()
    task = {"kind": "run", "benchmark": "mirae", "settings": {}}
    stored = {
        "task": task,
        "created": name,
        **({"pid": os.getpid(), "began": process_began(os.getpid())} if alive else {}),
    }
    (runs / name / "started.json").write_bytes(msgspec.json.encode(stored))


def test_a_process_that_was_asked_to_stop_is_stopping(runs: Path) -> None:
    write_process(runs, "x", alive=True)
    [process] = ek.started(runs)
    assert (process.state, process.active) == ("starting", True)
    test = page("explore", run="x")
    next(button for button in test.button if button.label == "Stop").click().run()
    [process] = ek.started(runs)
    assert (process.state, process.active) == ("stopping", True)
    assert "Stop" not in [button.label for button in test.run().button]
    assert test.get("progress")[0].proto.text == "Stopping…"


@pytest.mark.parametrize(
    ("seconds", "words"), [(0, "0 s"), (89, "89 s"), (90, "2 min"), (5399, "90 min"), (5400, "1.5 h")]
)
def test_the_time_left_has_a_unit(seconds: float, words: str) -> None:
    assert processes.duration(seconds) == words


def test_what_failed_can_be_dismissed(runs: Path) -> None:
    write_process(runs, "x")
    [process] = ek.started(runs)
    ek.dismiss(process)
    assert ek.started(runs) == []
    assert not (runs / "x").exists()


def test_a_part_of_the_abilities_and_its_size_are_chosen(runs: Path) -> None:
    test = page("new_run")
    test.selectbox[0].select("rgb").run()
    abilities = next(group for group in test.button_group if group.key == "run-rgb-ability")
    abilities.set_value(["rejection"]).run()
    assert "5 requests, time unknown until the first answers, runs locally: free" in shown(test)


# Runs and Explore


def test_a_run_is_shown_with_its_headline_as_a_number_and_its_warnings(compared: Path) -> None:
    table = page("runs").dataframe[0].value
    assert table["Headline"].dtype.kind == "f", "as text 9 would come after 10"
    records = compared / "first" / "records.jsonl"
    cut = records.read_bytes().replace(b'"status":"ok"', b'"status":"truncated"')
    cut = cut.replace(b'"statuses":{"ok":', b'"statuses":{"truncated":')
    records.write_bytes(cut)
    spec = msgspec.json.decode((compared / "first" / "spec.json").read_bytes())
    spec["provenance"]["records_bytes"] = len(cut)
    (compared / "first" / "spec.json").write_bytes(msgspec.json.encode(spec))
    assert "3 of 3 answers were cut off" in shown(page("explore", run="first"))
    assert "were cut off" not in shown(page("explore", run="second"))


# Compare


def copy_run(source: Path, target: Path, created: str, **spec: object) -> None:
    """The same run at another time, as if it had been asked with another spec."""
    target.mkdir()
    for path in source.iterdir():
        if path.is_file():
            (target / path.name).write_bytes(path.read_bytes())
    stored = msgspec.json.decode((source / "spec.json").read_bytes())
    stored["provenance"]["created"] = created
    (target / "spec.json").write_bytes(msgspec.json.encode(stored | spec))


@pytest.fixture
def compared(runs: Path) -> Path:
    """From old to new: two runs that were asked the same, and one with another option."""
    with Scripted(lambda prompt: "I do not know.") as server:
        for name, temperature in (("first", 0.2), ("third", 0.5)):
            ek.run(
                "rgb", "openai:m", base_url=server.url, lang="en", limit=3, ability="rejection",
                temperature=temperature, out=runs / name, progress=False,
            )  # fmt: skip
    copy_run(runs / "first", runs / "second", "2099-01-01T00:00:00")
    copy_run(runs / "third", runs / "newest", "2099-01-02T00:00:00")
    (runs / "third").rename(runs.parent / "unused")
    (runs / "newest").rename(runs / "third")
    return runs


def test_the_newest_pair_that_can_be_compared_is_opened(compared: Path) -> None:
    test = page("compare")
    assert test.multiselect[0].value == ["second", "first"]
    assert "2 runs compared" in shown(test)
    assert str(compared) not in shown(test)


def test_runs_that_cannot_be_compared_are_named_with_why(compared: Path) -> None:
    test = page("compare", "third", "first")
    assert test.multiselect[0].value == ["third", "first"]
    assert "Temperature" in shown(test)
    assert str(compared) not in shown(test)


def test_an_address_with_other_runs_says_so(compared: Path) -> None:
    ek.run("multiview", method="bm25", limit=1, out=compared / "other", progress=False)
    test = page("compare", "first", "other", "absent")
    assert "Only runs of one benchmark can be compared" in shown(test)
    assert "Not a finished run: absent" in shown(test)


def test_a_stranger_sees_no_folder_of_the_machine(compared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENKEEL_APP_READ_ONLY", "1")
    records = compared / "first" / "records.jsonl"
    records.write_bytes(b"x" * records.stat().st_size)
    test = page("compare", "second", "first")
    assert "first/records.jsonl, line 1: " in shown(test)
    assert str(compared) not in shown(test)
    records.unlink()
    test = page("compare", "second", "first")
    assert "Not a finished run: first" in shown(test)
    assert str(compared) not in shown(test)
    assert str(compared) not in page("explore").dataframe[0].proto.id
    monkeypatch.setenv("EVENKEEL_APP_RUNS", str(compared / "absent"))
    assert "The folder absent does not exist." in shown(page("runs"))


def test_without_two_runs_the_page_says_what_it_needs(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENKEEL_APP_READ_ONLY", "1")
    assert "needs two finished runs of one benchmark" in shown(page("compare"))

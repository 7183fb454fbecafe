"""The page that builds data sets and looks through them, and the widgets that it shares with New run."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta, Struct
from streamlit.testing.v1 import AppTest

import evenkeel as ek
from evenkeel.app import choose
from evenkeel.app.settings import Settings
from evenkeel.options import FILE
from pages import page, press, settings_of, shown, source, write_rows

HOSTILE = "<script>alert(1)</script> **bold** :red[x] $x$ http://evil.test/ www.evil.test a@evil.test"


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EVENKEEL_APP_RUNS", str(tmp_path / "runs"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    return tmp_path / "runs"


@pytest.fixture
def rows(runs: Path) -> Path:
    return write_rows(runs / "data" / "mine", HOSTILE, 3)


# The page


def test_a_build_is_started_and_can_be_looked_through(runs: Path) -> None:
    test = page("build", benchmark="miron")
    test.number_input(key="build-miron-per_category").set_value(2).run()
    press(test, "Build")
    [started] = ek.started(runs)
    assert started.kind == "build"
    assert started.task.settings["per_category"] == 2
    for _ in range(600):
        [started] = ek.started(runs)
        if not started.active:
            break
        time.sleep(0.1)
    assert started.state == "finished", started.log_tail()
    test = page("build")
    assert test.selectbox[-1].value == started.name
    review = ek.review(started.path)
    assert f"{len(review.rows)} rows" in test.get("progress")[-1].proto.text


def test_rows_are_accepted_and_rejected_one_after_the_other(rows: Path) -> None:
    test = page("build")
    press(test, "Accept")
    assert test.number_input(key="row-mine").value == 2
    press(test, "Reject")
    assert test.number_input(key="row-mine").value == 3
    review = ek.review(rows)
    assert review.counts() == {"accepted": 1, "rejected": 1, "undecided": 1}
    test.number_input(key="row-mine").set_value(1).run()
    press(test, "Undecided")
    assert ek.review(rows).verdict(0) == "undecided"
    assert test.number_input(key="row-mine").value == 1
    press(press(test, "Next"), "Accept")
    assert ek.review(rows).verdict(1) == "accepted"
    assert test.number_input(key="row-mine").value == 3
    press(press(test, "Previous"), "Reject")
    assert "1 rejected, 2 undecided" in test.get("progress")[-1].proto.text
    assert not test.exception


def test_words_of_a_data_set_are_shown_as_text(rows: Path) -> None:
    test = page("build")
    assert "&lt;script&gt;alert(1)&lt;/script&gt; **bold**" in source(test)
    assert "<script>alert" not in source(test)
    markdown = [element.value for kind in ("markdown", "caption") for element in getattr(test, kind)]
    assert not any("bold" in text for text in markdown)


def test_what_is_accepted_is_kept_as_data(rows: Path, runs: Path) -> None:
    test = page("build")
    assert next(button for button in test.button if button.label == "Save as a data set").disabled
    press(test, "Reject")
    test.checkbox[-1].check().run()
    press(test, "Save as a data set")
    assert len(ek.review(rows / "accepted").rows) == 2
    assert settings_of(runs).data_sets()["mine/accepted"] == rows / "accepted"


def test_a_data_set_that_changes_is_read_again_or_named(rows: Path) -> None:
    test = page("build")
    test.number_input(key="row-mine").set_value(3).run()
    (rows / "miron_en.jsonl").write_bytes(msgspec.json.encode({"id": 1, "prefix": "a b", "target": " c"}))
    assert test.run().number_input(key="row-mine").value == 1, "it has one row"
    (rows / "miron_en.jsonl").write_text('{"id": 1}\nnot JSON\n')
    assert "line 2: this line is not JSON" in shown(test.run())


# Widgets


class Parrot(Struct, frozen=True):
    """One option of each kind."""

    loud: Annotated[
        bool, Meta(description="Whether *all* is in capitals, beside --max-tokens.  [default: no]")
    ] = False
    tone: Literal["soft", "sharp"] | None = None
    times: Annotated[int, Meta(ge=1)] | None = None
    share: float = 0.5
    words: tuple[str, ...] = ("a",)
    model: str | None = None
    source: Annotated[str, Meta(description="own, or a file", extra=FILE)] = "own"


def choose_parrot() -> None:
    import streamlit as st
    from tests_app_parrot import Parrot  # type: ignore[import-not-found]

    from evenkeel.app import choose, show
    from evenkeel.app.settings import Settings

    with show.problems():
        st.session_state["chosen"] = choose.options(Parrot, Settings.of_environment(), key="x", shown=4)


@pytest.fixture
def parrot(runs: Path, monkeypatch: pytest.MonkeyPatch) -> AppTest:
    import sys
    import types

    module = types.ModuleType("tests_app_parrot")
    module.Parrot = Parrot  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tests_app_parrot", module)
    return AppTest.from_function(choose_parrot, default_timeout=30).run()


def chosen(test: AppTest) -> Any:
    assert not test.exception
    return test.session_state["chosen"]


def test_only_what_differs_from_the_defaults_is_chosen(parrot: AppTest, runs: Path) -> None:
    assert chosen(parrot) == {}
    assert "Whether *all* is in capitals, beside “Longest answer (tokens)”.  [default: no]</p>" in shown(
        parrot
    )
    parrot.checkbox(key="x-loud").check()
    parrot.selectbox(key="x-tone").select("sharp")
    parrot.number_input(key="x-times").set_value(3)
    parrot.number_input(key="x-share").set_value(0.25)
    parrot.text_area(key="x-words").set_value("b, with a comma\n\n c ")
    parrot.text_input(key="x-model").set_value(" hf:some/model ")
    assert chosen(parrot.run()) == {
        "loud": True,
        "tone": "sharp",
        "times": 3,
        "share": 0.25,
        "words": ("b, with a comma", "c"),
        "model": "hf:some/model",
    }


def test_a_file_is_one_of_the_apps_own(runs: Path, rows: Path, parrot: AppTest) -> None:
    ek.review(rows).decide(0, "accepted")
    saved = choose.save_upload(settings_of(runs), "../../my file.YAML", b"a: 1")
    assert saved.parent == runs / "data" / "uploads"
    assert choose.save_upload(settings_of(runs), "my file.YAML", b"a: 1") == saved
    assert choose.save_upload(settings_of(runs), "my file.YAML", b"a: 2") != saved
    assert saved.read_bytes() == b"a: 1"
    parrot.run()
    assert f"uploads/{saved.name}" in parrot.selectbox(key="x-source").options
    assert "uploads" not in parrot.selectbox(key="x-source").options
    assert [name for name in parrot.selectbox(key="x-source").options if "review" in name] == []
    parrot.selectbox(key="x-source").select("mine")
    assert chosen(parrot.run()) == {"source": str(rows)}


@pytest.mark.parametrize("name", ["evil?trust_remote_code=true", "a\x1b[31m", os.fsdecode(b"odd-\xff")])
def test_no_name_of_a_folder_becomes_arguments_or_signs(runs: Path, name: str) -> None:
    settings = Settings(runs=runs, models=runs.parent / "models", data=runs.parent / "sets", read_only=False)
    for folder in (name, "good"):
        for parent in ("models", "sets"):
            (runs.parent / parent / folder / "accepted").mkdir(parents=True)
            (runs.parent / parent / folder / "config.json").write_text("{}")
    (runs.parent / "models" / f"{name}.gguf").touch()
    assert list(settings.model_folders()) == ["good"]
    assert list(settings.data_sets()) == ["good", "good/accepted"]


def test_every_option_is_explained_in_the_words_of_the_page() -> None:
    kinds = [
        kind for each in ek.list_benchmarks().values() for kind in (each.Options, each.builder().Options)
    ]
    described = {option.name: (kind, option) for kind in kinds for option in ek.describe(kind)}
    for name, (_, option) in described.items():
        assert option.description, name
        assert "--" not in choose.with_titles(option.description), name
    assert set(choose.PRESENTATION.titles) <= set(described)
    for name, choices in choose.PRESENTATION.choices.items():
        described[name][0](**{name: ",".join(choices)})


# Models


def choose_model() -> None:
    import streamlit as st

    from evenkeel.app import choose, show
    from evenkeel.app.settings import Settings

    with show.problems():
        st.session_state["chosen"] = choose.model(Settings.of_environment())


def test_a_model_is_a_spec_that_never_holds_a_key(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-value-1234567890")
    monkeypatch.setenv("EVENKEEL_APP_MODELS", str(runs.parent / "models"))
    (runs.parent / "models" / "tiny").mkdir(parents=True)
    (runs.parent / "models" / "tiny" / "config.json").write_text("{}")
    test = AppTest.from_function(choose_model, default_timeout=30).run()
    assert chosen(test) == "embedded"
    test.selectbox(key="model-source").select("A folder").run()
    assert chosen(test) == f"hf:{runs.parent / 'models' / 'tiny'}"
    preset = ek.presets()["openai"]
    test.selectbox(key="model-source").select(preset.title).run()
    assert chosen(test) is None
    test.text_input(key="model-openai").set_value("some-model").run()
    assert chosen(test) == "openai:some-model"
    assert "read from OPENAI_API_KEY, which is set" in shown(test)
    assert "secret" not in shown(test)
    monkeypatch.delenv("OPENAI_API_KEY")
    assert "OPENAI_API_KEY is not set" in shown(test.run())


def test_any_server_can_be_named_and_gets_no_key_unless_asked(runs: Path) -> None:
    test = AppTest.from_function(choose_model, default_timeout=30).run()
    test.selectbox(key="model-source").select("An OpenAI-compatible server").run()
    assert chosen(test) is None
    test.text_input(key="model-address").set_value("http://127.0.0.1:9/v1")
    test.text_input(key="model-name").set_value("mine").run()
    assert chosen(test) == "openai:mine?base_url=http%3A%2F%2F127.0.0.1%3A9%2Fv1&api_key_env=NO_KEY"
    ek.load_model(chosen(test)).close()
    test.selectbox(key="model-variable").select("OPENAI_API_KEY").run()
    assert chosen(test).endswith("&api_key_env=OPENAI_API_KEY")
    assert "will be sent to http://127.0.0.1:9/v1" in shown(test)
    test.text_input(key="model-address").set_value("127.0.0.1:9").run()
    assert "is not an address" in shown(test)
    test.text_input(key="model-address").set_value("http://127.0.0.1:9/v1")
    test.text_input(key="model-name").set_value("mine?base_url=http://evil").run()
    assert "is not the name of a model" in shown(test)
    test.text_input(key="model-name").set_value("mine")
    test.text_input(key="model-address").set_value("http://user:pass@127.0.0.1/v1").run()
    assert "must not contain a password" in shown(test)

"""The pages Scorecard and Explained."""

from __future__ import annotations

import io
import re
import urllib.parse
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

import evenkeel as ek
from evenkeel.app.screens import scorecard
from stored import store_run

PAGE = """
from evenkeel.app import show
from evenkeel.app.screens import {name}
from evenkeel.app.settings import Settings

with show.problems():
    {name}.page(Settings.of_environment())
"""
HOSTILE = "=<b>one</b> *x*"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of one model, one of another whose name is hostile, and one of a method without a model."""
    folder = tmp_path_factory.mktemp("runs")
    values = np.linspace(0.5, 0.9, 12).reshape(4, 3)
    store_run(folder / "first", {"mean_similarity": values})
    store_run(folder / "second", {"mean_similarity": values / 2})
    store_run(folder / "hostile", {"mean_similarity": values}, model=HOSTILE)
    ek.run("multiview", method=["bm25"], limit=2, out=folder / "methods", progress=False)
    return folder


def page(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> AppTest:
    monkeypatch.setenv("EVENKEEL_APP_RUNS", str(folder))
    st.cache_resource.clear()
    test = AppTest.from_string(PAGE.format(name=name), default_timeout=60).run()
    assert not test.exception
    return test


def shown(test: AppTest) -> str:
    return "\n".join(str(element.proto.body) for element in test.get("html"))


def test_a_card_of_a_model_takes_the_run_that_is_chosen(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    test = page("scorecard", folder, monkeypatch)
    test.selectbox[0].select("one").run()
    for name in ("first", "second"):
        test.multiselect(key="runs-one").set_value([name]).run()
        assert f"{ek.load_run(folder / name).headline.value:.2f}" in shown(test)
    # BM25 is not a method of this model, so that its run is not on the card.
    assert "methods" not in test.multiselect(key="runs-one").options
    assert not test.exception


def test_the_name_of_a_model_is_text(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    test = page("scorecard", folder, monkeypatch)
    test.selectbox[0].select(HOSTILE).run()
    assert "Scorecard of =&lt;b&gt;one&lt;/b&gt; *x*" in shown(test)
    assert "<b>one</b>" not in shown(test)


def test_a_part_does_not_take_the_place_of_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.linspace(0.5, 0.9, 12).reshape(4, 3)
    store_run(tmp_path / "whole", {"mean_similarity": values})
    store_run(tmp_path / "zz-part", {"mean_similarity": values[:1] / 2})
    test = page("scorecard", tmp_path, monkeypatch)
    assert test.multiselect(key="runs-one").value == ["whole"]


def test_figures_and_page_are_downloaded(folder: Path) -> None:
    runs = [ek.load_run(folder / name) for name in ("hostile", "methods")]
    table = pl.read_csv(io.StringIO(scorecard.figures(runs)))
    assert len(table) == sum(len(run.summary) for run in runs)
    assert table["model"][0] == f"'{HOSTILE}"
    assert b"Scorecard of" in scorecard.card_page(runs)


def test_without_a_finished_run_there_is_no_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "needs a finished run" in shown(page("scorecard", tmp_path / "missing", monkeypatch))


@pytest.mark.parametrize("benchmark", ["mirae", "rgb", "miron", "multiview"])
def test_every_metric_of_a_benchmark_is_explained(
    benchmark: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    test = page("explained", tmp_path, monkeypatch)
    test.selectbox[0].select(benchmark).run()
    entries = ek.explained(benchmark)
    assert f"{len(entries)} of {len(entries)} metrics" in shown(test)
    text = urllib.parse.unquote(shown(test))
    layout = ek.list_benchmarks()[benchmark].layout
    assert all(entry.title[:20] in text or entry.name in text for entry in entries)
    assert layout.citation.split()[0] in text


def test_metrics_are_searched_by_all_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    test = page("explained", tmp_path, monkeypatch)
    [entry, *_] = ek.explained("mirae")
    test.text_input[0].set_value(f"{entry.name.upper()} {entry.title}").run()
    counts = re.search(r"(\d+) of (\d+) metrics", shown(test))
    assert counts
    assert 1 <= int(counts[1]) < int(counts[2])
    test.text_input[0].set_value("nosuchword").run()
    assert "Try fewer" in shown(test)

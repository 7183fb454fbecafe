"""The pages Scorecard and Explained."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import evenkeel as ek
from pages import page, shown, source
from stored import store_run

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


def test_a_card_of_a_model_takes_the_run_that_is_chosen(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVENKEEL_APP_RUNS", str(folder))
    test = page("scorecard")
    test.selectbox[0].select("one").run()
    for name in ("first", "second"):
        test.multiselect(key="runs-one").set_value([name]).run()
        assert f"{ek.load_run(folder / name).headline.value:.2f}" in shown(test)
    # BM25 is not a method of this model, so that its run is not on the card.
    assert "methods" not in test.multiselect(key="runs-one").options
    test.selectbox[0].select(HOSTILE).run()
    assert "Scorecard of =&lt;b&gt;one&lt;/b&gt; *x*" in source(test)
    assert "<b>one</b>" not in source(test)


def test_a_part_does_not_take_the_place_of_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENKEEL_APP_RUNS", str(tmp_path))
    values = np.linspace(0.5, 0.9, 12).reshape(4, 3)
    store_run(tmp_path / "whole", {"mean_similarity": values})
    store_run(tmp_path / "zz-part", {"mean_similarity": values[:1] / 2})
    assert page("scorecard").multiselect(key="runs-one").value == ["whole"]


@pytest.mark.parametrize("benchmark", ["mirae", "rgb", "miron", "multiview"])
def test_every_metric_is_explained_by_its_name_for_people(benchmark: str) -> None:
    test = page("explained", benchmark=benchmark)
    for entry in ek.explained(benchmark):
        title = f"{entry.title[:1].upper()}{entry.title[1:]}"
        assert f"<strong>{title}</strong> <small>{entry.name}</small>" in shown(test)
    assert ek.list_benchmarks()[benchmark].layout.citation in shown(test)
    assert "--" not in shown(test), "an option of the terminal"

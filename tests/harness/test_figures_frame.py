"""The figures of many runs as one data frame."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sealegs as sl
from sealegs.errors import UsageError
from sealegs.harness.stored.figures import COLUMNS
from stored import store_run

pl = pytest.importorskip("polars")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    cells = np.random.default_rng(0).uniform(0.2, 0.9, (6, 2))
    for number, model in enumerate(("one", "two")):
        store_run(tmp_path / "runs" / model, {"mean_similarity": cells - 0.1 * number}, model=model)
    return tmp_path / "runs"


def test_the_figures_of_many_runs_are_one_frame(folder: Path) -> None:
    (folder / "notes").mkdir()  # no run
    frame = sl.load_runs(f"{folder}/*")
    assert frame.columns == list(COLUMNS)
    assert set(map(str, frame.dtypes)) == {"String", "Float64", "Int64"}
    assert frame["model"].to_list() == ["one", "two"]
    for row in frame.iter_rows(named=True):
        figure = sl.load_run(row["run"]).summary[row["metric"]]
        assert (row["value"], row["low"], row["high"]) == (figure.value, figure.low, figure.high)
        assert (row["n"], row["coverage"], row["scope"]) == (figure.n, figure.coverage, "")
    assert sl.load_runs(folder).equals(frame)
    assert sl.load_runs(folder / "one", folder / "one").height == 1


def test_what_is_not_finished_or_broken_is_left_out(folder: Path) -> None:
    (folder / "one" / "summary.json").unlink()
    assert sl.load_runs(folder)["model"].to_list() == ["two"]
    (folder / "two" / "summary.json").write_text("nonsense")
    with pytest.warns(UserWarning, match="left out: .*two.*not JSON"):
        assert sl.load_runs(folder).height == 0
    with pytest.raises(UsageError, match="there is no run at"):
        sl.load_runs(f"{folder}/none*")

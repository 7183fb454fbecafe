"""The samples on which two runs differ."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import evenkeel as ek
from evenkeel.errors import UsageError
from stored import store_run


def test_the_largest_change_comes_first(tmp_path: Path) -> None:
    old = store_run(tmp_path / "old", {"mean_similarity": np.array([[0.5], [0.5], [0.5], [np.nan]])})
    new = store_run(tmp_path / "new", {"mean_similarity": np.array([[0.6], [0.1], [0.5], [0.5]])})
    frame = ek.flips(old, new)
    assert frame["sample"].to_list() == ["en-1-L0", "en-0-L0", "en-2-L0"]  # the fourth has no value in both
    assert frame["difference"].to_list() == pytest.approx([-0.4, 0.1, 0.0])
    assert not frame["flipped"].any()  # these values are not verdicts
    with pytest.raises(UsageError, match="no value 'nothing'. Available: mean_similarity"):
        ek.flips(old, new, "nothing")


def test_a_verdict_that_changed_is_flipped(tmp_path: Path) -> None:
    old = store_run(tmp_path / "old", {"refused": np.array([[0.0], [1.0], [1.0]])})
    new = store_run(tmp_path / "new", {"refused": np.array([[1.0], [1.0], [0.0]])})
    frame = ek.flips(old, new, "refused")
    assert dict(zip(frame["sample"], frame["flipped"], strict=True)) == {
        "en-0-L0": True, "en-1-L0": False, "en-2-L0": True,
    }  # fmt: skip

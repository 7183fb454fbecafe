"""Names from data, models and runs as parts of file names, on every system."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath, PureWindowsPath

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealegs.errors import UsageError
from sealegs.files.cache import distinct_slug, slug
from sealegs.models.local.weights import Weights

NASTY = [
    "../../x", "/etc/passwd", "C:\\x", "\\\\host\\share", "x.", "x ", "..", ".", "", "-rf", "--out=x", "~",
    "~root", ".hidden", "a\nb", "a\0b", "a:b", "a*?<>|\"b", "x" * 300, "한" * 300, "\udcff", "=1+1", "@x",
    "+x", ".-x", "-.x",
]  # fmt: skip


@given(st.text(max_size=400) | st.sampled_from(NASTY))
def test_a_name_is_one_part_of_a_path_on_every_system(name: str) -> None:
    safe = slug(name)
    assert PurePosixPath(safe).parts == PureWindowsPath(safe).parts == (safe,)
    assert safe[0] not in ".-~=+@ "
    assert safe[-1] not in ". "
    assert len(os.fsencode(safe)) <= 81
    assert safe.isprintable()


def test_names_that_a_file_system_may_take_for_the_same_get_numbers() -> None:
    taken: set[str] = set()
    names = [distinct_slug(name, taken) for name in ("A/b.json", "a_b.json", "A b.JSON", "\uff21_b.json")]
    assert names == ["A_b.json", "a_b-2.json", "A_b-3.JSON", "\uff21_b-4.json"]


@pytest.mark.parametrize("name", ["../other", "/etc", "a/../../other"])
def test_a_model_names_no_files_outside_its_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "modules.json").write_bytes(msgspec.json.encode([{"path": name}]))
    with pytest.raises(UsageError, match="not in this folder"):
        Weights(tmp_path / "model").files()

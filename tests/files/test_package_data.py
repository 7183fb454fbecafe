"""Data files of a package are read into types, once, with errors that name the file."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from evenkeel.errors import DataError
from evenkeel.files.package_data import read_json

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    folder = tmp_path / "harbour"
    (folder / "bank").mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "bank" / "ships.json").write_text('{"Aurora": 3}')
    (folder / "bank" / "broken.json").write_text('{"Aurora":\n 3')
    (folder / "motto.txt").write_text("Ruhig wie das Meer · 平穩", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "harbour", raising=False)
    return "harbour"


def test_json_is_read_into_a_type_and_only_once(package: str) -> None:
    ships = read_json(package, "bank", "ships.json", type=dict[str, int])
    assert ships == {"Aurora": 3}
    assert read_json(package, "bank", "ships.json", type=dict[str, int]) is ships


def test_a_broken_file_is_named_with_what_is_wrong(package: str) -> None:
    with pytest.raises(DataError, match=r"broken\.json.*not JSON"):
        read_json(package, "bank", "broken.json", type=dict[str, int])
    with pytest.raises(DataError, match=r"ships\.json.*expected text"):
        read_json(package, "bank", "ships.json", type=dict[str, str])

"""Errors in data files name the file, the line and what was expected."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import Struct

from evenkeel.errors import DataError
from evenkeel.files.jsonfile import read_json


class Item(Struct):
    name: str
    size: int = 0


def test_broken_json_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{\n  "name": "x",\n  "size": oops\n}')
    with pytest.raises(DataError, match=r"a\.json, line 3: this is not JSON"):
        read_json(path)


def test_a_wrong_type_names_the_place_and_what_was_expected(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('[{"name": "x"}, {"name": 5}]')
    with pytest.raises(DataError, match=r"a\.json, field '\[1\]\.name': expected text, got 5\.$"):
        read_json(path, list[Item])

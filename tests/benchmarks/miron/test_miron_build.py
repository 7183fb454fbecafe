"""Building a MIRON set: the same bytes for a seed, other words for another, and the pinned starter set."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from commandline import sealegs, sealegs_process
from sealegs.benchmarks.miron.benchmark import Miron
from sealegs.benchmarks.miron.data import CATEGORIES

pytestmark = pytest.mark.slow


def built(folder: Path, *args: object, **environment: str) -> dict[str, bytes]:
    """The files that `sealegs build` writes, in a process of its own."""
    done = sealegs_process("build", "miron", "--out", folder, *args, site=None, **environment)
    assert done.code == 0, done.stderr
    files = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
    assert done.stdout.split() == [str(folder / name) for name in files]
    return files


@pytest.fixture(scope="module")
def starter(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return built(tmp_path_factory.mktemp("zero"), PYTHONHASHSEED="1")


def read(files: dict[str, bytes]) -> list[dict[str, Any]]:
    return [msgspec.json.decode(line) for content in files.values() for line in content.splitlines()]


def test_seed_0_gives_the_pinned_starter_set(starter: dict[str, bytes]) -> None:
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in starter.items()}
    assert digests == {f"miron_{lang}.jsonl": digest for lang, digest in Miron.starter.sha256.items()}


def test_another_seed_gives_another_set_and_the_same_again(starter: dict[str, bytes], tmp_path: Path) -> None:
    few = ("--seed", 7, "--per-category", 40)
    first, again = (built(tmp_path / seed, *few, PYTHONHASHSEED=seed) for seed in ("1", "2"))
    assert first == again
    assert not {line["prefix"] for line in read(first)} <= {line["prefix"] for line in read(starter)}


def test_a_set_has_a_thousand_of_each_category_and_none_twice(starter: dict[str, bytes]) -> None:
    rows = read(starter)
    assert Counter(row["category"] for row in rows) == dict.fromkeys(CATEGORIES, 1000)
    assert Counter((row["category"], row["lang"]) for row in rows) == dict.fromkeys(
        [(category, lang) for category in CATEGORIES for lang in ("en", "ru")], 500
    )
    texts = {(row["lang"], row["prefix"], row["target"]) for row in rows}
    assert len({row["id"] for row in rows}) == len(texts) == 4000


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--lang", "fr"), "unknown language 'fr'; available: en, ru"),
        (("--per-category", "1"), "--per-category 1: must be at least 1 for each language"),
        (("--per-category", "60000", "--lang", "en"), "ask for fewer with --per-category"),
    ],
)
def test_a_set_that_cannot_be_built_is_refused(
    args: tuple[str, ...], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    assert sealegs("build", "miron", "--out", tmp_path / "set", *args).code == 2
    assert said in capsys.readouterr().err
    assert list((tmp_path / "set").glob("*.jsonl")) == []

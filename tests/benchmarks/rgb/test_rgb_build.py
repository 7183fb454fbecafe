"""Building an RGB set: from a seed, and from documents with a model whose answers follow known truth."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from jsonlines import read_lines
from librarian import CHINESE, ENGLISH, Librarian, check, write_documents
from loopback import Loopback
from sealegs import api
from sealegs.errors import DataError, UsageError

pytestmark = pytest.mark.slow

Build: TypeAlias = Callable[..., tuple[dict[str, Path], list[str]]]


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    return write_documents(ENGLISH, tmp_path / "documents")


@pytest.fixture
def built(documents: Path, tmp_path: Path) -> Build:
    """Builds from the English documents with a server's help: the files by name, and the notes."""

    def build(server: Loopback, out: str = "set", **options: Any) -> tuple[dict[str, Path], list[str]]:
        paths, made = api.build(
            "rgb", tmp_path / out, docs=str(documents), model="openai:writer", base_url=server.url, **options
        )
        assert made.failures == []
        return {path.name: path for path in paths}, made.notes

    return build


# From a seed


def test_another_seed_gives_another_set_of_every_kind_and_language(tmp_path: Path) -> None:
    seven, eight = (
        {
            path.name: path.read_bytes()
            for path in api.build("rgb", tmp_path / str(seed), seed=seed, size=4)[0]
        }
        for seed in (7, 8)
    )
    assert list(seven) == ["en.json", "en_int.json", "en_fact.json", "zh.json", "zh_int.json", "zh_fact.json"]
    assert all(seven[name] != eight[name] for name in seven)


# From documents


def test_documents_become_sets_of_all_three_kinds(built: Build) -> None:
    with Librarian(ENGLISH) as server:
        files, notes = built(server)
    plain, both, fact = check(ENGLISH, files)
    assert [len(dataset.instances) for dataset in (plain, both, fact)] == [14, 7, 14]
    assert all(len(instance.positive) == 5 for instance in (*plain.instances, *fact.instances))
    assert all(len(instance.negative) == 10 for instance in (*plain.instances, *both.instances))
    assert notes == [
        "14 documents, 14 passages",
        "questions: 14 of 14",
        "irrelevant documents: 210 of 210",
        "questions with irrelevant documents: 14 of 14",
        "rewritten passages: 56 of 56",
        "two-part questions: 7 of 7",
        "false answers: 14 of 14",
        "false versions of documents: 70 of 70",
        "counterfactual questions: 14 of 14",
    ]


def test_chinese_documents_are_known_by_their_script(tmp_path: Path) -> None:
    folder = write_documents(CHINESE, tmp_path / "documents")
    with Librarian(CHINESE) as server:
        paths, made = api.build(
            "rgb", tmp_path / "set", docs=str(folder), model="openai:w", base_url=server.url
        )
    assert made.failures == []
    plain, both, fact = check(CHINESE, {path.name: path for path in paths})
    assert [found.lang for found in (plain, both, fact)] == ["zh"] * 3
    assert [len(found.instances) for found in (plain, both, fact)] == [10, 5, 10]


def test_requests_that_failed_are_reported_and_asked_again(documents: Path, tmp_path: Path) -> None:
    with Librarian(ENGLISH) as server:
        options: dict[str, Any] = {
            "docs": str(documents), "model": "openai:w?retries=0", "base_url": server.url,
            "concurrency": 1,
        }  # fmt: skip
        server.behaviour.script = ("ok", "500", "ok")
        paths, made = api.build("rgb", tmp_path / "set", **options)
        assert made.failures == ["1 requests failed: the same command asks them again"]
        assert len(read_lines(paths[0])) == 13
        paths, made = api.build("rgb", tmp_path / "set", **options)
    assert made.failures == []
    assert len(read_lines(paths[0])) == 14


# What cannot be built


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"docs": "somewhere"}, "docs needs a --model"),
        ({"model": "openai:x"}, "model needs your documents"),
        ({"lang": "en,tlh"}, "unknown language 'tlh'; available: en, zh"),
        ({"docs": "d", "model": "openai:x", "lang": "en,zh"}, "your documents are in one language"),
    ],
)
def test_options_that_do_not_fit_are_refused(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        api.build("rgb", tmp_path / "set", **options)
    assert not (tmp_path / "set").exists()


def test_documents_that_are_too_few_are_refused_before_anything_is_asked(tmp_path: Path) -> None:
    folder = tmp_path / "documents"
    folder.mkdir()
    for number in range(3):
        (folder / f"{number}.txt").write_text(f"Document {number} says little to anybody.")
    with Librarian(ENGLISH) as server:
        with pytest.raises(DataError, match="understood alone is 3, and at least 6 are needed"):
            api.build("rgb", tmp_path / "set", docs=str(folder), model="openai:x", base_url=server.url)
        assert server.requests == 0
    assert not (tmp_path / "set").exists()


def test_a_model_that_writes_nothing_usable_is_reported_with_counts(built: Build, tmp_path: Path) -> None:
    with Loopback(words=20) as server, pytest.raises(DataError) as caught:
        built(server, size=3)
    assert "no question came out of it" in str(caught.value)
    assert "questions: 0 of 9 (9 dropped: unparsed)" in str(caught.value)
    assert not list((tmp_path / "set").glob("*.json"))


def test_a_document_of_which_nothing_is_used_is_named(built: Build, documents: Path) -> None:
    (documents / "signs.txt").write_text("No dogs. No fires. Shut the gate.")
    with Librarian(ENGLISH) as server:
        _, notes = built(server, size=1)
    assert notes[:2] == ["15 documents, 14 passages", "without a passage of their own: signs.txt"]


def test_a_kind_without_questions_is_left_out_with_a_note(built: Build) -> None:
    with Librarian(ENGLISH, true_fakes=True) as server:
        files, notes = built(server, size=1)
    assert list(files) == ["en.json"]
    assert notes[-2:] == [
        "en_int.json is left out: no question came out",
        "en_fact.json is left out: no question came out",
    ]

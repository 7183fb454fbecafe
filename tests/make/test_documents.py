"""Documents and criteria: what is read, what is left out, and what the errors say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from sealegs.benchmarks.multiview.make.criteria import Criterion, criterion, read_criteria
from sealegs.errors import DataError, UsageError
from sealegs.make.documents import Document, read_documents


def lines(path: Path, *rows: Any) -> Path:
    path.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    return path


def text_file(path: Path, content: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
    return path


# --- documents: shapes ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"question": "How many?", "answer": "4 #### 4"}, "How many?"),
        ({"content": "plain", "year": 3}, "plain"),
    ],
)
def test_known_data_sets_are_recognised_by_their_fields(
    tmp_path: Path, fields: dict[str, Any], text: str
) -> None:
    read = read_documents(lines(tmp_path / "a.jsonl", fields))
    assert read.documents == [Document("1", text)]


def test_unknown_fields_are_listed_with_what_to_do(tmp_path: Path) -> None:
    path = lines(tmp_path / "a.jsonl", {"body": "x", "year": 3})
    with pytest.raises(UsageError, match=r"a\.jsonl.*Available: body, year\. Choose one with --text-field"):
        read_documents(path)
    assert read_documents(path, text_field="body").documents[0].text == "x"


def test_an_id_is_the_id_field_or_the_line(tmp_path: Path) -> None:
    with_ids = read_documents(lines(tmp_path / "a.jsonl", {"id": "x", "text": "1"}, {"id": "y", "text": "2"}))
    assert [document.id for document in with_ids.documents] == ["x", "y"]
    path = text_file(tmp_path / "b.jsonl", '\n{"text": "1", "name": "n"}\n\n{"text": "2", "name": "n"}\n')
    assert [document.id for document in read_documents(path).documents] == ["2", "4"]


# --- documents: formats -----------------------------------------------------------------------------


def test_a_folder_of_text_files_gives_names_and_folders(tmp_path: Path) -> None:
    text_file(tmp_path / "b" / "two.txt", "second\n")
    text_file(tmp_path / "a" / "one.md", "first")
    text_file(tmp_path / "a" / "skip.png", "no text")
    read = read_documents(tmp_path, label_fields=["folder"])
    assert [(d.id, d.text, d.labels["folder"]) for d in read.documents] == [
        ("a/one.md", "first", ("a",)), ("b/two.txt", "second", ("b",))
    ]  # fmt: skip
    with pytest.raises(DataError, match="give the folder that it is in"):
        read_documents(tmp_path / "a" / "one.md")


def test_a_link_out_of_a_folder_is_refused_by_name(tmp_path: Path) -> None:
    """Documents are sent to a model: whoever made the folder does not choose files from elsewhere."""
    secret = tmp_path / "secret.txt"
    secret.write_text("for nobody")
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "a.txt").write_text("one")
    (folder / "b.txt").symlink_to(folder / "a.txt")
    assert len(read_documents(folder).documents) == 1
    (folder / "c.txt").symlink_to(secret)
    with pytest.raises(DataError, match=r"c\.txt: this is a link out of the folder"):
        read_documents(folder)


# --- documents: what cannot be used -----------------------------------------------------------------


def test_empty_and_repeated_documents_are_left_out_and_counted(tmp_path: Path) -> None:
    rows = [{"text": text} for text in ("one", "", "  \n", "two", "one", " one ")]
    read = read_documents(lines(tmp_path / "a.jsonl", *rows))
    assert [document.id for document in read.documents] == ["1", "4"]
    assert (read.empty, read.duplicates) == (2, 2)
    assert len(read.notes) == 2
    assert read_documents(lines(tmp_path / "b.jsonl", {"text": "x"})).notes == []


@pytest.mark.parametrize("rows", [[], [{"text": ""}, {"text": " "}]])
def test_a_file_without_any_usable_document_is_an_error(tmp_path: Path, rows: list[Any]) -> None:
    with pytest.raises(DataError, match=r"no document in it|every document in it is empty"):
        read_documents(lines(tmp_path / "a.jsonl", *rows))


def test_an_id_that_appears_twice_names_both_lines(tmp_path: Path) -> None:
    path = lines(tmp_path / "a.jsonl", *({"id": key, "text": key} for key in ("x", "y", "x")))
    with pytest.raises(DataError, match=r"line 3: the id 'x' appears twice, first at line 1"):
        read_documents(path)


def test_a_document_may_have_several_labels(tmp_path: Path) -> None:
    rows = [{"text": "a", "kind": ["k", 3, "k"]}, {"text": "b", "kind": []}, {"text": "c", "kind": "k"}]
    path = lines(tmp_path / "a.jsonl", *rows)
    read = read_documents(path, label_fields=["kind", "text"])
    assert [d.labels["kind"] for d in read.documents] == [("k", "3"), (), ("k",)]
    assert read.documents[0].labels["text"] == ("a",)
    with pytest.raises(DataError, match=r"line 1: the field 'kind' should be text, not a dict"):
        read_documents(lines(tmp_path / "b.jsonl", {"text": "a", "kind": [{}]}), label_fields=["kind"])


def test_the_same_text_with_other_labels_is_refused_by_both_lines(tmp_path: Path) -> None:
    rows = [
        {"text": "a", "kind": ["k", "m"]},
        {"text": " a", "kind": ["m", "k"]},
        {"text": "a ", "kind": "k"},
    ]
    path = lines(tmp_path / "a.jsonl", *rows)
    assert read_documents(path).duplicates == 2
    message = r"line 3: the same text has the label 'k, m' in the field 'kind' at line 1, and 'k' here"
    with pytest.raises(DataError, match=message):
        read_documents(path, label_fields=["kind"])


def test_a_label_that_is_missing_or_empty_is_an_error(tmp_path: Path) -> None:
    path = lines(tmp_path / "a.jsonl", {"text": "a", "kind": "k"}, {"text": "b", "kind": " "})
    with pytest.raises(DataError, match=r"line 2: the field 'kind' is empty"):
        read_documents(path, label_fields=["kind"])
    with pytest.raises(DataError, match=r"line 1: the field 'sort' is missing"):
        read_documents(path, label_fields=["sort"])


# --- criteria ---------------------------------------------------------------------------------------


def test_criteria_come_from_a_mapping(tmp_path: Path) -> None:
    mapping = "setting: Where it happens.\nplot:\n  description: What happens.\n  hints: [one hint]\n"
    criteria = [
        Criterion("setting", "Where it happens."),
        Criterion("plot", "What happens.", hints=("one hint",)),
    ]
    assert read_criteria(text_file(tmp_path / "a.yaml", mapping)) == criteria


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a: x\nb: {}\n", r"line 2: the field 'description' is missing"),
        ("a: x\nb/c: y\n", r"line 2: 'b/c' cannot be the name of a criterion"),
        ("a: x\nb: 3\n", r"line 2: expected a criterion: a mapping with 'description'"),
        ("", r"expected criteria"),
    ],
)
def test_a_bad_criteria_file_names_the_line(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_criteria(text_file(tmp_path / "a.yaml", content))


@pytest.mark.parametrize("name", ["", "a b", "../a", "a__b", ".hidden", "x" * 61])
def test_names_that_are_not_safe_in_a_file_name_are_refused(name: str) -> None:
    with pytest.raises(UsageError):
        criterion(name, "d")

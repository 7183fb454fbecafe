"""Documents, criteria and triplet files: what is read, what is left out, and what the errors say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from evenkeel.benchmarks.multiview.files import Triplet, encode_triplets, read_triplets
from evenkeel.benchmarks.multiview.make.criteria import Criterion, criterion, make_triplet, read_criteria
from evenkeel.errors import DataError, UsageError
from evenkeel.make.documents import Document, read_documents


def lines(path: Path, *rows: Any) -> Path:
    path.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    return path


def text_file(path: Path, content: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
    return path


# --- documents: shapes ------------------------------------------------------------------------------

SENTENCES = {f"sentence{n}": f"Sentence {n}." for n in range(1, 6)}


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"question": "How many?", "answer": "4 #### 4"}, "How many?"),
        ({"clue": "Flower of London?", "answer": "THAMES"}, "Flower of London?"),
        ({"storytitle": "The Key", **SENTENCES}, "The Key. " + " ".join(SENTENCES.values())),
        ({"title": "Lost!", **SENTENCES}, "Lost! " + " ".join(SENTENCES.values())),
        ({"text": "plain"}, "plain"),
        ({"document": "plain"}, "plain"),
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
    with pytest.raises(UsageError, match=r"a\.jsonl.*Available: body, year\. Choose one with text_field"):
        read_documents(path)
    assert read_documents(path, text_field="body").documents[0].text == "x"


def test_named_fields_are_taken_for_text_id_and_label(tmp_path: Path) -> None:
    path = lines(tmp_path / "a.jsonl", {"text": "no", "body": " yes ", "key": 7, "kind": "k", "id": "no"})
    read = read_documents(path, text_field="body", id_field="key", label_fields=["kind"])
    assert read.documents == [Document("7", "yes", {"kind": ("k",)})]


def test_an_id_is_the_id_field_or_the_line(tmp_path: Path) -> None:
    with_ids = read_documents(lines(tmp_path / "a.jsonl", {"id": "x", "text": "1"}, {"id": "y", "text": "2"}))
    assert [document.id for document in with_ids.documents] == ["x", "y"]
    path = text_file(tmp_path / "b.jsonl", '\n{"text": "1", "name": "n"}\n\n{"text": "2", "name": "n"}\n')
    assert [document.id for document in read_documents(path).documents] == ["2", "4"]


# --- documents: formats -----------------------------------------------------------------------------


def test_csv_with_a_byte_order_mark_quotes_and_a_cell_of_several_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b'\xef\xbb\xbfclue,answer\r\n"One, ""two""\r\nthree",ONE\r\n\r\nLast,TWO\r\n')
    read = read_documents(path)
    assert [(d.id, d.text) for d in read.documents] == [("2", 'One, "two"\r\nthree'), ("5", "Last")]


def test_a_csv_cell_may_be_long(tmp_path: Path) -> None:
    path = text_file(tmp_path / "a.csv", f"text\n{'word ' * 60_000}\n")
    assert len(read_documents(path).documents[0].text) == 299_999


def test_parquet_is_read_and_errors_name_the_row(tmp_path: Path) -> None:
    import polars

    path = tmp_path / "a.parquet"
    polars.DataFrame({"text": ["one", "two"], "label": ["a", None]}).write_parquet(path)
    assert [(d.id, d.text) for d in read_documents(path).documents] == [("1", "one"), ("2", "two")]
    with pytest.raises(
        DataError, match=r"a\.parquet, at row 2: the field 'label' should be text, not nothing"
    ):
        read_documents(path, label_fields=["label"])
    path.write_bytes(b"no parquet")
    with pytest.raises(DataError, match=r"a\.parquet: cannot be read"):
        read_documents(path)


def test_a_folder_of_text_files_gives_names_and_folders(tmp_path: Path) -> None:
    text_file(tmp_path / "b" / "two.txt", "second\n")
    text_file(tmp_path / "a" / "one.md", "first")
    text_file(tmp_path / "a" / "skip.png", "no text")
    read = read_documents(tmp_path, label_fields=["folder"])
    assert [(d.id, d.text, d.labels["folder"]) for d in read.documents] == [
        ("a/one.md", "first", ("a",)), ("b/two.txt", "second", ("b",))
    ]  # fmt: skip


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


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le"])
def test_a_text_file_in_another_encoding_is_refused_by_name(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "a.txt").write_bytes("What is one?\nWhat is two?\n".encode(encoding))
    with pytest.raises(DataError, match=r"a\.txt, line 1: this is not UTF-8 text: it holds NUL"):
        read_documents(tmp_path)


def test_a_folder_without_text_files_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no file in it that ends in \.txt or \.md"):
        read_documents(tmp_path)


@pytest.mark.parametrize("name", ["a.xlsx", "a"])
def test_an_unknown_kind_of_file_lists_the_known_ones(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match=r"ends in .*\.csv.*\.parquet.*\.jsonl"):
        read_documents(text_file(tmp_path / name, "x"))


@pytest.mark.parametrize("name", ["none.jsonl", "none.csv", "none.parquet"])
def test_a_missing_file_says_so(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match=r"none\..*cannot be read: No such file"):
        read_documents(tmp_path / name)


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


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"text": "a"}\n{"title": "b"}\n', r"line 2: the field 'text' is missing. Available: title"),
        ('{"text": "a"}\n{"text": ["b"]}\n', r"line 2: the field 'text' should be text, not a list"),
        ('{"text": "a"}\n["b"]\n', r"line 2: expected an object, not a list"),
        ('{"text": "a"}\n\n{"text": oops}\n', r"line 3: this line is not JSON"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_documents(text_file(tmp_path / "a.jsonl", content))


def test_a_label_may_be_a_number_or_a_truth_value(tmp_path: Path) -> None:
    path = lines(tmp_path / "a.jsonl", {"text": "a", "kind": True}, {"text": "b", "kind": 3})
    assert [d.labels["kind"] for d in read_documents(path, label_fields=["kind"]).documents] == [
        ("true",),
        ("3",),
    ]


def test_a_document_may_have_several_labels(tmp_path: Path) -> None:
    rows = [{"text": "a", "kind": ["k", 3, "k"]}, {"text": "b", "kind": []}, {"text": "c", "kind": "k; m;"}]
    path = lines(tmp_path / "a.jsonl", *rows)
    read = read_documents(path, label_fields=["kind", "text"], label_separator=";")
    assert [d.labels["kind"] for d in read.documents] == [("k", "3"), (), ("k", "m")]
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


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("text,kind\na,b\nc\n", r"line 3: this row has 1 cells, the first line 2"),
        ('text\n"a\nb"\n"c"d\n', r"line 4: this row cannot be read"),
    ],
)
def test_a_bad_row_of_a_csv_file_is_named(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_documents(text_file(tmp_path / "a.csv", content))


def test_text_that_is_not_utf_8_names_the_line(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"text\ngood\nb\xe4d\n")
    with pytest.raises(DataError, match=r"line 3: this is not UTF-8 text"):
        read_documents(tmp_path / "a.csv")


# --- criteria ---------------------------------------------------------------------------------------


def test_criteria_come_from_a_mapping_or_a_list(tmp_path: Path) -> None:
    mapping = "setting: Where it happens.\nplot:\n  description: What happens.\n  hints: one hint\n"
    listed = (
        "- {name: setting, description: Where it happens.}\n"
        "- name: plot\n  description: What happens.\n  hints: [one hint]\n"
    )
    criteria = [
        Criterion("setting", "Where it happens."),
        Criterion("plot", "What happens.", hints=("one hint",)),
    ]
    assert read_criteria(text_file(tmp_path / "a.yaml", mapping)) == criteria
    assert read_criteria(text_file(tmp_path / "b.yaml", listed)) == criteria


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a: x\nb: {}\n", r"line 2: the field 'description' is missing"),
        ("a: x\nb: {description: y, hint: z}\n", r"line 2: the field 'hint' is not known"),
        ("a: x\nb/c: y\n", r"line 2: 'b/c' cannot be the name of a criterion"),
        ("a: x\nb: ' '\n", r"line 2: the criterion 'b' has no description"),
        ("a: x\nb: y\nA: z\n", r"line 3: the criterion 'A' duplicates line 1"),
        ("a: x\na: y\n", r"line 2: the criterion 'a' duplicates line 1"),
        ("a: x\nb: 3\n", r"line 2: expected a criterion: a mapping with 'description'"),
        ("- only text\n", r"line 1: expected a criterion"),
        ("a: [x\n", r"line \d: this is not YAML"),
        ("just text", r"expected criteria"),
        ("", r"expected criteria"),
    ],
)
def test_a_bad_criteria_file_names_the_line(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_criteria(text_file(tmp_path / "a.yaml", content))


def test_a_missing_criteria_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="No such file"):
        read_criteria(tmp_path / "none.yaml")


def test_a_criterion_of_the_command_line_needs_a_name_and_a_description() -> None:
    assert criterion("plot", " What happens. ", hints=["h"]) == Criterion("plot", "What happens.", ("h",))
    with pytest.raises(UsageError, match="criterion NAME description TEXT"):
        criterion("plot", None)


@pytest.mark.parametrize("name", ["", "a b", "../a", "a__b", ".hidden", "a.", "x" * 61, "nul\0"])
def test_names_that_are_not_safe_in_a_file_name_are_refused(name: str) -> None:
    with pytest.raises(UsageError):
        criterion(name, "d")


@pytest.mark.parametrize("name", ["plot", "plot-2", "story_setting", "v1.2", "줄거리"])
def test_names_that_are_safe_are_kept(name: str) -> None:
    assert criterion(name, "d").name == name


# --- triplets ---------------------------------------------------------------------------------------

TRIPLET = make_triplet(
    "set",
    Criterion("plot", "What happens.", hints=("h",), instruction="i"),
    (Document("1", "one"), Document("2", "two"), Document("3", "three")),
    labels=[{"plot": "x"}, {"plot": "x"}, {"plot": "y"}],
    hard_for="bm25",
)


def test_triplets_are_written_and_read_back(tmp_path: Path) -> None:
    other = msgspec.structs.replace(TRIPLET, anchor="four")
    (tmp_path / "t.jsonl").write_bytes(encode_triplets([TRIPLET, other]))
    assert read_triplets(tmp_path / "t.jsonl") == [TRIPLET, other]
    assert (TRIPLET.task, TRIPLET.labels["negative"]) == ("set__plot", {"plot": "y"})


def test_unknown_fields_are_ignored_and_optional_ones_may_be_missing(tmp_path: Path) -> None:
    least = {
        "task": "a__b", "criterion": "b", "description": "d", "anchor": "x", "positive": "y", "negative": "z",
        "anchor_id": "1", "positive_id": "2", "negative_id": "3",
    }  # fmt: skip
    (read,) = read_triplets(lines(tmp_path / "t.jsonl", {**least, "source": "elsewhere"}))
    assert (read.quality, read.hard_for, read.labels, read.documents) == (None, "", {}, ("x", "y", "z"))
    assert msgspec.json.decode(encode_triplets([read])) == least


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"positive": " "}, r"line 2, field 'positive': the document is empty"),
        ({"negative": None}, r"line 2, field 'negative': expected text, got nothing"),
        ({"quality": "good"}, r"line 2, field 'quality': expected a whole number or nothing, got 'good'"),
    ],
)
def test_a_bad_triplet_names_its_line(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    good = msgspec.to_builtins(TRIPLET)
    with pytest.raises(DataError, match=message):
        read_triplets(lines(tmp_path / "t.jsonl", good, {**good, **change}))


def test_a_triplet_without_a_field_and_a_file_without_triplets_are_errors(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"line 1: the field 'task' is missing"):
        read_triplets(lines(tmp_path / "t.jsonl", {"anchor": "x"}))
    with pytest.raises(DataError, match="no triplet in this file"):
        read_triplets(text_file(tmp_path / "empty.jsonl", "\n"))


def test_a_triplet_is_a_frozen_record() -> None:
    with pytest.raises(AttributeError):
        TRIPLET.anchor = "other"  # type: ignore[misc]
    assert isinstance(TRIPLET, Triplet)

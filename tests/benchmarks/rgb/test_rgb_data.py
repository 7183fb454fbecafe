"""RGB's files: what is read from them, and what is said of a file that cannot be read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sealegs.benchmarks.rgb.data import language, read_instances
from sealegs.benchmarks.rgb.predictions import PredictionFile, read_predictions
from sealegs.errors import DataError
from sealegs.text.answer_search.mention import parts

PLAIN = {"id": 0, "query": "Where?", "answer": "Silverton", "positive": ["p0", "p1"], "negative": ["n0"]}
INT = PLAIN | {"answer": ["Anna", "2019"], "positive": [["a0", "a1"], ["b0"]]}
FACT = PLAIN | {"fakeanswer": "Glenmore", "positive_wrong": ["w0", "w1"]}
PREDICTED = {
    "id": 0,
    "query": "Where?",
    "ans": [["Silverton", "Silver Town"]],
    "label": [1],
    "prediction": "In Silverton.",
    "docs": ["p0"],
    "noise_rate": 0.0,
    "factlabel": 0,
}


def written(path: Path, *items: Any) -> Path:
    """A file of JSON lines; a text is a line as it stands."""
    lines = [item if isinstance(item, str) else json.dumps(item, ensure_ascii=False) for item in items]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_the_published_counterfactual_files_are_read_whole(reference: Path) -> None:
    for name in ("en", "zh"):
        dataset = read_instances(reference / "rgb" / f"{name}_fact.json")
        assert (dataset.name, dataset.kind, dataset.lang) == (f"{name}_fact", "fact", name)
        assert [item.id for item in dataset.instances] == list(range(100))
        assert all(item.fake and len(item.positive_wrong) == len(item.positive) for item in dataset.instances)


def test_the_kind_is_told_by_the_fields_and_not_by_the_name(tmp_path: Path) -> None:
    assert read_instances(written(tmp_path / "a_fact.json", PLAIN)).kind == "plain"
    assert read_instances(written(tmp_path / "b.json", INT)).kind == "int"
    assert read_instances(written(tmp_path / "c_int.json", FACT)).kind == "fact"


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("a", (("a",),)),
        (["a", "b"], (("a",), ("b",))),
        ([["a", "b"]], (("a", "b"),)),
        ([["a", "b"], "c"], (("a", "b"), ("c",))),
    ],
)
def test_an_answer_becomes_parts_of_alternatives_and_is_kept_as_it_was(
    raw: Any, expected: Any, tmp_path: Path
) -> None:
    (item,) = read_instances(written(tmp_path / "x.json", PLAIN | {"answer": raw})).instances
    assert item.answer == parts(raw) == expected
    assert item.raw_answer == raw


@pytest.mark.parametrize(
    ("name", "queries", "expected"),
    [
        ("en_fact", ["谁"], "en"),
        ("zh", ["who"], "zh"),
        ("energy", ["谁赢了", "在哪"], "zh"),
        ("zhuhai", ["who"], "en"),
    ],
)
def test_the_language_is_told_by_the_name_or_else_by_the_questions(
    name: str, queries: list[str], expected: str
) -> None:
    assert language(name, queries) == expected


def without(field: str, line: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in line.items() if name != field}


@pytest.mark.parametrize(
    ("good", "bad", "said"),
    [
        (PLAIN, "{not json", "not JSON"),
        (PLAIN, without("query", PLAIN), "the field 'query' is missing"),
        (PLAIN, PLAIN | {"answer": [[]]}, "'answer' is an empty list"),
        (PLAIN, PLAIN | {"answer": ["a", " "]}, "'answer' holds an empty text"),
        (PLAIN, PLAIN | {"query": "  "}, "'query' is empty"),
        (PLAIN, PLAIN | {"positive": 3}, "field 'positive"),
        (
            PLAIN,
            without("answer", PLAIN),
            "the field 'answer' is missing, which the documents 'positive' have",
        ),
        (PLAIN, {"query": "Where?", "context": "p0"}, "--column negative=context"),
        (PLAIN, PLAIN | {"id": 7}, "the 'id' 7 duplicates line 1"),
        (FACT, FACT | {"positive_wrong": ["w0"]}, "'positive_wrong' has fewer documents than 'positive'"),
        (FACT, without("fakeanswer", FACT), "'fakeanswer' is missing"),
        (FACT, FACT | {"positive": [["p0"]]}, "'positive' holds groups"),
        (INT, INT | {"positive": ["p0"]}, "'positive' must hold groups"),
    ],
)
def test_a_bad_line_is_named_with_its_number_and_what_it_should_be(
    good: dict[str, Any], bad: Any, said: str, tmp_path: Path
) -> None:
    """A good line, a blank one, then the bad one, which is therefore the third."""
    path = written(tmp_path / "mine.json", good | {"id": 7}, "", bad)
    with pytest.raises(DataError, match=r"mine\.json, line 3") as error:
        read_instances(path)
    assert said in str(error.value)
    assert "each line is a JSON object with a 'query'" in str(error.value)


def test_an_empty_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nothing in it"):
        read_instances(written(tmp_path / "x.json", ""))


# Predictions


def test_predictions_are_read_as_the_published_script_wrote_them(tmp_path: Path) -> None:
    first = {k: v for k, v in PREDICTED.items() if k != "factlabel"}
    path = written(tmp_path / "x.json", PREDICTED, first | {"id": "b", "label": [-1], "evaluation": "Yes"})
    one, two = read_predictions(path)
    assert one.answer == PREDICTED["ans"]
    assert (one.label, one.docs, one.noise_rate, one.factlabel) == ((1,), ("p0",), 0.0, 0)
    assert (two.id, two.label, two.factlabel) == ("b", (-1,), None)


def test_a_bad_prediction_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match="line 2: .*'ans' is an empty list.*as the published script writes it"
    ):
        read_predictions(written(tmp_path / "x.json", PREDICTED, PREDICTED | {"id": 1, "ans": []}))


def test_the_name_of_a_prediction_file_tells_its_setting() -> None:
    stem = "prediction_my_harbour_fact_a_temp_b_temp0.2_noise0.0_passage10_correct0.4"
    file = PredictionFile("my_harbour_fact", "a_temp_b", 0.2, 0.0, 10, 0.4)
    assert PredictionFile.parse(stem) == file
    assert file.stem == stem

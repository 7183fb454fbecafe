"""MIRAE: its files, its figures, and the published digits."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import sealegs as sl
from sealegs.benchmarks.mirae.benchmark import Mirae, MiraeOptions, spread
from sealegs.benchmarks.mirae.data import QuestionAtLevels, parse_levels, read_questions
from sealegs.benchmarks.mirae.published import similarity
from sealegs.errors import DataError, UsageError
from sealegs.files.datasets import data_file
from sealegs.harness.data import Data
from sealegs.types import Sample
from stored import store_run

pytestmark = pytest.mark.slow

RESULTS = "mirae/MIRAE_claude_haiku_results_english.json"
BY_LEVEL = (0.8849, 0.8788, 0.8688, 0.8702, 0.8651, 0.8548, 0.8435)
FLOORS = (0.1611, 0.1810, 0.1823, 0.1843, 0.2037, 0.2061, 0.2126)
CORRECTED = (0.8589, 0.8471, 0.8355, 0.8366, 0.8262, 0.8117, 0.7951)
"""Recomputed from the vectors of the answers, pair by pair, by a script of its own."""


# The published digits


@pytest.fixture(scope="module")
def rescored(reference: Path, tmp_path_factory: pytest.TempPathFactory) -> sl.Run:
    """The 1,400 published answers of Claude 3.5 Haiku, embedded and scored by us."""
    return sl.score("mirae", reference / RESULTS, out=tmp_path_factory.mktemp("haiku") / "run")


@pytest.fixture(scope="module")
def part(reference: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The published answers to one question of each domain at three levels."""
    content: dict[str, Any] = msgspec.json.decode((reference / RESULTS).read_bytes())
    content["experiment_results"] = content["experiment_results"][::10]
    for question in content["experiment_results"]:
        question["level_analyses"] = question["level_analyses"][::3]
    content["metadata"] |= {
        "total_questions_analyzed": 4,
        "levels_analyzed": "1,4,7",
        "experiment_type": "Multi-level Consistency Analysis (Levels 1,4,7)",
    }
    return content


@pytest.fixture(scope="module")
def rescored_part(part: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> sl.Run:
    folder = tmp_path_factory.mktemp("part")
    (folder / "part.json").write_bytes(msgspec.json.encode(part))
    return sl.score("mirae", folder / "part.json", out=folder / "run")


def check_published(run: sl.Run, content: dict[str, Any]) -> None:
    ours = {record.sample.id: record for record in run.records()}
    for question in content["experiment_results"]:
        for level in question["level_analyses"]:
            record = ours[f"en-{question['question_id']}-L{level['level']}"]
            for name, value in level["similarity_analysis"].items():
                assert record.score.values[name] == pytest.approx(value, abs=1e-5)
            matrix = record.score.detail.pairwise_similarities
            assert np.abs(np.array(matrix) - np.array(level["pairwise_similarities"])).max() < 1e-5
    assert len(ours) == sum(len(question["level_analyses"]) for question in content["experiment_results"])


def test_published_figures_are_reproduced(rescored_part: sl.Run, part: dict[str, Any]) -> None:
    check_published(rescored_part, part)
    assert (rescored_part.agreement() or "").startswith("48 published figures, largest difference")


@pytest.mark.full
def test_every_published_figure_is_reproduced(rescored: sl.Run, reference: Path) -> None:
    check_published(rescored, msgspec.json.decode((reference / RESULTS).read_bytes()))
    figures = {"mean_similarity": BY_LEVEL, "chance_floor": FLOORS, "corrected_similarity": CORRECTED}
    for name, values in figures.items():
        for level, value in enumerate(values, 1):
            figure = rescored.summary[f"{name}/level={level}"]
            assert figure.value == pytest.approx(value, abs=1e-4)
            assert (figure.n, figure.clusters, figure.coverage) == (40, 40, 1.0)


def test_the_export_has_the_published_structure(rescored_part: sl.Run, part: dict[str, Any]) -> None:
    (exported,) = (rescored_part.path / "export").iterdir()
    assert exported.name == "MIRAE_claude-3-5-haiku-20241022_results_english.json"
    ours, theirs = msgspec.json.decode(exported.read_bytes()), part
    for question in ours["experiment_results"]:  # the published script writes it, the published files lack it
        for level in question["level_analyses"]:
            values, matrix = level.pop("pairwise_comparison_values"), np.array(level["pairwise_similarities"])
            assert values == matrix[np.triu_indices(5, k=1)].tolist()
    assert shape(ours) == shape(theirs)
    assert ours["metadata"] == theirs["metadata"]
    for mine, original in zip(ours["experiment_results"], theirs["experiment_results"], strict=True):
        assert (mine["question_id"], mine["domain"]) == (original["question_id"], original["domain"])
        for a, b in zip(mine["level_analyses"], original["level_analyses"], strict=True):
            assert a["responses"] == b["responses"]
            assert a["question_text"] == b["question_text"]


def test_the_published_plotting_code_reads_the_export_where_prompts_have_one_answer(
    part: dict[str, Any], tmp_path: Path
) -> None:
    first, second = copy.deepcopy(part["experiment_results"][:2])
    del first["level_analyses"][1]["responses"][1:]  # one answer
    for level in second["level_analyses"]:
        level["responses"] = []
    content = {"metadata": part["metadata"], "experiment_results": [first, second]}
    (tmp_path / "few.json").write_bytes(msgspec.json.encode(content))
    run = sl.score("mirae", tmp_path / "few.json", out=tmp_path / "run")
    assert run.headline.coverage < 1
    (path,) = (run.path / "export").iterdir()
    exported = msgspec.json.decode(path.read_bytes())
    means = [  # as the published README reads them
        (question["question_id"], level["level"], level["similarity_analysis"]["mean_similarity"])
        for question in exported["experiment_results"]
        for level in question["level_analyses"]
    ]
    assert [(question, level) for question, level, _ in means] == [
        (first["question_id"], 1),
        (first["question_id"], 7),
    ]
    assert np.isfinite([mean for _, _, mean in means]).all()
    assert exported["metadata"]["total_questions_analyzed"] == 1
    assert exported["metadata"]["levels_analyzed"] == "1,7"


def test_a_rescore_needs_no_embedder_and_changes_no_digit(rescored_part: sl.Run) -> None:
    path = rescored_part.path / "summary.json"
    before = path.read_bytes()
    path.unlink()
    sl.rescore(rescored_part.path)
    assert path.read_bytes() == before


def shape(value: Any) -> Any:
    """Keys and kinds, without the contents."""
    if isinstance(value, dict):
        return {key: shape(part) for key, part in value.items()}
    if isinstance(value, list):
        return [shape(part) for part in value]
    return type(value)


# The figures


def test_the_figures_of_a_matrix_are_those_of_its_upper_triangle() -> None:
    matrix = np.array([[1, 0.2, 0.4], [0.2, 1, 0.9], [0.4, 0.9, 1]], dtype=np.float32)
    figures = similarity(matrix)
    assert figures == pytest.approx(
        {
            "mean_similarity": 0.5,
            "std_similarity": np.std([0.2, 0.4, 0.9]),
            "max_similarity": 0.9,
            "min_similarity": 0.2,
        }
    )
    assert similarity(matrix[:1, :1]) is None


# Stored runs


def test_a_stored_run_is_read_by_the_former_name_of_an_option(tmp_path: Path) -> None:
    run = store_run(tmp_path / "run", {"mean_similarity": np.ones((2, 1))}, options={"samples": 3})
    assert b'"samples":3' in (run.path / "spec.json").read_bytes().replace(b" ", b"")
    assert run.spec.options == {"repeats": 3}


# Questions and samples


def test_the_real_question_file_is_read(reference: Path) -> None:
    found = read_questions(reference / "mirae/MIRAE_augmented_questions_english.json")
    assert len(found) == 40
    assert all(sorted(question.texts) == [1, 2, 3, 4, 5, 6, 7] for question in found)


def samples(questions: Path, **options: Any) -> list[Sample]:
    return Mirae(MiraeOptions(**options)).samples(Data([data_file(questions)], langs=None, limit=None))


def test_a_limit_takes_the_questions_that_all_languages_have() -> None:
    """Also where a translation failed, or the files have another order."""
    ids = {"en": "123456", "ko": "23456", "zh": "65431"}
    rows = [
        QuestionAtLevels(id=each, domain="AB"[int(each) % 2], lang=lang, texts={1: "?"})
        for lang, of_lang in ids.items()
        for each in of_lang
    ]
    for limit in (1, 2, 3):
        chosen = {lang: {q.id for q in spread(rows, limit) if q.lang == lang} for lang in ids}
        assert chosen["en"] == chosen["ko"] == chosen["zh"] == set("345"[:limit])
    assert {q.id for q in spread(rows, 5) if q.lang == "zh"} == set("65431")


def test_a_level_that_the_file_lacks_is_refused(questions: Path) -> None:
    with pytest.raises(UsageError, match=r"questions\.json: question 1 has no level 4"):
        samples(questions, levels="1-4")


def test_a_question_that_stands_in_two_files_is_refused(questions: Path) -> None:
    other = questions.with_name("other.json")
    other.write_bytes(questions.read_bytes())
    with pytest.raises(
        UsageError, match=r"question 1 in 'en' is in several files: .*questions\.json, .*other\.json"
    ):
        Mirae(MiraeOptions()).samples(Data([data_file(questions), data_file(other)], langs=None, limit=None))


def test_two_questions_of_the_same_wording_have_answers_of_their_own(questions: Path) -> None:
    content = msgspec.json.decode(questions.read_bytes())
    for item in content["questions"]:
        item["level_1_text"] = "The same?"
    questions.write_bytes(msgspec.json.encode(content))
    benchmark = Mirae(MiraeOptions(levels="1"))
    asked = [r for s in samples(questions, levels="1") for r in benchmark.requests(s)]
    assert len(set(asked)) == 20


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"domain": "F", "level_1_text": "x"}], r"questions\[0\]': the field 'question_id' is missing"),
        ([{"question_id": 1, "domain": "F"}], "found none"),
        ([{"question_id": 1, "domain": "F", "level_2_text": " "}], "level_2_text: expected a text"),
        ([{"question_id": 1, "domain": "F", "level_1_text": "x"}] * 2, "question_id 1 appears 2 times"),
    ],
)
def test_a_broken_question_file_says_what_was_expected_where(
    tmp_path: Path, rows: list[Any], message: str
) -> None:
    path = tmp_path / "q_english.json"
    path.write_bytes(msgspec.json.encode({"questions": rows}))
    with pytest.raises(DataError, match=message):
        read_questions(path)


def test_a_file_that_does_not_state_its_language_needs_to_be_told(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_bytes(
        msgspec.json.encode({"questions": [{"question_id": 1, "domain": "F", "level_1_text": "x"}]})
    )
    with pytest.raises(DataError, match="give --lang"):
        read_questions(path)
    assert read_questions(path, "fr")[0].lang == "fr"


@pytest.mark.parametrize(
    ("text", "levels"),
    [("1-7", (1, 2, 3, 4, 5, 6, 7)), ("7,1,3-4", (1, 3, 4, 7)), ("5-2", None), ("1-8", None)],
)
def test_levels_are_written_as_ranges_between_1_and_7(text: str, levels: tuple[int, ...] | None) -> None:
    if levels:
        assert parse_levels(text) == levels
    else:
        with pytest.raises(ValueError, match="level"):
            parse_levels(text)

"""MIRAE: its files, its figures, and the published digits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import evenkeel as ek
from evenkeel.benchmarks.mirae.benchmark import Mirae, MiraeOptions, spread
from evenkeel.benchmarks.mirae.files import (
    Question,
    abbreviated,
    make_samples,
    parse_levels,
    read_questions,
)
from evenkeel.benchmarks.mirae.recorded import read_recording
from evenkeel.benchmarks.mirae.scoring import similarity
from evenkeel.errors import DataError, UsageError
from evenkeel.files.datasets import data_file
from evenkeel.harness.benchmark import Data
from evenkeel.types import Answered, Embed, Response, Sample, Score
from loopback import Loopback

pytestmark = pytest.mark.slow

RESULTS = "mirae/MIRAE_claude_haiku_results_english.json"
BY_LEVEL = (0.8849, 0.8788, 0.8688, 0.8702, 0.8651, 0.8548, 0.8435)
FLOORS = (0.1611, 0.1810, 0.1823, 0.1843, 0.2037, 0.2061, 0.2126)
CORRECTED = (0.8589, 0.8471, 0.8355, 0.8366, 0.8262, 0.8117, 0.7951)
"""Recomputed from the vectors of the answers, pair by pair, by a script of its own."""


# The published digits


@pytest.fixture(scope="module")
def rescored(reference: Path, tmp_path_factory: pytest.TempPathFactory) -> ek.Run:
    """The 1,400 published answers of Claude 3.5 Haiku, embedded and scored by us."""
    return ek.score("mirae", reference / RESULTS, out=tmp_path_factory.mktemp("haiku") / "run")


@pytest.fixture(scope="module")
def part(reference: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The published answers to one question of each domain."""
    content: dict[str, Any] = msgspec.json.decode((reference / RESULTS).read_bytes())
    content["experiment_results"] = content["experiment_results"][::10]
    content["metadata"]["total_questions_analyzed"] = 4
    return content


@pytest.fixture(scope="module")
def rescored_part(part: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> ek.Run:
    folder = tmp_path_factory.mktemp("part")
    (folder / "part.json").write_bytes(msgspec.json.encode(part))
    return ek.score("mirae", folder / "part.json", out=folder / "run")


def check_published(run: ek.Run, content: dict[str, Any]) -> None:
    ours = {record.sample.id: record for record in run.records()}
    assert len(ours) == 7 * len(content["experiment_results"])
    for question in content["experiment_results"]:
        for level in question["level_analyses"]:
            record = ours[f"en-{question['question_id']}-L{level['level']}"]
            for name, value in level["similarity_analysis"].items():
                assert record.score.values[name] == pytest.approx(value, abs=1e-5)
            matrix = record.score.detail.pairwise_similarities
            assert np.abs(np.array(matrix) - np.array(level["pairwise_similarities"])).max() < 1e-5


def test_published_figures_are_reproduced(rescored_part: ek.Run, part: dict[str, Any]) -> None:
    check_published(rescored_part, part)


@pytest.mark.full
def test_every_published_figure_is_reproduced(rescored: ek.Run, reference: Path) -> None:
    check_published(rescored, msgspec.json.decode((reference / RESULTS).read_bytes()))


@pytest.mark.full
def test_the_means_by_level_are_the_known_ones(rescored: ek.Run) -> None:
    for level, known in enumerate(BY_LEVEL, 1):
        figure = rescored.summary[f"mean_similarity/level={level}"]
        assert figure.value == pytest.approx(known, abs=5e-5)
        assert figure.low is not None
        assert figure.high is not None
        assert figure.low < known < figure.high
        assert (figure.n, figure.clusters, figure.coverage) == (40, 40, 1.0)


@pytest.mark.full
def test_the_means_corrected_for_chance_are_the_known_ones(rescored: ek.Run) -> None:
    for level, (floor, corrected) in enumerate(zip(FLOORS, CORRECTED, strict=True), 1):
        assert rescored.summary[f"chance_floor/level={level}"].value == pytest.approx(floor, abs=1e-4)
        figure = rescored.summary[f"corrected_similarity/level={level}"]
        assert figure.value == pytest.approx(corrected, abs=1e-4)
        assert (figure.n, figure.clusters, figure.coverage) == (40, 40, 1.0)


def test_the_export_has_the_published_structure(rescored_part: ek.Run, part: dict[str, Any]) -> None:
    (exported,) = (rescored_part.path / "export").iterdir()
    assert exported.name == "MIRAE_claude-3-5-haiku-20241022_results_english.json"
    ours, theirs = msgspec.json.decode(exported.read_bytes()), part
    for question in ours["experiment_results"]:  # the published script writes it, the published files lack it
        for level in question["level_analyses"]:
            values, matrix = level.pop("pairwise_comparison_values"), np.array(level["pairwise_similarities"])
            assert values == matrix[np.triu_indices(5, k=1)].tolist()
    assert shape(ours) == shape(theirs)
    assert len(read_recording(exported).samples) == 28
    assert ours["metadata"] == theirs["metadata"]
    for mine, original in zip(ours["experiment_results"], theirs["experiment_results"], strict=True):
        assert (mine["question_id"], mine["domain"]) == (original["question_id"], original["domain"])
        for a, b in zip(mine["level_analyses"], original["level_analyses"], strict=True):
            assert a["responses"] == b["responses"]
            assert a["question_text"] == b["question_text"]


def test_a_rescore_needs_no_embedder_and_changes_no_digit(rescored_part: ek.Run) -> None:
    path = rescored_part.path / "summary.json"
    before = path.read_bytes()
    path.unlink()
    ek.rescore(rescored_part.path)
    assert path.read_bytes() == before


def test_the_run_says_how_well_it_agrees_with_the_file(rescored_part: ek.Run) -> None:
    agreement = rescored_part.agreement()
    assert agreement is not None
    assert agreement.startswith("112 published figures, largest difference")


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


@pytest.mark.parametrize("answers", [0, 1])
def test_fewer_than_two_answers_give_no_figure(answers: int) -> None:
    assert similarity(np.ones((answers, answers), dtype=np.float32)) is None


def scored(responses: list[Response], embed: Callable[[str], list[float] | None]) -> tuple[Score, list[str]]:
    """Score one prompt by hand, answering the embedding requests as a runner would."""
    (sample,) = make_samples([Question("1", "FACTUAL", "en", {1: "why?"})], len(responses))
    benchmark = Mirae(MiraeOptions())
    scoring = benchmark.score([Answered(sample, tuple(benchmark.requests(sample)), tuple(responses))])
    asked = next(scoring)
    texts = [request.text for request in asked if isinstance(request, Embed)]
    vectors = [embed(text) for text in texts]
    with pytest.raises(StopIteration) as done:
        scoring.send(
            [
                Response(status="error") if vector is None
                else Response(status="ok", vector=np.array(vector, "<f4").tobytes())
                for vector in vectors
            ]
        )  # fmt: skip
    return done.value.value[0], texts


def test_each_distinct_answer_is_embedded_once() -> None:
    answers = [Response(status="ok", text=text) for text in ("a", "b", "a", "a")]
    score, texts = scored(answers, lambda text: [1, 0] if text == "a" else [0, 1])
    assert texts == ["a", "b"]
    assert score.values["mean_similarity"] == pytest.approx(0.5)


def test_a_failed_answer_is_left_out_and_never_counted_as_text() -> None:
    answers = [Response(status="ok", text="a"), Response(status="ok", text="a"), Response(status="error")]
    score, texts = scored(answers, lambda _: [1, 0])
    assert texts == ["a"]
    assert score.values["mean_similarity"] == pytest.approx(1)
    assert (score.answered, score.statuses) == (2, {"ok": 2, "error": 1})


def test_one_usable_answer_is_missing_not_perfect() -> None:
    score, _ = scored([Response(status="ok", text="a"), Response(status="error")], lambda _: [1, 0])
    assert score.values["mean_similarity"] is None
    assert score.answered == 0


# Questions and samples


def test_the_real_question_file_is_read(reference: Path) -> None:
    found = read_questions(reference / "mirae/MIRAE_augmented_questions_english.json")
    assert len(found) == 40
    assert all(sorted(question.texts) == [1, 2, 3, 4, 5, 6, 7] for question in found)


def samples(
    questions: Path, *, limit: int | None = None, langs: list[str] | None = None, **options: Any
) -> list[Sample]:
    return Mirae(MiraeOptions(**options)).samples(Data([data_file(questions)], langs=langs, limit=limit))


def test_a_limit_is_spread_over_the_domains(questions: Path) -> None:
    chosen = samples(questions, limit=2, levels="1")
    assert [sample.id for sample in chosen] == ["en-1-L1", "en-3-L1"]


def test_a_limit_takes_the_questions_that_all_languages_have() -> None:
    """Also where a translation failed, or the files have another order."""
    ids = {"en": "123456", "ko": "23456", "zh": "65431"}
    rows = [
        Question(id=each, domain="AB"[int(each) % 2], lang=lang, texts={1: "?"})
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
    ("broken", "message"),
    [
        (
            {"questions": [{"domain": "FACTUAL", "level_1_text": "x"}]},
            r"q_english\.json, field 'questions\[0\]': the field 'question_id' is missing",
        ),
        ({"questions": [{"question_id": 1, "level_1_text": "x"}]}, r"the field 'domain' is missing"),
        ({"questions": [{"question_id": 1, "domain": "F"}]}, "found none"),
        (
            {"questions": [{"question_id": 1, "domain": "F", "level_2_text": " "}]},
            r"level_2_text: expected a text",
        ),
        (
            {"questions": [{"question_id": 1, "domain": "F", "level_1_text": "x"}] * 2},
            "question_id 1 appears 2 times",
        ),
        ({"items": []}, r"expected MIRAE questions.*It is an object with 'items'"),
        ([1, 2], "It is a list"),
    ],
)
def test_a_broken_question_file_says_what_was_expected_where(
    tmp_path: Path, broken: Any, message: str
) -> None:
    path = tmp_path / "q_english.json"
    path.write_bytes(msgspec.json.encode(broken))
    with pytest.raises(DataError, match=message):
        read_questions(path)


def test_a_file_that_does_not_state_its_language_needs_to_be_told(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_bytes(
        msgspec.json.encode({"questions": [{"question_id": 1, "domain": "F", "level_1_text": "x"}]})
    )
    with pytest.raises(DataError, match="give lang"):
        read_questions(path)
    assert read_questions(path, "fr")[0].lang == "fr"


# Recorded answers


def test_the_list_shape_of_recorded_answers_is_read(tmp_path: Path) -> None:
    path = tmp_path / "answers_korean.json"
    item = {
        "question_id": 7,
        "domain": "OPINION",
        "level_responses": {"1": {"question_text": "왜?", "responses": ["하나", "둘"]}},
    }
    path.write_bytes(msgspec.json.encode([item]))
    recording = read_recording(path)
    assert [(sample.id, sample.tags["level"]) for sample in recording.samples] == [("ko-7-L1", 1)]
    assert [[response.text for response in each] for each in recording.responses] == [["하나", "둘"]]


def results(tmp_path: Path, **changes: Any) -> Path:
    """A small results file: two questions with three answers each, at level 1."""
    levels = [{"level": 1, "question_text": "?", "responses": ["a", "b", "c"]} for _ in range(2)]
    items = [{"question_id": n, "domain": "F", "level_analyses": [levels[n]]} for n in range(2)]
    content = {"metadata": {"language": "English", "model": "m"}, "experiment_results": items}
    levels[0].update(changes.pop("first", {}))
    content["metadata"] |= changes  # type: ignore[operator]
    path = tmp_path / "results.json"
    path.write_bytes(msgspec.json.encode(content))
    return path


def test_answers_that_are_not_there_lower_coverage(tmp_path: Path) -> None:
    with Loopback() as server:
        run = ek.score(
            "mirae", results(tmp_path, first={"responses": []}), out=tmp_path / "run",
            embedder="openai:e", base_url=server.url,
        )  # fmt: skip
    assert run.headline.coverage == pytest.approx(0.5)
    assert run.headline.statuses == {"error": 3, "ok": 3}
    # What has no figure is exported as null, and the export can be read again.
    (exported,) = (run.path / "export").iterdir()
    assert len(read_recording(exported).samples) == 2


# Small things


@pytest.mark.parametrize(
    ("text", "levels"), [("1-7", (1, 2, 3, 4, 5, 6, 7)), ("2", (2,)), ("7,1,3-4", (1, 3, 4, 7))]
)
def test_levels_are_written_as_ranges(text: str, levels: tuple[int, ...]) -> None:
    assert parse_levels(text) == levels


@pytest.mark.parametrize("text", ["0-3", "1-8", "5-2", "some", "", "1-"])
def test_levels_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="level"):
        parse_levels(text)


def test_a_question_is_abbreviated_as_published() -> None:
    assert abbreviated("Short?") == "Short?..."
    assert abbreviated("x" * 300) == "x" * 100 + "..."
    assert abbreviated(abbreviated("x" * 300)) == "x" * 100 + "..."


FIGURES = {"mean_similarity": 0.99, "std_similarity": 0.0}


@pytest.mark.parametrize(
    ("named", "text"),
    [
        ("sentence-transformers/all-MiniLM-L6-v2", "of another embedder (sentence-transformers/all-MiniLM"),
        ("hub/E", "largest difference from ours"),  # the same name: no embedder to blame
    ],
)
def test_figures_of_another_embedder_are_named_as_the_cause(tmp_path: Path, named: Any, text: str) -> None:
    path = results(tmp_path, first={"similarity_analysis": FIGURES}, embedding_model=named)
    with Loopback() as server:
        run = ek.score("mirae", path, out=tmp_path / "run", embedder="openai:e", base_url=server.url)
    agreement = run.agreement()
    assert agreement is not None
    assert text in agreement
    assert ("another embedder" in agreement) == ("another embedder" in text)

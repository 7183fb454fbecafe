"""MIRAE's recorded answers: what cannot be read, several files as one, and runs compared with them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import sealegs as sl
from commandline import sealegs
from loopback import DIMENSIONS, Loopback
from sealegs.benchmarks.mirae.added import probe_sentences
from sealegs.benchmarks.mirae.data import MiraeInputs
from sealegs.benchmarks.mirae.results import read_recording
from sealegs.errors import DataError, UsageError

pytestmark = pytest.mark.slow

LEVELS = (1, 2, 3)
LONG = "so that the text goes on for more than the hundred characters that a published file holds of it"


def level(number: Any, text: str = "Why?...", *, answers: Any = ("a", "b", "c")) -> dict[str, Any]:
    return {"level": number, "question_text": text, "responses": list(answers)}


def entry(question_id: Any, **changes: Any) -> dict[str, Any]:
    levels = [level(number) for number in LEVELS]
    return {"question_id": question_id, "domain": "FACTUAL", "level_analyses": levels} | changes


def write(path: Path, entries: list[Any], **metadata: Any) -> Path:
    content = {"metadata": {"language": "English", "model": "m"} | metadata, "experiment_results": entries}
    path.write_text(json.dumps(content))
    return path


def without(name: str, of: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in of.items() if key != name}


def second_level(**changes: Any) -> dict[str, Any]:
    return entry(2, level_analyses=[level(1), level(2) | changes, level(3)])


# What cannot be read


@pytest.mark.parametrize(
    ("damaged", "place"),
    [
        (without("domain", entry(2)), "[1]: the field 'domain' is missing"),
        (None, "[1]: expected an object, got nothing"),
        (second_level(responses=["a", 5, {}]), "[1].responses[1]: expected text or nothing, got 5"),
    ],
)
def test_an_entry_that_cannot_be_read_costs_itself(tmp_path: Path, damaged: Any, place: str) -> None:
    recording = read_recording(write(tmp_path / "x.json", [entry(1), damaged, entry(3)]))
    assert len(recording.samples) == 9
    assert place in recording.warnings[0]
    assert recording.warnings[-1].endswith("count as not answered: 1.")
    endings = Counter(response.status for responses in recording.responses for response in responses)
    assert endings == {"ok": 18, "error": 9}


def test_an_answer_that_is_not_there_costs_itself(tmp_path: Path) -> None:
    damaged = second_level(responses=["a", None, "c"])
    recording = read_recording(write(tmp_path / "x.json", [entry(1), damaged]))
    endings = Counter(response.status for responses in recording.responses for response in responses)
    assert endings == {"ok": 17, "error": 1}
    assert recording.warnings == []


def test_a_level_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="question 2 has level 1 twice"):
        read_recording(write(tmp_path / "x.json", [entry(1), second_level(level=1)]))


def texts(recording: Any, index: int) -> list[str]:
    return [response.text for response in recording.responses[index]]


def test_an_entry_of_raw_answers_that_cannot_be_read_costs_itself(tmp_path: Path) -> None:
    whole = {"1": {"question_text": "왜?", "responses": ["하나", "둘"]}}
    items = [
        5,
        {"question_id": 1, "domain": "F", "level_responses": whole},
        {
            "question_id": 2,
            "domain": "F",
            "level_responses": {"1": {"question_text": "왜?"}, "x": whole["1"]},
        },
    ]
    path = tmp_path / "mine_responses_korean.json"
    path.write_text(json.dumps(items))
    recording = read_recording(path)
    assert [sample.id for sample in recording.samples] == ["ko-1-L1", "ko-entry-1-L1", "ko-2-L1"]
    assert [texts(recording, n) for n in range(3)] == [["하나", "둘"], ["", ""], ["", ""]]
    assert recording.model == "mine_responses"
    assert len(recording.warnings) == 3


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([5, None], r"experiment_results\[0\]: expected an object, got 5. No answer could be read"),
        ([entry(1, level_analyses=[level(1, answers=[None])])], "No answer could be read"),
    ],
)
def test_a_file_without_a_single_answer_is_refused(tmp_path: Path, entries: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_recording(write(tmp_path / "x.json", entries))


@pytest.mark.parametrize(("stated", "count"), [(4, 4), (10**9, 3)])
def test_a_file_may_state_how_often_each_prompt_was_asked(tmp_path: Path, stated: Any, count: int) -> None:
    path = write(tmp_path / "x.json", [entry(1), entry(2)], num_repetitions=stated)
    recording = read_recording(path)
    assert {len(responses) for responses in recording.responses} == {count}
    assert recording.warnings == []


def test_missing_answers_lower_coverage_and_another_embedder_is_named(tmp_path: Path) -> None:
    figures = {"similarity_analysis": {"mean_similarity": 0.99}}
    entries = [entry(1, level_analyses=[level(1, answers=[])]), entry(2, level_analyses=[level(1) | figures])]
    path = write(tmp_path / "results.json", entries, embedding_model="hub/all-MiniLM-L6-v2")
    with Loopback() as server:
        run = sl.score("mirae", path, out=tmp_path / "run", embedder="openai:e", base_url=server.url)
    assert run.headline.coverage == pytest.approx(0.5)
    assert run.headline.statuses == {"error": 3, "ok": 3}
    assert "of another embedder (hub/all-MiniLM" in (run.agreement() or "")
    # What has no figure is left out of the export, and the rest can be read again.
    (exported,) = (run.path / "export").iterdir()
    assert [sample.group for sample in read_recording(exported).samples] == ["2"]


# Several files


class Translating(Loopback):
    """Its vectors say which of some sentences a text is, in whatever language."""

    def _embeddings(self, body: Any) -> bytes:
        rows = []
        for index, text in enumerate(body.input):
            meanings = [lines.index(text) for lines in probe_sentences().values() if text in lines]
            axis = meanings[0] if meanings else 10 + int(text.split()[-1])
            vector = [float(axis == n) for n in range(DIMENSIONS)]
            rows.append({"index": index, "embedding": vector})
        return json.dumps({"data": rows}).encode()


def test_files_of_one_model_in_three_languages_are_one_run_with_figures_across(tmp_path: Path) -> None:
    """All questions are recorded in the same words; Korean answers are English ones but for question 2."""
    answers = {"english": (1, 2), "korean": (1, 5), "chinese": (7, 8)}
    paths = [
        write(
            tmp_path / f"{language}.json",
            [
                entry(n, level_analyses=[level(1, answers=[f"{language} {meaning}"] * 3)])
                for n, meaning in enumerate(meanings, 1)
            ],
            language=language,
        )
        for language, meanings in answers.items()
    ]
    with Translating() as server:
        done = sealegs(
            "score", "mirae", *paths, "--out", tmp_path / "run", "--embedder", "openai:e",
            "--base-url", server.url,
        )  # fmt: skip
    assert done.code == 0
    run = sl.load_run(tmp_path / "run")
    across = {pair: run.summary[f"across_{pair}"].value for pair in ("en_ko", "en_zh", "ko_zh")}
    assert across == pytest.approx({"en_ko": 0.5, "en_zh": 0.0, "ko_zh": 0.0})
    languages = {"en": "english", "ko": "korean", "zh": "chinese"}
    for record in run.records():
        texts = {answer.text.split()[0] for answer in record.answers}
        assert texts == {languages[str(record.sample.tags["lang"])]}

    assert len(run.spec.data["sha256"]) == 3


def test_files_of_other_models_or_the_same_questions_are_scored_side_by_side(tmp_path: Path) -> None:
    first = write(tmp_path / "first.json", [entry(1)])
    again = write(tmp_path / "again.json", [entry(1)])
    damaged = [entry(1), *[entry(n) for n in range(2, 31)], second_level(level=9) | {"question_id": 31}]
    other = write(tmp_path / "other.json", damaged, model="n", language="Korean")
    for paths in ([first, other], [first, again]):
        with pytest.raises(UsageError, match="cannot be scored as one run: first.json"):
            sl.score("mirae", paths, out=tmp_path / "none")
    with Loopback() as server:
        options = ("--embedder", "openai:e", "--base-url", server.url)
        done = sealegs("score", "mirae", first, again, other, "--out", tmp_path / "runs", *options)
    assert done.code == 0
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["again", "first", "other"]
    assert "other.json, experiment_results[30].level_analyses[1].level: " in done.stderr
    assert "other.json: other.json" not in done.stderr


# Compared with runs


@pytest.mark.parametrize(
    ("recorded", "text", "same"),
    [
        ("Why is it so?...", "Why is it so?", True),
        (f"{LONG:.<100.100}...", f"{LONG:.<100.100} and further", True),
        ("", "Why?", True),
        (f"{'x' * 100}...", f"{'x' * 99}y and further", False),
    ],
)
def test_a_recorded_text_is_that_of_a_prompt_as_far_as_it_is_known(
    recorded: str, text: str, same: bool
) -> None:
    first, second = (
        MiraeInputs(question_id="1", question_text=each, samples=5, first_repeat=n).fingerprint()
        for n, each in enumerate((recorded, text))
    )
    assert (first == second) == (second == first) == same


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of the same questions, and the export of one of them scored by two embedders."""
    folder = tmp_path_factory.mktemp("runs")
    items = [
        {
            "question_id": n,
            "domain": "AB"[n % 2],
            **{f"level_{k}_text": f"Question {n}, {LONG}: {k}?" for k in LEVELS},
        }
        for n in range(1, 9)
    ]
    questions = folder / "questions.json"
    questions.write_text(json.dumps({"metadata": {"language": "English"}, "questions": items}))
    chosen: dict[str, dict[str, Any]] = {
        "mine": {},
        "theirs": {},
        "late": {"levels": "2,3"},
        "seldom": {"repeats": 2},
    }
    with Loopback(words=12) as server:
        for name, options in chosen.items():
            sl.run(
                "mirae", f"openai:{name}", data=questions, base_url=server.url, out=folder / name,
                progress=False, embedder="openai:embed", **({"repeats": 3} | options),
            )  # fmt: skip
        (exported,) = (folder / "theirs" / "export").iterdir()
        recorded = folder / "recorded.json"
        recorded.write_bytes(exported.read_bytes())
        for name, embedder in (("recorded", "openai:embed"), ("other", "openai:other")):
            sl.score(
                "mirae", recorded, out=folder / name, embedder=embedder, base_url=server.url, progress=False
            )
    return folder


def test_a_run_is_compared_with_recorded_answers(folder: Path) -> None:
    comparison = sl.compare(folder / "mine", folder / "recorded")
    assert {each.metric: each.n for each in comparison.differences}["mean_similarity"] == 24
    assert any("temperature, max_tokens" in note for note in comparison.notes)
    assert not any("Embedder" in each for each in comparison.differs)  # the file names the same one
    # The same figures as against the run that was recorded, whose settings are known.
    known = sl.compare(folder / "mine", folder / "theirs", metrics="mean_similarity").differences[0]
    assert known.difference == pytest.approx(comparison.differences[0].difference)


def test_a_recording_scored_by_another_embedder_is_refused(folder: Path) -> None:
    with pytest.raises(UsageError, match="Embedder: A"):
        sl.compare(folder / "mine", folder / "other")


def test_what_depends_on_the_number_of_answers_or_the_first_level_is_not_compared(folder: Path) -> None:
    comparison = sl.compare(folder / "seldom", folder / "recorded")
    sizes = {each.metric: each.n for each in comparison.differences}
    assert (sizes["mean_similarity"], sizes["drift"], sizes["identical_answers"]) == (24, 16, 0)
    late = {each.metric: each for each in sl.compare(folder / "late", folder / "recorded").differences}
    assert late["mean_similarity"].n == 16
    assert (late["drift"].n, late["drift"].difference) == (0, None)

"""MIRAE's recorded answers: what cannot be read, several files as one, and runs compared with them."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import evenkeel as ek
from commandline import evenkeel
from evenkeel.analysis.gate import gate
from evenkeel.api import group_files
from evenkeel.benchmarks.mirae.files import MiraeInputs, asked, same_text
from evenkeel.benchmarks.mirae.recorded import read_recording
from evenkeel.benchmarks.mirae.scoring import probe_sentences
from evenkeel.errors import DataError, UsageError
from loopback import DIMENSIONS, Loopback
from stored import rewrite_records

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
    ("damaged", "place", "prompts", "answers"),
    [
        (without("domain", entry(2)), "[1]: the field 'domain' is missing", 3, 0),
        (without("question_id", entry(2)), "[1]: the field 'question_id' is missing", 3, 0),
        (entry(2, domain=5), "[1].domain: expected text, got 5", 3, 0),
        (entry([2]), "[1].question_id: expected a whole number or text, got a list", 3, 0),
        (entry(2, level_analyses=None), "[1].level_analyses: expected a list, got nothing", 3, 0),
        (entry(2, level_analyses=[]), "[1]: it has no levels", 3, 0),
        (None, "[1]: expected an object, got nothing", 3, 0),
        ("question", "[1]: expected an object, got 'question'", 3, 0),
        (
            entry(2, level_analyses=[level(1), without("responses", level(2)), level(3)]),
            "[1].level_analyses[1]: the field 'responses' is missing",
            1,
            0,
        ),
        (second_level(question_text=7), ".level_analyses[1].question_text: expected text, got 7", 1, 0),
        (second_level(responses="abc"), ".level_analyses[1].responses: expected a list, got 'abc'", 1, 0),
        (second_level(responses=["a"] * 1001), ".responses: must have at most 1000 entries", 1, 0),
        (second_level(responses=["a", None, "c"]), "[1].responses[1]: expected text, got nothing", 0, 1),
        (second_level(responses=["a", 5, {}]), "[1].responses[1]: expected text, got 5", 0, 2),
        (second_level(level=8), "[1].level_analyses[1]: 8 is not a level from 1 to 7", 1, 0),
        (second_level(level=True), "[1].level_analyses[1]: true is not a level from 1 to 7", 1, 0),
        (second_level(level=10**5000), "[1]: inf is not a level from 1 to 7", 1, 0),
        (second_level(level=1), "[1].level_analyses[1]: question_id '2' has level 1 before", 2, 0),
        (entry(2, level_analyses=[*entry(2)["level_analyses"], 5]), "[3]: expected an object, got 5", 0, 0),
    ],
)
def test_an_entry_that_cannot_be_read_costs_itself(
    tmp_path: Path, damaged: Any, place: str, prompts: int, answers: int
) -> None:
    recording = read_recording(write_digits(tmp_path / "x.json", [entry(1), damaged, entry(3)]))
    assert len(recording.samples) == 9
    assert any(place in warning and warning.startswith("x.json, ") for warning in recording.warnings[:-1])
    cost = f"Not answered: {prompts} of 9 prompts; single answers to others: {answers}."
    assert recording.warnings[-1].endswith(cost)
    endings = Counter(response.status for responses in recording.responses for response in responses)
    assert endings["error"] == 3 * prompts + answers
    whole = [texts(recording, n) for n, sample in enumerate(recording.samples) if sample.group in "13"]
    assert whole == [["a", "b", "c"]] * 6


def write_digits(path: Path, entries: list[Any]) -> Path:
    """JSON with whole numbers of any length, which Python does not write by itself."""
    import sys

    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        return write(path, entries)
    finally:
        sys.set_int_max_str_digits(before)


def texts(recording: Any, index: int) -> list[str]:
    return [response.text for response in recording.responses[index]]


def test_an_entry_without_readable_levels_keeps_its_domain(tmp_path: Path) -> None:
    recording = read_recording(write(tmp_path / "x.json", [entry(1), entry(2, level_analyses=None)]))
    assert [sample.tags.get("domain") for sample in recording.samples] == ["FACTUAL"] * 6


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
    assert [sample.id for sample in recording.samples] == ["ko-entry-1-L1", "ko-1-L1", "ko-2-L1"]
    assert [texts(recording, n) for n in range(3)] == [["", ""], ["하나", "둘"], ["", ""]]
    assert recording.model == "mine_responses"
    assert recording.warnings[1:3] == [
        f"{path.name}, entries[2].level_responses['1']: the field 'responses' is missing.",
        f"{path.name}, entries[2].level_responses['x']: 'x' is not a level from 1 to 7.",
    ]


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([], "there are no answers in it. No answer could be read"),
        ([5, None], r"experiment_results\[0\]: expected an object, got 5. No answer could be read"),
        ([entry(1, level_analyses=[level(1, answers=[None])])], "expected text, got nothing. No answer"),
        ({"1": entry(1)}, "experiment_results': expected a list, got an object"),
    ],
)
def test_a_file_without_a_single_answer_is_refused(tmp_path: Path, entries: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_recording(write(tmp_path / "x.json", entries))


def test_a_prompt_with_more_answers_than_the_others_counts_for_itself(tmp_path: Path) -> None:
    entries = [entry(1), second_level(responses=["a", "b", "c", None, None]), entry(3)]
    entries[2]["level_analyses"][0]["responses"].pop()
    sizes = [3, 3, 3, 3, 5, 3, 3, 3, 3]
    recording = read_recording(write(tmp_path / "x.json", entries))
    assert [len(responses) for responses in recording.responses] == sizes
    assert [sample.inputs.samples for sample in recording.samples] == sizes
    assert [sample.inputs.first_repeat for sample in recording.samples] == [
        sum(sizes[:n]) for n in range(len(sizes))
    ]
    endings = Counter(response.status for responses in recording.responses for response in responses)
    assert endings == {"ok": 26, "error": 3}
    assert recording.warnings[-1] == (
        "x.json: prompts with more than 3 answers (the usual number): 1 of 9, which are scored with all of "
        "theirs: 2-L2."
    )


@pytest.mark.parametrize(("stated", "count"), [(4, 4), (3, 3), (1, 3), ("4", 3), (True, 3), (10**9, 3)])
def test_a_file_may_state_how_often_each_prompt_was_asked(tmp_path: Path, stated: Any, count: int) -> None:
    path = write(tmp_path / "x.json", [entry(1), entry(2)], num_repetitions=stated)
    recording = read_recording(path)
    assert {len(responses) for responses in recording.responses} == {count}
    assert recording.warnings == []


def test_numbers_that_json_does_not_have_cost_no_answer(tmp_path: Path) -> None:
    figures = {"mean_similarity": float("nan"), "std_similarity": 0.5, "max_similarity": "x"}
    path = write(
        tmp_path / "x.json", [entry(1, level_analyses=[level(1) | {"similarity_analysis": figures}])]
    )
    path.write_text(path.read_text().replace('"x"', "1e999"))
    recording = read_recording(path)
    assert recording.samples[0].inputs.published == {"std_similarity": 0.5}
    assert (texts(recording, 0), recording.warnings) == (["a", "b", "c"], [])


def test_a_file_that_states_nothing_of_itself_goes_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "mine_korean.json"
    path.write_text(json.dumps({"metadata": None, "experiment_results": [entry(1)]}))
    recording = read_recording(path)
    assert (recording.model, recording.samples[0].id) == ("mine", "ko-1-L1")


def test_warnings_are_few_however_much_is_damaged(tmp_path: Path) -> None:
    recording = read_recording(write(tmp_path / "x.json", [entry(1), *[None] * 500]))
    assert len(recording.warnings) == 9
    assert recording.warnings[-1].startswith(
        "x.json: places that cannot be read: 500. Not answered: 1,500 of 1,503 "
    )


def test_a_damaged_file_is_scored_with_less_coverage_and_says_where(tmp_path: Path) -> None:
    entries = [entry(1), second_level(responses=["a", None, "c"]), without("domain", entry(3))]
    with Loopback() as server:
        options = ("--embedder", "openai:e", "--base-url", server.url)
        done = evenkeel(
            "score", "mirae", write(tmp_path / "x.json", entries), "--out", tmp_path / "run", *options
        )
        run = ek.load_run(tmp_path / "run")
        (exported,) = (run.path / "export").iterdir()
        again = ek.score(
            "mirae",
            exported,
            out=tmp_path / "again",
            embedder="openai:e",
            base_url=server.url,
            progress=False,
        )
    assert done.code == 1  # the coverage is under the floor
    assert run.headline.coverage == pytest.approx(17 / 27)
    flat = " ".join(done.output.split())
    assert "x.json, experiment_results[1].level_analyses[1].responses[1]: expected text, got nothing." in flat
    assert "x.json, experiment_results[2]: the field 'domain' is missing." in flat
    assert {name for name in run.summary if name.startswith("mean_similarity/domain")} == {
        "mean_similarity/domain=FACTUAL"
    }
    assert "the field &#39;domain&#39; is missing" in (run.path / "report.html").read_text()
    assert again.headline.value == run.headline.value
    assert again.headline.coverage < 1


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
        done = evenkeel(
            "score", "mirae", *paths, "--out", tmp_path / "run", "--embedder", "openai:e",
            "--base-url", server.url,
        )  # fmt: skip
    assert done.code == 0
    run = ek.load_run(tmp_path / "run")
    across = {pair: run.summary[f"across_{pair}"].value for pair in ("en_ko", "en_zh", "ko_zh")}
    assert across == pytest.approx({"en_ko": 0.5, "en_zh": 0.0, "ko_zh": 0.0})
    languages = {"en": "english", "ko": "korean", "zh": "chinese"}
    for record in run.records():
        texts = {answer.text.split()[0] for answer in record.answers}
        assert texts == {languages[str(record.sample.tags["lang"])]}
    assert "en–ko" in done.output
    assert len(run.spec.data["sha256"]) == 3


def test_files_of_other_models_or_the_same_questions_are_scored_side_by_side(tmp_path: Path) -> None:
    first = write(tmp_path / "first.json", [entry(1)])
    again = write(tmp_path / "again.json", [entry(1)])
    damaged = [entry(1), *[entry(n) for n in range(2, 9)], second_level(level=9) | {"question_id": 9}]
    other = write(tmp_path / "other.json", damaged, model="n", language="Korean")
    for paths in ([first, other], [first, again]):
        with pytest.raises(UsageError, match="cannot be scored as one run: first.json"):
            ek.score("mirae", paths, out=tmp_path / "none")
    with Loopback() as server:
        options = ("--embedder", "openai:e", "--base-url", server.url)
        done = evenkeel("score", "mirae", first, again, other, "--out", tmp_path / "runs", *options)
    assert done.code == 0
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["again", "first", "other"]
    assert "other.json, experiment_results[8].level_analyses[1]: 9 is not a level" in done.stderr
    assert "other.json: other.json" not in done.stderr


def test_each_language_joins_the_first_files_of_its_model_that_lack_it(tmp_path: Path) -> None:
    """As in a clone of the published repository, where each model's answers were scored by two embedders."""
    paths = [
        write(tmp_path / f"{model}-{embedder}-{language}.json", [entry(1)], model=model, language=language)
        for model in "mn"
        for embedder in "ab"
        for language in ("Chinese", "English")
    ]
    groups = group_files("mirae", paths, lang=None)
    assert groups == [paths[:2], paths[2:4], paths[4:6], paths[6:]]


# Compared with runs


@pytest.mark.parametrize(
    ("recorded", "text", "same"),
    [
        ("Why is it so?...", "Why is it so?", True),
        ("Why is it so?", "Why is it so?", True),
        ("Why......", "Why...", True),
        ("Why...", "Why...", True),
        (f"{LONG:.<100.100}...", f"{LONG:.<100.100} and further", True),
        (f"{'x' * 100}...", "x" * 100, True),
        (f"{'x' * 100}...", "x" * 99, False),
        ("Why is it so?...", "Why is it so? And since when?", False),
        ("Why is it so?...", "Why is it?", False),
        ("Why is it so...", "Why is it so and not else?", False),
        ("Why is it so...", "Why is it so?", False),
        ("Why is it so...", "Why is it so", True),
        ("Why is it so?...", f"Why is it so?... {LONG}", False),
        ("", "Why?", True),
        (f"{'x' * 100}...", f"{'x' * 99}y and further", False),
        ("x" * 300, "x" * 301, False),
    ],
)
def test_a_recorded_text_is_that_of_a_prompt_as_far_as_it_is_known(
    recorded: str, text: str, same: bool
) -> None:
    first, second = (
        asked(MiraeInputs(question_id="1", question_text=each, samples=5, first_repeat=n))
        for n, each in enumerate((recorded, text))
    )
    assert same_text(first, second) == same_text(second, first) == same


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs `mine` and `theirs` of the same questions, `some` and `late` of some levels; `recorded.json`."""
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
        "some": {"levels": "1,3"},
        "late": {"levels": "2,3"},
        "seldom": {"samples": 2},
    }
    with Loopback(words=12) as server:
        for name, options in chosen.items():
            ek.run(
                "mirae", f"openai:{name}", data=questions, base_url=server.url, out=folder / name,
                progress=False, embedder="openai:embed", **({"samples": 3} | options),
            )  # fmt: skip
        (exported,) = (folder / "theirs" / "export").iterdir()
        recorded = folder / "recorded.json"
        recorded.write_bytes(exported.read_bytes())
        for name, embedder in (("recorded", "openai:embed"), ("other", "openai:other")):
            ek.score(
                "mirae", recorded, out=folder / name, embedder=embedder, base_url=server.url, progress=False
            )
    return folder


def change(folder: Path, target: Path, edit: Callable[[Any], Any]) -> Path:
    """A copy of the recorded run in which the prompts are changed."""
    import shutil

    shutil.copytree(folder / "recorded", target)
    path = target / "records.jsonl"
    records = [json.loads(line) for line in path.read_text().splitlines()]
    for record in records:
        edit(record["sample"])
    rewrite_records(target, "".join(f"{json.dumps(record)}\n" for record in records).encode())
    return target


def test_a_run_is_compared_with_recorded_answers_and_what_is_unknown_is_named(folder: Path) -> None:
    comparison = ek.compare(folder / "mine", folder / "recorded")
    assert comparison.paired
    assert {each.metric: each.n for each in comparison.differences}["mean_similarity"] == 24
    [note] = comparison.notes
    assert note == ("not recorded in theirs: temperature, max_tokens (mine: temperature 0.7, max_tokens 256)")
    # The same figures as against the run that was recorded, whose settings are known.
    known = ek.compare(folder / "mine", folder / "theirs", metrics="mean_similarity").differences[0]
    assert known.difference == pytest.approx(
        ek.compare(folder / "mine", folder / "recorded", metrics="mean_similarity").differences[0].difference
    )
    shown = evenkeel("compare", folder / "mine", folder / "recorded")
    assert "temperature, max_tokens" in " ".join(shown.output.split())
    with pytest.raises(UsageError, match="options.temperature is 0.7 there and none here"):
        gate(folder / "recorded", folder / "mine")


def test_another_text_under_the_same_id_is_left_out_by_name(folder: Path, tmp_path: Path) -> None:
    def edit(sample: Any) -> None:
        if sample["group"] == "3":
            sample["inputs"]["question_text"] = "Something else..."

    changed = change(folder, tmp_path / "changed", edit)
    comparison = ek.compare(folder / "mine", changed, metrics="mean_similarity")
    assert comparison.differences[0].n == 21
    assert comparison.notes[1] == (
        "left out: 3 of 24 prompts in both do not ask the same: en-3-L1, en-3-L2, en-3-L3"
    )
    assert comparison.notes[2].startswith("compared are the 21 prompts that both have")


def test_mostly_other_texts_under_the_same_ids_are_refused(folder: Path, tmp_path: Path) -> None:
    changed = change(
        folder, tmp_path / "changed", lambda sample: sample["inputs"].update(question_text="Eh?...")
    )
    done = evenkeel("compare", folder / "mine", changed)
    assert done.code == 2
    assert "24 of 24 prompts in both do not ask the same: en-1-L1," in " ".join(done.stderr.split())


def test_a_recording_scored_by_another_embedder_is_refused_with_what_helps(folder: Path) -> None:
    with pytest.raises(UsageError, match="models.embedder.name") as caught:
        ek.compare(folder / "mine", folder / "other")
    assert str(caught.value).endswith("evenkeel score … --embedder openai:embed.")


def test_runs_that_differ_in_further_columns_are_compared_by_the_rest(folder: Path, tmp_path: Path) -> None:
    with Loopback(words=12) as server:
        further: dict[str, dict[str, Any]] = {
            "second": {"embedder": ["openai:embed", "openai:more"]},
            "whole": {"chunked": True},
            "near": {"meaning_distance": 0.3},
        }
        for name, options in further.items():
            ek.score(
                "mirae", folder / "recorded.json", out=tmp_path / name, base_url=server.url, progress=False,
                **({"embedder": "openai:embed"} | options),
            )  # fmt: skip
    metrics = {
        "second": "chance_floor@embedder-2, corrected_similarity@embedder-2, mean_similarity@embedder-2",
        "whole": "whole_similarity",
        "near": "meanings, semantic_entropy",
    }
    for name, left_out in metrics.items():
        comparison = ek.compare(folder / "mine", tmp_path / name)
        sizes = {each.metric: each.n for each in comparison.differences}
        assert (sizes["mean_similarity"], sizes["meanings"]) == (24, 0 if name == "near" else 24)
        [note] = [note for note in comparison.notes if "left out" in note]
        assert note.startswith(f"{left_out}: left out between mine (there) and ")
        with pytest.raises(UsageError, match="was not asked what"):
            gate(tmp_path / name, folder / "recorded")
    with pytest.raises(UsageError) as caught:
        ek.compare(folder / "other", tmp_path / "second")
    assert "--embedder-2" not in str(caught.value)


@pytest.mark.parametrize("other", ["theirs", "recorded"])
def test_prompts_asked_more_often_are_compared_by_what_does_not_depend_on_it(
    folder: Path, other: str
) -> None:
    comparison = ek.compare(folder / "seldom", folder / other)
    sizes = {each.metric: each.n for each in comparison.differences}
    assert (sizes["mean_similarity"], sizes["drift"], sizes["meanings"]) == (24, 16, 0)
    note = "meanings: 24 prompts left out, because each run has another number of answers to them"
    assert note in comparison.notes
    with pytest.raises(UsageError, match=r"options\.samples is 2 there and"):
        gate(folder / other, folder / "seldom")


def test_prompts_with_fewer_scored_answers_are_left_out_of_what_depends_on_their_number(
    folder: Path, tmp_path: Path
) -> None:
    content = json.loads((folder / "recorded.json").read_text())
    for question in content["experiment_results"][:2]:
        for each in question["level_analyses"]:
            each["responses"][2] = None
    path = tmp_path / "fewer.json"
    path.write_text(json.dumps(content))
    with Loopback(words=12) as server:
        ek.score(
            "mirae", path, out=tmp_path / "run", embedder="openai:embed", base_url=server.url, progress=False
        )
    comparison = ek.compare(folder / "recorded", tmp_path / "run")
    sizes = {each.metric: each.n for each in comparison.differences}
    assert (sizes["mean_similarity"], sizes["meanings"], sizes["duplicates"]) == (24, 18, 18)
    note = "meanings: 6 prompts left out, because each run has another number of answers to them"
    assert note in comparison.notes


@pytest.mark.parametrize("other", ["mine", "recorded"])
def test_some_levels_of_one_are_compared_with_all_of_another(folder: Path, other: str) -> None:
    comparison = ek.compare(folder / "some", folder / other)
    sizes = {each.metric: each.n for each in comparison.differences}
    assert (sizes["mean_similarity"], sizes["drift"]) == (16, 8)
    sizes_by_name = f"16 in some, 24 in {'theirs' if other == 'recorded' else other}"
    assert f"compared are the 16 prompts that both have: {sizes_by_name}" in comparison.notes


def test_drift_is_not_compared_where_it_is_measured_from_another_level(folder: Path) -> None:
    comparison = ek.compare(folder / "late", folder / "recorded")
    by_metric = {each.metric: each for each in comparison.differences}
    assert by_metric["mean_similarity"].n == 16
    assert (by_metric["drift"].n, by_metric["drift"].difference) == (0, None)
    note = "drift: 8 prompts left out, because each run compares them with another prompt or level"
    assert note in comparison.notes


@pytest.mark.parametrize("names", [("mine", "late", "recorded"), ("mine", "recorded", "late")])
def test_a_third_run_takes_nothing_from_the_pair_of_others(folder: Path, names: tuple[str, ...]) -> None:
    alone = ek.compare(folder / "mine", folder / "recorded", metrics="drift").differences[0]
    three = ek.compare(*(folder / name for name in names), metrics="drift").differences
    assert alone.n
    assert [each.n for each in three if (each.a, each.b) == (alone.a, alone.b)] == [alone.n]


def test_corrected_figures_are_compared_where_both_have_the_same_prompts(folder: Path) -> None:
    """The floor of a level is taken over its questions, which both have; that of all levels is not."""
    metric = "corrected_similarity"
    comparison = ek.compare(folder / "some", folder / "recorded", metrics=metric, by="level")
    assert {each.metric: each.n for each in comparison.differences} == {
        metric: 0, f"{metric}/level=1": 8, f"{metric}/level=3": 8,
    }  # fmt: skip
    reason = "it depends on the other prompts, and each run has others"
    assert f"{metric}: 16 prompts left out, because {reason}" in comparison.notes
    theirs = ek.load_run(folder / "recorded").summary[f"{metric}/level=3"].value
    assert comparison.differences[-1].value_b == pytest.approx(theirs)


# Broken down


def test_two_runs_are_compared_level_by_level_over_those_that_both_have(folder: Path) -> None:
    comparison = ek.compare(folder / "some", folder / "recorded", by="level")
    assert comparison.metrics == (
        "mean_similarity", "mean_similarity/level=1", "mean_similarity/level=3",
    )  # fmt: skip
    theirs = ek.load_run(folder / "recorded").summary
    for difference in comparison.differences[1:]:
        assert difference.value_b == pytest.approx(theirs[difference.metric].value)
        assert difference.n == 8
    scoped = ek.compare(folder / "mine", folder / "theirs", metrics="drift/level=2", by=["domain"])
    assert scoped.metrics == ("drift/level=2", "drift/level=2,domain=A", "drift/level=2,domain=B")


def test_a_row_of_a_breakdown_without_values_is_left_out_by_name(folder: Path) -> None:
    """There is no drift at the shortest level."""
    comparison = ek.compare(folder / "mine", folder / "theirs", metrics="drift", by="level")
    assert comparison.metrics == ("drift", "drift/level=2", "drift/level=3")
    assert comparison.notes == ("no sample has a value: drift/level=1",)
    with pytest.raises(
        UsageError, match="'drift/level=1': no sample of these runs with these tags has a value"
    ):
        ek.compare(folder / "mine", folder / "theirs", metrics="drift/level=1")


def test_several_runs_are_set_side_by_side_level_by_level(folder: Path) -> None:
    runs = [folder / name for name in ("mine", "recorded", "some")]
    shown = evenkeel("compare", *runs, "--by", "level").output
    row = re.search(r"^mean_similarity/level=3 +([\d.]+) +([\d.]+) +([\d.]+) *$", shown, re.MULTILINE)
    assert row is not None
    for value, path in zip(row.groups(), runs, strict=True):
        figure = ek.load_run(path).summary["mean_similarity/level=3"].value
        assert float(value) == pytest.approx(figure, abs=5e-5)


def test_a_tag_that_is_not_there_is_refused_with_those_that_are(folder: Path) -> None:
    done = evenkeel("compare", folder / "mine", folder / "recorded", "--by", "levels")
    assert done.code == 2
    assert "Did you mean 'level'? Available: domain, lang, level." in " ".join(done.stderr.split())

"""Data in TokSuite's published shape, with its perturbations as categories, from a folder to the figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

import sealegs as sl
from commandline import sealegs
from jsonlines import write_lines
from loopback import Loopback, logprob, tokenise
from runs import small_command

pytestmark = pytest.mark.slow

LANGS = {"en": "eng_Latn", "fa": "pes_Arab", "tr": "tur_Latn"}


def row(set_id: int, variation: int, lang: str, question: str, subcategory: str = "") -> dict[str, Any]:
    return {
        "question": question,
        "choices": ["zzzq", "stop", "qqqz", "xxqz"],
        "answer": 1,
        "answer_label": "B",
        "split": "test",
        "subcategories": subcategory,
        "lang": LANGS[lang],
        "id": "",
        "set_id": str(set_id),
        "variation_id": f"{set_id}.{variation}",
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A subset for each perturbation, and one of the clean questions, as the data sets are published."""
    folder = tmp_path_factory.mktemp("toksuite")
    sets = [(number, list(LANGS)[number % 3]) for number in range(1, 13)]
    clean = [
        row(number, 0, lang, f"The driver of car {number} sees a sign that says") for number, lang in sets
    ]
    for name, change in (("typos", "srive of car"), ("spaces", "driver ofcar")):
        changed = [
            row(number, 2, lang, f"The {change} {number} sees a sign that says", f"{name}, other")
            for number, lang in sets
        ]
        write_lines(folder / f"{name}.jsonl", changed)
    write_lines(folder / "canonical.jsonl", clean)
    return folder


class Reading(Loopback):
    """A base model that continues rightly where no word is misspelt, and whose log-probabilities do not."""

    def _completion(self, body: Any, key: str) -> bytes:
        text = "stop now" if "srive" not in body.prompt else "qqqz"
        choice = {"text": f" {text}", "finish_reason": "length"}
        return msgspec.json.encode({"choices": [choice]})


def test_perturbations_are_categories_with_the_relative_drop_to_the_clean_version(
    folder: Path, tmp_path: Path
) -> None:
    with Reading() as server:
        done = sealegs(*small_command("miron", tmp_path / "run", server, data=folder, confidence="no"))
    assert done.code == 0, done.output
    run = sl.load_run(tmp_path / "run")
    records = list(run.records())
    assert {record.sample.tags["category"] for record in records} == {"Canonical", "typos", "spaces"}
    assert {record.sample.tags["lang"] for record in records} == {"en", "fa", "tr"}
    assert {record.sample.group for record in records} == {
        record.sample.id for record in records if record.sample.tags["category"] == "Canonical"
    }
    assert run.summary["accepted_match/category=Canonical"].value == 1
    drops = {name: run.summary[f"relative_drop/category={name}"].value for name in ("typos", "spaces")}
    assert drops == {"typos": 100, "spaces": 0}
    assert run.summary["relative_drop"].value == 50
    assert "relative_drop/category=Canonical" not in run.summary
    assert "Right answers lost to each kind of change" in (tmp_path / "run" / "report.html").read_text()


def test_the_choice_is_by_log_probability_per_character_as_published(tmp_path: Path) -> None:
    choices = ["zzzq", "stop", "xxqz", "stop stop stop"]
    rows = [
        {**row(number, 0, "en", f"Car {number} sees"), "choices": choices, "answer": number % 4}
        for number in range(1, 13)
    ]
    data = write_lines(tmp_path / "canonical.jsonl", rows)
    with Reading() as server:
        run = sl.run("miron", "openai:loop", base_url=server.url, data=data, out=tmp_path / "run")
    means = [sum(map(logprob, tokenise(f" {choice}"))) / len(choice) for choice in choices]
    likeliest = choices[means.index(max(means))]
    for record in run.records():
        right = record.sample.inputs.target.strip() == likeliest
        assert record.score.values["choice_match"] == float(right)
    assert run.summary["choice_match"].value == 0.25
    assert run.summary["choice_match"].coverage == 1.0

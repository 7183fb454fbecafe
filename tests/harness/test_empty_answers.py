"""An empty answer is no answer: whole runs against servers whose models reason too long, or say nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain, cycle
from pathlib import Path
from typing import Any

import msgspec
import pytest

import sealegs as sl
from loopback import Loopback
from runs import run_small
from scripted import Scripted
from sealegs.models.openai.protocol import read_chat, read_completion
from sealegs.report.notes import ending_notes, endings, notes_of
from sealegs.text.answers import Rule, is_blank
from sealegs.types import Status

pytestmark = pytest.mark.slow

Choice = dict[str, Any]

EMPTY_CHOICES: dict[str, tuple[Choice, Status]] = {
    "null": ({"message": {"content": None}, "finish_reason": "length"}, "truncated"),
    "open": ({"message": {"content": "<think>well now"}, "finish_reason": "length"}, "truncated"),
    "later": ({"message": {"content": "Let me see.\n<think>\nwell"}, "finish_reason": "length"}, "truncated"),
    "apart": (
        {"message": {"content": "", "reasoning_content": "well"}, "finish_reason": "length"},
        "truncated",
    ),
    "stopped": ({"message": {"content": ""}, "finish_reason": "stop"}, "unparsed"),
    "invisible": ({"message": {"content": "\u200b\ufeff\n"}, "finish_reason": "stop"}, "unparsed"),
    "only thought": ({"message": {"content": "<think>well</think>\n"}, "finish_reason": "stop"}, "unparsed"),
}


def text(content: str, finish: str = "stop") -> Choice:
    return {"message": {"content": content}, "finish_reason": finish}


# Reading


@pytest.mark.parametrize(("choice", "status"), EMPTY_CHOICES.values(), ids=EMPTY_CHOICES)
def test_an_answer_that_says_nothing_is_none(choice: Choice, status: Status) -> None:
    response = read_chat(msgspec.json.encode({"choices": [choice]}))
    assert response.status == status
    assert response.reason
    assert is_blank(response.text)
    assert not Rule(truncated=True).counts(response)


@pytest.mark.parametrize(
    ("content", "answer", "thought"),
    [
        ("<think>so</think>Paris", "Paris", "so"),
        ("Sure. <think>Lyon?</think>Paris", "Sure. Paris", "Lyon?"),
        ("Lyon?\n</think>\n\nParis", "Paris", "Lyon?"),
        ("<think>write <think> first</think>Paris", "Paris", "write <think> first"),
        ("[THINK]so[/THINK]Paris", "Paris", "so"),
        ("<|channel|>analysis<|message|>so<|end|><|start|>assistant<|channel|>final<|message|>Paris<|return|>",
         "Paris", "analysis\nso\nassistant"),
        ("analysisWe need Paris.assistantfinalParis", "Paris", "We need Paris."),
        ("Paris. A tag such as <think> opens a block.", None, ""),
        ("Write `<think>` and `</think>` around it.", None, ""),
        ("```\n<think>\nhm\n</think>\n```\nParis", None, ""),
        ("analysis of Paris", None, ""),
    ],
)  # fmt: skip
def test_reasoning_is_taken_out_and_what_speaks_of_it_stays(
    content: str, answer: str | None, thought: str
) -> None:
    response = read_chat(msgspec.json.encode({"choices": [text(content)]}))
    assert (response.status, response.text, response.reasoning) == (
        "ok",
        content if answer is None else answer,
        thought,
    )


def test_an_empty_continuation_is_for_the_benchmark_to_judge() -> None:
    ended, cut = (
        read_completion(msgspec.json.encode({"choices": [{"text": "", "finish_reason": finish}]}))
        for finish in ("stop", "length")
    )
    assert (ended.status, cut.status, cut.reason) == ("ok", "truncated", "length before any text")
    continues, answers = Rule(truncated=True, empty=True), Rule(truncated=True)
    assert [continues.counts(ended), continues.counts(cut)] == [True, False]
    assert [answers.counts(ended), answers.status(ended)] == [False, "unparsed"]


# Whole runs


@pytest.mark.parametrize(("benchmark", "name"), [("mirae", "open"), ("rgb", "stopped")])
def test_a_model_that_never_answers_has_no_figure(benchmark: str, name: str, tmp_path: Path) -> None:
    choice, status = EMPTY_CHOICES[name]
    with Scripted(lambda prompt: choice) as server:
        done = run_small(benchmark, tmp_path / "run", server)
    assert (done.headline.value, done.headline.coverage) == (None, 0.0)
    assert set(done.headline.statuses) == {status}
    assert all(figure.coverage == 0 for figure in done.summary.values())


def test_answers_that_are_cut_off_count_and_carry_a_warning(tmp_path: Path) -> None:
    answers = chain(["well"], cycle([f"well {turn}…" for turn in range(5)]))
    with Scripted(lambda prompt: next(answers)) as server:
        done = run_small("mirae", tmp_path / "run", server, repeats=3)
    assert done.headline.coverage == 1.0
    assert done.headline.statuses == {"ok": 1, "truncated": 11}
    (note,) = ending_notes(done)
    assert note in notes_of(done.path)
    assert note.warning
    assert note.text.startswith("11 of 12 answers were cut off")
    page = re.sub("<[^>]*>", "", (done.path / "report.html").read_text())
    assert note.text in page


# Answers that were recorded


def results(path: Path, answers: Sequence[str]) -> Path:
    levels = [{"level": 1, "question_text": "Where?", "responses": list(answers)}]
    content = {"metadata": {}, "experiment_results": [
        {"question_id": "1", "domain": "FACTUAL", "level_analyses": levels}
    ]}  # fmt: skip
    path.write_bytes(msgspec.json.encode(content))
    return path


def test_recorded_answers_that_are_empty_are_none(tmp_path: Path) -> None:
    file = results(tmp_path / "MIRAE_m_results_english.json", ["", " ", ""])
    with Loopback() as server:
        done = sl.score("mirae", file, base_url=server.url, embedder="openai:e", out=tmp_path / "run")
    assert (done.headline.value, done.headline.coverage) == (None, 0.0)
    assert done.headline.statuses == {"unparsed": 3}
    assert done.failures() == {"unparsed: empty answer": 3}
    assert endings(done)["empty"] == 3

"""A set built from documents asks a question in several files: errors are taken over questions."""

from __future__ import annotations

from pathlib import Path

import pytest

import sealegs as sl
from jsonlines import write_lines
from rgb_rules import Item, ask, false, given
from sealegs.analysis import combined
from sealegs.benchmarks.rgb.data import Questions
from sealegs.page.format import counts

TOTAL = 30


def question(number: int) -> Item:
    fields = ("id", "query", "answer", "positive", "negative")
    return {name: value for name, value in false(number).items() if name in fields}


def joined(number: int) -> Item:
    first, second = false(2 * number), false(2 * number + 1)
    other = second["query"][:1].lower() + second["query"][1:]
    return {
        "id": number,
        "query": f"{first['query'].rstrip('?')}, and {other}",
        "answer": [["Rightham"], ["Rightham"]],
        "positive": [first["positive"], second["positive"]],
        "negative": first["negative"],
    }


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> sl.Run:
    """30 plain questions, 15 that join two of them, and the 30 again with false documents: a model that knows
    half of them."""
    folder = tmp_path_factory.mktemp("built")
    write_lines(folder / "en.json", map(question, range(TOTAL)))
    write_lines(folder / "en_int.json", map(joined, range(TOTAL // 2)))
    write_lines(folder / "en_fact.json", map(false, range(TOTAL)))

    def rule(item: Item, prompt: str) -> str:
        known = item["id"] % 30 < (8 if isinstance(item["positive"][0], list) else 15)
        return f"It is {given(item['answer'])}." if known else "It is Nemo."

    options = {"noise_rates": "0.8", "ability": "noise,integration,counterfactual"}
    return ask(folder, tmp_path_factory.mktemp("runs") / "run", rule, **options)


def test_questions_are_recognised_by_their_text() -> None:
    rows = [
        ("en-0", "Who keeps the light?", True),
        ("en-1", "What is it called?", True),
        ("en_fact-7", "who keeps  the light", True),
        ("en_int-0", "Who keeps the light, and what is it called?", False),
        ("en_int-1", "Who keeps the light, and why?", False),
    ]
    questions = Questions(rows)
    assert questions.group("Who keeps the light?") == questions.group("who keeps  the light") == "en-0"
    assert questions.joined("Who keeps the light, and what is it called?") == ("en-0", "en-1")
    assert questions.joined("Who keeps the light, and why?") == ()
    assert questions.joined("Who keeps the light?") == ()


def test_rows_of_one_question_are_one_group(run: sl.Run) -> None:
    records = list(run.records())
    groups = {record.score.links or (record.score.group,) for record in records}
    assert len({unit for group in groups for unit in group}) == TOTAL
    assert {len(record.score.links) for record in records} == {0, 2}
    # Fifteen of the 45 groups have two questions each: as many as 30 / (60 / 45) independent ones.
    assert counts(run.headline, run.layout) == "75 prompts from 22 independent questions"


def test_an_interval_over_questions_is_wider_than_one_over_rows(run: sl.Run) -> None:
    """75 rows are 30 questions, and the same ones are right in all three abilities."""
    scores = [record.score for record in run.records() if "macro_lenient" in record.score.values]
    values = [score.values["macro_lenient"] or 0.0 for score in scores]
    abilities = [str(score.tags["ability"]) for score in scores]
    rows = combined.interval(
        combined.macro_terms(values, [score.sample_id for score in scores], abilities), "share"
    )
    assert rows.value == run.headline.value
    over_rows, over_questions = ((each.high or 0) - (each.low or 0) for each in (rows, run.headline))
    assert over_questions > 1.5 * over_rows


def test_recorded_files_are_grouped_as_the_run_was(run: sl.Run, tmp_path: Path) -> None:
    files = [path for path in (run.path / "export").iterdir() if not path.stem.endswith("result")]
    again = sl.score("rgb", files, out=tmp_path / "again")
    first, second = run.summary["macro_published"], again.summary["macro_published"]
    assert (first.value, first.low, first.high) == (second.value, second.low, second.high)

"""A question in several wordings: what is measured over them, beside what repeats of one wording give."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import sealegs as sl
from benchmarks.mirae.test_mirae_scoring import scored
from commandline import sealegs
from loopback import Loopback
from scripted import Scripted
from sealegs.benchmarks.mirae.added import summarise
from sealegs.benchmarks.mirae.benchmark import Mirae, MiraeOptions
from sealegs.benchmarks.mirae.data import QuestionAtLevels, make_samples, read_questions
from sealegs.benchmarks.mirae.metrics import METRICS, WORDINGS
from sealegs.errors import DataError
from sealegs.page.metrics import declaration
from sealegs.types import Answered, Response, Score

BENCHMARK = Mirae(MiraeOptions())


def asked(
    question: str, wording: int, texts: list[str], *, expected: tuple[tuple[str, ...], ...] = ()
) -> Answered[Any]:
    texts_by_level = {1: f"{question} in wording {wording}?"}
    item = QuestionAtLevels(question, "FACTUAL", "en", texts_by_level, wording=wording, expected=expected)
    (sample,) = make_samples([item], len(texts))
    responses = tuple(Response(status="ok" if text else "error", text=text) for text in texts)
    return Answered(sample, tuple(BENCHMARK.requests(sample)), responses)


def of_wordings(*answers: list[str], expected: tuple[tuple[str, ...], ...] = ()) -> Score[Any]:
    """The score of the first wording, which has what comes of all."""
    items = [asked("1", number, texts, expected=expected) for number, texts in enumerate(answers, 1)]
    return scored(items, {"x": [1.0, 0.0, 0.0], "y": [0.0, 1.0, 0.0]})[0]


def test_what_differs_between_wordings_alone_is_spread_over_wordings() -> None:
    values = of_wordings(["x", "x"], ["y", "y"]).values
    assert values["repeat_spread"] == pytest.approx(0)
    assert values["wording_spread"] == pytest.approx(1), "the cosine within is 1, across it is 0"


def test_what_differs_within_each_wording_alike_is_spread_over_repeats() -> None:
    values = of_wordings(["x", "y"], ["x", "y"]).values
    assert values["repeat_spread"] == pytest.approx(1)
    assert values["wording_spread"] == pytest.approx(-0.5), "unbiased: less than chance would have it"


def test_the_share_is_that_of_the_sums_over_questions() -> None:
    items = [
        *(asked("1", number, texts) for number, texts in enumerate([["x", "x"], ["y", "y"]], 1)),
        *(asked("2", number, texts) for number, texts in enumerate([["x", "y"], ["x", "x"]], 1)),
    ]
    summary = summarise(scored(items, {"x": [1.0, 0.0, 0.0], "y": [0.0, 1.0, 0.0]}))
    between, within = (summary[name].value or 0 for name in ("wording_spread", "repeat_spread"))
    assert summary["wording_share"].value == pytest.approx(between / (between + within))
    assert summary["wording_share"].clusters == summary["wording_spread"].clusters == 2
    assert "wording_share/level=1" in summary
    assert all(declaration(METRICS, name) for name in summary)


def test_right_answers_have_a_worst_a_mean_and_a_best_wording() -> None:
    right, wrong = "It is Rome.", "It is Oslo."
    answers = ([right, right], [right, wrong], [wrong, wrong])
    values = of_wordings(*answers, expected=(("Rome",),)).values
    rates = [1.0, 0.5, 0.0]
    assert [values[f"right_{which}_wording"] for which in ("worst", "mean", "best")] == [0, 0.5, 1]
    assert values["right_repeat_spread"] == pytest.approx(0.5 / 3)
    assert values["right_wording_spread"] == pytest.approx(np.var(rates, ddof=1) - 0.5 / 2 / 3)


def test_a_wording_without_any_answer_leaves_worst_and_best_unknown() -> None:
    values = of_wordings(["It is Rome."] * 2, ["It is Rome."] * 2, ["", ""], expected=(("Rome",),)).values
    assert values["right_worst_wording"] is values["right_best_wording"] is None
    assert values["right_wording_spread"] == 0


def test_a_question_in_one_wording_has_none_of_it() -> None:
    item = asked("1", 0, ["x", "y"])
    (score,) = scored([item], {})
    assert not {metric.name for metric in WORDINGS} & set(score.values)
    assert "wording" not in item.sample.tags


def test_a_wording_that_a_file_has_twice_is_refused(tmp_path: Path) -> None:
    row = {"question_id": 1, "domain": "FACTUAL", "wording": 2, "level_1_text": "Why?"}
    path = tmp_path / "questions_english.json"
    path.write_bytes(msgspec.json.encode({"metadata": {"language": "English"}, "questions": [row, row]}))
    with pytest.raises(DataError, match="question_id 1 appears 2 times and wording 2|with wording 2"):
        read_questions(path)


@pytest.mark.slow
def test_a_set_is_built_and_run_and_shown_with_its_wordings(tmp_path: Path) -> None:
    """From a person's questions to the page: the export has a file for each wording."""
    (tmp_path / "mine.csv").write_text(
        "question,expected\nWhich city is the capital of Italy today?,Rome\n"
        "Which city is the capital of Norway today?,Oslo\n"
        "Which city is the capital of France today?,Paris\n"
    )

    def writing(prompt: str) -> str:
        if "asks_the_same" in prompt:
            return '{"asks_the_same": true, "difference": ""}'
        if "in other words" in prompt:
            return f"Please say it: {prompt.splitlines()[2].lower()}"
        return "It is Rome." if "Please" in prompt else "It is Oslo."

    with Scripted(writing) as server, Loopback() as vectors:
        spec = f"openai:loop?base_url={server.url}"
        embedder = f"openai:e?base_url={vectors.url}"
        mine = ("--questions", tmp_path / "mine.csv", "--model", spec, "--paraphrase", "1")
        assert sealegs("build", "mirae", *mine, "--out", tmp_path / "set").code == 0
        chosen: dict[str, Any] = {"repeats": 2, "levels": "1-2", "embedder": embedder}
        run = sl.run("mirae", model=spec, data=str(tmp_path / "set"), out=tmp_path / "run", **chosen)
    assert len(run.samples()) == 3 * 2 * 2
    assert run.summary["repeat_spread"].value == pytest.approx(0, abs=1e-6)
    assert (run.summary["wording_share"].value or 0) > 0.99
    page = (run.path / "report.html").read_text()
    assert "Spread over the wordings of a question, and over repeats" in page
    assert "Right answers over the wordings of a question" in page
    names = {path.name for path in (run.path / "export").iterdir()}
    assert names == {f"MIRAE_loop_neutral_wording{number}_results_english.json" for number in (1, 2)}

"""RGB: whole runs against a server whose answers follow a rule, so that every figure is known."""

from __future__ import annotations

from pathlib import Path

import pytest

import sealegs as sl
from commandline import sealegs
from jsonlines import write_lines
from rgb_rules import (
    CORRECTION,
    DETECTION,
    NOISE,
    REPORT,
    ROWS,
    Answering,
    Item,
    Rule,
    ask,
    exported,
    given,
    hedging,
    misled,
    plain,
    right,
    table,
    values,
)

pytestmark = pytest.mark.slow


# What is asked


def test_a_prompt_holds_the_documents_in_their_order_and_a_closed_one_has_no_system_text(
    rgb_run: tuple[sl.Run, Answering],
) -> None:
    run, server = rgb_run
    bodies = {body["messages"][-1]["content"]: body for body in server.bodies}
    for record in run.records():
        inputs = record.sample.inputs
        docs = "\n".join(inputs.docs)
        shown = f"Documents:\n{docs}\n\n" if docs else "Answer the question briefly, from what you know.\n\n"
        body = bodies[f"{shown}Question: {inputs.query}"]
        assert [turn["role"] for turn in body["messages"]] == (["system", "user"] if docs else ["user"])
        assert (body["temperature"], body["max_tokens"]) == (0.2, 256)


# Figures


ALWAYS: dict[str, tuple[Rule, dict[str, float | None], dict[str, float | None]]] = {
    # Answers at noise 1 as well, which the published check counts as right.
    "right": (
        right,
        {**dict.fromkeys(ROWS, 1.0), DETECTION: 0.0, CORRECTION: None},
        {**dict.fromkeys(ROWS, 1.0), "no answer in the documents": 0.0, DETECTION: 0.0, CORRECTION: None},
    ),
    # An error is reported and the question rejected: corrected, by the published check.
    "hedging": (
        hedging,
        {**dict.fromkeys(ROWS, 0.0), "no answer in the documents": 1.0, DETECTION: 1.0, CORRECTION: 1.0},
        {**dict.fromkeys(ROWS, 0.0), "no answer in the documents": 1.0, DETECTION: 1.0, CORRECTION: 0.0},
    ),
    "misled": (
        misled,
        {**dict.fromkeys(ROWS, 0.0), CORRECTION: None},
        {**dict.fromkeys(ROWS, 0.0), CORRECTION: None},
    ),
}


@pytest.mark.parametrize("name", ALWAYS)
def test_a_model_that_always_does_the_same_has_known_figures(
    name: str, rgb_files: Path, tmp_path: Path
) -> None:
    rule, published, lenient = ALWAYS[name]
    run = ask(rgb_files, tmp_path / "run", rule)
    assert values(run, "published") == published
    assert values(run, "lenient") == lenient
    assert run.summary["states_fake"].value == float(name == "misled")
    assert run.summary["detected_published"].value == published[DETECTION]
    assert run.summary["known_published"].value == published["no documents"]
    assert run.summary["corrected_lenient"].value == lenient[CORRECTION]
    # The prompts without documents, where there is nothing to correct, do not lower its coverage.
    assert run.summary["corrected_published"].coverage == 1.0


def test_the_published_counterfactual_files_are_asked_and_scored_in_both_languages(
    reference: Path, tmp_path: Path
) -> None:
    def found_out(item: Item, prompt: str) -> str:
        chinese = "文档：" in prompt or "简短" in prompt
        return f"{'文档存在事实性错误。' if chinese else REPORT} {given(item['answer'])}"

    run = ask(reference / "rgb", tmp_path / "run", found_out, limit=12, correct_rate="0,0.4")
    rows = table(run)
    assert list(rows)[:3] == ["no documents", "false documents", "false documents, 0.4 of them true"]
    for row, cells in rows.items():
        for check, figure in cells.items():
            assert (row, check, figure.value, figure.n, figure.coverage) == (row, check, 1.0, 24, 1.0)
    assert {run.summary[f"published/lang={lang}"].n for lang in ("en", "zh")} == {24}
    # What is stored of a Chinese answer has no spaces, as in the published files.
    files = [part for stem, part in exported(run).items() if "_zh_" in stem and isinstance(part, list)]
    assert len(files) == 3
    assert not any(" " in line["prediction"] for lines in files for line in lines)


def test_every_ability_and_setting_has_its_figure(
    rgb_run: tuple[sl.Run, Answering],
) -> None:
    run, _ = rgb_run
    rows = table(run)
    assert sorted(rows) == sorted(ROWS)
    for row, cells in rows.items():
        assert list(cells) == ["published", "lenient"]
        for figure in cells.values():
            asked = 4 if row in (*NOISE, "no answer in the documents") else 3
            assert (figure.n, figure.coverage) == (0 if row == CORRECTION else asked, 1.0)
    assert rows["noise 0.8"]["published"].value == rows["noise 0.8"]["lenient"].value == 0.5
    assert run.summary["published/ability=noise"].value == 18 / 20
    assert run.summary["published/noise=0.8"].value == 0.5
    assert run.summary["published/integration_noise=0.4"].value == 1.0
    # All prompts together, whose mix depends on the rates that were asked: 20 noisy ones of which 2 are lost,
    # 4 without the answer, 9 integrations, 3 from false documents.
    assert run.summary["published"].value == 34 / 36
    # The headline has each ability once, at its hardest published setting: 4, 4, 3 and 3 questions. Where no
    # document has the answer, all are answered from memory, which only the published check counts as right.
    assert run.headline == run.summary["macro_lenient"]
    assert run.headline.value == (0.5 + 0 + 1 + 1) / 4
    assert run.summary["macro_published"].value == (0.5 + 1 + 1 + 1) / 4
    assert (run.headline.n, run.headline.clusters) == (14, 10)
    assert run.headline.method == "mean of 4 abilities: Wilson score"
    assert sum(run.headline.statuses.values()) == 39  # all that was asked, at whatever setting


def test_a_request_that_failed_lowers_coverage_and_is_no_score(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    items = [plain(0), plain(1), plain(2), plain(3, query="Who keeps the light at [poison] {}?")]
    data = write_lines(tmp_path / "en.json", items)
    with Answering(data, right) as server:
        where = ("--model", "openai:loop", "--base-url", server.url, "--data", data)
        command = ("run", "rgb", *where, "--noise-rates", "0,0.4", "--out", tmp_path / "run")
        assert sealegs(*command).code == 1
    assert "coverage 75% is under the floor" in capsys.readouterr().err
    run = sl.load_run(tmp_path / "run")
    for row, cells in table(run).items():
        figure = cells["published"]
        assert (figure.value, figure.n, figure.coverage) == (1.0, 3, 0.75), row
        assert figure.statuses == {"ok": 3, "error": 1}
    failed = [record for record in run.records() if not record.score.answered]
    assert [record.score.values["published"] for record in failed] == [None] * 3
    assert {len(part) for part in exported(run).values() if isinstance(part, list)} == {3}
    assert {part["nums"] for part in exported(run).values() if isinstance(part, dict)} == {3}

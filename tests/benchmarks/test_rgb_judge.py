"""RGB with a judge: its verdicts on rejection and detection, set beside those of the checks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import evenkeel as ek
from evenkeel.benchmarks.rgb.benchmark import Rgb
from rgb_rules import DETECTION, REJECTION, Answering, Item, Rule, ask, reporting, right, table, write_sets


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sets(tmp_path_factory.mktemp("rgb"))


def judging(verdicts: dict[int, str]) -> Rule:
    """A model and its judge in one: the judge's verdict is written in the reply that it is shown."""

    def rule(item: Item, prompt: str) -> str:
        wanted = next((field for field in ("declines", "reports_an_error") if f'"{field}"' in prompt), None)
        if wanted is None:
            return {
                0: REJECTION,
                1: "The documents do not mention who it is.",
                2: right(item, prompt) if "fakeanswer" not in item else reporting(item, prompt),
                3: "Nemo.",
            }[item["id"]]
        said = verdicts[item["id"]]
        return f'{{"{wanted}": {said}}}' if said in ("true", "false") else said

    return rule


def test_a_judge_decides_on_rejection_and_detection_beside_the_checks(files: Path, tmp_path: Path) -> None:
    rule = judging({0: "true", 1: "true", 2: "false", 3: "no idea"})
    options: dict[str, Any] = {"data": files, "out": tmp_path / "run", "judge": "openai:judge"}
    with Answering(files, rule, record=True) as server:
        run = ek.run("rgb", "openai:loop", base_url=server.url, noise_rates="0", **options)
        asked = [body for body in server.bodies if body["model"] == "judge"]
        assert len(asked) == 4 + 3 + 1  # one verdict is asked for again
        assert {body["response_format"]["type"] for body in asked} == {"json_schema"}
        assert all(body["temperature"] == 0 for body in asked)
        before = server.requests
        assert (
            ek.run("rgb", "openai:loop", base_url=server.url, noise_rates="0", **options).summary
            == run.summary
        )
        assert ek.rescore(run.path).summary == run.summary
        assert server.requests == before
    rows = table(run)
    rejected, detected = rows["no answer in the documents"], rows[DETECTION]
    assert {check: cell.value for check, cell in rejected.items()} == {
        "published": 0.5,  # a rejection, and a right answer
        "lenient": 0.5,  # a rejection, and one in other words
        "judge": pytest.approx(2 / 3),
    }
    assert (rejected["judge"].n, rejected["judge"].coverage) == (3, 0.75)
    assert {check: cell.value for check, cell in detected.items()} == {
        "published": pytest.approx(1 / 3),
        "lenient": pytest.approx(1 / 3),
        "judge": pytest.approx(2 / 3),
    }
    assert rows["noise 0"]["judge"] is None
    assert run.summary["judge_unparsed"].value == pytest.approx(1 / 7)
    # What the judge decided is compared with what the checks say of the same: that an answer declines (a
    # right one does not), 2 of 3 (published) and 3 of 3 (lenient); of the reports none, none.
    assert run.summary["rejected_published"].value == 0.25
    assert run.summary["rejected_lenient"].value == 0.5
    assert run.summary["judge_agrees_published"].value == pytest.approx(2 / 6)
    assert run.summary["judge_agrees_lenient"].value == pytest.approx(3 / 6)
    assert run.summary["judge_agrees_lenient"].n == 6
    # Beyond chance: published yes 2 and judge yes 4 of 6, so e = 16/36; lenient yes 3, so e = 18/36.
    assert run.summary["judge_kappa_published"].value == pytest.approx((12 - 16) / (36 - 16))
    assert run.summary["judge_kappa_lenient"].value == pytest.approx(0.0)
    assert run.summary["judge_kappa_lenient"].n == 6
    assert run.headline.coverage == 1.0
    assert [note.text for note in Rgb.notes(run.spec, run.summary) if note.warning] == [
        "14.3% of the judge's verdicts could not be read."
    ]


def test_a_judge_that_fails_has_given_no_verdict_read_or_unread(files: Path, tmp_path: Path) -> None:
    def rule(item: Item, prompt: str) -> str:
        if '"declines"' in prompt:
            return '{"declines": true}'
        return f"{REJECTION} [poison]" if item["id"] == 3 else REJECTION

    run = ask(files / "en.json", tmp_path / "run", rule, ability="rejection", judge="openai:judge")
    judged, unparsed = run.summary["judge"], run.summary["judge_unparsed"]
    assert (judged.value, judged.n, judged.coverage) == (1.0, 3, 0.75)
    assert (unparsed.value, unparsed.n, unparsed.coverage) == (0.0, 3, 0.75)
    assert run.summary["published"].n == 4

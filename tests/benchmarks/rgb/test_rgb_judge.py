"""RGB with a judge: its verdicts on rejection and detection, set beside those of the checks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import sealegs as sl
from jsonlines import write_lines
from rgb_rules import (
    DETECTION,
    REJECTION,
    Answering,
    Item,
    Rule,
    ask,
    exported,
    false,
    pin,
    plain,
    reporting,
    right,
    samples,
    table,
    values,
)
from sealegs.benchmarks.rgb.metrics import METRICS
from sealegs.benchmarks.rgb.page import LAYOUT, notes
from sealegs.benchmarks.rgb.prompts import load_judge_prompts
from sealegs.errors import DataError
from sealegs.files.datasets import published_set
from sealegs.page.metrics import title_of

pytestmark = pytest.mark.slow


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


def test_a_judge_decides_on_rejection_and_detection_beside_the_checks(
    rgb_files: Path, tmp_path: Path
) -> None:
    rule = judging({0: "true", 1: "true", 2: "false", 3: "no idea"})
    options: dict[str, Any] = {"data": rgb_files, "out": tmp_path / "run", "judge": "openai:judge"}
    with Answering(rgb_files, rule, record=True) as server:
        run = sl.run("rgb", "openai:loop", base_url=server.url, noise_rates="0", **options)
        asked = [body for body in server.bodies if body["model"] == "judge"]
        assert len(asked) == 4 + 3 + 1  # one verdict is asked for again
        assert {body["response_format"]["type"] for body in asked} == {"json_schema"}
        assert all(body["temperature"] == 0 for body in asked)
        before = server.requests
        assert sl.rescore(run.path).summary == run.summary
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
    assert "judge" not in rows["noise 0"]
    assert run.summary["judge_unparsed"].value == pytest.approx(1 / 7)
    assert run.summary["rejected_published"].value == 0.25
    assert run.summary["rejected_lenient"].value == 0.5
    assert run.headline.coverage == 1.0
    labels = [title_of(METRICS, figure.metric) for figure in run.summary.values() if not figure.scope]
    assert len(labels) == len(set(labels))


def test_a_judge_that_fails_has_given_no_verdict_read_or_unread(rgb_files: Path, tmp_path: Path) -> None:
    def rule(item: Item, prompt: str) -> str:
        if '"declines"' in prompt:
            return '{"declines": true}'
        return f"{REJECTION} [poison]" if item["id"] == 3 else REJECTION

    run = ask(rgb_files / "en.json", tmp_path / "run", rule, ability="rejection", judge="openai:judge")
    judged, unparsed = run.summary["rejected_judge"], run.summary["judge_unparsed"]
    assert (judged.value, judged.n, judged.coverage) == (1.0, 3, 0.75)
    assert (unparsed.value, unparsed.n, unparsed.coverage) == (0.0, 3, 0.75)
    assert run.summary["published"].n == 4


# Judged as the published scripts judge

SCRIPT = """
import nowhere
raise SystemExit("executed")

def other():
    prompt = "not this"

def check(question, answer, url):
    prompt = '''{task}
Q: {{question}}
A: {{answer}}
    '''
    return prompt.format(question=question, answer=answer)
"""


@pytest.fixture
def scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Scripts in the shape of the published ones, saved by hand where fetched ones are."""
    monkeypatch.setenv("SEALEGS_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "cache/published/rgb" / published_set("rgb").revision
    folder.mkdir(parents=True)
    paths = [folder / "reject_evalue.py", folder / "fact_evalue.py"]
    for path, task in zip(paths, ("Can it be answered?", "Is an error seen?"), strict=True):
        path.write_text(SCRIPT.format(task=task))
    pin(monkeypatch, *paths)
    return folder


def published_judge(item: Item, prompt: str) -> str:
    """Each verdict by the question's number; the last of each three says neither yes nor no."""
    if "Can it be answered?" in prompt:
        return ("No, not addressed.", "Yes, addressed.", "Not Addressed")[item["id"] % 3]
    if "Is an error seen?" in prompt:
        return ("Yes", "the model has identified it", "yes")[item["id"] % 3]
    return f"{REJECTION} {{QUERY}}" if "fakeanswer" not in item else "文档 有 错 Rightham"


def test_the_published_scripts_are_read_and_never_run(scripts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prompts = load_judge_prompts("published")
    assert prompts["rejection"].prompt == "Can it be answered?\nQ: {QUERY}\nA: {REPLY}\n    "
    assert (prompts["rejection"].yes, prompts["detection"].yes) == (
        ("not addressed",),
        ("has identified", "Yes"),
    )
    path = scripts / "fact_evalue.py"
    for content in ("def check(a): return a", "prompt = '{answer}'", "(" * 9000):
        path.write_text(content)
        with pytest.raises(DataError, match="fact_evalue.py: not as published. Run: sealegs data fetch rgb"):
            load_judge_prompts("published")
        pin(monkeypatch, path, scripts / "reject_evalue.py")
        with pytest.raises(DataError, match="no judge prompt was found in it"):
            load_judge_prompts("published")
    path.unlink()
    with pytest.raises(DataError, match="fact_evalue.py: not fetched yet. Run: sealegs data fetch rgb"):
        samples(
            write_lines(scripts / "en.json", [plain(0)]),
            ability="noise",
            judge="embedded",
            judge_prompts="published",
        )


def test_a_judge_asked_as_published_gives_the_published_rates(scripts: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    write_lines(data / "en.json", map(plain, range(6)))
    write_lines(data / "zh_fact.json", map(false, range(6)))
    options: dict[str, Any] = {
        "data": data, "out": tmp_path / "run", "judge": "openai:judge", "judge_prompts": "published",
        "ability": "rejection,counterfactual", "noise_rates": "0.2", "correct_rate": "0.4",
    }  # fmt: skip
    with Answering(data, published_judge, record=True) as server:
        run = sl.run("rgb", "openai:loop", base_url=server.url, **options)
        asked = [body["messages"] for body in server.bodies if body["model"] == "judge"]
        before = server.requests
        for path in scripts.iterdir():
            path.unlink()  # the run's folder holds what was asked
        assert sl.rescore(run.path).summary == run.summary
        assert server.requests == before
    assert len(asked) == 12
    texts = sorted(turn["content"] for (turn,) in asked)
    # A Chinese answer without its spaces, an answer's braces as they are, and no word of a schema.
    assert texts[-1] == "Is an error seen?\nQ: What is the capital of Land 5?\nA: 文档有错Rightham\n    "
    assert texts[0].endswith(f"A: {REJECTION} {{QUERY}}\n    ")
    assert values(run, "judge") == {
        "no answer in the documents": pytest.approx(1 / 3),
        "false documents, 0.4 of them true, noise 0.2: error detection": pytest.approx(2 / 3),
        "false documents, 0.4 of them true, noise 0.2: error correction": 1.0,
    }
    files = exported(run)
    fact = "prediction_zh_fact_loop_temp0.2_noise0.2_passage5_correct0.4_chatgpt"
    assert files[f"{fact}result"] == {
        "reject_rate": 4 / 6, "all_rate": 1.0, "correct_rate": 1.0, "tt": 6, "rejecttt": 4, "correct_tt": 4,
        "nums": 6, "noise_rate": 0.2,
    }  # fmt: skip
    assert [line["evaluation"] for line in files[fact]][:3] == ["Yes", "the model has identified it", "yes"]
    assert list(files[fact][0])[-2:] == ["factlabel", "evaluation"]
    again = sl.score("rgb", run.path / "export" / f"{fact}.json", out=tmp_path / "again")
    assert again.summary["detected_judge"].value == pytest.approx(2 / 3)


def test_a_verdict_in_words_that_failed_is_not_a_no(scripts: Path, tmp_path: Path) -> None:
    data = write_lines(tmp_path / "en.json", map(plain, range(4)))

    def rule(item: Item, prompt: str) -> str:
        if "Can it be answered?" in prompt:
            return "" if item["id"] == 1 else "not addressed"
        return f"{REJECTION} [poison]" if item["id"] == 0 else REJECTION

    options = {"ability": "rejection", "judge": "openai:judge", "judge_prompts": "published"}
    run = ask(data, tmp_path / "run", rule, **options)
    judged = run.summary["rejected_judge"]
    assert (judged.value, judged.n, judged.coverage) == (1.0, 2, 0.5)
    title = "declined where no document has the answer, by the judge"
    assert title in LAYOUT.first_figures(run.summary)  # the only setting: there is no table of it
    assert dict(LAYOUT.main_figures(run.summary))[title] == judged
    assert (
        "with the published judge prompts: the judge's figure is Rej*."
        in notes(run.spec, run.summary)[1].text
    )
    assert run.summary["judge_unparsed"].value == pytest.approx(1 / 3)
    rates = exported(run)["prediction_en_loop_temp0.2_noise1.0_passage5_correct0.0_chatgptresult"]
    assert (rates["nums"], rates["reject_rate"]) == (2, 1.0)


def test_recorded_answers_are_judged_with_the_published_prompts_too(scripts: Path, tmp_path: Path) -> None:
    data = write_lines(tmp_path / "en.json", map(plain, range(6)))
    run = ask(data, tmp_path / "run", published_judge, ability="rejection")
    path = run.path / "export/prediction_en_loop_temp0.2_noise1.0_passage5_correct0.0.json"
    with Answering(data, published_judge) as server:
        options: dict[str, Any] = {"judge": "openai:judge", "judge_prompts": "published"}
        judged = sl.score("rgb", path, base_url=server.url, out=tmp_path / "judged", **options)
    assert judged.summary["rejected_judge"].value == pytest.approx(1 / 3)

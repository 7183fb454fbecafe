"""RGB's options, prompts and data: what is asked, and what is refused and how."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import sealegs as sl
from commandline import sealegs
from jsonlines import write_lines
from rgb_rules import (
    Answering,
    Item,
    ask,
    false,
    misled,
    pin,
    plain,
    right,
    samples,
)
from sealegs.benchmarks.rgb.benchmark import Rgb
from sealegs.errors import UsageError
from sealegs.files.datasets import data_file, published_set
from sealegs.harness.data import Data
from sealegs.harness.registry import load_benchmark
from sealegs.types import Generate, Message

pytestmark = pytest.mark.slow


# Options


def test_abilities_rates_and_passages_are_those_asked_for(rgb_files: Path) -> None:
    def settings(**options: Any) -> list[str]:
        found = load_benchmark("rgb", options).samples(
            Data([data_file(path) for path in sorted(rgb_files.iterdir())], langs=None, limit=1)
        )
        return [str(sample.tags["setting"]) for sample in found]

    assert settings(ability="rejection, noise", noise_rates="0,.5") == [
        "noise 0",
        "noise 0.5",
        "no answer in the documents",
    ]
    assert settings(ability="integration", noise_rates="0.2") == ["integration, noise 0.2"]
    # The counterfactual settings are the product of the rates where counterfactual is named.
    assert settings(ability="counterfactual", noise_rates="0.2,0.4", correct_rate="0,0.4") == [
        "no documents",
        "false documents, noise 0.2",
        "false documents, 0.4 of them true, noise 0.2",
        "false documents, noise 0.4",
        "false documents, 0.4 of them true, noise 0.4",
    ]
    assert settings(ability="counterfactual", noise_rates="0,0.2", correct_rate="0.8")[1:] == [
        "false documents, 0.8 of them true",
        "no false documents, 0.8 true, noise 0.2",
    ]
    assert settings(noise_rates="0.8")[1:] == [
        "no answer in the documents",
        "integration, noise 0",
        "integration, noise 0.2",
        "integration, noise 0.4",
        "no documents",
        "false documents",
    ]
    (sample,) = samples(rgb_files / "en.json", ability="noise", noise_rates="0.5", passages=3)[:1]
    assert sorted(sample.inputs.kinds) == ["negative", "negative", "positive"]
    assert load_benchmark("rgb", {"noise_rates": "0, .20,0.2"}).options.noise_rates == "0,0.2"


def test_of_a_set_and_its_corrected_version_the_set_is_asked(tmp_path: Path) -> None:
    write_lines(tmp_path / "en.json", [plain(0)])
    write_lines(tmp_path / "en_refine.json", [plain(1)])
    files = [data_file(path) for path in sorted(tmp_path.iterdir())]
    listed = load_benchmark("rgb", {}).samples(Data(files, langs=None, limit=None))
    assert {sample.inputs.dataset for sample in listed} == {"en"}
    assert {sample.inputs.dataset for sample in samples(tmp_path / "en_refine.json")} == {"en_refine"}


def test_accuracy_is_shown_by_the_position_of_the_document(tmp_path: Path) -> None:
    data = write_lines(tmp_path / "en.json", map(plain, range(10)))
    for sample in samples(data, ability="noise,rejection", noise_rates="0.6,0.8", doc_order="balanced"):
        alone = sample.inputs.kinds.count("positive") == 1
        assert ("position" in sample.tags) == alone == (sample.tags["setting"] == "noise 0.8")

    def first_only(item: Item, prompt: str) -> str:
        first = prompt.partition("Documents:\n")[2].partition("\n")[0]
        return right(item, prompt) if "is kept by" in first else misled(item, prompt)

    run = ask(data, tmp_path / "run", first_only, ability="noise", noise_rates="0.8", doc_order="balanced")
    by_place = {place: run.summary[f"published/position={place}"] for place in range(1, 6)}
    assert {place: figure.value for place, figure in by_place.items()} == {1: 1, 2: 0, 3: 0, 4: 0, 5: 0}


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (("--ability", "rage"), "'rage' is not known. Available: all, noise, rejection"),
        (("--ability", "counterfactual"), "needs a data set of kind 'fact'. Available: plain."),
        (("--noise-rates", "0,2"), "--noise-rates: '0,2' is not a list of rates between 0 and 1"),
        (
            ("--ability", "counterfactual", "--noise-rates", "0.8", "--correct-rate", "0.4"),
            "are more than --passages 5. Give lower rates",
        ),
        (("--passages", "0", "--ability", "rejection"), "--passages must be at least 1"),
        (("--lang", "zh"), "the data has no questions in 'zh'. Available: en."),
    ],
)
def test_a_wrong_value_is_refused_at_the_command_line(
    wrong: tuple[str, ...], says: str, rgb_files: Path, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    data = rgb_files / "en.json"
    where = ("--model", "openai:loop", "--base-url", "http://127.0.0.1:9/v1", "--data", data)
    assert sealegs("run", "rgb", *where, *wrong).code == 2
    assert says in " ".join(capsys.readouterr().err.split())


# Prompts


OWN = """
en:
  system: Be brief.
  instruction: |-
    {DOCS}
    ---
    {QUERY} Also {OTHER} and {DOCS_} stay.
"""


def test_prompts_of_ones_own_are_filled_in_one_pass(tmp_path: Path) -> None:
    item = {**false(0), "positive_wrong": [f"{{QUERY}} {{DOCS}} {{x}} {k} 100 %s" for k in range(5)]}
    data = write_lines(tmp_path / "en_fact.json", [item])
    prompts = tmp_path / "own.yaml"
    prompts.write_text(OWN)
    with Answering(data, right, record=True) as server:
        out = tmp_path / "run"
        run = sl.run("rgb", "openai:loop", base_url=server.url, data=data, out=out, prompts=str(prompts))
    closed, full = sorted((body["messages"] for body in server.bodies), key=len)
    tail = "---\nWhat is the capital of Land 0? Also {OTHER} and {DOCS_} stay."
    assert closed == [{"role": "user", "content": f"\n{tail}"}]
    docs = next(record.sample.inputs.docs for record in run.records() if record.sample.inputs.docs)
    assert all(doc.startswith("{QUERY} {DOCS} {x} ") for doc in docs)
    assert full == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "\n".join([*docs, tail])},
    ]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (OWN.replace("{DOCS}", ""), "the instruction lacks {DOCS}"),
        (f"{OWN}  closed: From what you know.", "the text 'closed' lacks {QUERY}"),
        ("en: {system: only}", "the field 'instruction' is missing"),
        ("- en", "Expected"),
        (OWN.replace("en:", "fr:", 1), "has no prompts for 'en'. Available: fr."),
    ],
)
def test_prompts_that_cannot_be_used_are_refused(
    content: str, says: str, rgb_files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    prompts = tmp_path / "own.yaml"
    prompts.write_text(content)
    where = ("--model", "openai:loop", "--base-url", "http://127.0.0.1:9/v1", "--data", rgb_files)
    assert sealegs("run", "rgb", *where, "--prompts", prompts).code == 2
    said = capsys.readouterr().err
    assert "own.yaml" in said
    assert says in said


def test_the_published_prompts_are_those_of_the_fetched_data(
    rgb_files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Saved by hand and never fetched: the pinned digest alone decides."""
    monkeypatch.setenv("SEALEGS_CACHE", str(tmp_path / "cache"))
    saved = tmp_path / "cache/published/rgb" / published_set("rgb").revision / "instruction.yaml"
    saved.parent.mkdir(parents=True)
    saved.write_text(OWN)
    pin(monkeypatch, saved)
    (sample, *_) = samples(rgb_files / "en.json")
    (request,) = load_benchmark("rgb", {"prompts": "published"}).requests(sample)
    assert isinstance(request, Generate)
    assert request.prompt[0] == Message("system", "Be brief.")


# Data that lacks something


def test_questions_that_lack_documents_are_counted_and_reported(tmp_path: Path) -> None:
    bare = {**plain(1), "positive": []}
    empty = {**plain(2), "positive": [], "negative": plain(2)["negative"][:2]}
    data = write_lines(tmp_path / "en.json", [plain(0), bare, empty])
    run = ask(data, tmp_path / "run", right, noise_rates="0.4", ability="noise")
    assert run.summary["lacks_documents"].value == pytest.approx(2 / 3)
    (note,) = [note for note in Rgb.notes(run.spec, run.summary) if note.warning]
    assert note.text.startswith("2 prompts have fewer documents than asked for, or none with the answer")


def test_a_search_that_found_nothing_is_asked_about(tmp_path: Path) -> None:
    """Only the setting without documents asks for what is known."""
    nothing: Item = {"positive": [], "positive_wrong": [], "negative": []}
    data = write_lines(tmp_path / "en_fact.json", [{**false(1), **nothing}])
    records = {str(r.sample.tags["setting"]): r for r in ask(data, tmp_path / "run", right).records()}
    (request,) = load_benchmark("rgb", {}).requests(records["false documents"].sample)
    assert isinstance(request, Generate)
    assert request.prompt[1] == Message("user", "Documents:\n\n\nQuestion: What is the capital of Land 1?")
    assert "known_published" in records["no documents"].score.values
    # Where no document is false, a reported error is a false alarm.
    assert "false_alarms_published" in records["false documents"].score.values


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        write_lines(tmp_path / folder / "en.json", [plain(0)])
    files = [data_file(tmp_path / folder / "en.json") for folder in ("one", "two")]
    with pytest.raises(UsageError, match=r"two files are named 'en': .*one.en\.json, .*two.en\.json"):
        load_benchmark("rgb", {}).samples(Data(files, langs=None, limit=None))

"""MIRON with `--string-probability`: what the tokenizer costs, from the request to the page."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import msgspec
import pytest

import evenkeel as ek
from benchmarks.test_miron_tokenizers import byte_level, spelt
from commandline import evenkeel
from evenkeel.benchmarks.miron import strings
from evenkeel.benchmarks.miron.benchmark import Miron
from evenkeel.types import Response, StringProbability
from loopback import Loopback
from models.tiny import tiny_model

pytestmark = pytest.mark.slow

ROWS = (
    ("en", "Logic", "The captain sees the", " ships"),
    ("en", "Logic", "Two boats and one", " ship"),
    ("en", "Facts", "One city is", " Paris"),
    ("en", "Facts", "The capital is Par", "is"),  # merges with the token before it
    ("ru", "Logic", "Капитан видит", " море"),
    ("ru", "Facts", "Вода и", " мор"),
)
WORDS = (" ships", " ship", " Paris", " Par", " the", " море", " мор")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from transformers import PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("model")
    tokenizer = byte_level(list(dict.fromkeys(merge for word in WORDS for merge in spelt(word))))
    ends: dict[str, Any] = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 1}
    tiny_model(folder, vocab_size=tokenizer.get_vocab_size(), **ends)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>")
    fast.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "rows.jsonl"
    rows = [
        {"id": str(number), "lang": lang, "category": category, "prefix": prefix, "target": target}
        for number, (lang, category, prefix, target) in enumerate(ROWS)
    ]
    path.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    return path


@pytest.fixture(scope="module")
def run(folder: Path, data: Path, tmp_path_factory: pytest.TempPathFactory) -> ek.Run:
    return ek.run(
        "miron",
        f"hf:{folder}",
        model_args={"device": "cpu"},
        data=data,
        out=tmp_path_factory.mktemp("run") / "run",
        string_probability=True,
    )


def test_every_example_has_its_costs_and_a_merged_one_only_that_of_its_boundary(run: ek.Run) -> None:
    for record in run.records():
        values: dict[str, Any] = record.score.values
        string = record.answers[0].string
        assert string is not None
        assert string.healed_low is not None
        merged = values["boundary_merges"] == 1
        assert merged == (record.sample.inputs.target == "is")
        assert (string.own is None) == ("tokenizer_cost" not in values) == merged
        assert values["strings_known"] == 1
        assert values["boundary_cost"] == pytest.approx((string.healed_low - string.low) / math.log(2))
        if string.own is not None:
            bits = values["bits_per_byte"] * len(record.sample.inputs.target.encode())
            assert -string.own / math.log(2) == pytest.approx(bits, abs=1e-4)
            assert values["tokenizer_cost"] == pytest.approx(bits + string.low / math.log(2), abs=1e-4)
            assert values["tokenizer_cost"] > 0


def test_the_summary_has_them_by_category_and_language(run: ek.Run) -> None:
    costs = {r.sample.id: r.score.values.get("tokenizer_cost") for r in run.records()}
    figure = run.summary["tokenizer_cost"]
    assert (figure.n, figure.coverage, figure.unit) == (5, 1.0, "bits")
    assert figure.value == pytest.approx(sum(cost for cost in costs.values() if cost is not None) / 5)
    low, value, high = (float(limit or 0) for limit in (figure.low, figure.value, figure.high))
    assert 0 < low < value < high
    assert run.summary["tokenizer_cost/category=Logic,lang=ru"].value == costs["4"]
    assert run.summary["boundary_cost/lang=en"].n == 4
    assert run.summary["strings_known"].value == 1
    page = (run.path / "report.html").read_text()
    assert "What the tokenizer costs, in bits" in page
    assert "known only within bounds" not in page


def test_what_was_answered_is_neither_asked_nor_lost_again(run: ek.Run, data: Path, tmp_path: Path) -> None:
    again = ek.run(
        "miron", f"replay:{run.path}", data=data, out=tmp_path / "replayed", string_probability=True
    )
    assert again.summary["tokenizer_cost"] == run.summary["tokenizer_cost"]
    rescored = ek.rescore(run.path)
    assert rescored.summary["boundary_cost"] == run.summary["boundary_cost"]


def test_a_server_is_refused_with_what_can_give_it(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Loopback() as server:
        args = ["run", "miron", "--model", "openai:x", "--base-url", server.url, "--data", data]
        assert evenkeel(*args, "--string-probability").code == 2
    shown = " ".join(capsys.readouterr().err.split())
    assert "give the probability of a string, as models on this machine can (hf:, embedded)" in shown


def test_bounds_are_said_to_be_bounds() -> None:
    loose = StringProbability(own=-3.0, low=-2.5, high=-2.0, healed_low=-2.4, healed_high=-2.3)
    values = strings.values_of(Response(status="ok", string=loose), " ship")
    assert values["strings_known"] == 0
    assert values["boundary_cost"] is None
    assert values["tokenizer_cost"] == pytest.approx(0.5 / math.log(2))
    failed = strings.values_of(Response(status="error", reason="out of memory"), " ship")
    assert set(failed.values()) == {None}


def test_a_failure_counts_as_uncovered_and_the_other_figures_stay(
    run: ek.Run, data: Path, tmp_path: Path
) -> None:
    """A target with a special token in it has no spelling; its score and log-likelihood are as they were."""
    rows = data.read_text().splitlines()
    rows[0] = rows[0].replace('" ships"', '" ships</s>"')
    broken = tmp_path / "broken.jsonl"
    broken.write_text("\n".join(rows))
    again = ek.run(
        "miron", run.spec.models["model"]["spec"], model_args={"device": "cpu"}, data=broken,
        out=tmp_path / "run", string_probability=True,
    )  # fmt: skip
    assert again.summary["strings_known"].coverage == pytest.approx(5 / 6)
    assert again.summary["lev_score"].coverage == again.summary["target_confidence"].coverage == 1
    assert Miron.notes(again.spec, again.summary) != []

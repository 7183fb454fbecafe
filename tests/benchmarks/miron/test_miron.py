"""MIRON: whole runs against a server that continues texts, and results scored again."""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

import sealegs as sl
from benchmarks.miron.test_miron_files import GOOD
from commandline import sealegs
from jsonlines import read_lines, write_lines
from loopback import Loopback, logprob, tokenise
from runs import small_command
from sealegs.benchmarks.miron.benchmark import Miron, MironOptions
from sealegs.benchmarks.miron.data import CATEGORIES
from sealegs.benchmarks.miron.page import data_notes
from sealegs.benchmarks.miron.published import lev_score
from sealegs.files.datasets import data_file
from sealegs.harness.data import ChosenSamples, Data
from sealegs.journal.journal import make_key
from sealegs.report.notes import endings
from sealegs.types import Generate, LogLikelihood, Sampling

pytestmark = pytest.mark.slow

TARGETS = (" unsinkable", " ships", " the grey sea")
FIELDS = ["prefix", "target", "category", "generated", "lev_score", "target_confidence"]


def rows(lang: str, each: int = 3) -> list[dict[str, Any]]:
    """As many examples of each category; those of morphology are the clean versions of those with typos."""
    clean = [
        {
            "id": f"{lang}-{category}-{number}",
            "prefix": f"{category} {number} in {lang}: she is",
            "target": TARGETS[number % 3],
            "category": category,
            "lang": lang,
        }
        for category in CATEGORIES[:3]
        for number in range(each)
    ]
    kinds = (["swap"], ["swap", "drop"], ["case", "case", "case"])
    noisy = [
        {
            **clean_row,
            "id": f"{lang}-Noise-{number}",
            "prefix": f"Mrophology {number} in {lang}: she is",
            "category": "Noise",
            "twin": clean_row["id"],
            "edits": number % 3 + 1,
            "edit_kinds": kinds[number % 3],
        }
        for number, clean_row in enumerate(clean[:each])
    ]
    return clean + noisy


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an English and a Russian file of twelve examples each."""
    folder = tmp_path_factory.mktemp("data")
    for lang in ("en", "ru"):
        write_lines(folder / f"miron_{lang}.jsonl", rows(lang))
    return folder


class Continuing(Loopback):
    """A base model on a server: right about clean texts, wrong after typos, and no better than it may."""

    def _completion(self, body: Any, key: str) -> bytes:
        self.answered[body.prompt] += 1
        number = int("".join(filter(str.isdigit, body.prompt)) or 0)
        text = " a keel\nand more" if "Mro" in body.prompt else f"{TARGETS[number % 3]} indeed, and so on"
        tokens = tokenise(text)[: body.max_tokens]
        ends = "length" if len(tokens) == body.max_tokens else "stop"
        choice: dict[str, Any] = {"text": "".join(tokens), "finish_reason": ends}
        return msgspec.json.encode(
            {"choices": [choice], "usage": {"prompt_tokens": len(tokenise(body.prompt))}}
        )


def run(files: Path, out: Path, server: Loopback, **more: Any) -> sl.Run:
    return sl.run("miron", "openai:loop", base_url=server.url, data=files, out=out, **more)


@pytest.fixture(scope="module")
def finished(files: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[sl.Run, list[dict[str, Any]]]:
    """A whole run, and the bodies of all that it sent."""
    with Continuing(record=True) as server:
        return run(files, tmp_path_factory.mktemp("whole") / "run", server), server.bodies


# Whole runs


def test_every_score_is_the_published_formula_of_what_the_server_said(finished: tuple[sl.Run, Any]) -> None:
    records = list(finished[0].records())
    assert len(records) == 24
    for record in records:
        target = record.sample.inputs.target
        said = " a keel" if record.sample.inputs.category == "Noise" else target
        tokens = tokenise(target)
        said = " ".join(said.split(" ")[: len(target.split()) + 1])
        assert record.score.detail.generated == said
        assert record.score.values["lev_score"] == pytest.approx(lev_score(said, target))
        mean = sum(map(logprob, tokens)) / len(tokens)
        assert record.score.values["target_confidence"] == pytest.approx(100 * math.exp(mean))
        assert record.score.values["exact_match"] == float(said == target)
        assert record.score.tags["target_tokens"] == len(tokens)
        assert list(record.score.detail.tokens) == tokens


def test_figures_are_means_by_category_language_tokens_and_typos(finished: tuple[sl.Run, Any]) -> None:
    run, _ = finished
    records = [r for r in run.records() if r.sample.tags == {"category": "Facts", "lang": "ru"}]
    for metric in ("lev_score", "target_confidence", "bits_per_byte", "knows"):
        figure = run.summary[f"{metric}/category=Facts,lang=ru"]
        values = [record.score.values[metric] or 0 for record in records]
        sizes = [len(r.sample.inputs.target.encode()) if metric == "bits_per_byte" else 1 for r in records]
        weighted = sum(value * size for value, size in zip(values, sizes, strict=True))
        assert figure.value == pytest.approx(weighted / sum(sizes), abs=1e-12)
        assert (figure.n, figure.coverage) == (3, 1.0)
    assert next(iter(run.summary)) == "lev_score"
    assert run.headline.clusters == 18  # an example with typos and its clean version are one
    # All clean texts are right, which leaves the order of those with typos in each language.
    correlation = run.summary["tokens_and_lev_score"]
    assert (correlation.n, correlation.coverage) == (6, 1.0)
    drifts = [
        run.summary[f"score_drift/{part}"] for part in ("lang=en", "edits=3", "edit=case", "edit=mixed")
    ]
    assert [figure.n for figure in drifts] == [3, 2, 2, 2]
    assert "score_drift/category=Noise" not in run.summary


def test_texts_go_to_the_server_as_they_are_and_never_as_a_chat(finished: tuple[sl.Run, Any]) -> None:
    run, bodies = finished
    assert {body["path"] for body in bodies} == {"/v1/completions"}
    assert all(isinstance(body["prompt"], str) and "messages" not in body for body in bodies)
    texts = Counter(body["prompt"] for body in bodies if "capital of France" not in body["prompt"])
    for record in run.records():
        prefix, target = record.sample.inputs.prefix, record.sample.inputs.target
        assert texts.pop(prefix) == 1
        assert texts.pop(prefix + target) in (1, 2)  # log-likelihood, and the probe
    assert not texts


def test_a_replayed_and_a_rescored_run_give_the_same_figures(
    finished: tuple[sl.Run, Any], files: Path, tmp_path: Path
) -> None:
    whole, _ = finished
    replayed = sl.run("miron", f"replay:{whole.path}", data=files, out=tmp_path / "replayed")
    assert replayed.summary == whole.summary
    assert sl.rescore(replayed.path).summary == whole.summary


# A model that gives no log-probabilities


def test_without_log_probabilities_only_the_levenshtein_part_is_scored(files: Path, tmp_path: Path) -> None:
    with Continuing(logprobs="missing", record=True) as server:
        done = run(files, tmp_path / "run", server)
        assert {body["path"] for body in server.bodies} == {"/v1/completions"}
        assert sum("echo" in body for body in server.bodies) == 1  # the probe
    assert done.headline.coverage == 1.0
    assert {name.partition("/")[0] for name in done.summary} == {
        "lev_score", "exact_match", "accepted_match", "score_drift", "rescaled_score", "copy_score",
        "relative_drop",
    }  # fmt: skip
    assert done.spec.options == {"confidence": "no", "string_probability": False}
    (missing,) = Miron.notes(done.spec, done.summary)
    assert missing.text.startswith("Target confidence is not available")
    assert {line["target_confidence"] for line in exported(done, "en")} == {None}


class Picky(Continuing):
    """A server that gives no log-probabilities of some prompts."""

    def _echo(self, body: Any) -> bytes:
        reply = msgspec.json.decode(super()._echo(body))
        if "Logic 1" in body.prompt:
            reply["choices"][0]["logprobs"] = None
        return msgspec.json.encode(reply)


def test_a_row_without_log_probabilities_keeps_its_text_and_its_score(
    finished: tuple[sl.Run, Any], files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Picky() as server:
        code = sealegs(*small_command("miron", tmp_path / "run", server, data=files)).code
    done = sl.load_run(tmp_path / "run")
    confidence = done.summary["target_confidence"]
    assert (done.headline.value, done.headline.n) == (finished[0].headline.value, 24)
    assert (done.headline.coverage, done.headline.statuses) == (1.0, {"ok": 24})
    assert (confidence.n, confidence.statuses) == (22, {"ok": 22, "unparsed": 2})
    assert endings(done).total() == 24  # texts: not the log-likelihoods
    assert code == 1
    assert "coverage of target_confidence 91% is under the floor of 95%" in capsys.readouterr().err


def test_a_continuation_that_ends_at_once_is_scored_as_published(files: Path, tmp_path: Path) -> None:
    """A base model may end a text: the distance to the empty text. What is cut before it begins is none."""

    ends = "stop"

    class Silent(Continuing):
        def _completion(self, body: Any, key: str) -> bytes:
            return msgspec.json.encode({"choices": [{"text": "", "finish_reason": ends}]})

    with Silent() as server:
        done = run(files, tmp_path / "stop", server, lang="en")
        assert (done.headline.value, done.headline.coverage) == (0.0, 1.0)
        ends = "length"
        cut = run(files, tmp_path / "length", server, lang="en")
    assert (cut.headline.value, cut.headline.coverage) == (None, 0.0)
    assert cut.headline.statuses == {"truncated": 12}
    assert cut.summary["target_confidence"].coverage == 1.0


# What is asked


def test_a_text_is_written_until_the_words_of_the_longest_answer_are_complete(tmp_path: Path) -> None:
    row = {**GOOD, "target": " Pooh", "accepted": [" Winnie the Pooh"]}
    path = data_file(write_lines(tmp_path / "miron_en.jsonl", [row]))
    (sample,) = Miron(MironOptions()).samples(Data([path]))
    target, other, text = Miron(MironOptions()).requests(sample)
    assert target == LogLikelihood(prefix=GOOD["prefix"], continuation=" Pooh")
    assert isinstance(other, LogLikelihood)
    assert isinstance(text, Generate)
    assert (text.sampling.words, text.sampling.stop, text.sampling.temperature) == (3, ("\n",), 0)
    assert [text] == Miron(MironOptions(confidence="no")).requests(sample)


def test_a_text_of_fewer_words_is_not_taken_for_a_longer_one() -> None:
    one, three = (Generate(prompt="a", sampling=Sampling(words=words)) for words in (1, 3))
    assert make_key(b"model", one) != make_key(b"model", three)


def test_a_right_answer_in_smaller_tokens_loses_nothing(tmp_path: Path) -> None:
    """A model that spells each word letter by letter is not cut after the target's number of tokens."""
    data = write_lines(tmp_path / "miron_en.jsonl", [{**GOOD, "target": " Pooh"}])

    class Spelling(Continuing):
        def _completion(self, body: Any, key: str) -> bytes:
            text = " Pooh, the bear"[: body.max_tokens]  # one letter is one token
            choice = {"text": text, "finish_reason": "length"}
            return msgspec.json.encode({"choices": [choice]})

    with Spelling() as server:
        done = run(data, tmp_path / "run", server)
    (record,) = done.records()
    assert (record.score.detail.generated, done.headline.value) == (" Pooh", 100)
    assert done.headline.statuses == {"ok": 1}


def test_a_missing_space_before_targets_is_put_in_and_reported(tmp_path: Path) -> None:
    prefixes = ("Number 1 is", "Number 2 is", "The capital of France —")
    bare = [{**GOOD, "prefix": each, "target": "Paris", "accepted": ["Rome"]} for each in prefixes]
    marks = [{**GOOD, "prefix": "The end", "target": "."}]
    benchmark = Miron(MironOptions())
    data = Data([data_file(write_lines(tmp_path / "miron_en.jsonl", [*bare, *marks]))])
    samples = benchmark.samples(data)
    assert isinstance(samples, ChosenSamples)
    *spaced, mark = samples
    assert {(sample.inputs.target, sample.inputs.accepted) for sample in spaced} == {(" Paris", (" Rome",))}
    assert mark.inputs.target == "."
    (note,) = data_notes(samples.facts)
    assert note.text.startswith("A space was put before 3 targets")
    mixed = Data([data_file(write_lines(tmp_path / "mixed_en.jsonl", [bare[0], GOOD]))])
    assert [sample.inputs.target for sample in benchmark.samples(mixed)] == ["Paris", " ships"]


# Results


def exported(run: sl.Run, lang: str) -> list[dict[str, Any]]:
    return read_lines(run.path / "export" / f"miron_{lang}.jsonl")


def test_the_export_has_the_published_fields_and_the_same_figures_scored_again(
    finished: tuple[sl.Run, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    whole, _ = finished
    assert sorted(os.listdir(whole.path / "export")) == ["miron_en.jsonl", "miron_ru.jsonl"]
    records = [record for record in whole.records() if record.sample.tags["lang"] == "en"]
    for line, record in zip(exported(whole, "en"), records, strict=True):
        inputs, score = record.sample.inputs, record.score
        texts = [inputs.prefix, inputs.target, inputs.category, score.detail.generated]
        numbers = [round(score.values[name] or 0, 2) for name in FIELDS[4:]]
        assert line == dict(zip(FIELDS, [*texts, *numbers], strict=True))
    file = whole.path / "export" / "miron_en.jsonl"
    assert sealegs("score", "miron", file, "--out", tmp_path / "again").code == 0
    said = re.search(
        r"miron_en.jsonl: 24 published figures, largest difference from ours (\S+)", capsys.readouterr().err
    )
    assert said
    assert float(said[1]) < 0.0051
    again = sl.load_run(tmp_path / "again")
    for name in ("lev_score", "target_confidence"):
        ours, first = again.summary[f"{name}/category=Noise"], whole.summary[f"{name}/category=Noise,lang=en"]
        assert ours.value == pytest.approx(first.value, abs=0.0051)
        assert (ours.n, ours.coverage) == (first.n, 1.0)
    assert again.spec.options == {}  # what was asked elsewhere is not known here
    assert not {"target_tokens", "bits_per_byte", "boundary_merges"} & set(again.summary)
    assert exported(again, "en") == exported(whole, "en")

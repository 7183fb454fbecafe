"""MIRON: whole runs against a server that continues texts, and results scored again."""

from __future__ import annotations

import math
import os
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

import evenkeel as ek
from commandline import command, evenkeel
from evenkeel.benchmarks.miron.benchmark import Miron, MironOptions
from evenkeel.benchmarks.miron.files import CATEGORIES
from evenkeel.benchmarks.miron.page import BASELINES
from evenkeel.errors import CapabilityError
from evenkeel.files.datasets import data_file
from evenkeel.harness.benchmark import Data
from evenkeel.types import Generate, LogLikelihood
from loopback import Loopback, logprob, tokenise

GOOD = {"prefix": "One ship, two", "target": " ships", "category": "Morphology"}
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


def write(path: Path, items: Sequence[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(msgspec.json.encode(item) + b"\n" for item in items))
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an English and a Russian file of twelve examples each."""
    folder = tmp_path_factory.mktemp("data")
    for lang in ("en", "ru"):
        write(folder / f"miron_{lang}.jsonl", rows(lang))
    return folder


class Continuing(Loopback):
    """A base model on a server: right about clean texts, wrong after typos, and no better than it may."""

    shows_tokens = False

    def _completion(self, body: Any, key: str) -> bytes:
        self.answered[body.prompt] += 1
        number = int("".join(filter(str.isdigit, body.prompt)) or 0)
        text = " a keel\nand more" if "Mro" in body.prompt else f"{TARGETS[number % 3]} indeed, and so on"
        tokens = tokenise(text)[: body.max_tokens]
        ends = "length" if len(tokens) == body.max_tokens else "stop"
        choice: dict[str, Any] = {"text": "".join(tokens), "finish_reason": ends}
        if self.shows_tokens and body.logprobs:
            choice["logprobs"] = {"tokens": tokens, "token_logprobs": [-1.0] * len(tokens)}
        return msgspec.json.encode(
            {"choices": [choice], "usage": {"prompt_tokens": len(tokenise(body.prompt))}}
        )


def run(files: Path, out: Path, server: Loopback, **more: Any) -> ek.Run:
    return ek.run("miron", "openai:loop", base_url=server.url, data=files, out=out, **more)


@pytest.fixture(scope="module")
def finished(files: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[ek.Run, list[dict[str, Any]]]:
    """A whole run, and the bodies of all that it sent."""
    with Continuing(record=True) as server:
        return run(files, tmp_path_factory.mktemp("whole") / "run", server), server.bodies


# Whole runs


def test_every_score_is_the_published_formula_of_what_the_server_said(finished: tuple[ek.Run, Any]) -> None:
    records = list(finished[0].records())
    assert len(records) == 24
    for record in records:
        target = record.sample.inputs.target
        said = " a keel" if record.sample.inputs.category == "Noise" else target
        tokens = tokenise(target)
        said = "".join(tokenise(said)[: len(tokens)])
        assert record.score.detail.generated == said
        assert record.score.values["lev_score"] == pytest.approx(100 if said == target else lev(said, target))
        mean = sum(map(logprob, tokens)) / len(tokens)
        assert record.score.values["target_confidence"] == pytest.approx(100 * math.exp(mean))
        assert record.score.values["exact_match"] == float(said == target)
        assert record.score.values["target_tokens"] == len(tokens)
        assert record.score.tags["target_tokens"] == len(tokens)
        assert list(record.score.detail.tokens) == tokens


def lev(a: str, b: str) -> float:
    """(1 − Lev / max) × 100, by dynamic programming over whole rows."""
    row = list(range(len(b) + 1))
    for i, letter in enumerate(a, 1):
        above, row = row, [i]
        for j, other in enumerate(b, 1):
            row.append(min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (letter != other)))
    return (1 - row[-1] / max(len(a), len(b))) * 100


def test_means_stand_by_category_and_language_and_are_taken_before_rounding(
    finished: tuple[ek.Run, Any],
) -> None:
    run, _ = finished
    for metric in (
        "lev_score",
        "target_confidence",
        "exact_match",
        "bits_per_byte",
        "target_tokens",
        "knows",
    ):
        for scope in ("", "/category=Facts", "/lang=ru", "/category=Noise,lang=en"):
            wanted = dict(part.split("=") for part in scope.strip("/").split(",") if part)
            values = [
                record.score.values[metric]
                for record in run.records()
                if all(record.sample.tags[name] == value for name, value in wanted.items())
            ]
            known = [value for value in values if value is not None]
            figure = run.summary[metric + scope]
            assert figure.value == pytest.approx(sum(known) / len(known), abs=1e-12)
            assert (figure.n, figure.coverage) == (len(known), 1.0)
    assert next(iter(run.summary)) == "lev_score"
    assert run.headline.clusters == 18  # an example with typos and its clean version are one
    # All clean texts are right, which leaves the order of those with typos in each language.
    correlation = run.summary["tokens_and_lev_score"]
    assert (correlation.n, correlation.coverage) == (6, 1.0)
    assert run.summary["tokens_and_lev_score/category=Noise,lang=en"].n == 3
    assert run.summary["tokens_and_target_confidence/lang=ru"].n == 12


def test_drift_is_what_the_clean_version_scores_more(finished: tuple[ek.Run, Any]) -> None:
    run, _ = finished
    records = {record.sample.id: record for record in run.records()}
    noisy = [record for record in records.values() if record.sample.inputs.clean_id]
    assert len(noisy) == 6
    for record in noisy:
        clean_record = records[record.sample.inputs.clean_id]
        assert record.sample.group == clean_record.sample.group == clean_record.sample.id
        for drift, of in (("score_drift", "lev_score"), ("confidence_drift", "target_confidence")):
            clean, dirty = clean_record.score.values[of], record.score.values[of]
            assert clean is not None
            assert dirty is not None
            assert record.score.values[drift] == pytest.approx(clean - dirty)
            assert drift not in clean_record.score.values
    assert {(r.sample.tags["edits"], r.sample.tags["edit"]) for r in noisy} == {
        (1, "swap"),
        (2, "mixed"),
        (3, "case"),
    }
    assert run.summary["score_drift"].n == 6
    by_number = [run.summary[f"score_drift/edits={edits}"] for edits in (1, 2, 3)]
    assert [figure.n for figure in by_number] == [2, 2, 2]
    assert run.summary["score_drift/edit=case"].value == by_number[2].value
    assert "score_drift/category=Noise" not in run.summary


def test_texts_go_to_the_server_as_they_are_and_never_as_a_chat(finished: tuple[ek.Run, Any]) -> None:
    run, bodies = finished
    assert {body["path"] for body in bodies} == {"/v1/completions"}
    assert all(isinstance(body["prompt"], str) and "messages" not in body for body in bodies)
    texts = Counter(body["prompt"] for body in bodies if "capital of France" not in body["prompt"])
    for record in run.records():
        prefix, target = record.sample.inputs.prefix, record.sample.inputs.target
        assert texts.pop(prefix) in (1, 2)  # generated, and where it was cut off how it goes on
        probed = record.sample.id in [
            f"{lang}-Morphology-{number}" for lang in ("en", "ru") for number in range(3)
        ]
        assert texts.pop(prefix + target) == 1 + probed  # log-likelihood, and so counted
    assert not texts


def test_the_rule_and_the_start_token_stand_in_the_report(finished: tuple[ek.Run, Any]) -> None:
    run, _ = finished
    assert run.spec.options == {"stop": "target", "confidence": "auto", "string_probability": False}
    notes = Miron.notes(run.spec, run.summary)
    assert [note.text for note in notes if not note.warning] == [
        "Written greedily, as many tokens as the target has in the model's own tokenizer, cut at the first "
        "line break.",
        "The tokenizer puts no start token before a text.",
    ]
    page = (run.path / "report.html").read_text()
    for text in ("cut at the first line break", "no start token", "Does not know", "Score by category"):
        assert text in page


def test_each_quadrant_is_shown_with_examples(finished: tuple[ek.Run, Any]) -> None:
    run, _ = finished
    shown = {group.title: group for group in Miron.examples(run.records)}
    assert list(shown) == ["Knows", "Doubts", "Slips", "Does not know"]
    for name, group in zip(("knows", "doubts", "slips", "does_not_know"), shown.values(), strict=True):
        there = [record for record in run.records() if record.score.values[name] == 1]
        assert bool(group.items) == bool(there)
    parts = dict(shown["Doubts"].items[0].parts)
    assert list(parts)[:3] == ["prefix", "target", "generated"]
    tokens = [token.rpartition(" ")[0] for token in parts["tokens of the target"].split(" | ")]
    assert "".join(tokens) == parts["target"]


def test_killed_in_the_middle_and_resumed_the_summary_is_the_same(
    finished: tuple[ek.Run, Any], files: Path, tmp_path: Path
) -> None:
    with Continuing(latency=0.1) as server:
        again = command(
            "run", "miron", "--model", "openai:loop", "--base-url", server.url, "--data", files,
            "--out", tmp_path / "run", "--concurrency", 2,
        )  # fmt: skip
        process = subprocess.Popen(again, stderr=subprocess.PIPE)
        while server.answered.total() < 24:
            assert process.poll() is None, process.stderr and process.stderr.read()
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert not (tmp_path / "run" / "summary.json").exists()
        before, server.behaviour.latency = server.answered.total(), 0
        done = subprocess.run(again, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert server.answered.total() - before < 84  # 96 and a probe for the whole
    assert ek.load_run(tmp_path / "run").summary == finished[0].summary
    assert "By category and language" in done.stdout


def test_a_replayed_and_a_rescored_run_give_the_same_figures(
    finished: tuple[ek.Run, Any], files: Path, tmp_path: Path
) -> None:
    whole, _ = finished
    replayed = ek.run("miron", f"replay:{whole.path}", data=files, out=tmp_path / "replayed")
    assert replayed.summary == whole.summary
    assert ek.rescore(replayed.path).summary == whole.summary


def test_a_dry_run_counts_what_would_be_asked(files: Path) -> None:
    from evenkeel.api import dry_run

    assert dry_run("miron", "embedded", data=files).requests == {"loglikelihood": 24, "generate": 24}
    assert dry_run("miron", "embedded", data=files, confidence="no", lang="ru").requests == {"generate": 12}


class Showing(Continuing):
    """One that shows the tokens of what it writes, as vLLM does."""

    shows_tokens = True


def test_one_generation_gives_the_scores_under_both_stop_rules(
    finished: tuple[ek.Run, Any], files: Path, tmp_path: Path
) -> None:
    with Showing(record=True) as server:
        by_tokens = run(files, tmp_path / "target", server)
        generated = [body for body in server.bodies if "echo" not in body]
        assert len(generated) == 2 * 24  # to its length, and further
        by_words = run(files, tmp_path / "word", server, stop="word")
    # What a server that does not show tokens gives too is the same.
    assert by_tokens.summary["lev_score"] == finished[0].summary["lev_score"]
    assert by_tokens.summary["lev_score_by_words"] == finished[0].summary["lev_score_by_words"]
    assert (finished[0].path / "export/miron_en.jsonl").read_bytes() == (
        by_tokens.path / "export/miron_en.jsonl"
    ).read_bytes()
    for scope in ("", "/category=Noise,lang=ru"):
        tokens, words = by_tokens.summary, by_words.summary
        for name, here, there in (
            ("lev_score_by_words", tokens, words),
            ("lev_score_by_tokens", words, tokens),
        ):
            assert replace(here[name + scope], metric="lev_score") == there[f"lev_score{scope}"]
    assert by_tokens.summary["lev_score"] != by_words.summary["lev_score"]
    page = (by_tokens.path / "report.html").read_text()
    assert "Score under both stop rules" in page
    assert "Score beside baselines that need no model" in page


# A model that gives no log-probabilities


def test_without_log_probabilities_only_the_levenshtein_part_is_scored(files: Path, tmp_path: Path) -> None:
    with Continuing(logprobs="missing", record=True) as server:
        done = run(files, tmp_path / "run", server)
        assert {body["path"] for body in server.bodies} == {"/v1/completions"}
        assert sum("echo" in body for body in server.bodies) == 1  # the probe
        asked = server.requests
        assert run(files, tmp_path / "run", server).summary == done.summary
        assert server.requests == asked + 1  # the probe again, and nothing else
    assert done.headline.coverage == 1.0
    assert {name.partition("/")[0] for name in done.summary} == {
        "lev_score", "exact_match", "accepted_match", "score_drift", "rescaled_score",
        *(f"{name}_{figure}" for name in BASELINES for figure in ("score", "match")),
    }  # fmt: skip
    assert msgspec.json.decode((tmp_path / "run" / "spec.json").read_bytes())["options"] == {
        "stop": "word",
        "confidence": "no",
        "string_probability": False,
    }
    written, missing = Miron.notes(done.spec, done.summary)
    assert written.text == "Written greedily, as many words as the target has, cut at the first line break."
    assert missing.warning
    assert missing.text.startswith("Target confidence is not available")
    assert "Target confidence is not available" in (done.path / "report.html").read_text()
    for record in done.records():
        said = " a keel" if record.sample.tags["category"] == "Noise" else record.sample.inputs.target
        words = len(record.sample.inputs.target.split())
        assert record.score.detail.generated == " ".join(said.split(" ")[: words + 1])
    assert {line["target_confidence"] for line in exported(done, "en")} == {None}
    assert ek.rescore(done.path).summary == done.summary
    again = ek.score("miron", done.path / "export" / "miron_en.jsonl", out=tmp_path / "again")
    assert again.headline.value == pytest.approx(done.summary["lev_score/lang=en"].value, abs=0.0051)


class Picky(Continuing):
    """A server that gives no log-probabilities of the prompts in which it finds something."""

    def __init__(self, unknown: str, **behaviour: Any) -> None:
        super().__init__(**behaviour)
        self.unknown = unknown

    def _echo(self, body: Any) -> bytes:
        reply = msgspec.json.decode(super()._echo(body))
        if re.search(self.unknown, body.prompt):
            reply["choices"][0]["logprobs"] = None
        return msgspec.json.encode(reply)


def test_a_server_that_cannot_echo_a_language_of_the_data_is_found_first(files: Path, tmp_path: Path) -> None:
    with Picky("in ru") as server:
        done = run(files, tmp_path / "run", server)
        assert done.spec.options == {"stop": "word", "confidence": "no", "string_probability": False}
        assert done.headline.coverage == 1.0
        english = run(files, tmp_path / "english", server, lang="en")
        assert english.spec.options["stop"] == "target"
        assert english.summary["target_confidence"].coverage == 1.0
        with pytest.raises(CapabilityError, match="no prompt logprobs \\(for text in 'ru'\\)"):
            run(files, tmp_path / "asked", server, confidence="yes")


def test_a_row_without_log_probabilities_keeps_its_text_and_its_score(
    finished: tuple[ek.Run, Any], files: Path, tmp_path: Path,
    capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    with Picky("Logic 1") as server:
        code = evenkeel(
            "run", "miron", "--model", "openai:loop", "--base-url", server.url,
            "--data", files, "--out", tmp_path / "run",
        ).code  # fmt: skip
    done = ek.load_run(tmp_path / "run")
    confidence = done.summary["target_confidence"]
    assert (done.headline.value, done.headline.n) == (finished[0].headline.value, 24)
    assert (done.headline.coverage, done.headline.statuses) == (1.0, {"ok": 24})
    assert confidence.n == 22
    assert confidence.coverage == pytest.approx(22 / 24)
    assert confidence.statuses == {"ok": 22, "unparsed": 2}
    for record in done.records():
        lost = "Logic-1" in record.sample.id
        assert (record.score.values["target_confidence"] is None) == lost
        assert record.score.values["lev_score"] is not None
    assert code == 1
    assert "coverage of target_confidence 91.67% is under the floor of 95%" in capsys.readouterr().err


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


def test_a_confidence_that_was_asked_for_is_refused_with_the_reason(
    files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Continuing(logprobs="missing") as server:
        code = evenkeel(
            "run", "miron", "--model", "openai:loop", "--base-url", server.url,
            "--data", files, "--out", tmp_path / "run", "--confidence", "yes",
        ).code  # fmt: skip
    assert code == 2
    assert "cannot give log-likelihoods: the server returned no prompt logprobs" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_model_that_cannot_write_is_refused(files: Path, tmp_path: Path) -> None:
    with pytest.raises(
        CapabilityError, match="miron needs models that can generate and give log-likelihoods"
    ):
        ek.run("miron", "embedded-embedder", data=files, out=tmp_path / "run")


# What is asked


def test_an_example_is_weighed_and_written_unless_told_otherwise(files: Path) -> None:
    path = data_file(files / "miron_en.jsonl")
    (sample, *_) = Miron(MironOptions()).samples(Data([path], langs=None, limit=None))
    prefix, target = sample.inputs.prefix, sample.inputs.target
    scored, write = Miron(MironOptions()).requests(sample)
    assert scored == LogLikelihood(prefix=prefix, continuation=target)
    assert isinstance(write, Generate)
    assert (write.prompt, write.sampling.length_of, write.sampling.stop) == (prefix, target, ("\n",))
    (alone,) = Miron(MironOptions(confidence="no")).requests(sample)
    assert alone == write
    for stop, most in {"tokens=7": 7, "line": 64}.items():
        (written,) = Miron(MironOptions(confidence="no", stop=stop)).requests(sample)
        assert isinstance(written, Generate)
        assert (written.sampling.max_tokens, written.sampling.length_of) == (most, "")
        assert written.sampling.temperature == 0


def test_recorded_options_are_those_of_the_run(files: Path, tmp_path: Path) -> None:
    with Continuing(record=True) as server:
        done = run(files, tmp_path / "run", server, stop="tokens=2", lang="en", limit=4)
        assert {body["max_tokens"] for body in server.bodies if "echo" not in body} == {2}
    assert done.spec.options["stop"] == "tokens=2"
    assert done.headline.n == 4
    assert done.headline.statuses == {"ok": 4}
    assert "2 tokens, cut at the first line break" in Miron.notes(done.spec, done.summary)[0].text


# Results


def exported(run: ek.Run, lang: str) -> list[dict[str, Any]]:
    content = (run.path / "export" / f"miron_{lang}.jsonl").read_bytes()
    return [msgspec.json.decode(line) for line in content.splitlines()]


def test_the_export_has_the_published_fields_rounded_to_two_decimals(finished: tuple[ek.Run, Any]) -> None:
    run, _ = finished
    assert sorted(os.listdir(run.path / "export")) == ["miron_en.jsonl", "miron_ru.jsonl"]
    for lang in ("en", "ru"):
        records = [record for record in run.records() if record.sample.tags["lang"] == lang]
        for line, record in zip(exported(run, lang), records, strict=True):
            assert list(line) == FIELDS
            assert all(line[name] == getattr(record.sample.inputs, name) for name in FIELDS[:3])
            assert line["generated"] == record.score.detail.generated
            for name in FIELDS[4:]:
                assert line[name] == round(record.score.values[name] or 0, 2)
    assert any(re.fullmatch(r"\d+\.\d\d", str(line["target_confidence"])) for line in exported(run, "en"))


def test_the_export_scored_again_gives_the_same_figures(
    finished: tuple[ek.Run, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    whole, _ = finished
    file = whole.path / "export" / "miron_en.jsonl"
    assert evenkeel("score", "miron", file, "--out", tmp_path / "again").code == 0
    said = re.search(
        r"miron_en.jsonl: 24 published figures, largest difference from ours (\S+)", capsys.readouterr().err
    )
    assert said
    assert float(said[1]) < 0.0051
    again = ek.load_run(tmp_path / "again")
    for name in ("lev_score", "target_confidence"):
        for scope in ("", "/category=Noise", "/category=Facts"):
            ours, first = (
                again.summary[name + scope],
                whole.summary[f"{name}{scope or '/'}{',' * bool(scope)}lang=en"],
            )
            assert ours.value == pytest.approx(first.value, abs=0.0051)
            assert (ours.n, ours.coverage) == (first.n, 1.0)
    assert again.spec.options == {}  # what was asked elsewhere is not known here
    assert not {"target_tokens", "bits_per_byte", "boundary_merges"} & set(again.summary)
    assert exported(again, "en") == exported(whole, "en")

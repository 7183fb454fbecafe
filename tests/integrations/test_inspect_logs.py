"""Logs of Inspect as they may come from anyone, read without inspect-ai."""

from __future__ import annotations

import importlib.util
import json
import struct
import zipfile
from pathlib import Path
from typing import Any

import msgspec
import pytest

import evenkeel as ek
from commandline import evenkeel
from evenkeel.api.setup import read_samples
from evenkeel.harness.registry import load_benchmark
from evenkeel.inspect import log_file
from evenkeel.inspect.outputs import Output, response_of
from evenkeel.inspect.questions import FIELD, make_questions
from evenkeel.inspect.recorded import score_log
from evenkeel.types import Generate, to_jsonable

OPTIONS = {"ability": "rejection", "repeats": 2, "temperature": 0.5}


def make_log(
    answer: str = "The documents do not say: insufficient information.", **options: Any
) -> dict[str, Any]:
    """A log of evenkeel/rgb: two questions, asked twice."""
    benchmark = load_benchmark("rgb", {**OPTIONS, **options})
    samples, _ = read_samples(benchmark, "rgb", ["starter"], None, 2)
    questions = make_questions(benchmark, samples)
    logged = []
    for question in questions:
        for epoch in (1, 2):
            request = question.request(epoch)
            assert isinstance(request, Generate)
            message = {"role": "assistant", "content": answer}
            logged.append(
                {
                    "id": question.id,
                    "epoch": epoch,
                    "input": to_jsonable(request.prompt),
                    "metadata": question.metadata,
                    "output": {"choices": [{"message": message, "stop_reason": "stop"}]},
                }
            )
    fields = {"benchmark": "rgb", "options": {**OPTIONS, **options}, "seed": 0}
    ids = [question.id for question in questions]
    about = {"task": "evenkeel/rgb", "model": "openai/gpt", "metadata": {FIELD: fields}}
    return {"version": 2, "eval": {**about, "dataset": {"sample_ids": ids}}, "samples": logged}


def write_json(path: Path, log: dict[str, Any]) -> Path:
    path.write_text(json.dumps(log))
    return path


def write_eval(path: Path, log: dict[str, Any], header: str = "header.json") -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(header, json.dumps({**log, "samples": None}))
        for sample in log["samples"]:
            archive.writestr(f"samples/{sample['id']}_epoch_{sample['epoch']}.json", json.dumps(sample))
    return path


def score(path: Path, out: Path, **options: Any) -> ek.Run:
    return score_log("rgb", path, out=out, progress=False, **options)


def test_a_log_is_read_packed_and_as_json_finished_or_not(tmp_path: Path) -> None:
    log = make_log()
    paths = [
        write_json(tmp_path / "log.json", log),
        write_eval(tmp_path / "log.eval", log),
        write_eval(tmp_path / "unfinished.eval", log, header="_journal/start.json"),
    ]
    runs = [score(path, tmp_path / path.stem / path.suffix) for path in paths]
    assert [run.summary["rejected_published"].value for run in runs] == [1.0, 1.0, 1.0]
    assert runs[0].spec.options["temperature"] == 0.5
    assert [record.sample.id for record in runs[0].records()] == [r.sample.id for r in runs[1].records()]
    assert runs[0].spec.subject == "openai/gpt"


def test_a_scored_log_can_be_rescored_without_it(tmp_path: Path) -> None:
    path = write_json(tmp_path / "log.json", make_log())
    before = score(path, tmp_path / "run").summary
    path.unlink()
    assert ek.rescore(tmp_path / "run", progress=False).summary == before


def test_the_command_line_scores_a_log(tmp_path: Path) -> None:
    path = write_json(tmp_path / "log.json", make_log())
    outcome = evenkeel("score", "rgb", "--from-inspect", path, "--out", tmp_path / "run")
    assert outcome.code == 0, outcome.output
    assert "100%" in outcome.stdout
    both = evenkeel("score", "rgb", path, "--from-inspect", path)
    assert both.code == 2
    assert "give either files" in both.stderr


def test_a_missing_epoch_and_an_error_are_no_answers_and_missing_samples_are_said(tmp_path: Path) -> None:
    log = make_log()
    first, second, third, _ = log["samples"]
    traceback = "Request:\n{}\n\nHTTP 500: the keel is cracked\n"
    second["error"] = {"message": "ModelGenerateError(…)", "traceback": traceback}
    log["eval"]["dataset"]["sample_ids"].append("en-7-rejection")
    log["samples"] = [first, second, third]
    run = score(write_json(tmp_path / "log.json", log), tmp_path / "run")
    assert run.headline.coverage == 0.5
    assert run.failures() == {"error: HTTP 500: the keel is cracked": 1, "error: not recorded": 1}
    [note] = run.spec.provenance["notes"]["model"]
    assert "1 of 3 samples of the task are not in the log (the first is 'en-7-rejection')" in note


def change(log: dict[str, Any], place: str, value: Any) -> dict[str, Any]:
    *parents, last = (int(part) if part.isdigit() else part for part in place.split("/"))
    target: Any = log
    for part in parents:
        target = target[part]
    target[last] = value
    return log


@pytest.mark.parametrize(
    ("place", "value", "problem"),
    [
        ("eval/metadata", None, "a log of the task 'evenkeel/rgb'. Expected one of evenkeel/rgb"),
        ("eval/metadata/evenkeel/benchmark", "mirae", "evenkeel score mirae --from-inspect"),
        ("eval/metadata/evenkeel/options", [], "eval.metadata.evenkeel, field 'options': expected an object"),
        (
            "eval/metadata/evenkeel/options",
            {"passages": "many"},
            "eval.metadata.evenkeel.options: passages=many",
        ),
        ("eval", 7, "field 'eval': expected an object"),
        ("samples", [], "this log holds no samples"),
        ("samples/0/id", None, "samples[0], field 'id': expected"),
        ("samples/0/metadata", {}, "samples[0], metadata.evenkeel: expected"),
        (
            "samples/0/metadata/evenkeel/samples/0/inputs/docs",
            5,
            "metadata.evenkeel, field '[0].inputs.docs': expected",
        ),
        ("samples/0/metadata/evenkeel/samples", [], "expected samples, each with its position"),
        (
            "samples/0/input",
            "What is the time?",
            "samples[0], input: the input is not what the benchmark asks",
        ),
        ("samples/0/output", "yes", "samples[0], field 'output': expected an object"),
        ("samples/0/output/usage", {"output_tokens": -4}, "samples[0], field 'output.usage.output_tokens':"),
        (
            "samples/0/store",
            {"evenkeel": {"zz": {"status": "ok"}}},
            "store.evenkeel: Expected keys of hexadecimal",
        ),
        ("samples/1/epoch", 1, "samples[1]: epoch 1 of 'en-0-no answer in the documents' appears twice"),
        ("samples/1/epoch", 9, "samples[1]: epoch 9: the prompt is asked 2 times"),
        ("samples/1/epoch", -1, "samples[1]: epoch -1: the prompt is asked 2 times"),
    ],
)
def test_an_error_in_a_log_names_its_place(place: str, value: Any, problem: str, tmp_path: Path) -> None:
    path = write_json(tmp_path / "log.json", change(make_log(), place, value))
    with pytest.raises(ek.UsageError) as error:
        score(path, tmp_path / "run")
    assert problem.lower() in str(error.value).lower()
    assert "log.json" in str(error.value)


def test_what_is_not_a_log_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.eval"
    nested = (b"[" * 100_000, b'{"a":' * 100_000)
    for content in (b"", b"nonsense", b"PK\x03\x04 not a zip", b'{"eval": ', b"\xff\xfe{", *nested):
        path.write_bytes(content)
        with pytest.raises(ek.UsageError, match=r"log\.eval"):
            score(path, tmp_path / "run")


def test_a_zip_without_a_header_or_with_a_broken_sample_is_refused(tmp_path: Path) -> None:
    path = write_eval(tmp_path / "log.eval", make_log(), header="other.json")
    with pytest.raises(ek.UsageError, match=r"holds no header\.json"):
        score(path, tmp_path / "run")
    log = make_log()
    path = write_eval(tmp_path / "broken.eval", {**log, "samples": []})
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("samples/a_epoch_1.json", "{")
    with pytest.raises(ek.UsageError, match=r"samples/a_epoch_1\.json: this is not JSON"):
        score(path, tmp_path / "run")


def test_a_zip_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_file, "LARGEST_MEMBER", 1 << 20)
    path = write_eval(tmp_path / "log.eval", {**make_log(), "samples": []})
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("samples/a_epoch_1.json", b"0" * (2 << 20))
    with pytest.raises(ek.UsageError, match=r"samples/a_epoch_1\.json: this file is larger than 1 MiB"):
        score(path, tmp_path / "run")
    monkeypatch.setattr(log_file, "LARGEST_LOG", 1 << 20)
    with pytest.raises(ek.UsageError, match="this log holds more than"):
        score(path, tmp_path / "run")


def test_a_zip_that_lies_about_a_size_is_refused(tmp_path: Path) -> None:
    path = write_eval(tmp_path / "log.eval", {**make_log(), "samples": []})
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("samples/a_epoch_1.json", b"0" * 50_000)
    content = bytearray(path.read_bytes())
    entry = content.rindex(b"PK\x01\x02")
    struct.pack_into("<I", content, entry + 24, 10)
    path.write_bytes(content)
    with pytest.raises(ek.UsageError, match=r"samples/a_epoch_1\.json: this"):
        score(path, tmp_path / "run")


def test_a_log_names_no_model_that_this_machine_would_ask(tmp_path: Path) -> None:
    judged = make_log(judge="openai:m?base_url=http://127.0.0.1:9/v1")
    run = score(write_json(tmp_path / "log.json", judged), tmp_path / "run")
    assert run.summary["judge"].value is None  # the log has no verdicts, and nobody was asked for them
    assert run.summary["rejected_published"].value == 1
    log = {**make_log(), "samples": []}
    fields = {"benchmark": "mirae", "options": {"embedder": ["openai:e?base_url=http://127.0.0.1:9/v1"]}}
    log["eval"]["metadata"] = {FIELD: fields}
    log["samples"] = [_mirae_sample()]
    path = write_json(tmp_path / "mirae.json", log)
    with pytest.raises(ek.UsageError, match="nothing is asked of a model that you do not name"):
        score_log("mirae", path, out=tmp_path / "mirae", progress=False)
    with pytest.raises(ek.UsageError, match="nothing is asked of a model that you do not name"):
        score_log("mirae", path, out=tmp_path / "mirae", progress=False, meaning_distance=0.3)


def _mirae_sample() -> dict[str, Any]:
    benchmark = load_benchmark("mirae", {})
    samples, _ = read_samples(benchmark, "mirae", ["starter"], None, 1)
    question = make_questions(benchmark, samples)[0]
    request = question.request(1)
    assert isinstance(request, Generate)
    return {
        "id": question.id,
        "epoch": 1,
        "input": to_jsonable(request.prompt),
        "metadata": question.metadata,
    }


def test_an_output_ends_as_the_same_reply_of_a_server() -> None:
    refusal = [{"type": "text", "text": "I will not.", "refusal": True}]
    thought = [{"type": "reasoning", "reasoning": "well"}, {"type": "text", "text": "Yes."}]
    cases: list[tuple[Any, str, tuple[str, ...]]] = [
        ("Yes.", "stop", ("ok", "Yes.", "", "")),
        ("Yes", "max_tokens", ("truncated", "Yes", "", "max_tokens")),
        (" ", "stop", ("unparsed", " ", "", "empty answer")),
        ("No.", "content_filter", ("refused", "No.", "", "content_filter")),
        (refusal, "stop", ("refused", "I will not.", "", "refusal")),
        ("Yes.", "unknown", ("unparsed", "Yes.", "", "stop_reason unknown")),
        ("<think>well</think>Yes.", "stop", ("ok", "Yes.", "well", "")),
        (thought, "stop", ("ok", "Yes.", "well", "")),
    ]
    for content, reason, expected in cases:
        choice = {"message": {"content": content}, "stop_reason": reason}
        response = response_of(msgspec.convert({"choices": [choice]}, Output), plain=False)
        assert (response.status, response.text, response.reasoning, response.reason) == expected
    none = response_of(Output(error="HTTP 400"), plain=False)
    assert (none.status, none.reason) == ("error", "HTTP 400")


def test_repeats_are_epochs_and_equal_prompts_one_question() -> None:
    benchmark = load_benchmark("mirae", {"levels": "1-2", "samples": 3})
    samples, _ = read_samples(benchmark, "mirae", ["starter"], None, 2)
    questions = make_questions(benchmark, samples)
    assert [len(question.epochs) for question in questions] == [3] * 4
    assert [question.id for question in questions] == [sample.id for sample in samples]
    rgb = load_benchmark("rgb", OPTIONS)
    repeated, _ = read_samples(rgb, "rgb", ["starter"], None, 2)
    assert [[s.id for s in question.samples] for question in make_questions(rgb, repeated)] == [
        [f"en-{n}-no answer in the documents", f"en-{n}-no answer in the documents-repeat2"] for n in (0, 1)
    ]


def test_export_says_what_to_install_where_inspect_is_not(tmp_path: Path) -> None:
    if importlib.util.find_spec("inspect_ai"):
        pytest.skip("inspect-ai is installed here")
    run = score(write_json(tmp_path / "log.json", make_log()), tmp_path / "run")
    outcome = evenkeel("export", run.path, "--to", "inspect", "--out", tmp_path / "log.eval")
    assert outcome.code == 2
    assert "pip install inspect-ai" in outcome.stderr

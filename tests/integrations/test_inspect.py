"""Inspect's tasks, against the real inspect-ai: what it measures is what Sealegs measures.

inspect-ai has an environment of its own, which `make inspect` makes. Everything is asked of one server, first
by Sealegs and then by Inspect, which is run twice: by its command, and by a script (evaluated.py).
"""

from __future__ import annotations

import os
import re
import subprocess
import zlib
from inspect import getsource
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

import sealegs as sl
from scripted import Scripted
from sealegs.analysis.others import load_results

ROOT = Path(__file__).parents[2]
VENV = Path(os.environ.get("SEALEGS_INSPECT_VENV", ROOT / ".venv-inspect"))
RGB: dict[str, Any] = {"limit": 1, "ability": "noise,rejection,counterfactual", "noise_rates": "0,0.8"}
MIRAE: dict[str, Any] = {"limit": 2, "levels": "1-2", "repeats": 3}
MULTIVIEW: dict[str, Any] = {"limit": 1}
MIRON: dict[str, Any] = {"limit": 8, "confidence": "no"}
JUDGED: dict[str, Any] = {"limit": 2, "ability": "rejection", "repeats": 2}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (VENV / "bin" / "inspect").exists(), reason=f"inspect-ai is not installed in {VENV}: make inspect"
    ),
]


class Answering(Scripted):
    """Answers by the prompt and, where MIRAE asks, by how often it was asked; refuses some; counts tokens."""

    def __init__(self) -> None:
        super().__init__(self.text)
        self._varies = False

    def text(self, prompt: str) -> str:
        number = zlib.crc32(prompt.encode())
        if "more_alike" in prompt:
            return f'{{"more_alike": "{("first", "second", "tie")[number % 3]}"}}'
        if "JSON" in prompt:
            return '{"declines": true, "verdict": "yes", "rejects": true}'
        words = re.findall(r"\w+", prompt)
        turn = self.answered[prompt] % 3 if self._varies else 0
        return " ".join(words[number % 3 + turn :: 3][:40]) or "so"

    def _answer(self, path: str, body: Any, key: str) -> bytes:
        usage = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}
        self._varies = body.temperature == 0.7
        if path == "/v1/completions":
            text = f" {self.text(body.prompt)}"
            self.answered[body.prompt] += 1
            choice = {"index": 0, "text": text, "finish_reason": "stop", "logprobs": None}
            return msgspec.json.encode({"id": "1", "model": "loop", "choices": [choice], "usage": usage})
        reply = msgspec.json.decode(super()._answer(path, body, key))
        if "choices" in reply:
            closed_book = "from what you know" in str(body.messages)
            reply["choices"][0]["finish_reason"] = "content_filter" if closed_book else "stop"
            reply["usage"] = usage
        return msgspec.json.encode(reply)


class Evaluated(NamedTuple):
    folder: Path
    runs: dict[str, sl.Run]
    inspect: dict[str, Any]
    printed: str


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> Evaluated:
    folder = tmp_path_factory.mktemp("inspect")
    with Answering() as server:
        embedder: dict[str, Any] = {"embedder": f"openai:e?base_url={server.url}"}
        judge = f"openai:m?base_url={server.url}"
        common: dict[str, Any] = {"progress": False}
        model = {**common, "model": "openai:m", "base_url": server.url}
        runs = {
            "rgb": sl.run("rgb", **model, out=folder / "rgb", **RGB),
            "mirae": sl.run("mirae", **model, out=folder / "mirae", **MIRAE, **embedder),
            "miron": sl.run("miron", **model, out=folder / "miron", **MIRON),
            "judged": sl.run("rgb", **model, out=folder / "judged", **JUDGED, judge=judge),
            "multiview": sl.run(
                "multiview",
                **common,
                out=folder / "multiview",
                method=[f"j=judge:{judge}", "bm25"],
                **MULTIVIEW,
            ),
        }
        chat, completions = "openai-api/loop/m", "openai-api-completions/loop/m"
        methods = {"method": ["j=judge:inspect", "bm25"]}
        jobs = {
            "tasks": {
                "mirae": _job("mirae", chat, MIRAE, embedder),
                "miron": _job("miron", completions, MIRON),
                "judged": _job("rgb", chat, JUDGED, {"judge": "inspect"}),
                "multiview": _job("multiview", chat, MULTIVIEW, methods),
                "chat": _job("miron", chat, {**MIRON, "limit": 1}),
            },
            "exported": ["rgb", "mirae", "multiview", "judged"],
        }
        environment = {**os.environ, "LOOP_API_KEY": "x", "LOOP_BASE_URL": server.url, "NO_COLOR": "1"}
        environment |= {"PYTHONPATH": str(ROOT / "src"), "INSPECT_DISPLAY": "plain"}
        flags = [part for name, value in RGB.items() for part in ("-T", f"{name}={value}")]
        command: list[Any] = [VENV / "bin" / "inspect", "eval", "sealegs/rgb", "--model", chat, *flags]
        command += ["--log-dir", folder / "logs" / "rgb", "--epochs", "2"]
        evaluating = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        script: list[Any] = [VENV / "bin" / "python", Path(__file__).with_name("evaluated.py"), folder]
        results = subprocess.run(
            script, env=environment, input=msgspec.json.encode(jobs), capture_output=True, check=False
        )
        printed, _ = evaluating.communicate()
        assert evaluating.returncode == 0, printed
        assert results.returncode == 0, results.stderr.decode()
    return Evaluated(folder, runs, msgspec.json.decode(results.stdout), " ".join(printed.split()))


def _job(benchmark: str, model: str, *parameters: dict[str, Any]) -> dict[str, Any]:
    merged = {name: value for each in parameters for name, value in each.items()}
    return {"benchmark": benchmark, "model": model, "parameters": merged}


def values(run: sl.Run) -> dict[str, dict[str, float | None]]:
    return {record.sample.id: dict(record.score.values) for record in run.records()}


def close(value: float | None) -> Any:
    """Answers to one prompt came in another order: sums of float32 differ in their last digits."""
    return value if value is None else pytest.approx(value, abs=2e-6)


@pytest.mark.parametrize("name", ["mirae", "miron", "judged", "multiview"])
def test_the_metrics_of_a_task_are_the_figures_of_a_run(name: str, evaluated: Evaluated) -> None:
    metrics, run = evaluated.inspect[name]["metrics"], evaluated.runs[name]
    assert len(run.summary.keys() & metrics.keys()) > 5
    for metric, figure in run.summary.items():
        if metric in metrics:
            assert metrics[metric]["value"] == close(figure.value)
            if figure.low is not None:
                assert metrics[f"{metric} (low)"]["value"] == close(figure.low)
                assert metrics[f"{metric} (high)"]["value"] == close(figure.high)
    headlines = [name for name, figure in run.headlines.items() if figure.value is not None]
    assert all(name in metrics for name in headlines)
    assert evaluated.inspect[name]["headline"] == headlines[0]
    assert metrics["coverage"]["value"] == pytest.approx(_coverage(run))


def _coverage(run: sl.Run) -> float:
    scores = [record.score for record in run.records()]
    return sum(s.answered for s in scores) / sum(sum(s.statuses.values()) for s in scores)


def test_the_command_of_inspect_runs_a_task_and_prints_its_figures(evaluated: Evaluated) -> None:
    assert "macro_lenient" in evaluated.printed
    assert "published (low)" in evaluated.printed
    assert "not found" not in evaluated.printed
    # The benchmark asks each prompt once: what --epochs adds is not asked, and said once.
    assert evaluated.printed.count("further epochs ask nothing") == 1


@pytest.mark.parametrize("name", ["miron", "judged", "multiview"])
def test_a_score_has_the_values_that_a_run_gives_the_sample(name: str, evaluated: Evaluated) -> None:
    expected = values(evaluated.runs[name])
    compared = 0
    for sample in evaluated.inspect[name]["samples"]:
        repeat = f"-repeat{sample['epoch']}" if sample["epoch"] > 1 else ""
        for metric, value in sample["values"].items():
            if metric != "answered":
                assert value == close(expected[f"{sample['id']}{repeat}"][metric]), (sample["id"], metric)
                compared += 1
    assert compared > 10


def test_epochs_are_the_repeats_and_their_reduction_has_the_prompts_values(evaluated: Evaluated) -> None:
    expected, result = values(evaluated.runs["mirae"]), evaluated.inspect["mirae"]
    assert sorted(sample["epoch"] for sample in result["samples"]) == sorted([1, 2, 3] * 4)
    for sample, reduced in result["reductions"].items():
        assert {"drift", "chance_floor"}.isdisjoint(reduced)  # they depend on other prompts
        for metric in ("mean_similarity", "min_similarity", "std_similarity", "estimated_tokens"):
            assert reduced[metric] == close(expected[sample][metric])
    assert result["metrics"]["answered"]["value"] == 1


def test_a_judge_is_inspects_model_and_its_talk_is_in_the_log(evaluated: Evaluated) -> None:
    sample = evaluated.inspect["multiview"]["samples"][0]
    assert len(sample["messages"]) == 4  # both orders, each with its verdict
    assert "more_alike" in sample["messages"][1]


def test_a_chat_is_refused_where_a_text_is_to_be_continued(evaluated: Evaluated) -> None:
    errors = [sample["error"] for sample in evaluated.inspect["chat"]["samples"]]
    assert errors
    assert all("puts every text into a chat" in error for error in errors)
    assert evaluated.inspect["chat"]["metrics"]["coverage"]["value"] == 0


@pytest.mark.parametrize("name", ["rgb", "mirae", "multiview", "judged"])
def test_an_exported_run_is_read_by_inspect(name: str, evaluated: Evaluated) -> None:
    run, log = evaluated.runs[name], evaluated.inspect[f"{name}-exported"]
    assert log["status"] == "success"
    assert log["task"] == f"sealegs/{run.spec.benchmark}"
    headlines = [name for name, figure in run.headlines.items() if figure.value is not None]
    error = log["metrics"].pop("stderr", {"value": None})["value"]
    assert (error is None) == (run.headlines[headlines[0]].low is None)
    assert log["stderr"] == error
    for metric, figure in log["metrics"].items():
        ours = run.summary[metric]
        assert figure["value"] == ours.value
        assert figure["metadata"]["ci"] == ([ours.low, ours.high] if ours.low is not None else None)
        assert figure["metadata"]["coverage"] == ours.coverage
    assert set(headlines) <= set(log["metrics"])
    assert log["headline_name"] == headlines[0]
    assert log["frame"]["messages"] == sum(len(sample["messages"]) for sample in log["samples"])
    assert name == "multiview" or {"assistant", "user"} <= set(log["frame"]["roles"])  # it tests no model


def test_an_exported_run_has_repeats_as_epochs_errors_usage_and_words(evaluated: Evaluated) -> None:
    log = evaluated.inspect["mirae-exported"]
    assert sorted(sample["epoch"] for sample in log["samples"]) == sorted([1, 2, 3] * 4)
    counted = {name: count for name, count in log["usage"]["openai:m"].items() if count is not None}
    assert counted == {"input_tokens": 84, "output_tokens": 60, "total_tokens": 144}
    for sample in log["samples"]:
        assert sample["messages"][-1] == sample["answer"]
        assert "mean_similarity" in sample["explanation"]
    refused = [
        s
        for s in evaluated.inspect["rgb-exported"]["samples"]
        if "- refused: content_filter" in s["explanation"]
    ]
    assert len(refused) == 1
    judged = evaluated.inspect["judged-exported"]["samples"]
    assert {sample["epoch"] for sample in judged} == {1, 2}
    assert all(sample["messages"][-1] == sample["answer"] for sample in judged)


def values_of(run: Any) -> dict[str, dict[str, float | None]]:
    """The values of each sample by its name."""
    columns = run.columns
    return {
        sample: {
            name: None if values[row] != values[row] else float(values[row])
            for name, values in columns.values.items()
            if columns.measured[name][row]
        }
        for row, sample in enumerate(columns.ids)
    }


READ = f"""
import sys, msgspec
from typing import Any
{getsource(values_of)}
from sealegs.analysis.comparison import compare
from sealegs.analysis.others import load_results
[run] = load_results(sys.argv[1])
groups = dict(zip(run.columns.ids, run.columns.groups))
units = {{metric.name: metric.unit for metric in run.layout.metrics}}
same = compare(sys.argv[1], sys.argv[2]).differences
found = [values_of(run), groups, units, [each.difference for each in same]]
sys.stdout.buffer.write(msgspec.json.encode(found))
"""


def test_logs_of_own_tasks_are_compared_by_sample(evaluated: Evaluated, tmp_path: Path) -> None:
    """Read as Inspect packs them, and as JSON without Inspect."""
    log = evaluated.inspect["judged"]["log"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    dumped = tmp_path / "log.json"
    command: list[Any] = [VENV / "bin" / "inspect", "log", "dump", log]
    dumped.write_bytes(subprocess.run(command, env=environment, capture_output=True, check=True).stdout)
    reading: list[Any] = [VENV / "bin" / "python", "-c", READ, log, dumped]
    done = subprocess.run(reading, env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    found, groups, units, differences = msgspec.json.decode(done.stdout)
    records = {record.sample.id: record for record in evaluated.runs["judged"].records()}
    assert groups == {sample_id: records[sample_id].sample.group for sample_id in groups}
    epochs: dict[str, dict[str, list[float]]] = {}
    for sample in evaluated.inspect["judged"]["samples"]:
        for name, value in (sample["values"] or {}).items():
            epochs.setdefault(sample["id"], {}).setdefault(name, []).append(value)
    for sample_id, by_metric in epochs.items():
        known = {name: [value for value in each if value is not None] for name, each in by_metric.items()}
        means = {name: sum(each) / len(each) if each else None for name, each in known.items()}
        assert found[sample_id] == pytest.approx(means)
    assert "share" in units.values()
    assert [each for each in differences if each] == []
    [run] = load_results(dumped)
    assert values_of(run) == found

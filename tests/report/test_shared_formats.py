"""Runs in the formats of other projects, checked by what those projects themselves read."""

from __future__ import annotations

import json
import os
import sys
import zipfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from commandline import sealegs
from loopback import Loopback
from runs import run_small
from sealegs.errors import DataError, UsageError
from sealegs.harness.folder import Run
from sealegs.report.export import export
from sealegs.report.formats.every_eval_ever import SCHEMA
from triplets import store_tools

pytestmark = pytest.mark.slow

BENCHMARKS = ("mirae", "rgb", "miron", "multiview")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """A run of each benchmark; of RGB's requests some fail for good."""
    folder = tmp_path_factory.mktemp("runs")
    with Loopback(words=12) as server:
        made = {
            "mirae": run_small("mirae", folder / "mirae", server, model="openai:org/loop", limit=3),
            "miron": run_small("miron", folder / "miron", server, limit=40),
            "multiview": run_small(
                "multiview", folder / "multiview", server, data=store_tools(folder),
                method=["bm25", "embed:openai:embed"],
            ),
        }  # fmt: skip
        server.behaviour.fail, server.behaviour.faults = 0.3, ("400",)
        made["rgb"] = run_small("rgb", folder / "rgb", server, limit=8)
    return made


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    """The schema of the package every-eval-ever, taken out of its wheel: it needs a later Python."""
    folder = Path(os.environ.get("SEALEGS_WHEELS", Path(sys.prefix) / "wheels"))
    wheels = sorted(folder.glob(f"every_eval_ever-{SCHEMA}-*.whl"))
    if not wheels:
        pytest.skip(f"no wheel of every-eval-ever {SCHEMA} in {folder}: `make` downloads it")
    with zipfile.ZipFile(wheels[0]) as wheel:
        return dict(json.loads(wheel.read("every_eval_ever/schemas/eval.schema.json")))


def logs(paths: list[Path]) -> list[dict[str, Any]]:
    return [json.loads(path.read_bytes()) for path in paths]


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_every_eval_ever_takes_the_records(
    benchmark: str, runs: dict[str, Run], schema: dict[str, Any], tmp_path: Path
) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft7Validator(schema, format_checker=jsonschema.FormatChecker())
    for log in logs(export(runs[benchmark], "every-eval-ever", tmp_path)):
        assert [error.message for error in validator.iter_errors(log)] == []
        ids = {result["evaluation_result_id"] for result in log["evaluation_results"]}
        assert len(ids) == len(log["evaluation_results"])


def test_every_figure_is_a_record_with_its_interval(runs: dict[str, Run], tmp_path: Path) -> None:
    for benchmark, run in runs.items():
        _check_records(benchmark, run, logs(export(run, "every-eval-ever", tmp_path / benchmark)))


def _check_records(benchmark: str, run: Run, written: list[dict[str, Any]]) -> None:
    results = [result for log in written for result in log["evaluation_results"]]
    figures = [figure for figure in run.summary.values() if figure.value is not None]
    if run.subjects:
        figures = [figure for figure in figures if run.subject in figure.scope]
    assert len(results) == len(figures)
    known = {(f.metric, f.value, f.low, f.high, f.n, f.coverage) for f in figures}
    for result in results:
        score = result["score_details"]
        interval = score["uncertainty"].get("confidence_interval", {"lower": None, "upper": None})
        config = result["metric_config"]
        name = config["metric_id"].removeprefix(f"sealegs.{benchmark}.")
        coverage = json.loads(score["details"]["coverage"])
        limits = interval["lower"], interval["upper"]
        assert (name, score["score"], *limits, score["uncertainty"]["num_samples"], coverage) in known
        low, high = (float(config[name].replace("Infinity", "inf")) if isinstance(config[name], str)
                     else config[name] for name in ("min_score", "max_score"))  # fmt: skip
        assert low <= score["score"] <= high


def test_what_is_known_of_the_model_and_the_sampling_is_there(runs: dict[str, Run], tmp_path: Path) -> None:
    mirae = logs(export(runs["mirae"], "every-eval-ever", tmp_path / "a"))[0]
    assert mirae["model_info"]["id"] == "org/loop"
    assert mirae["model_info"]["additional_details"]["deployment_type"] == "unknown"
    config = mirae["evaluation_results"][0]["generation_config"]
    assert config["generation_args"] == {"temperature": 0.7, "max_tokens": 256}
    assert config["additional_details"] == {}  # the server got no seed
    miron = logs(export(runs["miron"], "every-eval-ever", tmp_path / "b"))[0]
    assert miron["model_info"]["id"] == "unspecified/loop"
    multiview = logs(export(runs["multiview"], "every-eval-ever", tmp_path / "c"))
    assert [log["model_info"]["id"] for log in multiview] == ["unspecified/bm25", "unspecified/embed"]


def test_the_same_run_gives_the_same_files(runs: dict[str, Run], tmp_path: Path) -> None:
    first, second = (export(runs["rgb"], "every-eval-ever", tmp_path / name) for name in ("a", "b"))
    assert [path.relative_to(tmp_path / "a") for path in first] == [
        path.relative_to(tmp_path / "b") for path in second
    ]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


# The Hugging Face Hub


def test_the_hub_reads_the_results_back(runs: dict[str, Run], tmp_path: Path) -> None:
    hub = pytest.importorskip("huggingface_hub")
    for benchmark, run in runs.items():
        _check_hub(hub, run, export(run, "hub", tmp_path / benchmark))


def _check_hub(hub: Any, run: Run, paths: list[Path]) -> None:
    from huggingface_hub.repocard_data import model_index_to_eval_results

    for entries, card in zip(paths[::2], paths[1::2], strict=True):
        assert entries.parent.name == ".eval_results"
        stored = yaml.safe_load(entries.read_text())
        read = hub.parse_eval_result_entries(stored)
        assert hub.eval_result_entries_to_yaml(read) == stored
        name, results = model_index_to_eval_results(yaml.safe_load(card.read_text())["model-index"])
        assert [each.metric_value for each in results] == [entry.value for entry in read]
        assert [each.metric_type for each in results] == [entry.task_id for entry in read]
        scope = {"method": name} if run.subjects else {}
        for result in results:
            if not scope:
                figure = run.summary[result.metric_type]
                assert (result.metric_value, result.metric_args["low"]) == (figure.value, figure.low)
        text = f"---\n{card.read_text()}---\n# A model\n"
        assert hub.ModelCard(text).data.eval_results == results


def test_results_of_another_model_are_not_overwritten(runs: dict[str, Run], tmp_path: Path) -> None:
    _, card = export(runs["rgb"], "hub", tmp_path)
    export(runs["rgb"], "hub", tmp_path)
    card.write_text(card.read_text().replace("name: ", "name: another-", 1))
    with pytest.raises(UsageError, match="another model"):
        export(runs["rgb"], "hub", tmp_path)


def test_a_data_set_that_is_not_on_the_hub_is_a_placeholder(runs: dict[str, Run], tmp_path: Path) -> None:
    entries, _ = export(runs["rgb"], "hub", tmp_path)
    text = entries.read_text()
    assert text.startswith("# Replace OWNER/rgb by the data set of the Hub")
    headline = yaml.safe_load(text)[0]
    figure = runs["rgb"].headline
    assert headline["value"] == figure.value
    assert f"95% interval {figure.low:.4g} to {figure.high:.4g}" in headline["notes"]
    assert f"coverage {figure.coverage:.1%}" in headline["notes"]


def test_published_data_of_the_hub_is_named(runs: dict[str, Run], tmp_path: Path) -> None:
    run = runs["miron"]
    spec = msgspec.structs.replace(run.spec, data={**run.spec.data, "source": "published"})
    copy = tmp_path / "run"
    copy.mkdir()
    for name in ("records.jsonl", "summary.json"):
        (copy / name).write_bytes((run.path / name).read_bytes())
    (copy / "spec.json").write_bytes(msgspec.json.encode(spec))
    entries, _ = export(Run(copy), "hub")
    assert yaml.safe_load(entries.read_text())[0]["dataset"]["id"] == "apsua/MIRON_Benchmark"
    source = logs(export(Run(copy), "every-eval-ever"))[0]["evaluation_results"][0]["source_data"]
    assert (source["source_type"], source["hf_repo"]) == ("hf_dataset", "apsua/MIRON_Benchmark")


def test_the_command_line_writes_below_the_run(runs: dict[str, Run]) -> None:
    run = runs["multiview"]
    for form in ("every-eval-ever", "hub"):
        done = sealegs("export", run.path, "--to", form)
        assert done.code == 0
        written = [Path(line) for line in done.stdout.split("\n") if line]
        assert all(path.is_file() and path.is_relative_to(run.path / "export" / form) for path in written)


def test_a_link_in_the_folder_is_not_followed(runs: dict[str, Run], tmp_path: Path) -> None:
    run = runs["mirae"]
    (run.path / "export" / "hub").symlink_to(tmp_path)
    with pytest.raises(DataError, match="this is a link"):
        export(run, "hub")
    assert list(tmp_path.iterdir()) == []
    (run.path / "export" / "hub").unlink()

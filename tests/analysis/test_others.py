"""Results of other harnesses, compared: files that inspect-ai 0.3.285 and lm-eval 0.4.13 wrote, and tables.

The tasks are tiny sums and number words. What the comparison says is computed here again, with scipy.
"""

from __future__ import annotations

import csv
import json
import math
import re
import shutil
import zipfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from commandline import sealegs
from present import limits, present
from sealegs.analysis.comparison import Difference, compare
from sealegs.analysis.gate import gate
from sealegs.analysis.others import load_results
from sealegs.errors import DataError, UsageError
from sealegs.files.others.values import LARGEST_FILE_BYTES
from sealegs.report.scorecard import scorecard

FILES = Path(__file__).parent / "others"
A, B = FILES / "inspect" / "a.json", FILES / "inspect" / "b.json"
DOCUMENTATION = Path(__file__).parents[2] / "docs" / "compare-others.md"
LM_A, LM_B = FILES / "lm-eval" / "model-a", FILES / "lm-eval" / "model-b"


class Expected:
    """A paired difference by scipy: Student's t over the means of equal groups, for shares on Fisher's z."""

    def __init__(self, changes: Mapping[str, Sequence[float]], *, share: bool) -> None:
        assert len({len(each) for each in changes.values()}) == 1, "groups of one size"
        means = np.array([np.mean(each) for each in changes.values()])
        self.difference, error = float(means.mean()), float(stats.sem(means))
        groups, moves = len(means), (means - means.mean()) ** 2
        df: float = groups - 1
        self.detectable = math.nan
        if not share:
            low, high = stats.t.interval(0.95, df, self.difference, error)
            self.low, self.high = float(low), float(high)
            self.p = float(stats.ttest_1samp(means, 0).pvalue)
            return
        kurtosis = max(0.0, float((moves**2).sum() / moves.sum() ** 2) - 3 / groups)
        df = 1 / (1 / df + kurtosis / 2)
        z, error_z = math.atanh(self.difference), error / (1 - self.difference**2)
        half = float(stats.t.ppf(0.975, df)) * error_z
        self.low, self.high = math.tanh(z - half), math.tanh(z + half)
        self.p = 2 * float(stats.t.sf(abs(z) / error_z, df))
        self.detectable = float(stats.t.ppf(0.975, df) + stats.t.ppf(0.8, df)) * error

    def check(self, difference: Difference) -> None:
        assert difference.difference == pytest.approx(self.difference, abs=1e-12)
        assert limits(difference) == pytest.approx((self.low, self.high), rel=1e-6)
        assert difference.p == pytest.approx(self.p, rel=1e-6)


def difference(*sources: Path, metric: str, **settings: Any) -> Difference:
    [only] = compare(*sources, metrics=metric, **settings).differences
    return only


def inspect_changes() -> dict[str, list[float]]:
    """B − A of `match` by group, the mean over epochs, from the files themselves."""
    means = []
    for path in (A, B):
        epochs = defaultdict(list)
        for sample in json.loads(path.read_text())["samples"]:
            right = sample["scores"]["match"]["value"] == "C"
            epochs[sample["metadata"]["group"], sample["id"]].append(right)
        means.append({key: float(np.mean(marks)) for key, marks in epochs.items()})
    changes = defaultdict(list)
    for (group, sample_id), value in means[0].items():
        changes[group].append(means[1][group, sample_id] - value)
    return changes


def test_two_logs_of_inspect_are_compared_as_scipy_computes_it() -> None:
    expected = Expected(inspect_changes(), share=True)
    found = difference(A, B, metric="match")
    expected.check(found)
    assert found.detectable == pytest.approx(expected.detectable, rel=1e-6)
    assert (found.n, found.clusters, found.outcome) == (20, 10, "worse")


def test_all_metrics_of_a_log_are_compared_with_holms_correction() -> None:
    comparison = compare(A, B)
    assert comparison.metrics == ("match", "distance")
    match, distance = comparison.differences
    p = match.p or 0, distance.p or 0
    assert match.p_holm == p[0], "the first is tested alone"
    assert distance.p_holm == (2 * p[1] if p[1] < p[0] else max(2 * p[0], p[1]))
    assert distance.outcome == "higher", "Inspect does not say which direction is better"


def test_samples_that_inspect_could_not_score_lower_the_coverage() -> None:
    distance = difference(A, B, metric="distance")
    assert (distance.n, distance.coverage_b) == (18, 0.9)


def test_folders_of_lm_eval_are_compared_as_scipy_computes_it() -> None:
    scores = []
    for folder in (LM_A, LM_B):
        [file] = folder.glob("*/samples_tiny_words_*.jsonl")
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        scores.append({x["doc_id"]: x["exact_match"] for x in lines if x["filter"] == "strict"})
    changes = {str(doc): [scores[1][doc] - scores[0][doc]] for doc in scores[0]}
    Expected(changes, share=True).check(difference(LM_A, LM_B, metric="exact_match,strict"))


def test_samples_of_lm_eval_are_clustered_by_the_group_of_their_documents() -> None:
    found = difference(LM_A, LM_B, metric="acc")
    assert (found.n, found.clusters) == (24, 12)


def test_a_metric_of_lm_eval_that_is_no_number_is_left_out_and_named() -> None:
    comparison = compare(LM_A, LM_B)
    assert comparison.metrics == ("acc", "exact_match,strict", "exact_match,flexible")
    assert "tiny/model-a: brier_score is not one number for each sample" in comparison.notes


def lm_eval_folder(folder: Path, tasks: Mapping[str, Sequence[float]]) -> Path:
    """Samples as lm-eval writes them, with one metric whose lower values are better."""
    folder.mkdir(parents=True)
    date = "2026-01-31T10-00-00.000000"
    for task, values in tasks.items():
        lines = [
            {"doc_id": i, "doc": {}, "filter": "none", "metrics": ["loss"], "doc_hash": str(i), "loss": value}
            for i, value in enumerate(values)
        ]
        text = "".join(f"{json.dumps(line)}\n" for line in lines)
        (folder / f"samples_{task}_{date}.jsonl").write_text(text)
    about = {"model_name": folder.name, "higher_is_better": {task: {"loss": False} for task in tasks}}
    (folder / f"results_{date}.json").write_text(json.dumps(about))
    return folder


def test_several_tasks_count_the_same_whatever_their_size(tmp_path: Path) -> None:
    old = lm_eval_folder(tmp_path / "old", {"long": [1.0, 2.0] * 20, "short": [3.0, 5.0] * 4})
    new = lm_eval_folder(tmp_path / "new", {"long": [1.5, 2.5] * 20, "short": [5.0, 6.0] * 4})
    found = difference(old, new, metric="loss")
    assert found.difference == pytest.approx((0.5 + 1.5) / 2)
    assert found.outcome == "worse"
    rows = compare(old, new, by="task").differences
    assert [row.metric for row in rows] == ["loss", "loss/task=long", "loss/task=short"]
    assert [row.difference for row in rows[1:]] == [0.5, 1.5]


def table(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def graded(seed: int = 0, count: int = 40, drop: float = 0.4) -> list[dict[str, Any]]:
    noise = np.random.default_rng(seed)
    rows = []
    for i in range(count):
        grade = noise.normal(6, 1)
        for model, change in (("old", 0.0), ("new", -drop)):
            value = round(float(grade + change + noise.normal(0, 0.3)), 3)
            rows.append({"id": f"q{i}", "model": model, "metric": "grade", "score": value})
    return rows


def test_one_table_of_two_models_is_compared_as_a_paired_t_test(tmp_path: Path) -> None:
    rows = graded()
    found = difference(table(tmp_path / "grades.csv", rows), metric="grade")
    by_model = [[row["score"] for row in rows if row["model"] == model] for model in ("old", "new")]
    tested = stats.ttest_rel(by_model[1], by_model[0])
    assert found.p == pytest.approx(float(tested.pvalue), rel=1e-9)
    assert limits(found) == pytest.approx(limits(tested.confidence_interval(0.95)), rel=1e-9)


def test_the_same_rows_give_the_same_whatever_the_format(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    rows = graded()
    expected = difference(table(tmp_path / "grades.csv", rows), metric="grade")
    (tmp_path / "grades.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    polars.DataFrame(rows).write_parquet(tmp_path / "grades.parquet")
    for ending in ("jsonl", "parquet"):
        assert difference(tmp_path / f"grades.{ending}", metric="grade") == expected


def test_a_gate_fails_a_drop_of_twice_the_minimum_detectable(tmp_path: Path) -> None:
    noise = np.random.default_rng(4)
    before, after = noise.normal(6, 1, 60), noise.normal(0, 0.5, 60)

    def files(drop: float) -> tuple[Path, Path]:
        values = {"old": before, "new": before + after - after.mean() - drop}
        rows = {name: [{"id": i, "score": v} for i, v in enumerate(each)] for name, each in values.items()}
        return table(tmp_path / "new.csv", rows["new"]), table(tmp_path / "old.csv", rows["old"])

    minimum = present(difference(*files(0.0), metric="score").detectable)
    assert not gate(*files(2 * minimum)).passed
    assert gate(*files(0.0)).passed


def test_of_two_hundred_equal_pairs_at_most_five_in_a_hundred_fail(tmp_path: Path) -> None:
    noise, failed = np.random.default_rng(1), 0
    for _ in range(200):
        chance = noise.beta(4, 2, 60)
        new, old = (
            table(tmp_path / f"{name}.csv", [{"id": i, "score": int(v)} for i, v in enumerate(values)])
            for name, values in zip(("new", "old"), noise.random((2, 60)) < chance, strict=True)
        )
        failed += not gate(new, old).passed
    assert failed <= 10


def test_the_direction_of_a_metric_that_no_file_states_is_the_persons(tmp_path: Path) -> None:
    path = table(tmp_path / "grades.csv", graded())
    new, old = Path(f"{path}::new"), Path(f"{path}::old")
    assert not gate(new, old).passed
    assert gate(new, old, higher_is_worse=True).passed


def test_the_gate_leaves_with_1_on_a_drop_and_2_on_what_cannot_be_compared(tmp_path: Path) -> None:
    assert sealegs("gate", B, "--baseline", A).code == 1
    assert sealegs("gate", A, "--baseline", B).code == 0
    path = table(tmp_path / "grades.csv", graded())
    done = sealegs("gate", path, "--baseline", f"{path}::old")
    assert done.code == 2
    assert "has the results of several models. Give one of:" in " ".join(done.stderr.split())
    assert sealegs("gate", f"{path}::new", "--baseline", f"{path}::other").code == 2
    assert sealegs("compare", A, LM_A).code == 2


def test_a_scorecard_shows_the_results_of_one_model() -> None:
    [entry] = scorecard([A]).entries
    assert (entry.benchmark, entry.headline.title) == ("inspect:sums", "match")
    assert entry.headline.figure.value == 0.925
    assert [line.title for line in entry.facts] == ["distance"]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('"input": "', '"input": "Tell me: ', "20 of 20 shared samples ask different things: sum-0"),
        ('"task": "sums"', '"task": "products"', "inspect:sums and inspect:products cannot be compared"),
    ],
)
def test_logs_of_other_samples_or_tasks_are_refused(tmp_path: Path, old: str, new: str, problem: str) -> None:
    (tmp_path / "b.json").write_text(json.dumps(json.loads(B.read_text())).replace(old, new))
    with pytest.raises(UsageError, match=problem):
        compare(A, tmp_path / "b.json")


def test_a_sample_that_failed_is_no_wrong_answer(tmp_path: Path) -> None:
    log = json.loads(B.read_text())
    for sample in log["samples"]:
        if sample["id"] == "sum-0":  # in both epochs
            sample |= {"scores": None, "error": {"message": "timeout"}}
    log["status"] = "error"
    (tmp_path / "b.json").write_text(json.dumps(log))
    [run] = load_results(tmp_path / "b.json")
    assert (run.headline.n, run.headline.coverage) == (19, 0.95)
    assert "mockllm/b: Inspect gives its status as 'error'" in compare(A, tmp_path / "b.json").notes


@pytest.mark.parametrize(
    ("name", "text", "error"),
    [
        ("a.csv", "id,score\n1,0.5\n1,0.7\n", "line 3: the id '1' duplicates line 2"),
        ("a.csv", "id,score\n1,high\n", "line 2: the score is not a number"),
        ("a.csv", "id,score\n1,inf\n", "line 2: the score is not a number"),
        ("a.csv", "id,value\n1,1\n", "line 2: the field 'score' is missing. Available: id, value"),
        ("a.csv", "id,score\n", "there is no row in it"),
        ("a.csv", "id,score\n1,\n2,nan\n", "no sample in it has a score"),
        ("a.json", '{\n "eval": {"task": "t"', "line 2: this is not JSON"),
        ("a.json", '{"eval": {"task": "t"}}', "model"),
        ("a.json", '{"eval": {"task": "t", "model": "m"}, "samples": null}', "no sample in it has a score"),
        ("a.json", '{"eval": ' + "[" * 600 + "]" * 600 + "}", "nested more than 500 levels"),
        ("a.jsonl", '{"doc_id": 0, "metrics": ["acc"]}\n', "line 1: the field 'acc' is missing"),
        ("a.jsonl", '{"doc_id": 0, "metrics": ["acc"], "acc": 1}\n' * 2, "line 2: document 0 appears twice"),
        ("a.jsonl", '{"doc_id": 0, "metrics": ["acc"], "acc": 1}\n{"doc_id"\n', "line 2: this is not JSON"),
        ("a.eval", "PK", "this is not a log of Inspect"),
        ("a.txt", "id,score\n1,1\n", "a.txt"),
    ],
)
def test_a_damaged_file_is_an_error_that_names_the_place(
    tmp_path: Path, name: str, text: str, error: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=error):
        load_results(tmp_path / name)


def test_what_is_read_is_bounded(tmp_path: Path) -> None:
    rows = [{"id": 1, "metric": f"m{i}", "score": 1} for i in range(201)]
    with pytest.raises(DataError, match="more than 200 metrics"):
        load_results(table(tmp_path / "a.csv", rows))
    with (tmp_path / "large.json").open("wb") as file:
        file.truncate(LARGEST_FILE_BYTES + 1)  # sparse: it takes no room
    with pytest.raises(DataError, match=r"it has 1,073,741,825 bytes; at most 1,073,741,824 are read"):
        load_results(tmp_path / "large.json")
    with zipfile.ZipFile(tmp_path / "bomb.eval", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", " ")
        archive.infolist()[0].file_size = LARGEST_FILE_BYTES + 1
    with pytest.raises(DataError, match="it has 1,073,741,825 bytes"):
        load_results(tmp_path / "bomb.eval")


def test_a_packed_log_names_the_package_that_reads_it(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.eval", "w") as archive:
        archive.writestr("header.json", "{}")
    done = sealegs("compare", tmp_path / "a.eval", A)
    assert done.code == 2
    assert "needs the package 'inspect-ai'" in " ".join(done.stderr.split())


def test_two_results_of_one_task_in_a_folder_are_refused(tmp_path: Path) -> None:
    folder = shutil.copytree(next(LM_A.iterdir()), tmp_path / "model")
    [file] = folder.glob("samples_tiny_words_*")
    shutil.copy(file, file.with_name("samples_tiny_words_2026-12-01T00-00-00.000000.jsonl"))
    with pytest.raises(DataError, match="one task has several results"):
        load_results(folder)


def test_names_with_a_meaning_here_are_changed(tmp_path: Path) -> None:
    rows = [{"id": i, "metric": "pass@1/strict", "score": 1} for i in range(6)]
    [run] = load_results(table(tmp_path / "a.csv", rows))
    assert list(run.summary) == ["pass-at-1:strict"]


def test_the_examples_of_the_documentation_are_what_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FILES)
    blocks = re.findall(r"```console\n\$ sealegs (.+)\n([^`]+)```", DOCUMENTATION.read_text())
    assert len(blocks) == 3
    for command, output in blocks:
        assert sealegs(*command.split()).stdout == output

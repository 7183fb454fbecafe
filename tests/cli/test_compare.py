"""`compare` and `gate` at the terminal: two runs of one model, and one of a damaged model."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import numpy as np
import pytest

from commandline import sealegs
from sealegs.analysis.comparison import Comparison
from stored import store_run

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs `first` and `again` of one model, and `damaged`, whose answers are less alike."""
    folder = tmp_path_factory.mktemp("runs")
    noise = np.random.default_rng(0)
    questions = noise.normal(0.8, 0.05, (12, 1))
    for name, drop in (("first", 0.0), ("again", 0.0), ("damaged", 0.3)):
        similar = questions - drop + noise.normal(0, 0.02, (12, 3))
        store_run(folder / name, {"mean_similarity": similar, "judged_entropy": 1 - similar})
    return folder


def test_reruns_do_not_differ_significantly_and_a_damaged_model_does(runs: Path) -> None:
    done = sealegs("compare", runs / "first", runs / "again", runs / "damaged")
    assert done.code == 0
    assert re.search(r"^first +again +no clear difference ", done.output, re.MULTILINE)
    assert re.search(r"^first +damaged +B is worse .* < 0\.001", done.output, re.MULTILINE)


def test_two_runs_are_shown_metric_by_metric_with_nothing_cut_off(runs: Path) -> None:
    pair = (runs / "first", runs / "damaged")
    done = sealegs("compare", *pair)
    title = r"^Similarity of the answers' texts \(SBERT cosine\)"
    row = rf"{title} +B is worse +0\.\d+ +0\.\d+ +−0\.\d+ +\[−0\.\d+, −0\.\d+\] +< 0\.001"
    assert re.search(row, done.output, re.MULTILINE)
    assert "Semantic entropy" in done.output
    words = " ".join(done.output.split())  # lines are wrapped
    assert "paired tests over questions (logit t" in words
    assert "36 prompts from 12 questions" in words
    assert "…" not in done.output
    assert "\x1b" not in done.output
    as_json = sealegs("compare", *pair, "--metric", "mean_similarity/level=2", "--json")
    comparison = msgspec.json.decode(as_json.stdout, type=Comparison)
    assert comparison.metrics == ("mean_similarity/level=2",)
    assert comparison.differences[0].n == 12
    assert comparison.differences[0].different


# The gate


def test_the_gate_passes_on_a_rerun_and_fails_on_a_damaged_model(runs: Path) -> None:
    again = sealegs("gate", runs / "again", "--baseline", runs / "first")
    assert again.code == 0
    assert "no significant drop; minimum detectable" in again.output
    damaged = sealegs("gate", runs / "damaged", "--baseline", runs / "first", "--max-drop", "0.05")
    assert damaged.code == 1
    first, *_ = damaged.output.splitlines()
    assert first.startswith("FAIL  Similarity of the answers' texts (SBERT cosine) went from 0.")
    assert first.endswith("a significant drop of more than 0.050; 36 prompts from 12 questions")


@pytest.fixture
def hostile(tmp_path: Path) -> tuple[str | Path, ...]:
    """A gate that fails on runs whose folder has a name to trip over."""
    folder = tmp_path / 'a <b> & "c"\n::error::%x\x01'
    rising = np.linspace(0.5, 0.9, 24).reshape(8, 3)
    for name, values in (("old", rising), ("new", rising * 0.5)):
        store_run(folder / name, {"mean_similarity": values}, lang="e\nn")
    return "gate", folder / "new", "--baseline", folder / "old"


def test_junit_is_xml_with_a_case_for_each_check(hostile: tuple[str | Path, ...], tmp_path: Path) -> None:
    done = sealegs(*hostile, "--format", "junit", "--out", tmp_path / "gate.xml")
    assert done.code == 1
    assert done.output.startswith("FAIL  Similarity of the answers' texts (SBERT cosine)")
    suites = ElementTree.parse(tmp_path / "gate.xml").getroot()
    [suite] = suites
    assert (suites.tag, suite.get("tests"), suite.get("failures")) == ("testsuites", "2", "1")
    assert [case.get("name") for case in suite] == ["coverage", "mean_similarity"]
    assert '<b> & "c"' in str(suite[0].get("classname"))
    failure = suite[1].find("failure")
    assert failure is not None
    assert "a significant drop" in str(failure.get("message"))
    assert "::error::%x␁" in str(failure.text)


def test_github_has_an_annotation_for_each_check_and_no_other(hostile: tuple[str | Path, ...]) -> None:
    metric = "mean_similarity/lang=e%0An,level=1"
    done = sealegs(*hostile, "--format", "github", "--metric", "mean_similarity", "--metric", metric)
    lines = done.output.splitlines()
    assert [line.split(" ")[0] for line in lines] == ["::notice", "::error", "::error"]
    assert lines[0].startswith(
        "::notice title=sealegs gate%3A coverage::coverage 100%25 (of Similarity of the answers' texts"
    )
    assert "title=sealegs gate%3A mean_similarity/lang=e%250An%2Clevel=1::" in lines[2]


def test_markdown_is_a_table_in_which_nothing_is_markup(hostile: tuple[str | Path, ...]) -> None:
    done = sealegs(*hostile, "--format", "markdown")
    title, _, head, _, *rows = done.output.splitlines()
    assert title.startswith("# Gate FAILED: ")
    assert "a &lt;b\\> &amp; " in title
    assert "␊::error::%x␁" in title
    assert head == "|  | check | reason |"
    assert [row.split(" | ")[:2] for row in rows] == [
        ["| FAIL", "Similarity of the answers' texts (SBERT cosine)"], ["| pass", "coverage"],
    ]  # fmt: skip


def test_a_difference_that_is_unclear_for_the_number_of_comparisons_says_so(tmp_path: Path) -> None:
    noise = np.random.default_rng(8).normal(0, 0.05, (3, 12, 1))
    for name, values in zip("abc", noise + np.array([0.6, 0.6, 0.64])[:, None, None], strict=True):
        store_run(tmp_path / name, {"mean_similarity": np.repeat(values, 2, axis=1)})
    words = " ".join(sealegs("compare", *(tmp_path / name for name in "abc")).output.split())
    unclear = (
        r"no clear difference \(c 0\.\d+, a 0\.\d+; difference \+0\.\d+, 95% interval \+0\.\d+ to \+0\.\d+ "
    )
    assert re.search(
        rf"{unclear}by itself; with Holm's correction for several comparisons p = 0\.\d+\)", words
    )

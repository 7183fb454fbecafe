"""multiview: methods that order triplets, each against what the test computes by hand."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sealegs as sl
from commandline import sealegs
from loopback import Loopback
from sealegs.api import dry_run
from sealegs.benchmarks.multiview.benchmark import Multiview
from sealegs.benchmarks.multiview.data import Triplet
from sealegs.benchmarks.multiview.make.generator import compose
from stored import undeclared
from triplets import named, picks, store, triplet

pytestmark = pytest.mark.slow

EMBEDDER = "embed:embedded-embedder"
TASKS = ("math__arithmetic", "math__setting", "stories__plot", "stories__setting")
EACH = 8


@pytest.fixture(scope="module")
def starter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return store(tmp_path_factory.mktemp("starter") / "triplets.jsonl", compose(0, EACH))


@pytest.fixture(scope="module")
def side_by_side(starter: Path, tmp_path_factory: pytest.TempPathFactory) -> sl.Run:
    """The starter's documents by words and by vectors."""
    out = tmp_path_factory.mktemp("run") / "run"
    return sl.run("multiview", data=starter, method=["bm25", EMBEDDER], out=out)


# By words and by vectors


def test_bm25_is_the_formula_over_the_documents_of_a_task(side_by_side: sl.Run, starter: Path) -> None:
    triplets = [Triplet(**json.loads(line)) for line in starter.read_text().splitlines()]
    found = picks(side_by_side, "bm25")
    for task in TASKS:
        own = [t for t in triplets if t.task == task]
        score = bm25({text for t in own for text in t.documents})
        margins = [score(t.anchor, t.positive) - score(t.anchor, t.negative) for t in own]
        assert min(map(abs, margins)) > 1e-6
        wanted = [["positive" if margin > 0 else "negative"] for margin in margins]
        assert [found[f"{task}-{n:04d}"] for n in range(1, EACH + 1)] == wanted
        right = sum(margin > 0 for margin in margins) / EACH
        figure = side_by_side.summary[named("accuracy", "bm25", task)]
        assert (figure.value, figure.n, figure.coverage) == (right, EACH, 1.0)


def bm25(documents: Iterable[str]) -> Callable[[str, str], float]:
    """BM25 in Lucene's form, by loops: k1 = 1.5, b = 0.75."""
    counts = {text: Counter(re.findall(r"\w+", text.lower())) for text in documents}
    mean = sum(words.total() for words in counts.values()) / len(counts)
    holding = Counter(word for words in counts.values() for word in words)

    def score(query: str, text: str) -> float:
        total = 0.0
        for word, times in counts[query].items():
            idf = math.log(1 + (len(counts) - holding[word] + 0.5) / (holding[word] + 0.5))
            norm = 1.5 * (0.25 + 0.75 * counts[text].total() / mean)
            total += times * idf * counts[text][word] / (counts[text][word] + norm)
        return total

    return score


def test_the_summary_compares_methods_in_pairs(side_by_side: sl.Run) -> None:
    summary = side_by_side.summary
    # There is no one figure of two methods, but there is the coverage of both: no failure goes unseen.
    headline, first = side_by_side.headline, summary[named("accuracy", "bm25")]
    assert (headline.value, headline.low, headline.high) == (None, None, None)
    assert sum(headline.statuses.values()) == 2 * sum(first.statuses.values())
    assert list(side_by_side.headlines) == [named("both_ways", method) for method in ("bm25", EMBEDDER)]
    assert not any("accuracy" in record.score.values for record in side_by_side.records())
    assert undeclared(side_by_side) == []
    assert summary[named("ties", "bm25", TASKS[0])].n == EACH
    assert not any(name.startswith("flips") for name in summary)
    by_words, by_vectors = (picks(side_by_side, method) for method in ("bm25", EMBEDDER))
    differences = np.array(
        [(by_vectors[name] == ["positive"]) - int(by_words[name] == ["positive"]) for name in by_words]
    )
    figure = summary[f"minus_first/method={EMBEDDER}"]
    assert figure.value == pytest.approx(differences.mean())
    assert (figure.n, figure.unit) == (4 * EACH, "share")
    assert figure.clusters <= 2 * EACH  # each document is in two triplets
    assert "minus_first/method=bm25" not in summary
    first_task = summary[f"minus_first/task={TASKS[0]},method={EMBEDDER}"]
    assert first_task.value == pytest.approx(differences[:EACH].mean())


def test_results_and_triplets_are_exported(side_by_side: sl.Run, starter: Path) -> None:
    export = side_by_side.path / "export"
    assert {path.name for path in export.iterdir()} == {"results.json", "triplets.jsonl"}
    results = json.loads((export / "results.json").read_text())
    assert list(results) == ["methods", "tasks"]
    assert list(results["methods"]) == ["bm25", EMBEDDER]
    assert sorted(results["tasks"]) == sorted(TASKS)
    for method in ("bm25", EMBEDDER):
        for task, found in (("", results["methods"]), *results["tasks"].items()):
            own = [picked for name, picked in picks(side_by_side, method).items() if task in name]
            right = own.count(["positive"])
            assert found[method] == {
                "correct": right, "ties": 0, "total": len(own), "accuracy": right / len(own),
            }  # fmt: skip
    roles = ("anchor", "positive", "negative")
    fields = [*roles, *(f"{role}_id" for role in roles), "criterion", "quality", "task", "description"]
    given = [json.loads(line) for line in starter.read_text().splitlines()]
    lines = [json.loads(line) for line in (export / "triplets.jsonl").read_text().splitlines()]
    assert all(list(line)[:11] == [*fields, "hard_for"] for line in lines)
    assert Counter(line["anchor"] for line in lines) == Counter(line["anchor"] for line in given)


def test_documents_that_are_alike_are_a_tie_and_not_correct(tmp_path: Path) -> None:
    reordered = triplet(1, negative="1 good of tools__use")
    data = store(tmp_path / "t.jsonl", [triplet(0, anchor="good tools"), reordered])
    with Loopback() as server:
        options: dict[str, Any] = {"method": ["bm25", "embed:openai:loop"], "base_url": server.url}
        run = sl.run("multiview", data=data, out=tmp_path / "run", **options)
    for method in ("bm25", "embed:openai:loop"):
        assert picks(run, method)["tools__use-0002"] == ["tie"]
        assert run.summary[named("ties", method)].value == 0.5
        assert run.summary[named("accuracy", method)].n == 2
    results = json.loads((run.path / "export" / "results.json").read_text())
    assert results["methods"]["bm25"] == {"correct": 1, "ties": 1, "total": 2, "accuracy": 0.5}


# The command line, limits and notes


def test_no_model_is_needed_and_one_is_refused(
    tools: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ("run", "multiview", "--data", tools, "--out", tmp_path / "run")
    assert sealegs(*given, "--model", "embedded").code == 2
    assert "takes no --model: --method" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
    assert sealegs(*given).code == 0
    assert "Triplet accuracy of bm25" in capsys.readouterr().out
    assert not sl.load_run(tmp_path / "run").spec.models


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (("--method", "bm26"), "Did you mean 'bm25'? Available: bm25, embed:SPEC"),
        (("--method", "rerank:embedded-embedder"), "must be able to rank"),
        (("--base-url", "http://127.0.0.1:9/v1"), "--base-url"),
    ],
)
def test_a_wrong_value_is_refused_at_the_command_line(
    wrong: Sequence[str], says: str, tools: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    given = ("run", "multiview", "--data", tools, "--out", tmp_path / "run")
    assert sealegs(*given, *wrong).code == 2
    assert says in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "run").exists()


def test_a_limit_holds_for_each_task(tools: Path, tmp_path: Path) -> None:
    run = sl.run("multiview", data=tools, limit=3, out=tmp_path / "run")
    assert [record.sample.id for record in run.records()] == [
        "tools__use-0001", "tools__use-0002", "tools__use-0003", "tools__age-0001", "tools__age-0002",
    ]  # fmt: skip


def test_a_dry_run_counts_what_each_method_asks_at_most(tmp_path: Path) -> None:
    # The same three documents under two criteria, and three more under one of them.
    same = {"anchor": "a", "positive": "b", "negative": "c"}
    data = store(
        tmp_path / "t.jsonl", [triplet(0, **same), triplet(1), triplet(2, task="tools__age", **same)]
    )

    def counted(*methods: str) -> dict[str, int]:
        return dry_run("multiview", data=data, method=list(methods)).requests

    assert counted("bm25") == {}
    assert counted("embed:openai:x") == {"embed": 6}
    assert counted("embed:openai:x+instruct") == {"embed": 9}
    assert counted("rewrite:openai:y+embed:openai:x") == {"generate": 9, "embed": 9}
    assert counted("rerank:sbert:x") == {"rank": 6}
    assert counted("judge:openai:y", "judge:openai:y+logprobs") == {"generate": 12, "loglikelihood": 12}


def test_triplets_built_against_bm25_are_told_where_bm25_is_a_method(
    side_by_side: sl.Run, tmp_path: Path
) -> None:
    methods, linked = Multiview.notes(side_by_side.spec, side_by_side.summary)
    assert "bm25: BM25 of the anchor against each document" in methods.text
    independent = side_by_side.summary[named("accuracy", "bm25")].clusters
    assert f"these {4 * EACH} amount to {independent} independent ones" in linked.text
    data = store(tmp_path / "t.jsonl", [triplet(0, hard_for="bm25"), triplet(1, task="tools__age")])
    by_words = sl.run("multiview", data=data, out=tmp_path / "by_words")
    *_, note = Multiview.notes(by_words.spec, by_words.summary)
    assert note.text.endswith("BM25 cannot be compared there: tools: use.")
    with Loopback() as server:
        options: dict[str, Any] = {"method": ["embed:openai:loop"], "base_url": server.url}
        other = sl.run("multiview", data=data, out=tmp_path / "other", **options)
    (methods,) = Multiview.notes(other.spec, other.summary)
    assert methods.text.startswith("The methods. embed:openai:loop: cosine of the embeddings")

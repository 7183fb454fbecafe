"""Leaderboards: which runs share a board, who shares a rank, and the same tests as `compare`."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import numpy as np
import pytest

import sealegs as sl
from present import present
from scripted import Scripted
from sealegs.analysis.comparability import run_names
from sealegs.analysis.leaderboard import Leaderboard
from sealegs.benchmarks.mirae.benchmark import Mirae
from sealegs.errors import UsageError
from stored import headline, noisy, store_pair, store_run
from triplets import named, store, triplet

pytestmark = pytest.mark.slow


def store_model(path: Path, shift: float, seed: int, **spec: object) -> sl.Run:
    return store_run(path, {"mean_similarity": noisy(shift, seed=seed)}, model=path.name, **spec)  # type: ignore[arg-type]


def ranks(board: Leaderboard) -> dict[str, int | None]:
    return {row.name: row.rank for row in board.rows}


def test_a_rank_is_one_more_than_the_number_of_entries_that_are_better(tmp_path: Path) -> None:
    runs = [store_model(tmp_path / f"m{n}", shift, n) for n, shift in enumerate((0.0, 0.1, 0.1005, -0.2))]
    [board] = sl.leaderboard(runs)
    assert ranks(board) == {"m1": 1, "m2": 1, "m0": 3, "m3": 4}
    assert [row.rank for row in board.rows] == [1, 1, 3, 4]
    assert {row.name: row.figure for row in board.rows} == {run.spec.subject: run.headline for run in runs}
    assert "1 shared" in repr(board)
    close = [store_model(tmp_path / f"c{n}", shift, n) for n, shift in enumerate((0.0, 0.009, 0.0, 0.0))]
    assert min(each.p or 1.0 for each in sl.compare(*close).differences) < 0.05  # before the correction
    assert {row.rank for row in sl.leaderboard(close)[0].rows} == {1}


def test_lower_is_better_where_the_metric_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [store_model(tmp_path / f"m{n}", shift, n) for n, shift in enumerate((0.0, 0.1))]
    layout = Mirae.layout
    metric = msgspec.structs.replace(layout.metrics[0], better="lower")
    lower = msgspec.structs.replace(layout, metrics=(metric, *layout.metrics[1:]), for_run=None)
    monkeypatch.setattr(Mirae, "layout", lower)
    [board] = sl.leaderboard(runs)
    assert [(row.name, row.rank) for row in board.rows] == [("m0", 1), ("m1", 2)]


def test_runs_that_were_asked_other_things_have_a_board_of_their_own(tmp_path: Path) -> None:
    alike = [store_model(tmp_path / f"m{n}", n / 10, n) for n in range(2)]
    hotter = store_model(tmp_path / "hot", 0.0, 7, options={"temperature": 1.0})
    others = store_model(tmp_path / "other", 0.0, 8, asks="Another")
    boards = sl.leaderboard([alike[0], hotter, others, alike[1]])
    assert [[row.name for row in board.rows] for board in boards] == [["m1", "m0"], ["hot"], ["other"]]
    assert "Temperature: A 0.7, B 1.0" in boards[1].note
    assert "60 of 60 shared prompts ask different things" in boards[2].note
    assert boards[0].note == ""
    assert len({board.title for board in boards}) == 1  # numbers are for those that rank
    with pytest.raises(UsageError):
        sl.compare(alike[0], others)


def test_runs_with_another_limit_are_tested_on_the_questions_that_both_have(tmp_path: Path) -> None:
    runs = [
        store_run(tmp_path / model, headline(noisy(shift, seed=questions)[:questions]), model=model)
        for model, shift, questions in (("all", 0.0, 20), ("half", 0.1, 10))
    ]
    assert sl.compare(*runs).differences[0].clusters == 10
    [board] = sl.leaderboard(runs)
    assert [(row.name, row.rank, row.figure.clusters) for row in board.rows] == [
        ("half", 1, 10),
        ("all", 2, 20),
    ]


def test_a_folder_that_cannot_be_read_is_named_and_the_others_are_ranked(tmp_path: Path) -> None:
    store_model(tmp_path / "whole", 0.0, 1)
    broken = store_model(tmp_path / "broken", 0.0, 2)
    (broken.path / "records.jsonl").write_bytes(b'{"sample": 5}\n')
    unfinished = store_model(tmp_path / "unfinished", 0.0, 3)
    (unfinished.path / "summary.json").unlink()
    changed = store_model(tmp_path / "changed", 0.0, 4)  # its headline is not the mean of its samples
    figure = msgspec.structs.replace(changed.headline, value=0.99)
    (changed.path / "summary.json").write_bytes(msgspec.json.encode({"mean_similarity": figure}))
    two = store_model(tmp_path / "two", 0.0, 5)
    spec = msgspec.structs.replace(two.spec, subjects=("two", "subjects"))
    (two.path / "spec.json").write_bytes(msgspec.json.encode(spec))
    names = ("missing", "broken", "whole", "unfinished", "changed", "two", "whole")
    boards = sl.leaderboard([tmp_path / name for name in names])
    assert [[row.name for row in board.rows] for board in boards] == [["whole"], []]
    for name in ("missing", "broken", "unfinished", "changed", "two"):
        assert str(tmp_path / name) in boards[-1].note
    assert "line 1" in boards[-1].note


def test_a_run_without_a_value_has_no_rank_and_is_last(tmp_path: Path) -> None:
    runs = [store_model(tmp_path / f"m{n}", n / 10, n) for n in range(2)]
    runs.append(store_run(tmp_path / "none", {"mean_similarity": noisy() * np.nan}, model="none"))
    [board] = sl.leaderboard(runs)
    assert [(row.name, row.rank) for row in board.rows] == [("m1", 1), ("m0", 2), ("none", None)]
    assert re.search('<td class="warn"[^>]*>⚠ 0%', board._repr_html_().replace("\n", ""))
    assert board._repr_html_().count("⚠") == 1


def test_methods_of_runs_are_entries_of_their_own(tmp_path: Path) -> None:
    """Two methods of one run against each other as its summary has them, and against those of another run."""
    triplets = [triplet(n, positive=f"good {n} anchor" if n % 3 else f"good {n}") for n in range(40)]
    data = store(tmp_path / "triplets.jsonl", triplets)

    with Scripted(lambda prompt: '{"more_alike": "first"}') as server:
        method = ["bm25", "judge:openai:one"]
        both = sl.run("multiview", out=tmp_path / "both", data=data, method=method, base_url=server.url)
        alone = sl.run("multiview", out=tmp_path / "alone", data=data, method=["bm25"])
    judged = method[1]
    assert present(both.summary[named("minus_first", judged)].p) < 0.05
    [board] = sl.leaderboard([both])
    assert board.counted == "triplets"
    accuracy = {name: both.summary[named("accuracy", name)].value or 0.0 for name in method}
    assert [row.name for row in board.rows] == sorted(method, key=accuracy.__getitem__, reverse=True)
    assert [row.rank for row in board.rows] == [1, 2]
    [board] = sl.leaderboard([both, alone])
    assert set(ranks(board)) == {"bm25 (both)", "bm25 (alone)", judged}
    assert ranks(board)["bm25 (both)"] == ranks(board)["bm25 (alone)"]
    values = {row.figure.value for row in board.rows if row.name != judged}
    assert values == {alone.summary[named("accuracy", "bm25")].value}


def test_one_path_in_place_of_a_list_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="takes a list"):
        sl.leaderboard(str(tmp_path))


def test_entries_are_named_by_their_model_also_where_a_model_has_several_runs(tmp_path: Path) -> None:
    folders = ("one/mirae", "two/mirae", "other")
    runs = [
        store_run(tmp_path / folder, {"mean_similarity": noisy(n / 10, seed=n)}, model=model)
        for n, (folder, model) in enumerate(zip(folders, ("m", "m", "o"), strict=True))
    ]
    [board] = sl.leaderboard(runs[:2])
    assert {row.name for row in board.rows} == set(run_names(runs[:2])) == {"m (one/mirae)", "m (two/mirae)"}
    [board] = sl.leaderboard(runs)
    assert {row.name for row in board.rows} == {"o", *run_names(runs[:2])}


def test_a_server_that_repeats_itself_is_named_where_runs_are_set_side_by_side(tmp_path: Path) -> None:
    cached = {"mean_similarity": np.ones((20, 3)), "identical_answers": np.ones((20, 3))}
    varied = {"mean_similarity": np.full((20, 3), 0.9), "identical_answers": np.zeros((20, 3))}
    runs = store_pair(tmp_path, cached, varied, model="b")
    said = "one: 100% of the prompts got the same text every time."
    assert said in sl.compare(*runs).notes
    assert sl.leaderboard(runs)[0].note == said


def test_a_difference_that_only_the_correction_undoes_has_too_few_questions(tmp_path: Path) -> None:
    """Alone the two differ with p = 0.03; of three pairs the correction makes 0.09 of it."""
    steps = np.tile([0.0, 0.0107], 10).reshape(20, 1)
    base = np.linspace(0.6, 0.8, 20).reshape(20, 1)
    runs = [
        store_run(tmp_path / name, {"mean_similarity": values}, model=name)
        for name, values in (("a", base), ("b", base + steps - 0.0025), ("c", base + 0.9 * steps - 0.0024))
    ]
    assert sl.compare(*runs[:2]).differences[0].p == pytest.approx(0.03, abs=0.015)
    assert sl.leaderboard(runs[:2])[0].lead.startswith("b is best")
    [board] = sl.leaderboard(runs)
    assert ("a", "b") in board.undecided
    assert board.lead.startswith("Too few questions to rank")
    assert "not after the correction for 3 pairs" in " ".join(board.footnotes)


def test_no_run_ranks_above_one_with_a_better_value(tmp_path: Path) -> None:
    """`wild` is worst, and so uneven that it does not differ significantly even from the best."""
    wild = np.where(np.arange(20) % 2, 1.0, 0.4).reshape(20, 1)
    values = {"best": noisy(seed=1)[:, :1] + 0.1, "next": noisy(seed=2)[:, :1], "wild": wild}
    runs = [store_run(tmp_path / name, headline(each), model=name) for name, each in values.items()]
    pairs = {(each.a, each.b): each.different for each in sl.compare(*runs).differences}
    assert pairs == {("best", "next"): True, ("best", "wild"): False, ("next", "wild"): False}
    [board] = sl.leaderboard(runs)
    assert [(row.name, row.rank) for row in board.rows] == [("best", 1), ("next", 2), ("wild", 2)]
    assert board.lead == "best and wild do not differ significantly (0.70 to 0.83)."
    assert board.footnotes == ["Ranked by value, though not significantly worse than some runs above: wild."]


def test_neighbours_of_different_rank_need_not_differ(tmp_path: Path) -> None:
    values = {name: noisy(0.006 * n, seed=n) for n, name in enumerate("cba")}
    runs = [store_run(tmp_path / name, headline(each), model=name) for name, each in values.items()]
    pairs = {(each.a, each.b): each.different for each in sl.compare(*runs).differences}
    assert pairs == {("c", "b"): False, ("c", "a"): True, ("b", "a"): False}
    [board] = sl.leaderboard(runs)
    assert [(row.name, row.rank) for row in board.rows] == [("a", 1), ("b", 1), ("c", 2)]
    shown = " ".join(repr(board).split())
    assert "A model's rank is one more than the number of models that are significantly better" in shown
    assert "share a rank" not in shown


def test_a_model_that_is_never_right_ranks_last(tmp_path: Path) -> None:
    """Against one that is nearly always right all pairs but one differ alike, and all models are compared."""
    right = {"most": 39, "some": 20, "few": 4, "none": 0}
    runs = [
        store_run(tmp_path / name, {"mean_similarity": np.zeros((40, 1)),
                  "right_every_time": (np.arange(40) < count).astype(float).reshape(40, 1)}, model=name)
        for name, count in right.items()
    ]  # fmt: skip
    [board] = sl.leaderboard(runs, metric="right_every_time")
    assert [row.name for row in board.rows] == [*right]
    assert [row.rank for row in board.rows] == [1, 2, 3, 3]
    assert board.undecided == ()


def test_a_board_can_be_by_another_metric(tmp_path: Path) -> None:
    values = np.random.default_rng(1).normal(0.8, 0.02, (20, 3))
    low, high = ({"mean_similarity": values + up, "refusals": values - 0.5 + up} for up in (0.0, 0.1))
    runs = store_pair(tmp_path, low, high, model="two")
    [board] = sl.leaderboard(runs, metric="refusals")
    assert board.metric == "refusals"
    assert [row.name for row in board.rows] == ["one", "two"]  # lower is better
    assert [row.name for row in sl.leaderboard(runs, metric={"rgb": "refusals"})[0].rows] == ["two", "one"]
    [left_out] = sl.leaderboard(runs, metric="speed")
    assert "mirae has no metric 'speed'. Available: mean_similarity" in left_out.note

"""RGB with models of known behaviour: figures, sentences and ranks are true in every wording."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from known_models.rgb import Dial, Known, play
from known_models.wordings import WORDINGS
from present import holds
from sealegs import api
from sealegs.analysis.comparison import compare
from sealegs.analysis.gate import gate
from sealegs.analysis.leaderboard import leaderboard
from sealegs.harness.folder import Run
from sealegs.page.metrics import scope_name

LIMIT = 20
SHARE = re.compile(r"(\d+)%")


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("known") / "rgb"
    api.build("rgb", folder, seed=11, lang="en,zh")
    return folder


def check_figures(known: Known) -> int:
    """Every figure whose truth is known has the true value, inside its interval; how many there are."""
    for name, truth in known.truth.items():
        figure = known.run.summary[name]
        assert figure.value == pytest.approx(truth), (name, known.misread(name))
        assert holds(figure, truth), name
    return len(known.truth)


def check_sentences(known: Known) -> int:
    """The verdict says the true accuracy, every share in it is one of this run, and every line beside it of
    which the truth is known says that; how many sentences and lines there are."""
    verdict, truth = known.run.verdict, known.truth["macro_lenient"]
    assert verdict.startswith(f"Right in {round(100 * truth)}%, averaged over four abilities"), verdict
    shown = {f"{100 * value:.0f}" for value in known.shares()}
    assert set(SHARE.findall(verdict)) - {"95"} <= shown, verdict
    lines = [
        (title, figure)
        for title, figure in known.run.layout.main_figures(known.run.summary)
        if scope_name(figure.metric, figure.scope) in known.truth
    ]
    for title, figure in lines:
        assert figure.value == pytest.approx(known.truth[scope_name(figure.metric, figure.scope)]), title
    return len(verdict.split(". ")) + len(lines)


@pytest.mark.parametrize("wording", WORDINGS)
def test_a_model_is_as_right_as_it_is_in_every_wording(wording: str, data: Path, tmp_path: Path) -> None:
    known = play(data, tmp_path / "run", Dial(0.7, 0.6, declines=0.5, reports=0.5), WORDINGS[wording], LIMIT)
    assert check_figures(known) >= 15
    assert check_sentences(known) >= 8


@pytest.mark.parametrize("right", [0.0, 0.25, 0.5, 0.75, 1.0])
def test_the_headline_follows_the_dial(right: float, data: Path, tmp_path: Path) -> None:
    known = play(data, tmp_path / "run", Dial(right, right), WORDINGS["paraphrase"], LIMIT)
    assert known.run.headline.value == pytest.approx(right)
    check_figures(known)
    check_sentences(known)


def test_a_model_that_declines_everything_is_described_as_such(data: Path, tmp_path: Path) -> None:
    known = play(data, tmp_path / "run", Dial(0.0, 1.0, declines=1.0), WORDINGS["paraphrase"], LIMIT)
    check_figures(known)
    assert "declined" in known.run.verdict


@pytest.fixture(scope="module")
def three(data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Known]:
    """A model that is right in 82 % and words it otherwise, one in 88 % that reasons aloud, one in 33 %."""
    folder = tmp_path_factory.mktemp("three")
    dials = {"other forms": 0.82, "reasoning aloud": 0.88, "plain": 0.33}
    return {
        name: play(data, folder / name, Dial(right, right), WORDINGS[name], 50)
        for name, right in dials.items()
    }


def test_the_published_check_ranks_by_wording_and_the_headline_by_truth(three: dict[str, Known]) -> None:
    (board,) = leaderboard([known.run for known in three.values()])
    values = [row.figure.value or 0.0 for row in board.rows]
    truths = sorted((known.truth["macro_lenient"] for known in three.values()), reverse=True)
    assert values == pytest.approx(truths)
    published = {name: known.run.summary["macro_published"].value or 0.0 for name, known in three.items()}
    assert published["other forms"] < 0.6  # what the exact words see of a model that is right in 82 %


@pytest.mark.parametrize("better", ["other forms", "reasoning aloud"])
def test_comparison_and_gate_side_with_the_truth(better: str, three: dict[str, Known]) -> None:
    worse = three["plain"].run
    first_line = compare(three[better].run, worse).overview().verdicts[0]
    assert re.search(r"B is (significantly )?worse|A is (significantly )?better", first_line), first_line
    assert not gate(worse, three[better].run).passed
    assert gate(three[better].run, worse).passed


def test_repeats_tell_a_steady_model_from_one_that_flips_a_coin(data: Path, tmp_path: Path) -> None:
    """Both are right in half of the answers; one always in the same half."""
    dials = {"steady": Dial(0.5, 0.5, steady=True), "coin": Dial(0.5, 0.5)}
    runs: dict[str, Run] = {}
    for name, dial in dials.items():
        runs[name] = play(data, tmp_path / name, dial, WORDINGS["plain"], 10, repeats=4).run
    k4 = {name: run.summary["pass_hat_k/k=4"].value for name, run in runs.items()}
    assert k4["steady"] == pytest.approx(0.5)
    assert k4["coin"] == pytest.approx(0.0)

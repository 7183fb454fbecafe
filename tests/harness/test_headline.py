"""The headline of a run is chosen by its benchmark; runs that differ in it are compared by the usual one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import pytest
from msgspec import Meta, Struct
from msgspec.structs import replace

import sealegs as sl
from plugins import Words, install, write_words
from sealegs.harness.benchmark import make_score
from sealegs.options import IN_SAMPLES
from sealegs.page.layout import Layout
from sealegs.report.samples.flips import flips
from sealegs.types import Answered, RunSpec, Summary

METRICS = (
    sl.Metric("lenient", "Said in any case", "share", "higher", main=True),
    sl.Metric("strict", "Said to the letter", "share", "higher", main=True),
)


class Options(Struct, frozen=True, kw_only=True):
    to_the_letter: Annotated[bool, Meta(description="which metric leads", extra=IN_SAMPLES)] = False


def strict_share(summary: Summary) -> list[str]:
    return [f"To the letter it is {summary['strict'].value:.0%}."]


LAYOUT = Layout(metrics=METRICS, question="?", verdict="Said in {}", remarks=strict_share)
STRICT_LAYOUT = replace(LAYOUT, metrics=METRICS[::-1], verdict="Written in {}", remarks=None)


def chosen_layout(spec: RunSpec, summary: Summary) -> Layout:
    return STRICT_LAYOUT if spec.options["to_the_letter"] and "strict" in summary else LAYOUT


class Repeat(Words):
    """Does it repeat the word?"""

    Options = Options
    metrics = METRICS
    layout = replace(LAYOUT, for_run=chosen_layout)

    def score(self, answered: Sequence[Answered]) -> Any:
        pairs = [(item, item.sample.inputs["word"]) for item in answered]
        return [
            make_score(item, lenient=item.text.lower() == word, strict=item.text == word)
            for item, word in pairs
        ]


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, sl.Run]:
    """A run of each model with each headline."""
    install(monkeypatch, repeat=Repeat)
    data = write_words(tmp_path / "words.jsonl", ((f"word{number}", "en") for number in range(40)))
    settings: dict[str, Any] = {"data": data, "progress": False}
    made = {}
    for model, strict in product(("loud", "quiet"), (False, True)):
        name = f"{model}-{'strict' if strict else 'lenient'}"
        made[name] = sl.run("repeat", f"rule:{model}", to_the_letter=strict, out=tmp_path / name, **settings)
    return made


def test_a_benchmark_chooses_the_headline_of_a_run(runs: dict[str, sl.Run]) -> None:
    lenient, strict = runs["loud-lenient"], runs["loud-strict"]
    assert (lenient.layout.headline, lenient.headline.value) == ("lenient", 1.0)
    assert (strict.layout.headline, strict.headline.value) == ("strict", 0.0)
    assert lenient.verdict.endswith(". To the letter it is 0%.")
    assert strict.verdict.startswith("Written in 0 of 40 prompts (95% interval 0% to ")
    listed = {each.path: each for each in sl.list_runs(strict.path.parent)}
    assert (listed[str(strict.path)].metric, listed[str(strict.path)].headline) == ("strict", strict.headline)
    assert len(strict.samples().select(outcome="wrong")) == 40
    assert len(lenient.samples().select(outcome="right")) == 40
    assert sl.scorecard([strict]).entries[0].headline.metric == "strict"
    assert "Said to the letter" in (strict.path / "report.html").read_text()


def test_runs_of_one_headline_are_compared_by_it(runs: dict[str, sl.Run]) -> None:
    loud, quiet = runs["loud-strict"], runs["quiet-strict"]
    assert sl.compare(loud, quiet).metrics[0] == "strict"
    assert [check.name for check in sl.gate(quiet, baseline=loud).checks] == ["coverage", "strict"]
    [board] = sl.leaderboard([loud, quiet])
    assert [row.name for row in board.rows] == ["quiet", "loud"]


def test_runs_that_differ_in_it_are_compared_by_the_usual_one(runs: dict[str, sl.Run]) -> None:
    loud, quiet = runs["loud-strict"], runs["quiet-lenient"]
    comparison = sl.compare(loud, quiet)
    assert (comparison.headline, comparison.metrics[0]) == ("lenient", "lenient")
    assert comparison.differences[0].difference == -0.5
    assert [check.name for check in sl.gate(quiet, baseline=loud).checks] == ["coverage", "lenient"]
    [board] = sl.leaderboard([loud, quiet])
    assert board.metric == "lenient"
    assert [(row.name, row.figure.value) for row in board.rows] == [("loud", 1.0), ("quiet", 0.5)]
    assert {each.difference for each in flips(loud, quiet)} == {0.0, -1.0}
    assert "The runs cannot be paired" not in sl.render(loud, quiet)

"""Whatever draws a run, texts that would do harm are text: every renderer with every one of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from markupsafe import escape

import sealegs as sl
from commandline import sealegs
from loopback import Loopback
from markup import NASTY, Elements, controls, harms, valid_text
from runs import run_small
from sealegs.page.format import escape_controls
from sealegs.report.html_page import render
from sealegs.report.samples.flips import compare_sample
from sealegs.report.scorecard import render as render_scorecard
from sealegs.report.suite import SuiteResult, write_leaderboards

pytestmark = pytest.mark.slow
ASKED = " ".join(NASTY[:-1])
NAME = "<img src=x onerror=alert(1)>\x1b[31m\u202e\x07"
Draw = Callable[[list[sl.Run]], Any]
OBJECTS: dict[str, Draw] = {
    "run": lambda runs: runs[0],
    "charts": lambda runs: sl.charts(*runs),
    "tables": lambda runs: sl.tables(runs[0]),
    "comparison": lambda runs: sl.compare(*runs),
    "gate": lambda runs: sl.gate(runs[1], baseline=runs[0]),
    "leaderboard": lambda runs: sl.leaderboard(runs)[0],
    "scorecard": lambda runs: sl.scorecard(runs),
    "sample": lambda runs: runs[0].samples().view(0),
    "sample in both": lambda runs: compare_sample(runs[0], runs[1], runs[0].samples().index.ids[0]),
}
PAGES: dict[str, Draw] = {
    "report": lambda runs: render(runs[0]),
    "report of both": lambda runs: render(*runs),
    "scorecard": lambda runs: render_scorecard(sl.scorecard(runs), runs[0].path / "card.html"),
    "leaderboard": lambda runs: write_leaderboards(_suite(runs))[0].read_text(),
}
COMMANDS = {"report": "{0}", "compare": "{0} {1}", "gate": "{0} --baseline {1}", "scorecard": "{0} {1}"}


def _suite(runs: list[sl.Run]) -> SuiteResult:
    return SuiteResult(name=NAME, path=str(runs[0].path.parent), runs=(), boards=tuple(sl.leaderboard(runs)))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[sl.Run]:
    folder = tmp_path_factory.mktemp("hostile")
    levels = {f"level_{level}_text": f"{ASKED} {level}" for level in (1, 2)}
    items = [{"question_id": n, "domain": NASTY[0]} | levels for n in range(6)]
    (folder / "q_english.json").write_bytes(msgspec.json.encode({"questions": items}))
    settings: dict[str, Any] = {"data": folder / "q_english.json", "levels": "1-2", "model": f"openai:{NAME}"}
    with Loopback() as server:
        return [run_small("mirae", folder / name, server, **settings) for name in ("one <b>\x1b[31m", "two")]


@pytest.mark.parametrize("name", OBJECTS)
def test_what_a_notebook_and_a_terminal_show_is_text(name: str, runs: list[sl.Run]) -> None:
    drawn = OBJECTS[name](runs)
    html = drawn._repr_html_()
    assert harms(html) == set()
    assert not {*Elements(html).tags} & {"script", "h1"}
    assert valid_text(html)
    assert controls(repr(drawn)) == set()
    if name == "run":
        markdown = drawn.overview().to_markdown()
        assert controls(markdown) == set()
        assert "<img" not in markdown
    if name not in ("charts", "tables"):  # which name no run
        assert "&lt;" in html


@pytest.mark.parametrize("name", PAGES)
def test_a_page_holds_them_as_text(name: str, runs: list[sl.Run]) -> None:
    page = PAGES[name](runs)
    assert harms(page) == set()
    assert Elements(page).tags.count("h1") == 1
    assert Elements(page).tags.count("script") == (3 if name.startswith("report") else 0)
    assert str(escape(escape_controls(NAME)[:20])) in page


@pytest.mark.parametrize("command", COMMANDS)
def test_the_terminal_gets_no_escape(command: str, runs: list[sl.Run], tmp_path: Path) -> None:
    out = ("--out", tmp_path / "x.html") if command in ("report", "scorecard") else ()
    arguments = [part.format(*(run.path for run in runs)) for part in COMMANDS[command].split()]
    done = sealegs(command, *arguments, *out)
    assert done.code in (0, 1), done.stderr
    assert controls(done.output) == set()


def test_the_marks_of_a_template_are_letters(runs: list[sl.Run]) -> None:
    assert "{{ 7 * 7 }}" in str(runs[0].samples().view(0)._repr_html_())

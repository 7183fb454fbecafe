"""The page and the tables: figures as they are, hostile text as text."""

from __future__ import annotations

from html.parser import HTMLParser

import msgspec
import pytest
from rich.console import Console

import evenkeel as ek
from evenkeel.benchmarks import benchmark_class
from evenkeel.report import text
from evenkeel.report.page import render
from evenkeel.report.tables import arrange, side_by_side
from evenkeel.report.terminal import show_run, show_side_by_side
from evenkeel.types import Figure
from loopback import Loopback

LAYOUT = benchmark_class("mirae").layout
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>{{ 7*7 }}\x00\x1b[31m\u202eevil"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> ek.Run:
    """A run whose questions are hostile, in two languages."""
    folder = tmp_path_factory.mktemp("report")
    for lang in ("english", "korean"):
        items = [
            {"question_id": n, "domain": "<b>FACTUAL</b>" if n < 3 else "OPINION",
             **{f"level_{level}_text": f"{HOSTILE} {n} {level} {lang}" for level in (1, 2)}}
            for n in (1, 2, 3, 4)
        ]  # fmt: skip
        path = folder / "data" / f"q_{lang}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(msgspec.json.encode({"questions": items}))
    with Loopback() as server:
        return ek.run(
            "mirae", "openai:<i>loop</i>\x1b[31m", base_url=server.url, data=folder / "data", levels="1-2",
            embedder="openai:embed", out=folder / "run",
        )  # fmt: skip


class Elements(HTMLParser):
    """The tags and attributes that a browser would see."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)


def test_the_page_has_no_script_and_loads_nothing(run: ek.Run) -> None:
    page = (run.path / "report.html").read_text()
    found = Elements(page)
    assert "default-src 'none'" in page
    assert not found.tags & {"script", "img", "link", "iframe", "object", "embed", "form", "b", "i", "a"}
    assert not {name for name in found.attributes if name.startswith("on")}
    assert not found.attributes & {"src", "href", "xlink:href", "action", "data"}
    assert "@import" not in page
    assert "url(" not in page


def test_hostile_text_is_shown_as_text(run: ek.Run) -> None:
    page = (run.path / "report.html").read_text()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "{{ 7*7 }}" in page
    assert "\x00" not in page
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert "&lt;b&gt;FACTUAL&lt;/b&gt;" in page
    assert "<b>FACTUAL" not in page
    assert "<i>loop" not in page


def test_the_page_gives_the_headline_with_interval_and_coverage(run: ek.Run) -> None:
    page = (run.path / "report.html").read_text()
    headline = run.summary["mean_similarity"]
    assert f"<strong>{headline.value:.4f}</strong>" in page
    assert f"{headline.low:.4f} to {headline.high:.4f}" in page
    assert "coverage 100%" in page
    assert "<svg" in page


def test_a_page_can_be_made_again(run: ek.Run) -> None:
    assert render(run) == (run.path / "report.html").read_text()


def test_the_table_has_a_row_for_each_level_and_one_for_all(run: ek.Run) -> None:
    grid = arrange(run.summary, LAYOUT.tables[0])
    assert grid is not None
    assert [name for name, _ in grid.rows] == ["1", "2", "all"]
    assert grid.columns == ["all", "<b>FACTUAL</b>", "OPINION"]
    assert all(cell is not None for _, cells in grid.rows for cell in cells)


def test_languages_stand_side_by_side_only_where_there_are_several(run: ek.Run) -> None:
    by_language = LAYOUT.tables[1]
    grid = arrange(run.summary, by_language)
    assert grid is not None
    assert grid.columns == ["all", "en", "ko"]
    one = {name: figure for name, figure in run.summary.items() if "lang=ko" not in name}
    assert arrange(one, by_language) is None


def test_several_runs_stand_side_by_side(run: ek.Run) -> None:
    grid = side_by_side({"a": run.summary, "b": {}}, LAYOUT.tables[0])
    assert grid.columns == ["a", "b"]
    assert grid.rows[0][1][1] is None


def test_the_terminal_table_lines_up_and_is_plain_when_piped(run: ek.Run) -> None:
    console = Console(width=100, file=None, record=True, force_terminal=False)
    with console.capture() as captured:
        show_run(console, run, LAYOUT, min_coverage=0.95)
        show_side_by_side(console, [run, run], LAYOUT)
    shown = captured.get()
    assert "\x1b" not in shown
    assert "<i>loop</i>␛[31m" in shown
    assert "coverage 100% (80 ok)" in shown
    assert "±." in shown


def figure(value: float | None, low: float | None = None, high: float | None = None) -> Figure:
    return Figure(value=value, low=low, high=high, method="", n=1, clusters=1, coverage=1, statuses={})


def test_numbers_are_written_the_same_everywhere() -> None:
    assert text.value(figure(0.88491)) == "0.8849"
    assert text.value(figure(None)) == "–"
    assert text.interval(figure(0.88, 0.87, 0.9)) == "0.8700 to 0.9000"
    assert text.interval(figure(0.88, 0.87, 0.9), short=True) == "±.020"
    assert text.interval(figure(0.88)) == ""


@pytest.mark.parametrize(
    ("number", "shown"), [(1, "100%"), (0.99999, "99.99%"), (0.95, "95%"), (0.9167, "91.67%"), (0, "0%")]
)
def test_a_share_is_never_rounded_up_to_all(number: float, shown: str) -> None:
    assert text.share(number) == shown


def test_letters_of_any_language_stay_as_they_are() -> None:
    assert text.visible("naïve 안녕 你好 \t\n") == "naïve 안녕 你好 \t\n"
    assert text.visible("\ud800\x07") == "⟦U+D800⟧␇"

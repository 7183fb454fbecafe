"""The page and the tables: figures as they are, hostile text as text."""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
import shutil
import sys
from collections import Counter
from collections.abc import Callable
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import urlencode
from xml.etree import ElementTree

import msgspec
import numpy as np
import pytest
from markupsafe import Markup
from msgspec.structs import replace
from rich.console import Console

import sealegs as sl
from known_models.mirae import play
from loopback import Loopback
from markup import Elements
from present import present
from runs import run_small
from scripted import Scripted
from sealegs.analysis.references import references
from sealegs.app.fields import with_titles
from sealegs.harness.registry import benchmark_class
from sealegs.page import format as text
from sealegs.page.grid import Grid, Overview, plain_cell, rich_cells, show_table, split
from sealegs.page.layout import Bars, Curve, Layout, Table
from sealegs.page.metrics import Metric, scope_name
from sealegs.page.tables import all_figures, arrange
from sealegs.page.view_html import view_html
from sealegs.report import charts, pictures
from sealegs.report.describe import describe
from sealegs.report.html_page import render
from sealegs.report.samples.table import SCRIPT, sample_table
from sealegs.report.svg import NARROW, PALETTE, WIDE, draw
from sealegs.types import Figure, Unit
from serving import serving
from stored import store_run
from triplets import store, triplet

pytestmark = pytest.mark.slow

LAYOUT = benchmark_class("mirae").layout
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>{{ 7*7 }}\x00\x1b[31m\u202eevil"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> sl.Run:
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
        model = "openai:<i>loop</i>\x1b[31m"
        return run_small(
            "mirae", folder / "run", server, model=model, data=folder / "data", levels="1-2", repeats=5
        )


def test_the_page_has_one_script_of_ours_and_loads_nothing(run: sl.Run) -> None:
    page = (run.path / "report.html").read_text()
    found = Elements(page)
    policy = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert scripts == [SCRIPT.read_text(encoding="utf-8")]
    digest = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()
    assert policy == [f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"]
    assert page.count("<script") == 3  # the others hold the data and the details
    assert not {*found.tags} & {"img", "link", "iframe", "object", "embed", "form", "b", "i"}
    assert not {name for name in found.attributes if name.startswith("on")}
    assert not found.attributes & {"src", "xlink:href", "action", "data"}
    links = {each for each in re.findall('href="([^"]*)', page) if not each.startswith("#")}
    assert links == {each.source for each in references("mirae", beside=[run])}
    assert "@import" not in page
    assert "url(" not in page


def sample_data(page: str) -> Any:
    (data,) = re.findall(r'<script type="application/json" id="samples-data">([^<>&]*)</script>', page)
    return msgspec.json.decode(data)


def test_the_page_holds_all_samples_with_their_tags_values_and_texts(run: sl.Run) -> None:
    """What it holds is what the records have, as far as it can be shown."""
    data = sample_data((run.path / "report.html").read_text())
    records = list(run.records())
    columns = {column["title"]: column for column in data["columns"]}
    assert data["count"] == len(records) == 16
    assert columns["sample"]["values"] == [record.sample.id for record in records]
    level = columns["level"]
    assert [level["names"][code] for code in level["values"]] == [
        str(r.sample.tags["level"]) for r in records
    ]
    similarity = columns["Similarity of the answers' texts (SBERT cosine)"]["values"]
    assert similarity == pytest.approx([r.score.values["mean_similarity"] for r in records], rel=1e-4)
    assert data["detailed"] == list(range(16))
    details = detail_texts((run.path / "report.html").read_text())
    for row, (record, detail) in enumerate(zip(records, details, strict=True)):
        assert detail == view_html(run.samples().view(row), styled=False)
        assert str(Markup.escape(text.escape_controls(record.sample.inputs.question_text))) in detail


def detail_texts(page: str) -> list[str]:
    (packed,) = re.findall(r'id="samples-views">([A-Za-z0-9+/=]*)</script>', page)
    return msgspec.json.decode(gzip.decompress(base64.b64decode(packed)), type=list[str])


def test_many_samples_have_short_details_and_wrong_ones_first(tmp_path: Path) -> None:
    values = np.linspace(0.1, 0.9, 220).reshape(110, 2)
    values[[50, 60], [1, 0]] = np.nan
    run = store_run(tmp_path / "run", {"mean_similarity": values}, asks="long " * 10_000)
    table = present(sample_table(run))
    data = table.data
    assert data["count"] == 220
    # What is opened first, the two without a value, then the others.
    assert data["detailed"] == [0, 101, 120, *(n for n in range(1, 200) if n not in (101, 120))][:200]
    details = msgspec.json.decode(gzip.decompress(base64.b64decode(str(table.views))))
    assert all(1000 < str(detail).count("long") < 3500 for detail in details)
    assert [isinstance(detail, str) for detail in details] == [True] * 20 + [False] * 180
    names, texts = zip(*details[20], strict=True)
    assert "question text" in names
    assert sum(text.count("long") for text in texts) > 1000
    assert "200 have details" in table.note
    assert "20 are shown with marks" in table.note


def test_a_page_has_a_limit_of_samples(tmp_path: Path) -> None:
    table = present(sample_table(store_run(tmp_path / "run", {"mean_similarity": np.full((2501, 2), 0.5)})))
    assert table.data["count"] == 5000
    assert "the first 5,000 of 5,002 samples" in table.note


def test_a_table_has_a_row_for_each_level_and_one_for_all() -> None:
    grid = arrange(levels("share"), Table(title="", rows="level", metric="m", columns="lang"))
    assert [name for name, _ in present(grid).rows] == ["1", "2", "all"]


def test_the_page_begins_with_few_figures_and_has_all_further_down(run: sl.Run) -> None:
    page = (run.path / "report.html").read_text()
    first, _, rest = page.partition("<h2>More figures</h2>")
    assert first.count("<svg") == 2  # for wide screens and for phones
    assert run.verdict in first
    assert first.index('id="chart"') < first.index('id="samples"')
    grid = all_figures(run.summary, LAYOUT.metrics)
    assert len(grid.rows) == len(run.summary)
    assert "<summary>All figures" in rest


def test_the_terminal_table_lines_up_and_is_plain_when_piped(run: sl.Run) -> None:
    console = Console(width=100, file=None, record=True, force_terminal=False)
    with console.capture() as captured:
        describe(run).overview(whole=True).show(console)
        Overview("", grids=describe(run, run).beside).show(console)
    shown = captured.get()
    assert "\x1b" not in shown
    assert "<i>loop</i>␛[31m" in shown
    assert "coverage 100% (80 complete)" in shown
    assert re.search(r"^1 +0\.\d+ \[ *−?0\.\d+, [01]\.\d+\]", shown, re.MULTILINE)
    assert "±" not in shown


def words_of(html: str) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub("<[^>]*>", " ", html)))


def terminal(show: Callable[[Console], None]) -> str:
    console = Console(width=10_000, force_terminal=False)
    with console.capture() as captured:
        show(console)
    return captured.get()


def app_page(path: str, *runs: sl.Run) -> str:
    """What the app shows of runs of one folder."""
    query = urlencode([("run", run.path.name) for run in runs])
    with serving(runs[0].path.parent, read_only=True) as app:
        return words_of(app.visitor.get(f"{path}?{query}").text)


@pytest.mark.parametrize("benchmark", ["mirae", "multiview"])
def test_every_renderer_says_the_same_of_a_run(run: sl.Run, benchmark: str, tmp_path: Path) -> None:
    if benchmark == "multiview":
        data = store(tmp_path / "t.jsonl", [triplet(n) for n in range(4)])
        run = sl.run("multiview", data=data, method=["bm25"], out=tmp_path / "run")
    described = describe(run)
    shown = {
        "terminal": terminal(described.overview(whole=True).show),
        "page": words_of(render(run)),
        "notebook": words_of(run._repr_html_()),
        "app": app_page("/run", run),
    }
    facts = [run.verdict, *described.warnings]
    assert described.warnings or benchmark == "multiview"
    if described.headline is not None:
        leading = described.headline.headline.figure
        facts += [text.value(leading), text.interval_words(leading)]
    facts += [described.basis, text.statuses(described.first.headline)]
    for title, [figure] in described.main.rows if described.main else []:
        assert isinstance(figure, Figure)
        facts += [title, text.value(figure)]
    for name, words in shown.items():
        expected = map(with_titles, facts) if name == "app" else facts  # options as its forms name them
        assert not [fact for fact in expected if text.escape_controls(fact) not in words], name
    markdown = run.overview().to_markdown()
    assert not [fact for fact in facts if text.as_markdown(fact) not in markdown]


def test_every_renderer_says_the_same_of_a_comparison(several: list[sl.Run]) -> None:
    comparison = sl.compare(*several)
    overview = describe(comparison)
    shown = {
        "terminal": terminal(overview.show),
        "page": words_of(render(*several)),
        "notebook": words_of(comparison._repr_html_()),
        "app": app_page("/compare", *several),
    }
    facts = [*overview.verdicts, *overview.warnings, *overview.footnotes]
    facts += [line.partition(" (")[0] for line in overview.lines]  # a read-only app shows no path
    facts += [plain_cell(content) for grid in overview.grids for _, cells in grid.rows for content in cells]
    assert len(overview.verdicts) == 3
    for name, words in shown.items():
        assert not [fact for fact in facts if text.escape_controls(fact) not in words], name
    markdown = overview.to_markdown()
    assert not [fact for fact in facts if text.as_markdown(fact) not in markdown]


def figure(
    value: float | None, low: float | None = None, high: float | None = None, unit: Unit = "cosine"
) -> Figure:
    return Figure(
        value=value, low=low, high=high, method="", n=1, clusters=1, coverage=1, statuses={}, unit=unit
    )


def test_numbers_are_written_the_same_everywhere() -> None:
    assert text.value(figure(0.88491)) == "0.88"
    assert text.value(figure(None)) == "–"
    assert text.interval(figure(0.88, 0.87, 0.9)) == "0.87 to 0.90"
    assert text.interval(figure(0.88, 0.87, 0.9), short=True) == "[0.87, 0.90]"
    assert text.interval(figure(0.88)) == ""
    assert text.interval(figure(90, 2, 11_381, unit="tokens")) == "interval too wide"
    assert text.interval(figure(0.2, -1, 1, unit="correlation"), short=True) == "interval too wide"
    assert text.interval(figure(-0.1, -0.2, 1.0), short=True) == "[−0.20, 1.00]"
    assert text.interval(figure(31, 30.8, 31.2, unit="tokens"), short=True) == "[31, 31]"
    assert text.interval(figure(0.95, 0.757, 0.9912, unit="share"), short=True) == "[76%, 99%]"
    assert text.interval(figure(0, 0, 0.0312, unit="share"), short=True) == "[0%, 3%]"
    assert text.interval(figure(0.36, 0.056, 0.6), short=True) == "[0.06, 0.60]"
    assert text.interval(figure(0.996, 0.9, 0.9991), short=True) == "[0.900, 0.999]"
    assert text.value(figure(0.9998)) == text.value(figure(1.0)) == "1.00"
    assert text.interval(figure(0.05, 0.0026, 0.999, unit="share"), short=True) == "[<1%, >99%]"
    assert text.interval(figure(0.997, 0.9, 0.9998, unit="share"), short=True) == "[90.0%, >99.9%]"
    assert [text.share(each) for each in (0.7879, 2 / 3, 0.95, 0.94999, 0.9991, 1)] == [
        "78%", "66%", "95%", "94%", "99.9%", "100%",
    ]  # fmt: skip


def test_limits_are_aligned_in_a_column() -> None:
    column = [
        figure(0.05, 0.012, 0.14, "share"), figure(1.0, 0.757, 1.0, "share"), figure(None),
        figure(0.5, unit="share"),
        msgspec.structs.replace(figure(0.9, 0.8, 0.95, "share"), coverage=0.5),
    ]  # fmt: skip
    assert [str(cell) for cell in rich_cells(column)] == [
        "  5% [ 1%,  14%]              ",
        "100% [76%, 100%]              ",
        "   –                          ",
        " 50% ○                        ",
        " 90% [80%,  95%] (50% covered)",
    ]


def test_a_table_wider_than_the_terminal_goes_on_below() -> None:
    columns = [f"column {number}" for number in range(5)]
    grid = Grid("Title", "row", columns, [("a", [figure(0.5, 0.25, 0.75)] * 5)])
    for width, sizes in ((200, [5]), (64, [3, 2]), (1, [1] * 5)):
        parts = split(grid, width)
        assert [len(part.columns) for part in parts] == sizes
        assert [column for part in parts for column in part.columns] == columns
        assert [part.title for part in parts] == ["Title", *["Title, continued"] * (len(sizes) - 1)]
        console = Console(width=width)
        with console.capture() as captured:
            for part in parts:
                show_table(console, part.to_rich())
        assert width == 1 or max(map(len, captured.get().splitlines())) <= width


@pytest.mark.parametrize(
    ("amount", "unit", "shown"),
    [
        (299 / 300, "share", "99.7%"), (1.0, "share", "100%"), (0.0, "share", "0%"), (-1.0, "share", "−100%"),
        (0.5, "share", "50%"), (-0.5, "share", "−50%"), (-0.05, "share", "−5%"), (0.0002, "share", "0.02%"),
        (0.99996, "share", "99.996%"), (1e-13, "share", "0%"), (1 - 1e-13, "share", "100%"),
        (-0.00001, "cosine", "0.000"), (-0.0062, "cosine", "−0.006"), (0.9981, "cosine", "0.998"),
    ],
)  # fmt: skip
def test_rounding_never_makes_all_or_nothing_of_less(amount: float, unit: Unit, shown: str) -> None:
    assert text.number(amount, unit) == shown


@pytest.mark.parametrize("code", [0x85, 0xAD, 0x200B, 0x2028, 0x2060, 0xE0041, 0xFFFE])
def test_what_cannot_be_seen_is_shown(code: int) -> None:
    assert text.escape_controls(f"می\u200cخواهم{chr(code)}b") == f"می\u200cخواهم⟦U+{code:04X}⟧b"


def contrast(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    """Of two colours of 0 to 255, after the Web Content Accessibility Guidelines."""

    def luminance(colour: tuple[float, ...]) -> float:
        parts = [c / 255 / 12.92 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    dark, light = sorted(map(luminance, (one, other)))
    return (light + 0.05) / (dark + 0.05)


def test_every_line_has_contrast_on_the_light_and_the_dark_page() -> None:
    for colour in PALETTE:
        drawn = tuple(bytes.fromhex(colour[1:]))
        assert contrast(drawn, (255, 255, 255)) >= 3
        assert contrast(drawn, (0x14, 0x18, 0x1C)) >= 3


@pytest.fixture
def several(tmp_path: Path) -> list[sl.Run]:
    """Two models that are nearly the same, and one far above them."""
    draws = np.random.default_rng(1)
    cells = draws.uniform(0.4, 0.6, (12, 2))
    means = {"one": cells, "two": cells + draws.normal(0, 0.001, (12, 2)), "<b>": cells + 0.3 * cells}
    return [
        store_run(tmp_path / f"r{n}", {"mean_similarity": values}, model=name)
        for n, (name, values) in enumerate(means.items())
    ]


def test_the_page_of_several_runs_names_them_and_says_whose_a_table_is(several: list[sl.Run]) -> None:
    page = render(*several)
    assert "<title>Consistency (MIRAE): 3 runs (one, two, &lt;b&gt;)</title>" in page
    for name, run in zip(("one", "two", "&lt;b&gt;"), several, strict=True):
        assert re.search(f'<th scope="row">{name}</th>.*?{text.value(run.headline)}', page, re.DOTALL)
        assert f"<summary>Settings of {name}</summary>" in page
    assert "no clear difference" in page
    assert render(several[0], several[0]) == render(several[0])  # given twice, it is one


def levels(unit: Unit) -> dict[str, Figure]:
    """A summary with a value for each of two levels in each of two languages."""
    figures = [
        Figure(
            value=0.5 + level / 10, low=0.4 + level / 10, high=0.6 + level / 10, method="t", n=3, clusters=3,
            coverage=1.0, statuses={}, unit=unit, metric="m", scope={"level": str(level), "lang": lang},
        )
        for level in (1, 2)
        for lang in ("en", "ko")
    ]  # fmt: skip
    return {scope_name("m", each.scope): each for each in figures}


def marks(svg: str) -> Counter[str]:
    """How often each kind of mark is in a picture, those of the legend included."""
    return Counter(re.findall(r"<(circle|polygon|polyline|rect)", svg))


def labels(svg: str) -> list[str]:
    return re.findall("<text[^>]*>([^<]*)</text>", svg)


def drawn(chart: charts.Chart | None, width: int = 1000) -> str:
    assert chart is not None
    return draw(chart, width)


@pytest.mark.parametrize("judged", [False, True])
def test_the_first_picture_is_of_the_headline(judged: bool, tmp_path: Path) -> None:
    """Also where answers are known, and where some documents are asked about under two criteria."""
    play(tmp_path, 0.6, judged=judged, levels="1-2")
    first, *others = describe(sl.load_run(tmp_path / "run")).charts
    means_the_same = "Pairs of answers with the same meaning, says the judge, by prompt length"
    assert first.title == (means_the_same if judged else "Similarity of the answers' texts by prompt length")
    assert "Right every time, by prompt length" in [drawn.title for drawn in others]
    methods = run_small("multiview", tmp_path / "methods")
    assert methods.layout.headline == "both_ways"
    assert describe(methods).charts[0].title == "Right under both criteria, by document set"


def test_a_curve_has_a_band_a_line_and_a_legend_entry_for_each_language() -> None:
    spec = Curve(title="t", metric="m", along="level", lines="lang", y_title="<i>similarity")
    svg = drawn(charts.curve({"run": levels("cosine")}, spec))
    # The legend has a point for each line and a patch of each band, in its look.
    assert marks(svg) == {"polygon": 2, "polyline": 2, "circle": 4 + 2, "rect": 2}
    looks = [
        set(re.findall(rf'<{kind}[^>]* (fill="#[0-9a-f]+" opacity="[.0-9]+")', svg))
        for kind in ("rect", "polygon")
    ]
    assert looks[0] == looks[1]
    assert {"en", "ko", "level", "↑ &lt;i&gt;similarity (axis from 0.4)", "95% interval"} <= {*labels(svg)}


def without_intervals(summary: dict[str, Figure], *names: str) -> dict[str, Figure]:
    """The same, where some values are of one group."""
    none = {"low": None, "high": None, "method": "", "reason": "fewer than two independent samples"}
    return {name: replace(each, **none) if name in names else each for name, each in summary.items()}


def test_a_point_without_an_interval_is_hollow_and_breaks_the_band() -> None:
    spec = Curve(title="t", metric="m", along="level", lines="lang")
    svg = drawn(charts.curve({"run": without_intervals(levels("cosine"), "m/level=2,lang=ko")}, spec))
    # en has its band; of ko, the only point with an interval has a line.
    assert marks(svg)["polygon"] == 1
    assert svg.count('opacity="0.4"') == 1
    assert len(re.findall('<circle[^>]*fill="#ffffff"', svg)) == 2  # the point, and its legend
    assert "no 95% interval: fewer than two independent samples" in labels(svg)
    assert "no 95% interval" not in drawn(charts.curve({"run": levels("cosine")}, spec))


def test_a_line_is_broken_where_a_value_is_missing() -> None:
    spec = Curve(title="t", metric="m", along="level")
    each = next(iter(levels("cosine").values()))
    values = {1: 0.5, 2: 0.6, 3: None, 4: 0.7}
    summary = {
        f"m/level={level}": replace(each, value=value, scope={"level": str(level)})
        for level, value in values.items()
    }
    svg = drawn(charts.curve({"run": summary}, spec))
    lines = [points.split() for points in re.findall('<polyline points="([^"]*)"', svg)]
    assert [len(points) for points in lines] == [2, 1]


def test_a_line_is_broken_where_only_another_line_has_a_value() -> None:
    each = next(iter(levels("cosine").values()))
    places = {"en": (2, 3, 4, 5), "ru": (2, 5, 6)}
    summary = {
        f"m/level={level},lang={lang}": replace(each, scope={"level": str(level), "lang": lang})
        for lang, of_lang in places.items()
        for level in of_lang
    }
    svg = drawn(charts.curve({"run": summary}, Curve(title="t", metric="m", along="level", lines="lang")))
    lines = [points.split() for points in re.findall('<polyline points="([^"]*)"', svg)]
    assert [len(points) for points in lines] == [4, 1, 2]


def test_pictures_with_the_same_values_are_drawn_once() -> None:
    metrics = tuple(Metric(name, name, "cosine", "higher") for name in ("m", "n"))
    curves = tuple(
        Curve(title=f"by {each.name}", metric=each.name, along="level", lines="lang") for each in metrics
    )
    layout = Layout(metrics=metrics, question="?", pictures=curves)
    summary = levels("cosine")
    copies = {f"n{name[1:]}": replace(each, metric="n") for name, each in summary.items()}
    run = SimpleNamespace(summary=summary | copies)
    [one] = pictures.draw(cast("dict[str, sl.Run]", {"run": run}), layout, "")
    assert (one.title, one.note) == ("by m", "The same values: by n.")


def test_the_tables_of_a_run_begin_with_its_main_figures(run: sl.Run) -> None:
    assert [grid.title for grid in sl.tables(run)][:1] == ["Main figures"]


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("63% [51%, 74%]", "63% [51%, 74%]"),
        ("−4.2 [−30.2, +22.0] (64% covered)", "−4.2 [−30.2, +22.0] (64% covered)"),
        ("[a](http://b)", r"\[a\](http://b)"),
        ("[1](http://b)", r"\[1\](http://b)"),
        ("[1]: http://b", r"\[1\]: http://b"),
        ("[1][2]", r"\[1\][2]"),
        ("![x]", r"\!\[x\]"),
        ("[^1]", r"\[^1\]"),
    ],
)
def test_limits_in_brackets_are_not_escaped_in_markdown_and_links_are(words: str, shown: str) -> None:
    assert text.as_markdown(words) == shown


def test_bars_of_one_value_for_each_run_are_no_picture() -> None:
    spec = Bars(title="t", metric="m", along="level")
    each = next(iter(levels("share").values()))
    one = {"m/level=1": replace(each, scope={"level": "1"})}
    assert charts.bars({"a": one, "b": one}, spec, least=3) is None
    two = one | {"m/level=2": replace(each, scope={"level": "2"})}
    assert charts.bars({"a": one, "b": two}, spec, least=3) is not None


def test_a_bar_without_an_interval_ends_in_a_hollow_point() -> None:
    spec = Bars(title="t", metric="m", along="level", lines="lang")
    summary = without_intervals(levels("share"), "m/level=2,lang=ko")
    svg = drawn(charts.bars({"run": summary}, spec))
    assert marks(svg) == {"rect": 4 + 2, "circle": 2}


def test_an_interval_that_says_nothing_is_not_drawn() -> None:
    summary = levels("points")
    wide = {name: replace(each, low=-4000.0, high=100.0) for name, each in summary.items() if "ko" in name}
    chart = charts.bars({"run": summary | wide}, Bars(title="t", metric="m", along="level", lines="lang"))
    assert chart is not None
    assert chart.domain[0] > -100
    assert "no 95% interval: too wide" in labels(drawn(chart))


def test_bars_have_a_title_for_their_values_and_one_for_their_rows() -> None:
    spec = Bars(title="t", metric="m", along="level", lines="lang", x_title="levels", y_title="right answers")
    svg = drawn(charts.bars({"run": levels("share")}, spec))
    assert {"levels", "right answers"} <= {*labels(svg)}


def test_bars_of_shares_end_at_all_and_a_dashed_line_is_where_guessing_is() -> None:
    spec = Bars(title="t", metric="m", along="level", lines="lang")
    svg = drawn(charts.bars({"run": levels("share")}, spec, Metric("m", "m", "share", "higher", chance=0.25)))
    assert svg.count('stroke-dasharray="5 4"') == 2  # the line, and its legend
    assert {"0%", "100%", "guessing gives 25%", "95% interval"} <= {*labels(svg)}


def test_an_axis_of_numbers_is_a_scale() -> None:
    summary = {
        scope_name("m", {"noise": noise}): replace(
            levels("share")["m/level=1,lang=en"], scope={"noise": noise}
        )
        for noise in ("0.0", "0.2", "0.8")
    }
    spec = Curve(title="t", metric="m", along="noise", x_unit="share")
    svg = drawn(charts.curve({"run": summary}, spec))
    (line,) = re.findall('<polyline points="([^"]*)"', svg)
    first, second, third = (float(point.split(",")[0]) for point in line.split())
    assert third - first == pytest.approx(4 * (second - first), abs=0.3)
    assert {"0%", "20%", "80%"} <= {*labels(svg)}


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_a_picture_is_at_most_420_pixels_high_in_one_type_size(width: int) -> None:
    many = {
        scope_name("m", {"level": f"a rather long name of a row {row}"}): replace(
            levels("share")["m/level=1,lang=en"], scope={"level": f"a rather long name of a row {row}"}
        )
        for row in range(charts.MOST_BARS)
    }
    specs = (
        charts.bars({"run": many}, Bars(title="t", metric="m", along="level", y_title="y")),
        charts.curve(
            {f"run {n}": levels("score") for n in range(6)},
            Curve(title="t", metric="m", along="level", lines="lang"),
        ),
    )
    for chart in specs:
        svg = drawn(chart, width)
        (height,) = re.findall(r'<svg[^>]* height="(\d+)"', svg)
        assert int(height) <= 420
        assert svg.count("font-size") == 1


def test_a_page_has_variables_and_a_file_has_plain_colours(run: sl.Run) -> None:
    picture = sl.charts(run)[0]
    assert "var(--soft, currentColor)" in picture.wide
    assert "var(" not in picture.to_svg()
    assert ElementTree.fromstring(picture.to_svg()).tag == "{http://www.w3.org/2000/svg}svg"


def test_a_png_and_a_pdf_need_cairosvg_and_say_so(run: sl.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    picture = sl.charts(run)[0]
    monkeypatch.setitem(sys.modules, "cairosvg", None)
    for write in (picture.to_png, picture.to_pdf):
        with pytest.raises(sl.errors.MissingExtra, match="pip install cairosvg"):
            write()


def test_a_png_and_a_pdf_are_written_by_cairosvg(run: sl.Run) -> None:
    pytest.importorskip("cairosvg")
    picture = sl.charts(run)[0]
    assert picture.to_png().startswith(b"\x89PNG")
    assert picture.to_pdf().startswith(b"%PDF")


def test_the_docs_write_a_figure_and_a_table_for_a_paper(
    run: sl.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "integrations.md").read_text(encoding="utf-8")
    (code,) = re.findall("```python\n([^`]*to_latex[^`]*)```", page)
    assert len(code.strip().splitlines()) == 4
    monkeypatch.chdir(tmp_path)
    shutil.copytree(run.path, tmp_path / "runs" / "yesterday")
    exec(code, {"sl": sl, "Path": Path})
    assert (tmp_path / "figure.svg").read_text(encoding="utf-8").startswith("<svg")
    table = (tmp_path / "table.tex").read_text(encoding="utf-8")
    assert table.startswith("\\begin{tabular}")
    assert text.interval(run.headline, short=True) in table


def test_a_question_that_decides_the_interval_is_named(tmp_path: Path) -> None:
    values = np.full((20, 1), 0.99) - 0.0001 * np.arange(20).reshape(20, 1)
    values[3] = 0.4
    page = render(store_run(tmp_path / "run", {"mean_similarity": values}))
    assert "texts (SBERT cosine): 1 unusual question of 20 decides how wide this interval is;" in page
    steady = store_run(tmp_path / "steady", {"mean_similarity": np.linspace(0.4, 0.9, 20).reshape(20, 1)})
    assert "how wide this interval is" not in render(steady)


def test_the_filters_count_as_the_sentence_does(tmp_path: Path) -> None:
    """Of several methods both are about the best one."""
    data = store(tmp_path / "t.jsonl", [triplet(n) for n in range(4)])
    with Scripted(lambda prompt: '{"more_alike": "first"}') as server:
        methods = ["bm25", "judge:openai:m"]
        run = sl.run("multiview", data=data, method=methods, base_url=server.url, out=tmp_path / "run")
    table = sample_table(run)
    assert table is not None
    best = max(run.headlines.values(), key=lambda figure: figure.value or 0.0)
    correct = table.data["correct"]
    assert sum(correct) == pytest.approx((best.value or 0.0) * best.n)
    assert f"Right or wrong is the answer of {run.leading.scope['method']}, " in table.note

"""The pages in a real browser: hostile text stays text, nothing runs, nothing is loaded, all can read it.

Debian's chromium is driven by Playwright; without a browser these tests are skipped.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import html5lib
import msgspec
import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from browsers import chromium
from markup import NASTY
from runs import run_small
from scripted import Scripted
from sealegs.page.format import escape_controls
from sealegs.report.html_page import render
from sealegs.report.scorecard import render as render_scorecard
from sealegs.report.scorecard import scorecard
from stored import store_run

pytestmark = pytest.mark.slow

HALF = "half a pair \ud800 alone"  # no file can hold it, but a server can send it
SHORT = [text[:3000] for text in NASTY]
WIDTHS = {"phone": 380, "desktop": 1280}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


class Escaping(Scripted):
    """A server that can send what is no valid text."""

    def _answer(self, path: str, body: Any, key: str) -> bytes:
        if path != "/v1/chat/completions":
            return super()._answer(path, body, key)
        message = {"role": "assistant", "content": self.rule(body.messages[-1].content)}
        return json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A page of each benchmark, whose questions, documents and answers are all hostile."""
    folder = tmp_path_factory.mktemp("hostile")
    turn = iter(range(10**9))
    answers = [*NASTY, HALF]
    with Escaping(lambda prompt: answers[next(turn) % len(answers)]) as server:
        model = "openai:<b>m</b>"
        mirae: dict[str, Any] = {"model": model, "data": _mirae(folder), "levels": None}
        rgb: dict[str, Any] = {"model": model, "data": _rgb(folder), "ability": None, "noise_rates": None}
        made = {
            "mirae": run_small("mirae", folder / "mirae", server, **mirae),
            "rgb": run_small("rgb", folder / "rgb", server, passages=2, **rgb),
            "multiview": run_small("multiview", folder / "multiview", data=_multiview(folder)),
        }
        again = run_small("mirae", folder / "again", server, **mirae)
    assert any(HALF[:11] in answer.text for record in made["mirae"].records() for answer in record.answers)
    both = folder / "both.html"
    both.write_text(render(made["mirae"], again))
    cards = folder / "scorecard.html"
    cards.write_text(render_scorecard(scorecard(list(made.values())), cards))
    reports = {name: run.path / "report.html" for name, run in made.items()}
    return {**reports, "both": both, "scorecard": cards}


def _written(path: Path, rows: list[dict[str, object]]) -> Path:
    path.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    return path


def _mirae(folder: Path) -> Path:
    path = folder / "q_english.json"
    items = [
        {
            "question_id": n,
            "domain": text[:40],
            "level_1_text": text[:3000],
            "level_2_text": f"Again: {text[:3000]}",
        }
        for n, text in enumerate(NASTY, 1)
    ]
    path.write_bytes(msgspec.json.encode({"questions": items}))
    return path


def _rgb(folder: Path) -> Path:
    rows: list[dict[str, object]] = [
        {
            "id": n,
            "query": text[:3000],
            "answer": text[:50],
            "positive": [text[:3000]],
            "negative": [text[:90]],
        }
        for n, text in enumerate(NASTY, 1)
    ]
    return _written(folder / "en.json", rows)


def _multiview(folder: Path) -> Path:
    texts = SHORT
    rows: list[dict[str, object]] = [
        {
            "task": f"<b>set</b>__{n % 2}", "criterion": text[:20], "description": text[:90],
            "anchor": text, "positive": texts[n - 1], "negative": texts[n - 2],
            "anchor_id": "a", "positive_id": "b", "negative_id": "c",
        }
        for n, text in enumerate(texts)
    ]  # fmt: skip
    return _written(folder / "triplets.jsonl", rows)


def opened(
    browser: Browser, path: Path, *, width: int = 1280, scheme: str = "light"
) -> tuple[Page, list[str]]:
    """A page that was opened, with every collapsed part unfolded, and the list of all that goes on there."""
    seen: list[str] = []
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme="dark" if scheme == "dark" else "light",
        bypass_csp=False,
    )
    page = context.new_page()
    page.on("request", lambda request: seen.append(f"request {request.url}"))
    page.on("console", lambda message: seen.append(f"console {message.text}"))
    page.on("pageerror", lambda error: seen.append(f"error {error}"))
    page.on("dialog", lambda dialog: seen.append(f"dialog {dialog.message}"))
    page.goto(path.as_uri())
    page.locator("details").evaluate_all("all => all.forEach(one => one.open = true)")
    return page, seen


BENCHMARKS = ["mirae", "rgb", "multiview", "both"]
PAGES = [*BENCHMARKS, "scorecard"]
QUICK = [pytest.param(name, marks=() if name in ("rgb", "scorecard") else pytest.mark.full) for name in PAGES]
"""The other pages have the same parts; they are looked at by `make full`."""


@pytest.mark.parametrize("name", PAGES)
def test_nothing_runs_and_nothing_is_loaded(name: str, browser: Browser, pages: dict[str, Path]) -> None:
    page, seen = opened(browser, pages[name])
    page.mouse.wheel(0, 100_000)
    page.wait_for_timeout(200)  # what runs late is seen, too
    assert seen == [f"request {pages[name].as_uri()}"]
    assert page.title() != "run"
    assert page.locator("iframe, img, object, embed, form, link, base").count() == 0
    assert page.locator("script").count() == (0 if name == "scorecard" else 3)
    links = page.locator("a:not([href^='#'])").evaluate_all("all => all.map(a => a.getAttribute('href'))")
    assert len([link for link in links if link.endswith("/report.html")]) == (3 if name == "scorecard" else 0)
    assert all(link.startswith("https://github.com/") or link.endswith("/report.html") for link in links)
    assert page.locator("h1").count() == 1
    assert "outside" not in page.locator("h1").inner_text()
    page.context.close()


@pytest.mark.parametrize("name", BENCHMARKS)
def test_hostile_texts_are_shown_as_text(name: str, browser: Browser, pages: dict[str, Path]) -> None:
    """Whatever of them is begun on the page stands there whole, letter by letter."""
    page, _ = opened(browser, pages[name])
    shown = "\n".join(
        page.locator("#samples tr.sample").evaluate_all(
            """rows => rows.map(row => {
              if (!row.classList.contains("selected")) row.click();
              return document.getElementById("sample-detail").textContent;
            })"""
        )
    )
    begun = [text for text in NASTY if escape_controls(text[:12]) in shown]
    assert [text[:40] for text in begun if escape_controls(text[:1000]) not in shown] == []
    assert len(begun) >= (8 if name in ("mirae", "both") else 5)
    shown = page.locator("main").inner_text()
    assert not set(shown) & {"\x00", "\x07", "\x1b", "\x7f", "\x85", "\u202e", "\u2066", "\u200f", "\ufeff"}
    assert len(page.content()) < 5_000_000
    page.context.close()


@pytest.mark.parametrize("name", QUICK)
def test_nothing_is_cut_on_paper(name: str, browser: Browser, pages: dict[str, Path]) -> None:
    page, _ = opened(browser, pages[name], width=700, scheme="dark")  # A4 less its margins
    page.emulate_media(media="print")
    assert page.evaluate("document.documentElement.scrollWidth") <= 700
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert set(
        page.locator(".scroll").evaluate_all("all => all.map(e => getComputedStyle(e).overflowX)")
    ) == {"visible"}
    page.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", QUICK)
def test_a_checker_of_accessibility_finds_nothing_serious(
    name: str, scheme: str, browser: Browser, pages: dict[str, Path]
) -> None:
    page, _ = opened(browser, pages[name], scheme=scheme)
    found = Axe().run(page).response["violations"]
    serious = [
        f"{rule['id']}: {rule['help']} ({node['html'][:200]})"
        for rule in found
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"]
    ]
    assert serious == []
    page.context.close()


@pytest.mark.parametrize("width", [390, 768, 1280, 1920])
def test_type_in_pictures_is_readable_and_the_same(
    width: int, browser: Browser, pages: dict[str, Path]
) -> None:
    """Type of 13 pixels is drawn about as large, on pages of any width."""
    page, _ = opened(browser, pages["rgb"], width=width)
    boxes = page.locator("figure.wide:visible svg, figure.narrow:visible svg").evaluate_all(
        "all => all.map(one => [one.getBoundingClientRect(), one.viewBox.baseVal.width])"
        ".map(([box, width]) => [box.height, 13 * box.width / width])"
    )
    assert boxes
    assert all(height <= 420 and 12 <= size <= 15 for height, size in boxes), boxes
    assert max(boxes, key=lambda box: box[1])[1] - min(boxes, key=lambda box: box[1])[1] < 0.1
    page.context.close()


@pytest.mark.parametrize("name", QUICK)
def test_the_page_fits_a_phone(name: str, browser: Browser, pages: dict[str, Path]) -> None:
    for width in WIDTHS.values():
        page, _ = opened(browser, pages[name], width=width)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.context.close()


@pytest.mark.parametrize("name", QUICK)
def test_the_page_is_valid_html(name: str, pages: dict[str, Path]) -> None:
    parser = html5lib.HTMLParser(strict=False)
    parser.parse(pages[name].read_text(encoding="utf-8"))
    faults = [(code, place) for place, code, _ in parser.errors]
    assert faults == []


@pytest.fixture(scope="module")
def listed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of 120 samples: 40 questions at three levels, some without a value."""
    values = np.arange(120.0).reshape(40, 3) / 1000
    values[7, 1] = np.nan
    run = store_run(tmp_path_factory.mktemp("listed") / "run", {"mean_similarity": values}, asks="<b>Ask</b>")
    path = run.path / "report.html"
    path.write_text(render(run))
    return path


def table_of(page: Page) -> tuple[str, list[str]]:
    """What the table says of itself, and the samples that it shows."""
    labels = page.locator("#samples tbody th button").evaluate_all(
        "all => all.map(each => each.getAttribute('aria-label'))"
    )
    status = page.locator("#samples [role=status]").inner_text()
    return status, [label.rpartition("sample ")[2] for label in labels]


def test_samples_are_paged_sorted_and_opened_by_keyboard(browser: Browser, listed: Path) -> None:
    page, seen = opened(browser, listed)
    status, ids = table_of(page)
    assert status == "Showing 1–25 of 120"
    assert ids[:2] == ["en-0-L0", "en-0-L1"]
    head = page.locator("#samples thead th").filter(
        has_text="Similarity of the answers' texts (SBERT cosine)"
    )
    assert head.get_attribute("aria-sort") is None
    head.locator("button").focus()
    page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    assert table_of(page)[1][0] == "en-39-L2"
    for _ in range(4):
        page.get_by_role("button", name="Next").click()
    status, ids = table_of(page)
    assert status == "Showing 101–120 of 120"
    assert ids[-1] == "en-7-L1"  # what has no value comes last
    assert page.get_by_role("button", name="Next").is_disabled()
    opener = page.get_by_role("button", name="sample en-7-L1")
    detail = page.get_by_role("region", name="The selected sample")
    opener.press("Enter")
    assert opener.get_attribute("aria-expanded") == "true"
    expect(detail.locator(".sl-body").first).to_have_text("<b>Ask</b> 7, told in 1 ways?")
    page.keyboard.press("ArrowUp")
    expect(detail.locator(".sl-body").first).to_have_text("<b>Ask</b> 0, told in 0 ways?")
    assert opener.get_attribute("aria-expanded") == "false"
    page.keyboard.press("Enter")
    expect(detail).to_have_count(0)
    assert seen == [f"request {listed.as_uri()}"]
    page.context.close()


@pytest.mark.parametrize("width", WIDTHS.values())
def test_a_row_shows_its_details_wherever_it_is_clicked(browser: Browser, listed: Path, width: int) -> None:
    """Below the row, as wide as what is seen of the table; the page alone scrolls, and the row stays."""
    page, _ = opened(browser, listed, width=width)
    row = page.locator("#samples tr.sample").nth(1)
    row.locator("td").first.click()
    detail = page.get_by_role("region", name="The selected sample")
    expect(detail.locator(".sl-body").first).to_have_text("<b>Ask</b> 0, told in 1 ways?")
    page.get_by_label("all columns").check()
    table, panel, line = (
        each.bounding_box() for each in (page.get_by_role("region", name="All samples"), detail, row)
    )
    assert table
    assert panel
    assert line
    assert panel["y"] >= line["y"] + line["height"]
    assert panel["x"] + panel["width"] <= table["x"] + table["width"]
    assert detail.evaluate("each => each.scrollHeight <= each.clientHeight")
    next_row = page.locator("#samples tr.sample").nth(2)
    next_row.scroll_into_view_if_needed()
    before = next_row.bounding_box()
    next_row.locator("td").first.click()
    expect(next_row).to_have_class("sample selected")
    after = next_row.bounding_box()
    assert before
    assert after
    assert abs(after["y"] - before["y"]) < 2
    page.context.close()


def test_samples_are_filtered_by_tag_text_and_result(browser: Browser, listed: Path) -> None:
    page, _ = opened(browser, listed)
    status = page.locator("#samples [role=status]")
    page.get_by_label("level", exact=True).select_option("2")
    assert table_of(page)[0].endswith("of 40")
    page.get_by_label("level", exact=True).select_option("all")
    page.get_by_label("search").fill("ASK</B> 39,")
    expect(status).to_have_text("Showing 1–3 of 3")
    page.locator("tr.sample td").first.click()
    plain = page.locator("#sample-detail .sl-body")  # of a sample whose details are not drawn
    expect(plain.last).to_have_text("<b>Ask</b> 39, told in 0 ways?")
    page.get_by_label("search").fill("")
    page.get_by_role("button", name="Error (1)").click()
    expect(status).to_have_text("Showing 1–1 of 1")
    assert table_of(page)[1] == ["en-7-L1"]
    page.context.close()


def test_right_and_wrong_samples_are_marked_and_filtered(browser: Browser, tmp_path: Path) -> None:
    rows = [{"id": n, "query": f"Q{n}?", "answer": "yes", "positive": ["yes it is"], "negative": ["no"]}
            for n in range(3)]  # fmt: skip
    data = _written(tmp_path / "en.json", rows)
    answers = {"Q0?": "No idea.", "Q1?": "It is yes…", "Q2?": "No…"}
    with Scripted(lambda prompt: next(answers[q] for q in answers if q in prompt)) as server:
        run = run_small("rgb", tmp_path / "run", server, data=data, passages=1)
    page, _ = opened(browser, run.path / "report.html")
    assert page.locator("#samples tr.sample th").all_inner_texts() == ["✗", "✓\ncut off", "✗\ncut off"]
    page.get_by_role("button", name="Wrong (2)").click()
    assert page.locator("td.text").all_inner_texts()[:4] == ["Q0?", "noise 0", "yes", "No idea."]
    page.get_by_role("button", name="Right (1)").click()
    assert page.locator("#samples tr.sample").count() == 1
    page.get_by_role("button", name="Wrong (2)").click()
    page.get_by_role("button", name="Cut off (2)").click()  # outcomes combine: wrong and cut off
    assert page.locator("td.text").all_inner_texts() == ["Q2?", "noise 0", "yes", "No…"]
    page.context.close()


def test_without_scripts_the_first_samples_are_there(browser: Browser, listed: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(listed.as_uri())
    assert page.locator("#samples tbody tr").count() == 20
    assert page.locator("#samples tbody th").all_inner_texts()[:2] == ["en-0-L0", "en-0-L1"]
    context.close()

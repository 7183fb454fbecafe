"""The app in a real browser, served as a person would serve it.

Debian's chromium is driven by Playwright; without a browser these tests are skipped.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

import sealegs as sl
from browsers import chromium
from commandline import command
from runs import run_small
from scripted import Scripted
from sealegs.api import launch
from serving import Serving, serving
from suites import until

pytestmark = pytest.mark.slow

HERE = "http://127.0.0.1:"
"""Where a page may load from."""
PATIENCE_MS = 60_000
expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


def opened(
    browser: Browser, app: Serving, path: str = "/", width: int = 1280, scheme: str = "light"
) -> tuple[Page, list[str]]:
    """A page of the app, and the list of what went wrong there."""
    context = browser.new_context(
        viewport={"width": width, "height": 1000}, color_scheme="dark" if scheme == "dark" else "light"
    )
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    seen: list[str] = []
    page.on("pageerror", lambda error: seen.append(f"error {error}"))
    page.on("console", lambda message: seen.append(message.text) if message.type == "error" else None)
    page.on("dialog", lambda dialog: seen.append(f"dialog {dialog.message}"))
    page.on("request", lambda request: None if request.url.startswith(HERE) else seen.append(request.url))
    enter(page, app)
    page.goto(f"http://127.0.0.1:{app.port}{path}")
    return page, seen


def enter(page: Page, app: Serving) -> None:
    page.goto(app.address)
    expect(page).to_have_url(f"{HERE}{app.port}/")


PAGES = {
    "runs": "/", "new run": "/new-run", "run again": "/new-run?like=one", "run": "/run?run=one",
    "sample": "/sample?run=one", "compare": "/compare", "compare with": "/compare?run=one",
    "comparison": "/compare?run=one&run=two", "leaderboard": "/leaderboard", "scorecard": "/scorecard",
    "build": "/build", "tokenizers": "/tokenizers", "compared tokenizers": "/tokenizers",
    "explained": "/explained", "problem": "/run?run=absent",
}  # fmt: skip


@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        (1280, "light"),
        pytest.param(390, "dark", marks=pytest.mark.full),
        pytest.param(1280, "dark", marks=pytest.mark.full),
        pytest.param(390, "light", marks=pytest.mark.full),
    ],
)
def test_every_page_can_be_read_by_everyone(browser: Browser, app: Serving, width: int, scheme: str) -> None:
    page, seen = opened(browser, app, "/", width, scheme)
    for name, path in PAGES.items():
        page.goto(f"http://127.0.0.1:{app.port}{path}")
        if name == "run":
            expect(page.get_by_text(re.compile("^Showing 1–8 of 8"))).to_be_visible()
        if name == "compared tokenizers":
            page.get_by_label("Tokenizers, one per line").fill("embedded")
            page.get_by_role("button", name="Compare").click()
            expect(page.get_by_text("tokens per word").first).to_be_visible()
        results = Axe().run(page)
        assert results.violations_count == 0, f"{name}: {results.generate_report()}"
        assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{name} is too wide"
    assert [each for each in seen if "422" not in each] == []
    page.context.close()


def test_a_hostile_answer_is_text_in_the_details(browser: Browser, app: Serving) -> None:
    page, seen = opened(browser, app, "/run?run=one")
    details = page.locator("#sample-detail .sl-body")
    for row in range(8):
        page.locator("tr.sample").nth(row).get_by_role("button").click()
        expect(details.first).to_be_visible()
    assert page.title() != "run"
    assert page.locator("#samples").locator("img, iframe, script, form[action^=http]").count() == 0
    assert seen == []
    page.context.close()


def test_the_address_has_what_is_chosen_and_keys_mark(browser: Browser, app: Serving, runs: Path) -> None:
    page, seen = opened(browser, app, "/run?run=two")
    ids = sl.load_run(runs / "two").samples().index.ids
    expect(page.locator("tr.sample").first).to_be_visible()
    page.keyboard.press("j")
    expect(page.get_by_role("button", name="The check is right")).to_be_visible()
    page.keyboard.press("j")
    expect(page).to_have_url(re.compile(f"sample={re.escape(ids[1]).replace(' ', '[+]')}|sample=.*1"))
    expect(page.locator("tr.sample").nth(1)).to_have_class(re.compile("selected"))
    expect(page.get_by_role("button", name="The check is wrong")).to_be_visible()
    page.keyboard.press("w")
    expect(page.locator("tr.sample").nth(1)).to_contain_text("check disputed")
    page.keyboard.press("r")
    expect(page.locator("tr.sample").nth(1)).to_contain_text("check confirmed")
    page.keyboard.press("k")
    expect(page.locator("tr.sample").nth(0)).to_have_class(re.compile("selected"))
    page.keyboard.press("j")
    page.reload()
    expect(page.locator("tr.sample").nth(1)).to_have_class(re.compile("selected"))
    expect(page.locator("tr.sample").nth(1)).to_contain_text("check confirmed")
    expect(page.get_by_role("button", name="The check is right")).to_have_attribute("aria-pressed", "true")
    page.get_by_label("Comment").fill("j k r w")  # keys of a field are letters
    with page.expect_response("**/run/mark"):
        page.get_by_role("button", name="The check is right").click()
    expect(page.get_by_label("Comment")).to_have_value("j k r w")
    page.get_by_label("Comment").fill("not sent yet")
    page.get_by_label("all columns").check()  # draws the table anew
    expect(page.get_by_label("Comment")).to_have_value("not sent yet")
    [mark] = sl.load_run(runs / "two").marks()
    assert (mark.sample, mark.verdict, mark.comment) == (ids[1], "right", "j k r w")
    page.get_by_role("link", name="Address of this sample").click()
    expect(page.get_by_text("two, 2 of 8")).to_be_visible()
    page.wait_for_load_state()
    page.keyboard.press("J")
    expect(page.get_by_text("two, 3 of 8")).to_be_visible()
    page.wait_for_load_state()
    page.keyboard.press("w")
    expect(page.get_by_role("button", name="The check is wrong")).to_have_attribute("aria-pressed", "true")
    assert seen == []
    page.context.close()


@pytest.fixture
def unmarked(runs: Path, tmp_path: Path) -> Iterator[tuple[Serving, sl.Run]]:
    """An app over one run, `unmarked`, of the test's own."""
    folder = shutil.copytree(runs / "two", tmp_path / "unmarked", ignore=shutil.ignore_patterns("marks*"))
    with serving(tmp_path) as app:
        yield app, sl.load_run(folder)


def test_enter_saves_the_comment_with_the_mark_that_is_there(
    browser: Browser, unmarked: tuple[Serving, sl.Run]
) -> None:
    app, run = unmarked
    page, seen = opened(browser, app, "/run?run=unmarked")
    row, comment = page.locator("tr.sample").nth(2), page.get_by_label("Comment")
    row.get_by_role("button").click()
    comment.fill("not decided")
    comment.press("Enter")
    expect(page.locator("form.mark").get_by_role("alert")).to_contain_text("choose whether the check is")
    expect(comment).to_have_value("not decided")
    assert run.marks() == []
    page.get_by_role("button", name="The check is wrong").click()
    expect(row).to_contain_text("check disputed")
    comment.fill("a spelling")
    with page.expect_response("**/run/mark"):
        comment.press("Enter")
    expect(page.get_by_role("button", name="The check is wrong")).to_have_attribute("aria-pressed", "true")
    expect(comment).to_have_value("a spelling")
    assert [(mark.verdict, mark.comment) for mark in run.marks()] == [("wrong", "a spelling")]
    assert [each for each in seen if "422" not in each] == []
    page.context.close()


def test_a_typed_comment_is_not_lost_with_its_row(browser: Browser, unmarked: tuple[Serving, sl.Run]) -> None:
    app, run = unmarked
    page, seen = opened(browser, app, "/run?run=unmarked")
    rows, comment = page.locator("tr.sample"), page.get_by_label("Comment")
    rows.nth(0).get_by_role("button").click()
    page.get_by_role("button", name="The check is right").click()
    expect(rows.nth(0)).to_contain_text("check confirmed")
    comment.fill("with a mark")
    comment.blur()
    with page.expect_response("**/run/mark"):
        page.keyboard.press("j")
    expect(rows.nth(1)).to_have_class(re.compile("selected"))
    expect(comment).to_have_value("")
    comment.fill("without one")
    rows.nth(0).get_by_role("button").click()
    expect(comment).to_have_value("with a mark")
    page.keyboard.press("j")
    expect(comment).to_have_value("without one")
    marks = {mark.sample: mark.comment for mark in run.marks()}
    ids = run.samples().index.ids
    assert (marks[ids[0]], ids[1] in marks) == ("with a mark", False)
    page.close(run_before_unload=True)
    page.wait_for_event("dialog")
    [asked] = seen
    assert asked.startswith("dialog")
    page.context.close()


def test_a_typed_comment_is_not_lost_with_the_page_of_a_sample(
    browser: Browser, unmarked: tuple[Serving, sl.Run]
) -> None:
    app, run = unmarked
    sample = run.samples().index.ids[0]
    run.mark(sample, verdict="wrong")
    page, seen = opened(browser, app, "/sample?run=unmarked")
    page.get_by_label("Comment").fill("typed last")
    page.get_by_label("Comment").blur()
    page.keyboard.press("j")
    expect(page.get_by_text("unmarked, 2 of 8")).to_be_visible()
    until(lambda: [mark.comment for mark in run.marks()] == ["typed last"])
    assert [mark.verdict for mark in run.marks()] == ["wrong"]
    assert seen == []
    page.context.close()


def test_a_page_whose_app_has_ended_says_so(browser: Browser, runs: Path) -> None:
    with serving(runs) as app:
        page, _ = opened(browser, app, "/run?run=one")
        rows = page.locator("tr.sample")
        rows.nth(0).get_by_role("button").click()
        expect(page.get_by_label("Comment")).to_be_visible()
    page.get_by_label("Comment").fill("still here")
    page.get_by_role("button", name="The check is wrong").click()
    expect(page.locator("form.mark").get_by_role("alert")).to_contain_text("The app does not answer")
    expect(page.get_by_label("Comment")).to_have_value("still here")
    rows.nth(1).get_by_role("button").click()
    expect(page.locator("#sample-detail")).to_contain_text("The app does not answer")
    expect(page.locator("#sample-detail")).not_to_contain_text("Loading")
    page.context.close()


def test_on_a_phone_rows_are_cut_with_an_ellipsis_and_begin_in_line(browser: Browser, tmp_path: Path) -> None:
    with Scripted(lambda prompt: "a long answer " * 40) as server:
        run = run_small("rgb", tmp_path / "long", server)
    run.mark(run.samples().index.ids[0], verdict="wrong")
    with serving(tmp_path) as app:
        page, _ = opened(browser, app, "/run?run=long", width=390)
        answers = page.locator("tr.sample td[data-title=answer]")
        expect(answers.first).to_be_visible()
        looks = answers.first.evaluate("cell => [getComputedStyle(cell).webkitLineClamp, cell.clientHeight]")
        assert looks[0] == "3"
        assert looks[1] < 80
        lefts = answers.evaluate_all("cells => cells.map(cell => cell.getBoundingClientRect().left)")
        assert len(set(lefts)) == 1
        page.context.close()


def test_what_the_table_shows_is_in_the_address(browser: Browser, app: Serving) -> None:
    page, seen = opened(browser, app, "/run?run=suite/methods")
    filters = page.get_by_role("search", name="Filter the samples")
    filters.get_by_label("all columns").check()
    filters.get_by_role("combobox").first.select_option(index=2)
    page.get_by_role("columnheader").get_by_role("button").nth(1).click()
    page.get_by_role("columnheader").get_by_role("button").nth(1).click()
    expect(page.locator("th[aria-sort]")).to_have_attribute("aria-sort", "descending")
    rows = page.locator("tr.sample").all_inner_texts()
    heads = page.get_by_role("columnheader").all_inner_texts()
    page.reload()
    expect(page.locator("th[aria-sort]")).to_have_attribute("aria-sort", "descending")
    assert page.locator("tr.sample").all_inner_texts() == rows
    assert page.get_by_role("columnheader").all_inner_texts() == heads
    expect(filters.get_by_label("all columns")).to_be_checked()
    assert filters.get_by_role("combobox").first.evaluate("list => list.selectedIndex") == 2
    page.goto(f"{HERE}{app.port}/run?run=suite/methods&sort=%0A&tag=x&tag=:9&tag=language:99")
    expect(page.get_by_text(re.compile("^Showing 1–"))).to_be_visible()
    assert seen == []
    page.context.close()


def test_a_table_that_cannot_be_read_says_why(browser: Browser, app: Serving, runs: Path) -> None:
    marks = runs / "other" / "marks.jsonl"
    marks.symlink_to(runs / "absent")
    try:
        page, _ = opened(browser, app, "/run?run=other")
        expect(page.locator("#samples").get_by_role("alert")).to_contain_text("marks.jsonl")
        page.context.close()
    finally:
        marks.unlink()


def test_without_a_script_the_samples_can_be_read(browser: Browser, app: Serving) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    enter(page, app)
    page.goto(f"http://127.0.0.1:{app.port}/run?run=one")
    page.locator("#samples").get_by_role("link", name="Read the samples one by one").click()
    expect(page.get_by_text("1 of 8")).to_be_visible()
    page.get_by_role("link", name="Next").click()
    expect(page.get_by_text("2 of 8")).to_be_visible()
    page.get_by_role("button", name="The check is wrong").click()
    expect(page.get_by_role("button", name="The check is wrong")).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="Remove the mark").click()
    context.close()


@pytest.mark.parametrize("times", [1, pytest.param(10, marks=pytest.mark.full)])
def test_a_run_is_started_watched_marked_repeated_and_compared(
    times: int, browser: Browser, tmp_path: Path
) -> None:
    """New run, watch, sample, mark, run again with another model, compare: in one visit."""
    with Scripted(lambda prompt: "I do not know.") as server, serving(tmp_path / "runs") as app:
        page, seen = opened(browser, app)
        for turn in range(times):
            page.get_by_role("link", name="New run").click()
            page.locator("select[name=source]").select_option("server")
            page.get_by_label("Address").fill(server.url)
            page.get_by_label("Model name").fill(f"first-{turn}")
            page.get_by_role("textbox", name="Languages").fill("en")
            page.get_by_label("Benchmark").select_option("rgb")  # what is typed already stays
            expect(page).to_have_url(re.compile("benchmark=rgb"))
            start(page, server)
            # Watched until it is finished, then its page is the report.
            expect(page.get_by_role("link", name="Compare with …")).to_be_visible()
            page.get_by_role("button", name=re.compile("^Wrong")).click()
            page.locator("tr.sample").first.get_by_role("button").click()
            page.get_by_label("Comment").fill(f"turn {turn}")
            page.get_by_role("button", name="The check is wrong").click()
            expect(page.locator("tr.sample.selected")).to_contain_text("check disputed")
            page.get_by_role("link", name="Run again with another model").click()
            expect(page.get_by_label("Address")).to_have_value(server.url)
            page.get_by_label("Model name").fill(f"second-{turn}")
            start(page, server)
            page.get_by_role("link", name="Compare with …").click()
            page.get_by_role("link", name=f"first-{turn}", exact=True).click()
            expect(page.get_by_role("heading", name="Differences, paired by sample")).to_be_visible()
        finished = sl.list_runs(tmp_path / "runs")
        assert [run.state for run in finished] == ["finished"] * (2 * times)
        comments = [mark.comment for run in finished for mark in sl.load_run(run.path).marks()]
        assert sorted(comments) == sorted(f"turn {turn}" for turn in range(times))
        assert seen == []
        page.context.close()


def start(page: Page, server: Scripted) -> None:
    """From the form to the run: the page between lists the host."""
    page.get_by_role("button", name="Continue").click()
    expect(page.locator("table.hosts")).to_contain_text(server.url.split("/")[2])
    page.get_by_role("button", name="Start").click()
    expect(page).to_have_url(re.compile(r"/run\?run="))


@contextmanager
def holding() -> Iterator[tuple[Scripted, threading.Semaphore]]:
    """A server that gives an answer for each release, and all at the end."""
    held = threading.Semaphore(0)

    def answer(prompt: str) -> str:
        held.acquire(timeout=PATIENCE_MS / 1000)
        return "I do not know."

    with Scripted(answer) as server:
        try:
            yield server, held
        finally:
            held.release(1_000)


def test_the_list_of_runs_follows_a_run_to_its_end(browser: Browser, tmp_path: Path) -> None:
    with holding() as (server, held), serving(tmp_path / "runs") as app:
        spec = f"openai:m?base_url={server.url}"
        launch.start(tmp_path / "runs", "rgb", spec, limit=2, lang="en", ability="noise", noise_rates="0")
        page, seen = opened(browser, app)
        row = page.locator("li.run")
        expect(row).to_contain_text("asking: 0 of 2 requests")
        held.release()
        expect(row).to_contain_text("asking: 1 of 2 requests")
        stop = row.get_by_role("button", name="Stop").bounding_box()
        bar = row.locator("progress").bounding_box()
        assert stop is not None
        assert bar is not None
        assert stop["y"] >= bar["y"] + bar["height"] + 4
        held.release(100)
        expect(row).to_contain_text("Right in 0 of 2 prompts")
        expect(row.get_by_role("button")).to_have_count(0)
        assert seen == []
        page.context.close()


def test_the_page_of_a_run_is_its_report_while_samples_arrive(browser: Browser, tmp_path: Path) -> None:
    """What is open, typed and chosen stays, until the end and beyond it."""
    with holding() as (server, held), serving(tmp_path / "runs") as app:
        spec = f"openai:m?base_url={server.url}"
        begun = launch.start(
            tmp_path / "runs", "rgb", spec, limit=30, lang="en", ability="noise", noise_rates="0"
        )
        page, seen = opened(browser, app, f"/run?run={begun.name}")
        expect(page.get_by_text("No sample is answered yet")).to_be_visible()
        held.release()
        expect(page.get_by_role("heading", name="Samples, 1 of 30 samples so far")).to_be_visible()
        expect(
            page.locator("p.verdict", has_text="So far, 1 of 30 samples: Right in 0 of 1 prompt")
        ).to_be_visible()
        expect(page.get_by_text("asking: 1 of 30 requests")).to_be_visible()
        expect(page.get_by_role("link", name="Compare with …")).to_have_count(0)
        with page.expect_response("**&search=*"):
            page.get_by_label("search").last.fill("I do not know")
        row = page.locator("tr.sample").first
        row.get_by_role("button").click()
        first = row.get_by_role("button").get_attribute("aria-label")
        page.get_by_role("button", name="The check is wrong").click()
        expect(row).to_contain_text("check disputed")
        page.get_by_label("Comment").fill("typed while it runs")
        page.locator("#settings summary").click()
        page.get_by_label("Comment").focus()
        page.locator("tr.sample.selected").scroll_into_view_if_needed()
        place = row.bounding_box()
        held.release(26)
        expect(page.get_by_role("heading", name="Samples, 27 of 30 samples so far")).to_be_visible()
        expect(page.get_by_text("Showing 26–27 of 27")).to_be_visible()  # the newest come first
        chosen = page.locator("tr.sample.selected")
        assert chosen.get_by_role("button").get_attribute("aria-label") == first
        now = chosen.bounding_box()
        assert place is not None
        assert now is not None
        assert abs(now["y"] - place["y"]) < 2
        expect(page.get_by_label("Comment")).to_be_focused()
        held.release(100)
        expect(page.get_by_role("link", name="Compare with …")).to_be_visible()
        expect(page.get_by_role("heading", name="Samples", exact=True)).to_be_visible()
        expect(page.get_by_text("Showing 1–25 of 30")).to_be_visible()
        expect(page.locator(".process")).to_have_count(0)
        expect(page.locator("p.verdict").first).to_contain_text("Right in 0 of 30 prompts")
        assert chosen.get_by_role("button").get_attribute("aria-label") == first
        expect(page.get_by_label("Comment")).to_have_value("typed while it runs")
        expect(page.locator("details[open] > summary", has_text="Settings")).to_have_count(1)
        page.keyboard.type(", right to its end")  # into the field: no letter is a key
        expect(page.get_by_label("Comment")).to_have_value("typed while it runs, right to its end")
        with page.expect_response("**/run/mark"):
            page.get_by_label("Comment").press("Enter")
        [mark] = sl.load_run(begun.path).marks()
        assert (mark.verdict, mark.comment) == ("wrong", "typed while it runs, right to its end")
        assert mark.is_about(
            next(each for each in sl.load_run(begun.path).records() if each.sample.id == mark.sample)
        )
        assert seen == []
        page.context.close()


def test_runs_are_chosen_and_compared_without_scrolling(browser: Browser, app: Serving) -> None:
    page, _ = opened(browser, app)
    for name in ("one", "two"):
        page.get_by_label(f"Choose {name} to compare").check()
    button = page.get_by_role("button", name="Compare the chosen runs")
    page.set_viewport_size({"width": 1280, "height": 450})
    for top in (0, 5_000):
        page.evaluate("top => scrollTo(0, top)", top)
        expect(button).to_be_in_viewport()
    button.click()
    expect(page.get_by_role("heading", name="Differences, paired by sample")).to_be_visible()
    page.context.close()


def test_a_connection_is_tested_before_the_start(browser: Browser, tmp_path: Path) -> None:
    with Scripted(lambda prompt: "Hello.") as server, serving(tmp_path / "runs") as app:
        page, _ = opened(browser, app, "/new-run?benchmark=rgb")
        page.locator("select[name=source]").select_option("server")
        page.get_by_label("Address").fill(server.url)
        page.get_by_label("Model name").fill("m")
        page.get_by_role("button", name="Continue").click()
        page.get_by_role("button", name="Test the connection").click()
        expect(page.get_by_text(re.compile("✓ chat"))).to_be_visible()
        page.get_by_role("button", name="Change the settings").click()
        expect(page.get_by_label("Model name")).to_have_value("m")
        page.context.close()


def test_a_browser_is_opened_without_the_token_on_its_command_line(browser: Browser, tmp_path: Path) -> None:
    """Everyone on the machine reads command lines: the token is in a file that only this person reads."""
    script, begun, runs = tmp_path / "browser", tmp_path / "begun", tmp_path / "runs"
    script.write_text(f'#!/bin/sh\necho "$@" > {begun}.part\nmv {begun}.part {begun}\n')
    script.chmod(0o700)
    runs.mkdir()
    with subprocess.Popen(
        command("app", "--runs", runs, "--port", 0, "--open"),
        env={**os.environ, "HOME": str(tmp_path), "BROWSER": str(script)},
        stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        try:
            assert process.stderr is not None
            printed = re.findall(r"http://\S+", process.stderr.readline())
            while not begun.exists():
                assert process.poll() is None
                time.sleep(0.05)
            [page_file] = tmp_path.glob("sealegs-*/open.html")
            assert begun.read_text() == f"{page_file.as_uri()}\n"
            modes = [path.stat().st_mode & 0o777 for path in (page_file.parent, page_file)]
            assert modes == [0o700, 0o600]
            page = browser.new_page()
            page.goto(page_file.as_uri())
            expect(page).to_have_url(printed[0].partition("?")[0])
            expect(page.get_by_role("heading", name="Runs")).to_be_visible()
            page.close()
        finally:
            process.terminate()
    assert not page_file.parent.exists()

"""The app in a real browser, served as a person would serve it.

Debian's chromium is driven by Playwright; without a browser these tests are skipped.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

import evenkeel as ek
from browsers import NASTY, chromium
from commandline import command
from evenkeel.app.screens.explore import ROW_HEIGHT
from evenkeel.app.show import HISTORY
from evenkeel.files import lock
from evenkeel.harness.stored.listing import ListedRun
from evenkeel.page.format import visible
from scripted import Scripted

pytestmark = pytest.mark.slow

HOSTILE = (
    "<img src=x onerror=\"document.title='run'\"> **bold** $x^2$ :red[colour] [link](javascript:alert(1))"
)
OURS = HISTORY.removeprefix("<script>").removesuffix("</script>")
HERE = ("http://127.0.0.1:", "data:", "blob:")
"""Where a page may load from."""
PATIENCE = 180_000
"""Milliseconds: a machine may be busy."""
expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of every benchmark whose answers are hostile, two of one, a broken one, and one in the making."""
    folder = tmp_path_factory.mktemp("app") / "runs"
    turn = iter(range(10**9))
    answers = [HOSTILE, *NASTY[:6]]
    with Scripted(lambda prompt: answers[next(turn) % len(answers)]) as server:
        for name in ("mirae", "mirae-again"):
            ek.run(
                "mirae", "openai:<b>m</b>", base_url=server.url, lang="en", limit=8, levels="1-2", repeats=2,
                embedder="openai:embed", out=folder / name, progress=False,
            )  # fmt: skip
        ek.run(
            "rgb",
            "openai:<b>m</b>",
            base_url=server.url,
            lang="en",
            limit=4,
            out=folder / "rgb",
            progress=False,
        )
        ek.run(
            "miron",
            "openai:<b>m</b>",
            base_url=server.url,
            lang="en",
            limit=3,
            out=folder / "miron",
            progress=False,
        )
    ek.run("multiview", method="bm25", limit=3, out=folder / "multiview", progress=False)
    (folder / "broken").mkdir()
    (folder / "broken" / "spec.json").write_text('{"format": 2')
    (folder / "unfinished").mkdir()
    (folder / "unfinished" / "spec.json").write_bytes((folder / "rgb" / "spec.json").read_bytes())
    return folder


@pytest.fixture(scope="module")
def address(runs: Path) -> Iterator[str]:
    with served(runs) as url:
        yield url


class served:
    """The app as a process of its own."""

    def __init__(self, runs: Path, *options: str) -> None:
        self._command = [*command("app"), "--runs", str(runs), "--port", "0", "--no-open", *options]

    def __enter__(self) -> str:
        self.process = subprocess.Popen(
            self._command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
        )
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if match := re.search(r"http://\S+", line):
                return match[0].rstrip("/.")
        raise AssertionError("the app did not say where it listens")

    def __exit__(self, *_: object) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()


def opened(browser: Browser, url: str, *, width: int = 1280, scheme: str = "light") -> tuple[Page, list[str]]:
    """A page of the app that has settled, and the list of what went wrong there."""
    context = browser.new_context(
        viewport={"width": width, "height": 1000}, color_scheme="dark" if scheme == "dark" else "light"
    )
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    seen: list[str] = []
    page.on("pageerror", lambda error: seen.append(f"error {error}"))
    page.on("dialog", lambda dialog: seen.append(f"dialog {dialog.message}"))
    page.on("request", lambda request: None if request.url.startswith(HERE) else seen.append(request.url))
    page.goto(url)
    settle(page)
    return page, seen


def settle(page: Page) -> None:
    """Wait until the script of the page has run."""
    expect(page.locator("h1").first).to_be_visible()
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
    expect(page.locator("[data-stale=true]")).to_have_count(0)


def choose(page: Page, label: str, option: str) -> None:
    page.get_by_label(label, exact=True).first.click()
    page.get_by_role("option", name=option, exact=True).click()
    settle(page)


def text_of(page: Page) -> str:
    return page.get_by_test_id("stMain").inner_text()


def test_all_runs_are_listed_with_what_is_wrong_with_one(browser: Browser, address: str) -> None:
    page, seen = opened(browser, f"{address}/runs")
    expect(page.get_by_text(re.compile("^7 runs of 1 model and 1 method"))).to_be_visible()
    assert page.get_by_role("dialog").count() == 0
    assert "broken/spec.json" in text_of(page)
    page.get_by_role("tab", name="Leaderboards").click()
    expect(page.get_by_text("1 shared").first).to_be_visible()
    assert seen == []
    page.context.close()


@pytest.mark.parametrize(
    "name", ["rgb", *(pytest.param(name, marks=pytest.mark.full) for name in ("mirae", "miron", "multiview"))]
)
def test_a_sample_of_each_benchmark_is_shown_as_text(name: str, browser: Browser, address: str) -> None:
    page, seen = opened(browser, f"{address}/explore?run={name}")
    if name in ("mirae", "rgb"):  # the others ask for no chat
        page.get_by_label("Search in questions and answers").fill("**bold** $x^2$")
        page.get_by_label("Search in questions and answers").press("Enter")
        settle(page)
        # The table above has the same text in cells that are never visible: they are drawn on a canvas.
        expect(page.locator(".evenkeel").get_by_text("**bold** $x^2$ :red[colour]").first).to_be_visible()
        assert visible(HOSTILE)[:60] in text_of(page)
    page.get_by_role("button", name="Next").click()
    settle(page)
    expect(page).to_have_title(f"{name} · Evenkeel")
    assert page.locator("[data-testid=stMain] img[src=x]").count() == 0
    assert page.locator("[data-testid=stMain] script").all_inner_texts() == [OURS], "a script of a stranger"
    assert "Traceback" not in text_of(page)
    assert seen == []
    page.context.close()


def test_wrong_answers_are_filtered_and_opened_by_a_click_on_their_row(
    browser: Browser, address: str, runs: Path
) -> None:
    samples = ek.load_run(runs / "rgb").samples()
    wrong = samples.select(outcome="wrong")
    page, _ = opened(browser, f"{address}/runs")
    page.goto(f"{address}/explore?run=rgb")
    settle(page)
    page.get_by_text("Wrong", exact=True).click()
    expect(page.get_by_text(f"Showing 1–{len(wrong)} of {len(wrong)}.")).to_be_visible()
    settle(page)
    table = page.get_by_test_id("stDataFrame")
    table.click(position={"x": 150, "y": 37 + ROW_HEIGHT * 2.5})  # the third row, on its question
    third = page.get_by_text(f"3 of {len(wrong)}: {samples.index.ids[wrong[2]]}", exact=True)
    expect(third).to_be_visible()
    page.reload()  # what was chosen is in the address
    settle(page)
    expect(third).to_be_visible()
    page.go_back()  # one press leaves the page
    expect(page.get_by_role("heading", name="Runs")).to_be_visible()
    page.context.close()


def test_a_wrong_sample_in_the_address_is_named(browser: Browser, address: str) -> None:
    page, _ = opened(browser, f"{address}/explore?run=rgb&sample=absent&part=Samples")
    expect(page.get_by_text("This run has no sample 'absent'")).to_be_visible()
    page.goto(f"{address}/explore?run=rgb&part=Settings")
    settle(page)
    expect(page.get_by_role("tab", name="Settings")).to_have_attribute("aria-selected", "true")
    page.context.close()


def test_a_scorecard_is_downloaded(browser: Browser, address: str) -> None:
    page, _ = opened(browser, f"{address}/scorecard")
    with page.expect_download() as download:
        page.get_by_role("button", name=re.compile("HTML")).click()
    assert "Scorecard of" in download.value.path().read_text(encoding="utf-8")
    page.context.close()


def begin_run(page: Page, url: str, server: Scripted, model: str) -> None:
    """New run, filled in and started."""
    page.goto(f"{url}/new-run?benchmark=rgb&lang=en")
    settle(page)
    choose(page, "Model", "An OpenAI-compatible server")
    for label, text in (("Address", server.url), ("Model name", model)):
        page.get_by_label(label, exact=True).fill(text)
        page.get_by_label(label, exact=True).press("Enter")
    settle(page)
    start = page.get_by_role("button", name="Start the run")
    start.click()
    expect(start).to_be_hidden()  # whoever leaves the page before has started nothing


def wait_until(page: Page, condition: Callable[[], bool]) -> None:
    """Wait for what the page does not show."""
    for _ in range(PATIENCE // 100):
        if condition():
            return
        page.wait_for_timeout(100)
    raise AssertionError("it did not happen")


@pytest.mark.parametrize("times", [1, pytest.param(10, marks=pytest.mark.full)])
def test_runs_are_started_watched_marked_and_compared(times: int, browser: Browser, tmp_path: Path) -> None:
    """New run, watch, Explore, mark, Compare: in one visit, as often as wanted."""
    folder = tmp_path / "runs"

    def finished() -> list[ListedRun]:
        return [run for run in ek.list_runs(folder) if run.state == "finished"]

    with Scripted(lambda prompt: "I do not know.") as server, served(folder) as url:
        page, seen = opened(browser, url)
        expect(page.get_by_text("does not exist")).to_be_visible()
        page.get_by_role("link", name="Start a run").click()
        expect(page.get_by_role("heading", name="New run")).to_be_visible()
        begin_run(page, url, server, "first")
        for turn in range(times):
            begin_run(page, url, server, f"model-{turn}")
            verdict = page.get_by_text(re.compile("^Right in")).first
            expect(verdict).to_be_visible(timeout=4 * PATIENCE)
            # What is drawn again every second while a run is watched must not clear the page afterwards.
            page.wait_for_timeout(3000)
            expect(verdict).to_be_visible()
            page.get_by_text("Wrong", exact=True).click()
            settle(page)
            page.get_by_label("Comment").fill(f"looked at in turn {turn}")
            page.get_by_role("button", name="Save the mark").click()
            expect(page.get_by_text("Marked wrong").first).to_be_visible()
            [mark] = ek.load_run(finished()[0].path).marks()
            assert mark.comment == f"looked at in turn {turn}"
            # The first run may take longer than the one that is watched.
            wait_until(page, lambda: len(finished()) == len(ek.started(folder)))
            page.get_by_role("link", name="Compare").click()
            expect(page.get_by_text("2 runs compared")).to_be_visible()
            expect(page.get_by_text(re.compile("too few|no clear difference")).first).to_be_visible()
        # A run writes its page last.
        wait_until(page, lambda: not any(process.active for process in ek.started(folder)))
        page.get_by_role("link", name="New run").click()
        page.get_by_role("link", name=re.compile("finished")).first.click()
        expect(page.get_by_text(re.compile("^Right in")).first).to_be_visible()
        assert [run.state for run in ek.list_runs(folder)] == ["finished"] * (times + 1)
        assert seen == []
        page.context.close()


def test_a_run_is_stopped_and_resumed_in_another_browser(browser: Browser, tmp_path: Path) -> None:
    """The server answers a few prompts; the others wait until the run was stopped."""

    def answer(prompt: str) -> str:
        if sum(server.answered.values()) >= 12:
            server.behaviour.latency = 3600
        return "I do not know."

    with Scripted(answer) as server, served(tmp_path / "runs") as url:
        page, _ = opened(browser, url)
        begin_run(page, url, server, "slow")
        bar = page.get_by_test_id("stProgress")
        expect(bar).to_contain_text(re.compile(r"[5-9] of [\d,]+ requests|\d\d+ of [\d,]+ requests"))
        expect(page.get_by_text(re.compile(r"requests per second, 0 failed"))).to_be_visible()
        expect(page.get_by_text(re.compile(r"^In progress: .* answered\. .* so far"))).to_be_visible()
        page.get_by_role("button", name="Stop", exact=True).click()
        expect(page.get_by_text(re.compile("^Stopp")).first).to_be_visible()
        page.get_by_role("link", name="Change the settings").click()
        expect(page.get_by_label("Model name")).to_have_value("slow")
        page.get_by_role("link", name="Compare").click()
        expect(page.get_by_role("heading", name="Compare")).to_be_visible()
        page.get_by_role("link", name="New run").click()  # what was filled in is still there
        expect(page.get_by_label("Model name")).to_have_value("slow")
        page.context.close()

        before = dict(server.answered)
        page, _ = opened(browser, f"{url}/new-run")
        page.get_by_role("link", name=re.compile("stopped")).click()
        expect(page.get_by_text("Stopped. Resuming won't repeat")).to_be_visible()
        page.get_by_text("Resume at the terminal").click()
        expect(page.get_by_text(re.compile(r"^evenkeel resume \S+"))).to_be_visible()
        server.behaviour.latency = 0
        server.rule = lambda prompt: "I do not know."
        page.get_by_role("button", name="Resume").click()
        expect(page.get_by_role("button", name="Next")).to_be_visible(timeout=4 * PATIENCE)
        [listed] = ek.list_runs(tmp_path / "runs")
        assert listed.state == "finished"
        assert listed.headline is not None
        assert listed.headline.coverage == 1
        assert sum(server.answered[prompt] == before[prompt] for prompt in before) >= 5, "asked again"
        page.context.close()


def test_what_cannot_be_shown_says_why(browser: Browser, address: str, runs: Path) -> None:
    page, _ = opened(browser, f"{address}/explore?run=broken")
    assert "not JSON" in text_of(page)
    page.context.close()
    page, _ = opened(browser, f"{address}/explore?run=../runs/rgb")
    assert "is not the name of a run here" in text_of(page)
    page.context.close()
    with lock.writing(runs / "unfinished"):
        page, _ = opened(browser, f"{address}/explore?run=unfinished")
        assert "In progress" in text_of(page)
        page.context.close()
    page, _ = opened(browser, f"{address}/explore?run=unfinished")
    assert "Not finished" in text_of(page)
    page.context.close()


def test_a_read_only_app_starts_and_marks_nothing(browser: Browser, runs: Path) -> None:
    with served(runs, "--read-only") as url:
        page, _ = opened(browser, f"{url}/explore?run=miron")
        assert page.get_by_role("link", name="New run").count() == 0
        assert page.get_by_role("button", name="Save the mark").count() == 0
        for name in ("new-run", "build"):
            page.goto(f"{url}/{name}")
            settle(page)
            expect(page.get_by_text("This app is read-only")).to_be_visible()
            assert page.get_by_role("button", name=re.compile("Start|Count|Build")).count() == 0
            assert page.get_by_role("dialog").count() == 0
        page.get_by_role("link", name="Look at the runs").click()
        expect(page.get_by_role("heading", name="Runs")).to_be_visible()
        page.context.close()


PAGES = ["", "new-run", "explore", "compare", "build", "scorecard", "explained"]


@pytest.mark.parametrize(
    ("width", "scheme"), [(1280, "light"), pytest.param(390, "dark", marks=pytest.mark.full)]
)
def test_everyone_can_use_the_pages(width: int, scheme: str, browser: Browser, address: str) -> None:
    page, seen = opened(browser, address, width=width, scheme=scheme)
    for name in PAGES:
        page.goto(f"{address}/{name}")
        settle(page)
        results = Axe().run(page)
        assert results.violations_count == 0, f"{name} {scheme}\n{results.generate_report()}"
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, f"{name} is {wide} pixels wide at {width}"
    assert seen == []
    page.context.close()

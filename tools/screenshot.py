"""Take the pictures of the documentation: the gallery's scorecard, and a run of the gallery in the app.

    python tools/screenshot.py              from docs/gallery and runs/gallery, as `make gallery` leaves them
    python tools/screenshot.py --dark       on dark pages

Where the gallery's runs are not on this machine, the picture of the app stays as it is. Needs chromium (on
Debian: apt-get install chromium) and the dev extra, whose Playwright drives it.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


class Picture(NamedTuple):
    """A file of docs/pictures, the page that it shows, and how much of it."""

    name: str
    page: str
    width: int = 1000
    height: int = 1000


APP = Picture("app.png", "run?run=rgb&show=wrong", width=1280, height=860)
"""A page of the app, over the runs of the gallery."""
SCORECARD = Picture("scorecard.png", "scorecard.html", height=1640)
"""A page of the gallery."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gallery", type=Path, default=ROOT / "docs" / "gallery", help="its pages")
    parser.add_argument("--runs", type=Path, default=ROOT / "runs" / "gallery", help="its runs")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "pictures", help="where the pictures go")
    parser.add_argument("--dark", action="store_true")
    given = parser.parse_args()
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if not (given.gallery / SCORECARD.page).is_file():
        sys.exit(f"{given.gallery} has no {SCORECARD.page}: run make gallery first.")
    if browser is None:
        sys.exit(f"no browser is on the path ({', '.join(BROWSERS)}): apt-get install chromium")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])

        def opened(picture: Picture, address: str) -> Page:
            page = chromium.new_page(
                viewport={"width": picture.width, "height": picture.height},
                color_scheme="dark" if given.dark else "light",
            )
            page.goto(address)
            return page

        def take(picture: Picture, page: Page) -> None:
            page.screenshot(path=given.out / picture.name)
            print(given.out / picture.name)

        take(SCORECARD, opened(SCORECARD, (given.gallery / SCORECARD.page).resolve().as_uri()))
        if (given.runs / "rgb").is_dir():
            with served(given.runs) as address:
                page = opened(APP, f"{address}/{APP.page}")
                page.locator("#samples tbody button").first.click()
                page.wait_for_selector("#sample-detail .sl-view")
                page.locator("#samples").evaluate("part => part.scrollIntoView()")
                take(APP, page)
        chromium.close()


@contextmanager
def served(runs: Path) -> Iterator[str]:
    """The app over some runs, and its address."""
    command = [
        sys.executable,
        "-m",
        "sealegs",
        "app",
        "--runs",
        str(runs),
        "--port",
        "0",
        "--no-open",
        "--read-only",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        try:
            yield next(match[0] for line in process.stdout if (match := re.search(r"http://[\w.:]+", line)))
        finally:
            process.terminate()


if __name__ == "__main__":
    main()

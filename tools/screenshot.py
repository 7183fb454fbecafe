"""Take the pictures that the README shows, from the pages of a demo and from the app.

    python tools/screenshot.py                  the newest demo below runs/
    python tools/screenshot.py FOLDER --dark    another one, on a dark page

Run `sealegs demo` first. Needs chromium (on Debian: apt-get install chromium) and the dev extra, whose
Playwright drives it.
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

from playwright.sync_api import sync_playwright

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


class Picture(NamedTuple):
    """A file of docs/pictures, the demo's page that it shows, and how much of it."""

    name: str
    page: str
    width: int = 1000
    height: int = 1000


APP = Picture("app.png", "run?run=rgb&show=wrong", width=1280, height=860)
"""A page of the app, over the runs of the demo."""
WANTED = (
    Picture("scorecard.png", "scorecard.html", height=1640),
    Picture("report.png", "multiview/report.html"),
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, nargs="?", help="a demo's folder")
    parser.add_argument("--out", type=Path, default=PICTURES, help="where the pictures go")
    parser.add_argument("--dark", action="store_true")
    given = parser.parse_args()
    folder = given.folder or newest_demo()
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if missing := [page for _, page, *_ in WANTED if not (folder / page).is_file()]:
        sys.exit(f"{folder} has no {missing[0]}: run sealegs demo first.")
    if browser is None:
        sys.exit(f"no browser is on the path ({', '.join(BROWSERS)}): apt-get install chromium")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        for picture in WANTED:
            page = chromium.new_page(
                viewport={"width": picture.width, "height": picture.height},
                color_scheme="dark" if given.dark else "light",
            )
            page.goto((folder / picture.page).resolve().as_uri())
            page.screenshot(path=given.out / picture.name)
            print(given.out / picture.name)
        with served(folder) as address:
            page = chromium.new_page(
                viewport={"width": APP.width, "height": APP.height},
                color_scheme="dark" if given.dark else "light",
            )
            page.goto(f"{address}/{APP.page}")
            page.wait_for_selector("#sample-detail .sl-view")
            page.locator("#samples").evaluate("part => part.scrollIntoView()")
            page.screenshot(path=given.out / APP.name)
            print(given.out / APP.name)
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
        yield next(match[0] for line in process.stdout if (match := re.search(r"http://[\w.:]+", line)))
        process.terminate()


def newest_demo() -> Path:
    demos = sorted(Path("runs").glob("*-demo-embedded*/scorecard.html"))
    if not demos:
        sys.exit("there is no demo below runs/: run sealegs demo first.")
    return demos[-1].parent


if __name__ == "__main__":
    main()

"""Take the picture of a report that the README shows.

    python tools/screenshot.py RUN/report.html docs/report.png [--width 1100] [--height 1200] [--dark]

Needs chromium on the path and the dev extra (Playwright drives it).
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from playwright.sync_api import sync_playwright


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("page", type=Path)
    parser.add_argument("picture", type=Path)
    parser.add_argument("--width", type=int, default=1100)
    parser.add_argument("--height", type=int, default=1200)
    parser.add_argument("--dark", action="store_true")
    given = parser.parse_args()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(
            viewport={"width": given.width, "height": given.height},
            color_scheme="dark" if given.dark else "light",
        )
        page.goto(given.page.resolve().as_uri())
        page.screenshot(path=given.picture)
        browser.close()


if __name__ == "__main__":
    main()

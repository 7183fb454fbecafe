"""A browser is opened at the app."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sealegs.app.access import leading_page


def can_open_browser() -> bool:
    """Whether there is a person with a screen: a browser in the terminal would take it over."""
    screen = sys.platform in ("darwin", "win32") or {"DISPLAY", "WAYLAND_DISPLAY"} & set(os.environ)
    return bool(screen) and sys.stderr is not None and sys.stderr.isatty()


@contextmanager
def browser_opened(address: str) -> Iterator[None]:
    """Open a page that leads to the address, in a folder that only this person can read.

    Everyone on the machine can read what a browser is started with, and the address has the token. The folder
    is in the person's own: a browser in a sandbox sees no other temporary file.
    """
    with tempfile.TemporaryDirectory(prefix="sealegs-", dir=Path.home()) as folder:
        page = Path(folder) / "open.html"
        page.touch(mode=0o600)
        page.write_text(leading_page(address), encoding="utf-8")
        threading.Thread(target=webbrowser.open, args=(page.as_uri(),), daemon=True).start()
        yield

"""Signals: Ctrl-C, SIGTERM and SIGHUP end a run alike, with everything stored; a second one at once."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from types import FrameType

SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
SHOW_CURSOR = b"\x1b[?25h"


@contextlib.contextmanager
def stopping() -> Iterator[list[int]]:
    """While the block runs, the first signal raises KeyboardInterrupt in it; the second has its default
    action, which waits for no library. The list has the number of the first, once it came.

    What is in the journal is safe either way. A signal that the caller has ignored (nohup) stays so.
    """
    received: list[int] = []
    handled = [number for number in SIGNALS if signal.getsignal(number) not in (signal.SIG_IGN, None)]

    def stop(number: int, frame: FrameType | None) -> None:
        received.append(number)
        for other in handled:
            signal.signal(other, signal.SIG_DFL)
        with contextlib.suppress(OSError, ValueError):
            if sys.stderr.isatty():  # a progress bar hides it, and the second signal leaves no time
                os.write(sys.stderr.fileno(), SHOW_CURSOR)
        raise KeyboardInterrupt

    handlers = {number: signal.signal(number, stop) for number in handled}
    try:
        yield received
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)

"""Signals: Ctrl-C, SIGTERM and SIGHUP end a run alike, with everything stored; a second one at once."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType

SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
SHOW_CURSOR = b"\x1b[?25h"


class Stopped(KeyboardInterrupt):
    """A signal asked this process to end."""


class Stopping:
    """Which signal has asked for the end, if any."""

    number: int | None = None

    @property
    def exit_code(self) -> int:
        """By convention 128 and the number of the signal: 130 Ctrl-C, 143 SIGTERM, 129 SIGHUP."""
        return 128 + (self.number or signal.SIGINT)


@contextlib.contextmanager
def stopping() -> Iterator[Stopping]:
    """While the block runs, the first signal raises KeyboardInterrupt in it; the second has its default
    action, which waits for no library.

    What is in the journal is safe either way. A signal that the caller has ignored (nohup) stays so.
    """
    state = Stopping()
    handled = [number for number in SIGNALS if signal.getsignal(number) not in (signal.SIG_IGN, None)]
    if threading.current_thread() is not threading.main_thread():
        yield state
        return

    def stop(number: int, frame: FrameType | None) -> None:
        state.number = number
        for each in handled:
            signal.signal(each, signal.SIG_DFL)
        with contextlib.suppress(OSError, ValueError):
            if sys.stderr.isatty():  # a progress bar hides it, and the second signal leaves no time
                os.write(sys.stderr.fileno(), SHOW_CURSOR)
        raise Stopped

    handlers = {number: signal.signal(number, stop) for number in handled}
    try:
        yield state
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)

"""Signals: Ctrl-C, SIGTERM and SIGHUP end a run alike, with everything stored; a second one at once."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
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
    """While the block runs, the first signal raises KeyboardInterrupt in it and the second leaves at once.

    What is in the journal is safe either way. A signal that the caller has ignored (nohup) stays so.
    """
    state = Stopping()
    handled = [number for number in SIGNALS if signal.getsignal(number) not in (signal.SIG_IGN, None)]
    if threading.current_thread() is not threading.main_thread() or not handled:
        yield state
        return

    def stop(number: int, frame: FrameType | None) -> None:
        if state.number is None:
            state.number = number
            raise Stopped

    # The second signal is seen by a thread: the main one may be deep in a library, which Python's own
    # handlers wait for.
    inner, outer = socket.socketpair()
    inner.setblocking(False)
    before = signal.set_wakeup_fd(inner.fileno(), warn_on_full_buffer=False)
    handlers = {number: signal.signal(number, stop) for number in handled}
    for number in handled:
        _end_at_second(number)
    threading.Thread(target=_watch, args=(outer, set(handled)), name="evenkeel-signals", daemon=True).start()
    try:
        yield state
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(before)
        inner.close()  # ends the thread


def _end_at_second(number: int) -> None:
    """Give a signal its default action once it has come: a library that keeps Python's lock, such as a
    tokenizer's, lets neither a handler nor a thread run."""
    with contextlib.suppress(AttributeError, OSError, TypeError):  # only the GNU library offers it
        library = ctypes.CDLL(None)
        for function in (library.signal, library.sysv_signal):
            function.argtypes, function.restype = (ctypes.c_int, ctypes.c_void_p), ctypes.c_void_p
        library.sysv_signal(number, library.signal(number, None))


def _watch(signals: socket.socket, handled: set[int]) -> None:
    """Leave on the second signal of those that end a run."""
    count = 0
    with signals:
        while received := signals.recv(1):
            count += received[0] in handled
            if count > 1:
                with contextlib.suppress(OSError, ValueError):
                    if sys.stderr.isatty():
                        os.write(sys.stderr.fileno(), SHOW_CURSOR)
                os._exit(128 + received[0])

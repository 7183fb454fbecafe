"""Has charts drawn by another process, whose JavaScript engine takes 70 MB that this one is spared."""

from __future__ import annotations

import atexit
import base64
import contextlib
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Literal

import msgspec

from evenkeel.errors import DrawingError

SCRIPT = Path(__file__).with_name("process.py")
SECONDS = 60.0
"""For one chart, the start of the engine included."""


class Engine:
    """Starts the process when it is needed, and again where it died.

    It ends with this one, however that ends, because its input does.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0
        self._lock = threading.Lock()

    def start(self) -> None:
        """Start without waiting, so that the engine is ready when the first chart is."""
        with contextlib.suppress(OSError), self._lock:
            self._running()

    def draw(self, form: Literal["svg", "png"], chart: str) -> bytes:
        """A Vega-Lite specification, as JSON text, as a picture."""
        request = msgspec.json.encode({"format": form, "chart": chart}) + b"\n"
        with self._lock:
            answer = self._answer(request)
        if "content" not in answer:
            raise DrawingError(f"the chart could not be drawn: {answer.get('error', 'no answer')}.")
        return base64.b64decode(answer["content"]) if form == "png" else answer["content"].encode()

    def _answer(self, request: bytes) -> dict[str, str]:
        process, late = None, threading.Event()

        def end() -> None:
            late.set()
            if process is not None:
                process.kill()

        timer = threading.Timer(SECONDS, end)
        try:
            process = self._running()
            assert process.stdin is not None
            assert process.stdout is not None
            timer.start()
            try:
                process.stdin.write(request)
                process.stdin.flush()
                return msgspec.json.decode(process.stdout.readline(), type=dict[str, str])
            finally:
                timer.cancel()
        except (OSError, msgspec.MsgspecError) as error:
            if process is None:
                raise DrawingError(f"the process that draws charts cannot be started ({error}).") from error
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(1)  # it closes its output before it ends
            self.close()
            reason = (
                f"took longer than {SECONDS:g} s"
                if late.is_set()
                else f"ended (exit code {process.returncode})"
            )
            raise DrawingError(
                f"the chart could not be drawn: the process that draws charts {reason}."
            ) from None
        except BaseException:  # interrupted: its next line would be the answer to this request
            self.close()
            raise

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._owner != os.getpid() or self._process.poll() is not None:
            self.close()
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(SCRIPT)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                # Ctrl-C is not meant for it, and a notebook's kernel that ends would wait for it in vain.
                start_new_session=True,
            )  # fmt: skip
            self._owner = os.getpid()
        return self._process

    def close(self) -> None:
        """End the process; the next chart starts another."""
        process, self._process = self._process, None
        if process is None or self._owner != os.getpid():
            return
        process.kill()
        with contextlib.suppress(OSError):
            process.communicate()


ENGINE = Engine()
atexit.register(ENGINE.close)

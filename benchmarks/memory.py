"""The peak memory of a process and of its largest child, from /proc: `wait4` does not tell them apart."""

from __future__ import annotations

import re
import threading
import time
from contextlib import suppress
from pathlib import Path

INTERVAL = 0.02


class Peaks:
    """Watches a process and its children in a thread until it ends."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._peaks: dict[int, float] = {}
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while self._look(self._pid):
            for child in self._children():
                self._look(child)
            time.sleep(INTERVAL)

    def _look(self, pid: int) -> bool:
        """Note the peak of a process so far; False where it has ended."""
        with suppress(OSError):
            if match := re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text()):
                self._peaks[pid] = int(match[1]) / 1024
                return True
        return False

    def _children(self) -> list[int]:
        with suppress(OSError):
            files = Path(f"/proc/{self._pid}/task").glob("*/children")
            return [int(pid) for file in files for pid in file.read_text().split()]
        return []

    def __str__(self) -> str:
        self._thread.join(timeout=1)
        own = self._peaks.pop(self._pid, 0.0)
        child = max(self._peaks.values(), default=0.0)
        return f"peak {own:,.0f} MB, its largest child {child:,.0f} MB, together {own + child:,.0f} MB"

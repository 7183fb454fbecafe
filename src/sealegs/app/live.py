"""The run of a name as its pages show it: finished, or as far as it is, scored again every few seconds."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from sealegs.api import launch
from sealegs.api.launch import Started
from sealegs.api.so_far import so_far
from sealegs.app.rendering import ANSWERS, Stamp, stamp
from sealegs.app.settings import AppSettings
from sealegs.errors import SealegsError, UsageError, place_of
from sealegs.files.lock import is_written
from sealegs.harness.folder import Run
from sealegs.harness.stored.listing import open_run, path_of

REST_S = 2.0
"""Between two looks at the answers of a run."""
REST = 10
"""The same, as a multiple of what the last look took: others are served meanwhile."""
PATIENCE_S = 1.0
"""How long a page waits for the first look."""
MOST_LIVE = 8
"""Runs that are kept as far as they are."""


class LiveRun:
    """What is answered of a run that is not finished, brought up to date in a thread of its own when someone
    looks. Only the first look is waited for."""

    def __init__(self, folder: Path) -> None:
        self.run: Run | None = None
        self.problem = ""
        """Why the last look found nothing."""
        self._folder = folder
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._seen: list[str] = []
        self._stamp: Stamp = ()
        self._due = 0.0

    @property
    def is_busy(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def look(self) -> LiveRun:
        with self._lock:
            is_due = time.monotonic() >= self._due or not is_written(self._folder)  # what is at rest stays so
            if is_due and not self.is_busy:
                now = stamp(self._folder, ANSWERS)
                if now != self._stamp:
                    self._stamp = now
                    self._thread = threading.Thread(target=self._update, name="sealegs-so-far", daemon=True)
                    self._thread.start()
        if self.run is None and self._thread:
            self._thread.join(PATIENCE_S)
        return self

    def _update(self) -> None:
        began = time.monotonic()
        try:
            with _ONE_AT_A_TIME:
                began = time.monotonic()
                self.run = so_far(self._folder, self._seen)
                self._seen = self.run.samples().index.ids if self.run else []
            self.problem = ""
        except (SealegsError, OSError) as error:  # it is being written: the next look may find it whole
            self.problem = str(error)
        except Exception as error:  # noqa: BLE001  # a folder may hold anything
            self.problem = f"What is answered cannot be scored ({place_of(error)})."
        finally:
            self._due = time.monotonic() + max(REST_S, REST * (time.monotonic() - began))


_LIVE: dict[Path, LiveRun] = {}
_ONE_AT_A_TIME = threading.Lock()


def process_of(settings: AppSettings, name: str) -> Started | None:
    """The process of a run or a build below the folder, if its settings can be read."""
    return None if settings.read_only else launch.stored(path_of(settings.runs, name))


def finished_run(settings: AppSettings, name: str) -> Run | None:
    """The run, if it is finished; a name that leads nowhere is an error."""
    if process_of(settings, name) is not None and not (path_of(settings.runs, name) / "spec.json").exists():
        return None  # its process has just begun
    run = open_run(settings.runs, name)
    if not (run.path / "summary.json").is_file() or is_written(run.path):
        return None
    _LIVE.pop(run.path, None)
    return run


def live_run(settings: AppSettings, name: str) -> LiveRun:
    """What is answered of a run that is not finished."""
    folder = path_of(settings.runs, name)
    if folder not in _LIVE:
        for other in list(_LIVE)[: 1 - MOST_LIVE]:
            _LIVE.pop(other, None)
    live = _LIVE.setdefault(folder, LiveRun(folder))
    return live.look() if folder.is_dir() else live


def shown_run(settings: AppSettings, name: str) -> Run:
    """A run whose samples are asked for, finished or not."""
    if run := finished_run(settings, name) or live_run(settings, name).run:
        return run
    raise UsageError("this run has no answered sample yet.")

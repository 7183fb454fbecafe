"""Commands that are killed at chosen moments: at a number of answers, or at a file that they touch."""

from __future__ import annotations

import asyncio
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from aiohttp import web

from loopback import Loopback

PROMISED_S = 0.05
"""An answer that was received so long before a kill is not asked for again."""

WATCHED = """
import os, signal, sys

folder, moment, log, number = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
EVENTS = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "sqlite3.connect"}
count = 0


def look(event, arguments):
    global count
    if event not in EVENTS:
        return
    paths = [os.fsdecode(path) for path in arguments[:2] if isinstance(path, (str, bytes))]
    if not any(path.startswith(folder) and "progress.json" not in path for path in paths):
        return
    count += 1
    if count == moment and number == signal.SIGKILL:
        os.killpg(0, number)
    elif count == moment:
        os.kill(os.getpid(), number)


sys.addaudithook(look)
sys.argv[:5] = ["sealegs"]
from sealegs.cli import main

try:
    main()
finally:
    if log:
        with open(log, "w") as file:
            file.write(str(count))
"""
"""The command line in a process that counts the files of a folder which it opens, renames or removes, and
kills its process group at the chosen one, or sends itself another signal."""


class Sent(NamedTuple):
    """An answer that was sent as a whole: when, and to which text."""

    at: float
    text: str


class Timed(Loopback):
    """A server that notes when each answer had been sent, and holds back those beyond `most`."""

    def __init__(self, **behaviour: Any) -> None:
        super().__init__(**behaviour)
        self.sent: list[Sent] = []
        self.begun = 0
        self.most: float = math.inf
        self.client = 0
        """Counts the processes: what is sent to one that was killed is not an answer."""

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        data = await request.read()
        client = self.client
        self.begun += 1
        if self.begun > self.most:
            await asyncio.sleep(3600)
        reply = await super()._handle(request)
        await reply.prepare(request)
        await reply.write_eof()
        now, body = time.monotonic(), msgspec.json.decode(data)
        if client == self.client:
            self.sent += [Sent(now, text) for text in body.get("input") or [data.decode()]]
        return reply


class Killed:
    """A command that is started again and again and killed each time, with what that cost."""

    def __init__(self, arguments: Sequence[object], folder: Path, server: Timed | None = None) -> None:
        self.arguments = [str(argument) for argument in arguments]
        self.folder = folder
        self.server = server
        self.kills: list[float] = []
        self.settled: list[tuple[int, int]] = []
        """From which to which of the server's answers a process received all before it was killed at rest."""
        self.errors: list[str] = []
        """What a command printed that ended by itself other than well."""

    def finish(self, log: Path | None = None) -> int:
        """Let the command run to its end; its exit code. The number of files touched is written to `log`."""
        process = self._start(log=log)
        return self._ended(process)

    def kill_at_file(self, moment: int) -> None:
        """Kill it when it touches its n-th file, or let it end where it touches fewer."""
        process = self._start(moment)
        if self._ended(process) == -signal.SIGKILL:
            self.kills.append(time.monotonic())

    def kill_at_answer(self, number: int) -> None:
        """Kill it when so many more answers were sent."""
        assert self.server is not None
        target = len(self.server.sent) + number
        process = self._start()
        while len(self.server.sent) < target and process.poll() is None:
            time.sleep(0.001)
        self._kill(process)

    def kill_after_start(self, seconds: float) -> None:
        """Kill it so long after its folder has appeared."""
        process = self._start()
        while not self.folder.exists() and process.poll() is None:
            time.sleep(0.0005)
        time.sleep(seconds)
        self._kill(process)

    def kill_at_rest(self, number: int) -> None:
        """Kill it when it has received so many answers and has had nothing to do since, for as long as is
        promised. A process that waits for a processor is not at rest."""
        assert self.server is not None
        first = len(self.server.sent)
        self.server.most = self.server.begun + number
        process = self._start()
        while self.server.begun < self.server.most and process.poll() is None:
            time.sleep(0.001)
        rested = time.monotonic()
        while time.monotonic() < rested + PROMISED_S and process.poll() is None:
            time.sleep(0.005)
            if not at_rest(process.pid) or (self.server.sent and self.server.sent[-1].at > rested):
                rested = time.monotonic()
        self._kill(process)
        self.settled.append((first, len(self.server.sent)))
        self.server.most = math.inf

    def lost_at_rest(self) -> int:
        """Answers that a process had received when it was killed at rest, and that were asked for again."""
        assert self.server is not None
        texts = [text for _, text in self.server.sent]
        return sum(len(set(texts[first:end]) & set(texts[end:])) for first, end in self.settled)

    def _start(self, moment: int = 0, log: Path | None = None) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*watched(self.folder, moment, log), *self.arguments],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def _kill(self, process: subprocess.Popen[str]) -> None:
        if process.poll() is None:
            self.kills.append(time.monotonic())
            if self.server is not None:
                self.server.client += 1
            os.killpg(process.pid, signal.SIGKILL)
        self._ended(process)

    def _ended(self, process: subprocess.Popen[str]) -> int:
        _, printed = process.communicate()
        if process.returncode not in (0, -signal.SIGKILL):
            self.errors.append(printed)
        return process.returncode


def watched(
    folder: Path, moment: int, log: Path | None = None, sent: signal.Signals = signal.SIGKILL
) -> list[str]:
    """The command line that gets a signal at the n-th file of a folder that it touches."""
    return [sys.executable, "-c", WATCHED, str(folder), str(moment), str(log or ""), str(int(sent))]


def at_rest(pid: int) -> bool:
    """Whether no thread of a process runs, waits for a processor or for the disk."""
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        return all((task / "stat").read_text().rpartition(")")[2].split()[0] == "S" for task in tasks)
    except OSError:
        return False


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder, by its name."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}

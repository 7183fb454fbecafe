"""Commands at a real terminal of 80 columns: prose is broken between words, in a pipe it is not."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from pathlib import Path

import numpy as np
import pytest

from commandline import command, sealegs
from stored import store_run


def at_terminal(width: int, *args: object) -> list[str]:
    """The lines that a command prints at a terminal."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    with subprocess.Popen(
        command(*args), stdin=theirs, stdout=theirs, stderr=theirs, env={**environment, "TERM": "xterm"}
    ):
        os.close(theirs)
        output = b""
        try:
            while chunk := os.read(ours, 65536):
                output += chunk
        except OSError:  # its end
            pass
    os.close(ours)
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", output.decode()).splitlines()


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    values = np.linspace(0.5, 0.9, 48).reshape(12, 4)
    model = "a-model-with-a-long-name-as-files-have/and-a-quantisation-Q4_K_M"
    return [
        store_run(tmp_path / f"run-{n}", {"mean_similarity": values - n / 10}, model=model).path
        for n in range(2)
    ]


def test_tables_and_sentences_fit_a_terminal_of_80_columns(runs: list[Path]) -> None:
    commands: list[list[object]] = [
        ["compare", *runs],
        ["gate", runs[1], "--baseline", runs[0]],
        ["list", "runs", runs[0].parent],
        ["list", "metrics", "mirae"],
        ["list", "models"],
    ]
    for arguments in commands:
        lines = at_terminal(80, *arguments)
        assert len(lines) > 3
        # Paths and addresses are not broken: they can be copied.
        long = [line for line in lines if len(line) > 80 and not re.search(r"\S{60}", line)]
        assert long == []


def test_in_a_pipe_a_check_of_the_gate_is_one_line(runs: list[Path]) -> None:
    lines = sealegs("gate", runs[1], "--baseline", runs[0]).stdout.splitlines()
    assert [line[:4] for line in lines] == ["pass", "pass"]
    assert len(lines[1]) > 100

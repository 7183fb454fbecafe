"""The command line in tests: `sealegs(...)` in this process, `sealegs_process(...)` in another."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from sealegs.cli import main

SOURCE = Path(__file__).parents[1] / "src"


class Outcome(NamedTuple):
    """How a command ended."""

    code: int
    stdout: str
    stderr: str

    @property
    def output(self) -> str:
        return self.stdout + self.stderr


def sealegs(*args: object, **environment: str) -> Outcome:
    """Call the command line without the cost of another process. What it printed is printed again."""
    stdout, stderr = io.StringIO(), io.StringIO()
    code = 0
    with (
        patch.object(sys, "argv", ["sealegs", *map(str, args)]),
        patch.dict(os.environ, {"NO_COLOR": "1", **environment}),
        contextlib.redirect_stdout(stdout),
        contextlib.redirect_stderr(stderr),
    ):
        try:
            main()
        except SystemExit as exit:
            code = int(exit.code or 0)
    outcome = Outcome(code, stdout.getvalue(), stderr.getvalue())
    sys.stdout.write(outcome.stdout)
    sys.stderr.write(outcome.stderr)
    return outcome


def command(*args: object) -> list[str]:
    """The command line as another process is started with it."""
    return [sys.executable, "-m", "sealegs", *map(str, args)]


def python(code: str, *args: object) -> str:
    """What a script prints that ends well in another process."""
    line = [sys.executable, "-c", code, *map(str, args)]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def packages_without(folder: Path, *absent: str) -> Path:
    """The packages of this environment, made of links, without those whose names begin so."""
    for site in (Path(path) for path in sys.path if path.endswith("site-packages")):
        for entry in site.iterdir():
            if not entry.name.startswith(absent) and not (folder / entry.name).exists():
                (folder / entry.name).symlink_to(entry)
    return folder


def sealegs_process(*args: object, site: Path | None = None, **environment: str) -> Outcome:
    """Run the command line in another process; with `site`, on the packages in that folder alone."""
    line = command(*args)
    if site is not None:
        line.insert(1, "-S")
        environment["PYTHONPATH"] = f"{SOURCE}{os.pathsep}{site}"
    done = subprocess.run(
        line, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    return Outcome(done.returncode, done.stdout, done.stderr)

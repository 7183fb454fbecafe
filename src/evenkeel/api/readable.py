"""Whether a benchmark can read a data set, without reading all of it where its beginning tells."""

from __future__ import annotations

import tempfile
from pathlib import Path

from evenkeel.api.setup import read_samples
from evenkeel.errors import DataError, UsageError
from evenkeel.files.remote.sources import is_elsewhere
from evenkeel.harness.registry import benchmark_name, load_benchmark

BEGINNING = 2**16
"""Bytes of each file that are read first."""


def data_problem(benchmark: str | Path, data: str | Path) -> str:
    """Why a benchmark cannot read a file or folder of data: `ek.data_problem("rgb", "my.jsonl")`.

    Empty where it can. Of a large file of lines only the beginning is read: a later line may still be wrong.
    """
    if is_elsewhere(str(data)):
        return _problem(benchmark, str(data))
    path = Path(data)
    with tempfile.TemporaryDirectory() as folder:
        try:
            beginning = _beginning(path, Path(folder))
        except OSError as error:
            return f"{path}: cannot be read ({error.strerror or error})."
        if beginning is not None and not _problem(benchmark, beginning):
            return ""
    return _problem(benchmark, path)


def _problem(benchmark: str | Path, path: str | Path) -> str:
    problem = ""
    for langs in (None, ["en"]):  # a file that does not state its language takes the one that is asked for
        try:
            read_samples(load_benchmark(benchmark, {}), benchmark_name(benchmark), [str(path)], langs, 1)
        except DataError as error:
            problem = problem or str(error)
        except UsageError:
            return ""  # the data can be read; what is chosen of it has to be another
        else:
            return ""
    return problem


def _beginning(path: Path, folder: Path) -> Path | None:
    """The same files, each cut after a line; None where no file is large."""
    files = [each for each in (path.iterdir() if path.is_dir() else [path]) if each.is_file()]
    if not any(file.stat().st_size > BEGINNING for file in files):
        return None
    for file in files:
        with file.open("rb") as opened:
            content = opened.read(BEGINNING)
        if file.stat().st_size > BEGINNING:
            content = content[: content.rfind(b"\n") + 1]
        (folder / file.name).write_bytes(content)
    return folder if path.is_dir() else folder / path.name

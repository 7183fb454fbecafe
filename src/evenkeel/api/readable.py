"""Whether a benchmark can read a data set."""

from __future__ import annotations

from pathlib import Path

from evenkeel.api.setup import read_samples
from evenkeel.errors import DataError, UsageError
from evenkeel.harness.registry import benchmark_name, load_benchmark


def data_problem(benchmark: str | Path, data: str | Path) -> str:
    """Why a benchmark cannot read a file or folder of data: `ek.data_problem("rgb", "my.jsonl")`.

    Empty where it can.
    """
    problem = ""
    for lang in (None, "en"):  # a file that does not state its language takes the one that is asked for
        try:
            read_samples(load_benchmark(benchmark, {}), benchmark_name(benchmark), data, lang, 1)
        except DataError as error:
            problem = problem or str(error)
        except UsageError:
            return ""  # the data can be read; what is chosen of it has to be another
        else:
            return ""
    return problem

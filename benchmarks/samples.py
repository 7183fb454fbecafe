"""Opening and searching the samples of a large run, against reading all of its records.

    python benchmarks/samples.py [--samples 100000]

Records like those of MIRON (many values, short texts, token probabilities) and of RGB (documents, one answer)
are written to a temporary folder, about 2 kB each. Seconds are of the processor; the ratio is to reading all
records, which is the naive way.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import numpy as np

from evenkeel.benchmarks.miron.page import METRICS as MIRON_METRICS
from evenkeel.files.cache import cache_dir
from evenkeel.files.record_index import record_index
from evenkeel.harness.folder import FORMAT, Run
from evenkeel.harness.writing import RunFolder
from evenkeel.types import Logprobs, Record, Response, RunSpec, Sample, Score
from table import Row, show

WORDS = ["the", "river", "bends", "slowly", "past", "an", "old", "mill", "강은", "흐르고", "水", "Река"]


def text(rng: np.random.Generator, words: int) -> str:
    return " ".join(WORDS[index] for index in rng.integers(len(WORDS), size=words))


def miron(number: int, rng: np.random.Generator) -> Record:
    tokens = tuple(f" {index}" for index in range(30))
    probabilities = tuple(rng.normal(-3, 1, size=30).tolist())
    values = {metric.name: float(rng.random()) for metric in MIRON_METRICS[:24] if "*" not in metric.name}
    return record(
        number, {"lang": ("en", "ko", "ru")[number % 3], "category": f"c{number % 5}"}, values,
        {"prefix": text(rng, 12), "target": text(rng, 3), "category": "Facts"},
        (
            Response(status="ok", text=text(rng, 3)),
            Response(status="ok", logprobs=Logprobs(tokens=tokens, values=probabilities)),
        ),
    )  # fmt: skip


def rgb(number: int, rng: np.random.Generator) -> Record:
    values = {"published": float(number % 2), "lenient": float(number % 3 > 0)}
    documents = [text(rng, 75) for _ in range(4)]
    return record(
        number, {"lang": "en", "ability": f"a{number % 4}", "setting": f"noise 0.{number % 9}"}, values,
        {"query": text(rng, 10), "answer": [[text(rng, 2)]], "documents": documents},
        (Response(status="ok" if number % 100 else "error", text=text(rng, 30)),),
    )  # fmt: skip


def record(number: int, tags: Any, values: Any, inputs: Any, answers: tuple[Response, ...]) -> Record:
    sample = Sample(id=f"s{number}", group=f"g{number // 2}", tags=tags, inputs=inputs)
    score = Score(
        sample_id=sample.id, group=sample.group, tags=tags, values=values, statuses={"ok": len(answers)},
        answered=len(answers), detail={"shown": [0.5] * 10},
    )  # fmt: skip
    return Record(sample=sample, answers=answers, score=score)


def store(path: Path, make: Callable[[int, np.random.Generator], Record], count: int) -> Run:
    """A run of a benchmark that is not known here, so that any record will do."""
    rng = np.random.default_rng(0)
    spec = RunSpec(
        format=FORMAT, benchmark="large", options={}, seed=0, limit=None, provenance={}, subjects=("m",),
        models={"model": {"name": "m", "spec": "openai:m", "identity": {}}},
        data={"source": "made", "sha256": ["0"]},
    )  # fmt: skip
    with RunFolder.open(path, spec) as folder, folder.writing("records.jsonl") as file:
        file.writelines(msgspec.json.encode(make(number, rng)) + b"\n" for number in range(count))
    return Run(path)


def timed(run: Run, count: int) -> Iterator[Row]:
    samples = run.samples()  # its columns are read again below

    def opened(*, stored: bool) -> None:
        record_index.cache_clear()
        for path in () if stored else (cache_dir() / "samples").glob("*.msgpack"):
            path.unlink()
        run.samples()

    ways: dict[str, Callable[[], Any]] = {
        "read all records": lambda: sum(1 for _ in run.records()),
        "open the samples, first": lambda: opened(stored=False),
        "open them from the cache": lambda: opened(stored=True),
        "open them in this process": run.samples,
        "select and sort": lambda: samples.select(failed=False, sort=samples.values[0], descending=True),
        "search a rare text": lambda: samples.select(search='a "text" that is nowhere'),
        "search a common text": lambda: samples.select(search="RIVER"),
        "search it again": lambda: samples.select(search="RIVER", failed=False),
        "read one record": lambda: samples.record(count // 2),
    }
    for name, way in ways.items():
        start = time.process_time()  # of this process alone, whatever else the machine does
        way()
        seconds = max(1e-6, time.process_time() - start)
        yield name, seconds, count / seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=100_000)
    count = parser.parse_args().samples
    for make in (miron, rgb):
        with TemporaryDirectory() as folder:
            os.environ["EVENKEEL_CACHE"] = f"{folder}/cache"
            run = store(Path(folder) / "run", make, count)
            size = (run.path / "records.jsonl").stat().st_size
            title = f"{count:,} records like those of {make.__name__}, {size / count:,.0f} bytes each"
            show(title, list(timed(run, count)))


if __name__ == "__main__":
    main()

"""How long a leaderboard takes: many runs of one benchmark, each paired with each other.

Writes runs of MIRAE with prompts and answers of a realistic size to a temporary folder, and ranks them in
fresh processes: from the records, and from what is in the cache once a run has ended or was ranked. The ratio
is to reading all records, which is what the naive way begins with.

    python benchmarks/leaderboard.py [--runs 50] [--samples 2000] [--profile]
"""

from __future__ import annotations

import argparse
import cProfile
import importlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec
import numpy as np

import evenkeel as ek
from evenkeel.analysis import summarise
from evenkeel.benchmarks.mirae.files import MiraeInputs
from evenkeel.harness.folder import FORMAT
from evenkeel.harness.writing import RunFolder
from evenkeel.types import Record, Response, RunSpec, Sample, Score
from table import Row, show

LEVELS = 7
LENGTH = 900
"""Characters of an answer; a prompt has from 30 to 1,900."""


def write_run(path: Path, number: int, samples: int) -> None:
    """Questions at seven levels, with five answers each; the models differ a little."""
    name = f"model-{number:02d}"
    models = {
        role: {"name": model, "spec": f"openai:{model}", "identity": {"spec": f"openai:{model}"}}
        for role, model in (("model", name), ("embedder", "embed"))
    }
    spec = RunSpec(
        format=FORMAT, benchmark="mirae", options={"temperature": 0.7}, models=models, seed=0, limit=None,
        data={"source": "starter", "sha256": ["0"], "lang": None}, provenance={}, subjects=(name,),
    )  # fmt: skip
    questions = np.random.default_rng(0).normal(0, 0.05, -(-samples // LEVELS))
    noise = np.random.default_rng(number + 1).normal(0.7 + number / 500, 0.05, samples)
    records = []
    for index in range(samples):
        question, level = divmod(index, LEVELS)
        similarity = float(np.clip(noise[index] + questions[question], -1, 1))
        sample = Sample(
            id=f"en-{question}-L{level + 1}",
            group=f"en-{question}",
            tags={"lang": "en", "level": level + 1, "domain": "general"},
            inputs=MiraeInputs(
                question_id=str(question),
                question_text=f"Question {question}: " + "why? " * (6 + 62 * level),
                samples=5,
                first_repeat=0,
            ),
        )
        values: dict[str, float | None] = {"mean_similarity": similarity}
        values |= {f"further_{metric}": similarity for metric in range(12)}
        detail = {"pairwise_similarities": [[similarity] * 5] * 5, "responses": [0, 1, 2, 3, 4]}
        score = Score(
            sample_id=sample.id, group=sample.group, tags=sample.tags, values=values, answered=5,
            statuses={"ok": 5}, detail=detail,
        )  # fmt: skip
        answers = tuple(Response(status="ok", text=f"{number} {index} " + "a" * LENGTH) for _ in range(5))
        records.append(Record(sample=sample, answers=answers, score=score))
    with RunFolder.open(path, spec, fresh=True) as folder:
        with folder.writing("records.jsonl") as file:
            file.writelines(msgspec.json.encode(record) + b"\n" for record in records)
        scores = [record.score for record in records]
        metric = "mean_similarity"
        folder.write_summary(summarise(scores, {metric: [()]}, units={metric: "cosine"}))


def measure(folder: Path, *, naive: bool, profile: bool) -> None:
    """Print the seconds, of the clock and of the processor, that the runs of a folder take."""
    importlib.import_module("scipy.stats")  # as in the app, which has loaded it before anybody visits
    runs = [ek.load_run(path) for path in sorted(folder.iterdir())]
    start, cpu = time.perf_counter(), time.process_time()
    with cProfile.Profile() as profiler:
        if not profile:
            profiler.disable()
        if naive:
            rows = sum(1 for run in runs for _ in run.records())
        else:
            [board] = ek.leaderboard(runs)
            rows = len(board.rows)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    if profile:
        profiler.print_stats("tottime")
    assert rows >= len(runs)
    print(seconds, cpu)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--profile", action="store_true", help="Where the first ranking spends its time.")
    parser.add_argument("--folder", type=Path, help="Runs to rank, written by an earlier call.")
    parser.add_argument("--naive", action="store_true", help="With --folder: only read all records.")
    options = parser.parse_args()
    if options.folder:
        measure(options.folder, naive=options.naive, profile=options.profile)
        return
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.runs):
            write_run(Path(folder) / "runs" / f"run-{number:02d}", number, options.samples)
        command = [sys.executable, __file__, "--folder", f"{folder}/runs"]
        environment = {**os.environ, "EVENKEEL_CACHE": f"{folder}/cache"}
        if options.profile:
            subprocess.run([*command, "--profile"], check=True, env=environment)
            return
        clock: list[Row] = []
        processor: list[Row] = []
        ways = {"read all records": ["--naive"], "rank, from the records": [], "rank, from the cache": []}
        for name, more in ways.items():
            ended = subprocess.run([*command, *more], check=True, env=environment, capture_output=True)
            for rows, seconds in zip((clock, processor), map(float, ended.stdout.split()), strict=True):
                rows.append((name, seconds, options.runs / seconds))
        title = f"{options.runs} runs of {options.samples:,} samples"
        show(f"{title}: seconds of the clock", clock)
        show(f"{title}: seconds of the processor, which other work on the machine changes less", processor)


if __name__ == "__main__":
    main()

"""How fast are answers embedded? The published way (five at a time) against ours, on the same answers.

    python benchmarks/embedding.py [--answers N]

Takes MIRAE's published answers from the folder that EVENKEEL_REFERENCE_DATA names, or ../shared/data; where
there are none, made-up answers of like length.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import time
from pathlib import Path

import numpy as np

from evenkeel.models.embedded import EmbeddedEmbedder, EmbeddedEmbedderOptions
from evenkeel.types import Embed
from table import Row, show

PUBLISHED = "mirae/MIRAE_claude_haiku_results_english.json"


def read_answers() -> list[str]:
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    file = Path(os.environ.get("EVENKEEL_REFERENCE_DATA", beside)) / PUBLISHED
    if file.exists():
        results = json.loads(file.read_bytes())["experiment_results"]
        return [
            answer
            for result in results
            for level in result["level_analyses"]
            for answer in level["responses"]
        ]
    draw = random.Random(0)
    words = [
        "harbour",
        "lighthouse",
        "committee",
        "season",
        "measure",
        "border",
        "evidence",
        "river",
        "market",
        "council",
    ]
    return [" ".join(draw.choices(words, k=draw.randint(60, 420))) for _ in range(1400)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--answers", type=int, default=None, metavar="N", help="take only the first N")
    answers = read_answers()[: parser.parse_args().answers]

    embedder = EmbeddedEmbedder(EmbeddedEmbedderOptions())
    list(embedder.answer([Embed(text="load the weights before the clock starts")]))
    requests = [Embed(text=answer) for answer in answers]
    start = time.perf_counter()
    responses = dict(embedder.answer(requests))
    seconds_ours = time.perf_counter() - start
    ours = np.stack([np.frombuffer(responses[request].vector or b"", dtype="<f4") for request in requests])

    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(embedder.folder), device="cpu")
    model.encode(["load"])
    start = time.perf_counter()
    published = np.concatenate([model.encode(answers[at : at + 5]) for at in range(0, len(answers), 5)])
    seconds_published = time.perf_counter() - start

    rows: list[Row] = [
        ("five at a time, as published", seconds_published, len(answers) / seconds_published),
        ("one sorted pass", seconds_ours, len(answers) / seconds_ours),
    ]
    show(f"{len(answers)} answers on {os.cpu_count()} cores, float32", rows)
    print(f"largest difference of a vector's number: {np.abs(ours - published).max():.1e}")


if __name__ == "__main__":
    main()

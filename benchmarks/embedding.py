"""How fast are answers embedded? The published way (five at a time) against ours, on the same answers.

    python benchmarks/embedding.py [--answers N]

The limit is the arithmetic alone: the products of all layers at the rate that this machine multiplies large
matrices at, measured just before and just after with as many threads.

Takes MIRAE's published answers from the folder that SEALEGS_REFERENCE_DATA names, or ../shared/data; where
there are none, made-up answers of like length.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from sealegs.models.embedded import EmbeddedEmbedder, EmbeddedEmbedderOptions
from sealegs.types import Embed
from table import Row, show

PUBLISHED = "mirae/MIRAE_claude_haiku_results_english.json"


def read_answers() -> list[str]:
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    file = Path(os.environ.get("SEALEGS_REFERENCE_DATA", beside)) / PUBLISHED
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


def operations(tokens: list[int], config: Any) -> float:
    """Of the products in the layers of a BERT model, two for each multiplication."""
    hidden, wide, layers = config.hidden_size, config.intermediate_size, config.num_hidden_layers
    linear = 2 * (4 * hidden * hidden + 2 * hidden * wide)
    return float(layers * sum(length * linear + 4 * length * length * hidden for length in tokens))


def multiplications_per_second(seconds: float = 2.0, width: int = 2048) -> float:
    """Floating-point operations of large products in float32, one thread for each core."""
    import torch

    end = time.perf_counter() + seconds

    def multiply(_: int) -> float:
        torch.set_num_threads(1)
        matrix, number, begun = torch.ones(width, width), 0, time.perf_counter()
        while (now := time.perf_counter()) < end:
            torch.mm(matrix, matrix)
            number += 1
        return 2 * number * width**3 / (now - begun)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return sum(pool.map(multiply, range(os.cpu_count() or 1)))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--answers", type=int, default=None, metavar="N", help="take only the first N")
    answers = read_answers()[: parser.parse_args().answers]

    embedder = EmbeddedEmbedder(EmbeddedEmbedderOptions())
    list(embedder.answer([Embed(text="load the weights before the clock starts")]))
    requests = [Embed(text=answer) for answer in answers]
    rates = [multiplications_per_second()]
    start = time.perf_counter()
    responses = dict(embedder.answer(requests))
    seconds_ours = time.perf_counter() - start
    rates.append(multiplications_per_second())
    ours = np.stack([np.frombuffer(responses[request].vector or b"", dtype="<f4") for request in requests])

    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(embedder.folder), device="cpu")
    model.encode(["load"])
    start = time.perf_counter()
    published = np.concatenate([model.encode(answers[at : at + 5]) for at in range(0, len(answers), 5)])
    seconds_published = time.perf_counter() - start

    tokens = [responses[request].tokens_in or 0 for request in requests]
    seconds_limit = operations(tokens, model[0].auto_model.config) / max(rates)
    rows: list[Row] = [
        ("five at a time, as published", seconds_published, len(answers) / seconds_published),
        ("one sorted pass", seconds_ours, len(answers) / seconds_ours),
        (f"the limit: {max(rates) / 1e9:.0f} GFLOP/s", seconds_limit, len(answers) / seconds_limit),
    ]
    show(f"{len(answers)} answers on {os.cpu_count()} cores, float32", rows)
    print(f"one sorted pass takes {seconds_ours / seconds_limit:.2f} times the limit")
    print(f"largest difference of a vector's number: {np.abs(ours - published).max():.1e}")


if __name__ == "__main__":
    main()

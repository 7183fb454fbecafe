"""Every reader of a file from outside: a small valid file of each, and what a plain reader makes of it."""

from __future__ import annotations

import base64
import contextlib
import gzip
import io
import json
import os
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import polars

from sealegs.api.suite.definition import read_suite
from sealegs.api.suite.runs import planned_runs
from sealegs.benchmarks.mirae.data import read_questions
from sealegs.benchmarks.mirae.results import read_recording
from sealegs.benchmarks.miron.data import read_examples
from sealegs.benchmarks.multiview.data import read_triplets
from sealegs.benchmarks.multiview.make.criteria import read_criteria
from sealegs.benchmarks.rgb.data import read_instances
from sealegs.benchmarks.rgb.predictions import read_predictions
from sealegs.files.remote.sources import local, naming_source
from sealegs.files.tables import read_rows
from sealegs.harness.folder import Run
from sealegs.harness.folder.spec import FORMAT
from sealegs.harness.registry import benchmark_names
from sealegs.journal.journal import Journal, Keyed, make_key, model_digest
from sealegs.make.documents import read_documents
from sealegs.models.openai.batches.stored import read_batches
from sealegs.models.presets import presets
from sealegs.models.prices import price_of
from sealegs.models.replay import Replay
from sealegs.models.tokenizer_files import read_tokenizer
from sealegs.types import Generate, Message, ModelRef, Response, Sampling


class Reader(NamedTuple):
    """A reader, and the name and the content of a file for it."""

    id: str
    read: Callable[[Path], Any]
    name: str
    content: bytes
    beside: Mapping[str, bytes] = {}
    """Further files of the folder, which are in order."""

    def place(self, folder: Path) -> Path:
        """Write the further files, and give the path of the file itself."""
        for name, content in self.beside.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        return folder / self.name


# The files


def lines(*rows: Any) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def parquet(*rows: Any) -> bytes:
    file = io.BytesIO()
    polars.DataFrame(list(rows)).write_parquet(file)
    return file.getvalue()


MIRAE = {
    "metadata": {"language": "English"},
    "questions": [{"question_id": 1, "domain": "A", "level_1_text": "q"}],
}
RESULTS = {
    "metadata": {"language": "English", "model": "m"},
    "experiment_results": [
        {
            "question_id": 1,
            "domain": "A",
            "level_analyses": [{"level": 1, "question_text": "q", "responses": ["a", "b"]}],
        }
    ],
}
EXAMPLE = {"prefix": "One", "target": "two", "category": "Logic", "lang": "en", "id": "a", "edits": 1}
TRIPLET = {"task": "a", "criterion": "b", "anchor": "x", "positive": "y", "negative": "z", "quality": 3}
PLAIN = {"id": 1, "query": "q", "answer": [["a", "b"]], "positive": ["p"], "negative": ["n"]}
FACT = PLAIN | {"fakeanswer": "f", "positive_wrong": ["w"]}
PREDICTED = {
    "id": 0,
    "query": "q",
    "ans": ["a"],
    "label": [1],
    "prediction": "p",
    "docs": ["d"],
    "noise_rate": 0.2,
    "factlabel": 0,
}
DOCUMENT = {"text": "a", "id": 1, "label": "x"}
CRITERIA = b"plot: What happens.\nplace:\n  description: Where.\n  hints: [a, b]\n"
SUITE = b"""models:
  - embedded
  - {spec: "openai:m", name: m, args: {timeout: 5}}
benchmarks:
  - miron
  - {benchmark: rgb, options: {noise_rates: "0.2"}, limit: 3}
defaults: {seed: 1, price_in: 1, price_out: 2.5}
budget: {usd: 2.5, requests: 9}
gate: {baseline: old, max_drop: 0.1}
"""
CONFIG = b"""[presets.mine]
base_url = "http://127.0.0.1:8000/v1"
[prices."openai:m"]
input = 0.5
output = 2
"""
IDENTITY = {"spec": "openai:m"}
MODEL = {"name": "m", "spec": "openai:m", "identity": IDENTITY}
SPEC = {
    "format": FORMAT,
    "benchmark": "mirae",
    "options": {"temperature": 0.7},
    "models": {"model": MODEL, "embedder": MODEL},
    "data": {"source": "starter", "sha256": ["0"]},
    "seed": 0,
    "limit": None,
    "provenance": {"created": "2026-01-01"},
    "subjects": ["m"],
}
INPUTS = {"question_id": "1", "question_text": "q", "samples": 1, "first_repeat": 0}
RECORD = {
    "sample": {"id": "en-1-L1", "group": "1", "tags": {"lang": "en", "level": 1}, "inputs": INPUTS},
    "answers": [{"status": "ok", "text": "a"}],
    "score": {
        "sample_id": "en-1-L1",
        "group": "1",
        "tags": {"lang": "en", "level": 1},
        "values": {"mean_similarity": 0.5},
        "statuses": {"ok": 1},
        "answered": 1,
        "detail": None,
    },
}
FIGURE = {
    "value": 0.5,
    "low": 0.4,
    "high": 0.6,
    "n": 1,
    "clusters": 1,
    "coverage": 1.0,
    "statuses": {"ok": 1},
    "unit": "cosine",
    "method": "t",
}
RUN = {
    "spec.json": json.dumps(SPEC).encode(),
    "records.jsonl": lines(RECORD),
    "summary.json": json.dumps({"mean_similarity": FIGURE}).encode(),
}
MARK = {
    "sample": "en-1-L1",
    "group": "1",
    "tags": {"lang": "en"},
    "verdict": "wrong",
    "created": "2026-01-01",
    "benchmark": "mirae",
    "subject": "m",
    "inputs": INPUTS,
    "answers": RECORD["answers"],
    "values": {"mean_similarity": 0.5},
}
BATCH = {
    "protocol": "openai",
    "address": "http://a",
    "created": 1.5,
    "requests": ["r"],
    "id": "b-1",
}
BATCHES = {"format": 2, "batches": [BATCH]}
RANKS = b"".join(base64.b64encode(bytes([byte])) + f" {byte}\n".encode() for byte in range(256))


def documents(path: Path) -> Any:
    return read_documents(path, label_fields=["label"])


def settings(path: Path) -> Any:
    with mock.patch.dict(os.environ, SEALEGS_CONFIG=str(path)):
        return presets().get("mine"), price_of(ModelRef("openai:m"))


def run_parts(path: Path) -> Any:
    """All that is read of a run's folder."""
    run = Run(path.parent)
    samples = run.samples()
    return (
        run.spec, run.summary, list(run.records()), samples.select(search="a"),
        [samples.record(row) for row in range(len(samples))], run.failures(), run.agreement(), run.marks(),
        (run.headlines, run.coverages) if run.spec.benchmark in benchmark_names() else None,
    )  # fmt: skip


def replay(path: Path) -> Any:
    request = Generate(prompt=(Message("user", "q"),), sampling=Sampling(max_tokens=1))
    model = Replay(str(path))
    with contextlib.closing(model):
        return list(model.answer([request]))


def tokens(path: Path) -> Any:
    tokenizer = read_tokenizer(path)
    return tokenizer("a b é 1"), tokenizer.unknown


def table(path: Path) -> Any:
    return list(read_rows(path))


def unpacked(path: Path) -> Any:
    with naming_source():
        return list(read_rows(local(path)))


@cache
def journal() -> bytes:
    """A journal with the answer that `replay` asks for."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal.sqlite"
        with contextlib.closing(Journal(path)) as opened:
            request = Generate(prompt=(Message("user", "q"),), sampling=Sampling(max_tokens=1))
            digest = model_digest(IDENTITY)
            opened.put(Keyed(make_key(digest, request), request), Response(status="ok", text="a"))
        return path.read_bytes()


READERS = [
    Reader("table-jsonl", table, "x.jsonl", lines({"a": 1}, {"a": [None, 1.5]})),
    Reader("table-json", table, "x.json", json.dumps([{"a": 1}, {"a": "b"}]).encode()),
    Reader("table-csv", table, "x.csv", b'a,b\n1,"x\r\ny"\n2,z\n'),
    Reader("table-parquet", table, "x.parquet", parquet({"a": 1, "b": "x"})),
    Reader("table-gz", unpacked, "x.jsonl.gz", gzip.compress(lines({"a": 1}), mtime=0)),
    Reader("mirae-questions", read_questions, "x.json", json.dumps(MIRAE).encode()),
    Reader("mirae-results", read_recording, "x.json", json.dumps(RESULTS).encode()),
    Reader("miron-jsonl", read_examples, "x.jsonl", lines(EXAMPLE, EXAMPLE | {"id": "b"})),
    Reader("triplets", read_triplets, "x.jsonl", lines(TRIPLET, TRIPLET | {"anchor": "u", "anchor_id": 7})),
    Reader("criteria", read_criteria, "x.yaml", CRITERIA),
    Reader("rgb-fact", read_instances, "x_fact.json", lines(FACT)),
    Reader("rgb-predictions", read_predictions, "x.json", lines(PREDICTED)),
    Reader("documents", documents, "x.jsonl", lines(DOCUMENT, DOCUMENT | {"id": 2, "text": "b"})),
    Reader("suite", lambda path: planned_runs(read_suite(path)), "suite.yaml", SUITE),
    Reader("settings", settings, "sealegs.toml", CONFIG),
    *(
        Reader(f"run-{name}", run_parts, name, content, {other: RUN[other] for other in RUN if other != name})
        for name, content in RUN.items()
    ),
    Reader("run-marks.jsonl", run_parts, "marks.jsonl", lines(MARK), RUN),
    Reader("batches", lambda path: read_batches(path.parent), "batches.json", json.dumps(BATCHES).encode()),
    Reader("replay", replay, "journal.sqlite", journal(), {"spec.json": RUN["spec.json"]}),
    Reader("tokenizer-ranks", tokens, "x.tiktoken", RANKS),
]

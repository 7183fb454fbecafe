"""A run that is not finished: what was answered so far, and its score where the answers suffice for one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from sealegs.api.run import summarise
from sealegs.api.setup import identities
from sealegs.errors import SealegsError, UsageError
from sealegs.harness.benchmark import Benchmark, sample_type
from sealegs.harness.folder.layout import run_file
from sealegs.harness.folder.spec import read_spec
from sealegs.harness.inputs import row_text
from sealegs.harness.registry import load_stored
from sealegs.harness.scoring import score_portion
from sealegs.journal.journal import make_key, model_digest
from sealegs.journal.recording import Recording
from sealegs.page.layout import Layout
from sealegs.types import Answered, Figure, Request, Response, Sample, Score

MOST = 2_000
"""Samples that are scored again at each look."""
LATEST = 50


class Arrived(Struct, frozen=True):
    """A sample that was answered."""

    question: str
    expected: str
    answer: str
    correct: float | None


class SoFar(Struct, frozen=True, kw_only=True):
    """A run as far as it is."""

    samples: int
    """That were looked at: the first ones, where there are more than can be scored at each look."""
    more: bool
    """Whether there are more."""
    answered: int
    title: str
    """Of the headline."""
    headline: Figure | None
    """None where scoring needs more than the answers, such as embeddings, or there are too many samples."""
    latest: list[Arrived]


def so_far(path: str | Path) -> SoFar | None:
    """What a run has that a process is writing. None where it has not begun, or no model answers its
    samples."""
    folder = Path(path)
    if run_file(folder, "spec.json") is None or run_file(folder, "journal.sqlite") is None:
        return None
    spec = read_spec(folder)
    benchmark = load_stored(spec)
    if "model" not in benchmark.roles:
        return None
    with contextlib.closing(Recording(folder / "journal.sqlite")) as recording:
        samples = recording.samples(sample_type(type(benchmark)))
        digest = model_digest(identities(spec)["model"])
        answered = list(_answered(benchmark, samples[:MOST], recording, digest))
    scores = _scores(benchmark, answered)
    summary = summarise(benchmark, scores) if scores else {}
    layout = benchmark.layout.of_run(spec, summary)
    latest = [_arrived(layout, item, score) for item, score in zip(answered, scores, strict=False)]
    latest = latest or [_arrived(layout, item, None) for item in answered]
    return SoFar(
        samples=min(len(samples), MOST),
        more=len(samples) > MOST,
        answered=len(answered),
        title=layout.headline_title,
        headline=summary.get(layout.headline) if len(samples) <= MOST else None,
        latest=latest[: -LATEST - 1 : -1],
    )


def pace(path: str | Path) -> float | None:
    """How many answers per second a run got; None where that is not known."""
    journal = run_file(Path(path), "journal.sqlite")
    if journal is None:
        return None
    with contextlib.closing(Recording(journal)) as recording:
        return recording.pace()


def _answered(
    benchmark: Benchmark, samples: Sequence[Sample], recording: Recording, digest: bytes
) -> Iterator[Answered]:
    """The samples all of whose requests have an answer."""
    for sample in samples:
        requests = tuple(benchmark.requests(sample))
        keys = [make_key(digest, request) for request in requests]
        responses = recording.find(keys)
        answers = [response for response in responses.values() if response.status != "error"]
        if requests and len(answers) == len(set(keys)):
            yield Answered(sample, requests, tuple(responses[key] for key in keys))


def _scores(benchmark: Benchmark, answered: Sequence[Answered]) -> list[Score]:
    def refuse(requests: Sequence[Request]) -> Sequence[Response]:
        raise UsageError("scoring asks further models, which is for the run itself.")

    try:
        return [scored.score for scored in score_portion(benchmark, answered, refuse)] if answered else []
    except SealegsError:
        return []


def _arrived(layout: Layout, item: Answered, score: Score | None) -> Arrived:
    row = row_text(item.sample.inputs, item.sample.tags)
    values = score.values if score else {}
    correct = next((values[name] for name in layout.correct_metrics if values.get(name) is not None), None)
    answer = next((each.text for each in item.responses if each.text), "")
    return Arrived(row.question, row.expected, answer, correct)

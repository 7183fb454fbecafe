"""From samples to scores: requests → responses → records, on one path for every benchmark."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from math import ceil
from pathlib import Path
from typing import IO

from evenkeel.errors import DataError, RunConflict, place_of
from evenkeel.files.cache import distinct_slug
from evenkeel.harness.benchmark import Benchmark
from evenkeel.harness.dispatcher import Dispatcher
from evenkeel.harness.folder import Run
from evenkeel.harness.folder.layout import run_file
from evenkeel.harness.folder.writer import RunFolder
from evenkeel.harness.scoring import FAILURE, UNCAUGHT, Scored, score_portion
from evenkeel.types import KIND_NEEDS, Answered, Request, RunSpec, Sample, Score

CHUNK = 25_000  # requests scored at a time: large enough for bulk work, small enough for memory


def ask(benchmark: Benchmark, samples: Sequence[Sample], dispatcher: Dispatcher) -> None:
    """Have the model answer what the journal does not hold yet, where a model is under test."""
    if "model" not in benchmark.roles:
        return
    dispatcher.ask("model", lambda: chain.from_iterable(_requests(benchmark, sample) for sample in samples))


def check_loss(benchmark: Benchmark, samples: Sequence[Sample], dispatcher: Dispatcher, folder: Path) -> None:
    """Refuse to score a run again whose journal lacks answers that its results may still hold."""
    if "model" not in benchmark.roles or run_file(folder, "records.jsonl") is None:
        return
    requests = chain.from_iterable(_requests(benchmark, sample) for sample in samples)
    if missing := dispatcher.count_missing("model", requests):
        raise RunConflict(
            f"{dispatcher.journal.path} lacks {missing:,} answers that the results of the run may hold, "
            "which are left as they are. Run the command that made the run again: it asks for them."
        )


def score_samples(
    benchmark: Benchmark,
    file: IO[bytes],
    samples: Sequence[Sample],
    dispatcher: Dispatcher,
    note: Callable[[str], None],
) -> list[Score]:
    """From stored answers to records and the scores."""
    scores: list[Score] = []
    failed: Counter[str] = Counter()
    for score, line in scored(benchmark, samples, dispatcher):
        file.write(line + b"\n")
        scores.append(score)
        failed.update(text.removeprefix(FAILURE) for text in score.failures if text.startswith(FAILURE))
    for place, count in failed.most_common():
        note(f"scoring failed for {count:,} of {len(samples):,} samples, which count as errors: {place}")
    return scores


def scored(benchmark: Benchmark, samples: Sequence[Sample], dispatcher: Dispatcher) -> Iterator[Scored]:
    """The samples with their stored answers, scored a portion at a time, which asks what it needs further."""
    for chunk in in_chunks(benchmark, samples):
        yield from score_portion(benchmark, _with_answers(benchmark, chunk, dispatcher), dispatcher.answer)


def publish(benchmark: Benchmark, folder: RunFolder, spec: RunSpec, run: Run) -> None:
    """The run in its published formats. One odd record costs a file, never the run."""
    name, taken, written = "", set[str](), list[str]()
    try:
        for title, chunks in benchmark.publish(spec, run.records):
            name = f"export/{distinct_slug(title, taken, longest=200)}"
            with folder.writing(name) as file:
                file.writelines(chunks)
            written.append(Path(name).name)
    except UNCAUGHT:
        raise
    except Exception as error:  # noqa: BLE001  # scores unaffected; reported
        if name:
            (folder.path / name).unlink(missing_ok=True)  # one that was left from before has other figures
        run.problems.append(
            f"the published files could not be written: {place_of(error)}. The figures are whole."
        )
    before = folder.spec.provenance.get("exported", ())  # only what is listed there is the run's own
    folder.add_provenance(exported=sorted({*before, *written}))


def in_chunks(benchmark: Benchmark, samples: Sequence[Sample]) -> Iterator[list[Sample]]:
    """Samples in equal portions of at most about CHUNK requests; a group is never torn apart.

    None of them is small: a benchmark may compare the samples of a portion with each other.
    """
    groups: defaultdict[str, list[Sample]] = defaultdict(list)
    requests: Counter[str] = Counter()
    for sample in samples:
        groups[sample.group].append(sample)
        requests[sample.group] += len(_requests(benchmark, sample))
    # Where nothing is asked before scoring, all are one portion.
    portion = requests.total() / max(1, ceil(requests.total() / CHUNK)) or CHUNK
    order = {sample.id: index for index, sample in enumerate(samples)}
    chunk: list[Sample] = []
    size, portions = 0, 1
    for group, members in groups.items():
        chunk += members
        size += requests[group]
        if size >= portions * portion:
            yield sorted(chunk, key=lambda sample: order[sample.id])
            chunk, portions = [], portions + 1
    if chunk:
        yield sorted(chunk, key=lambda sample: order[sample.id])


def _with_answers(benchmark: Benchmark, samples: Sequence[Sample], dispatcher: Dispatcher) -> list[Answered]:
    requests = [_requests(benchmark, sample) for sample in samples]
    responses = iter(dispatcher.read(list(chain.from_iterable(requests))))
    return [
        Answered(sample, group, tuple(islice(responses, len(group))))
        for sample, group in zip(samples, requests, strict=True)
    ]


def _requests(benchmark: Benchmark, sample: Sample) -> tuple[Request, ...]:
    """What is asked for a sample, which may be stored and of any shape."""
    try:
        requests = tuple(benchmark.requests(sample))
    except UNCAUGHT:
        raise
    except Exception as error:
        problem = f"this is not a sample of the run's benchmark: {place_of(error)}."
        raise DataError(f"sample {sample.id}", problem) from error
    if odd := [request for request in requests if type(request) not in KIND_NEEDS]:
        kind = type(odd[0]).__name__
        raise DataError(f"sample {sample.id}", f"requests must give Generate, …, Rank, and gave a {kind}.")
    return requests

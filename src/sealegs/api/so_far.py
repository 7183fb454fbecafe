"""What is answered of a run that is not finished, scored as if that were all: its report before the end.

What scoring asks further of an embedder or a judge is read where it is stored, and never asked here. What
depends on the rest of it is left out of values and figures until it is there.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import msgspec
from msgspec.structs import replace

from sealegs.api.run import summarise
from sealegs.api.setup import identities
from sealegs.errors import SealegsError
from sealegs.harness.benchmark import Benchmark, make_score, record_type, sample_type
from sealegs.harness.folder.layout import run_file
from sealegs.harness.folder.run import Part, Run
from sealegs.harness.folder.spec import read_spec
from sealegs.harness.folder.writer import RunFolder
from sealegs.harness.registry import load_stored
from sealegs.harness.scoring import Scored, score_portion
from sealegs.journal.database import LOOKUP
from sealegs.journal.journal import make_key, model_digest
from sealegs.journal.recording import Recording
from sealegs.types import Answered, Figure, Record, Request, Response, RunSpec, Sample, Score, Summary

MOST = 5_000
"""Samples that are looked at: as many as a page lists."""
MOST_CHARACTERS = 2**27
"""Of their answers."""
LATER = Response(status="error", reason="asked at the end")


def so_far(path: str | Path, seen: Sequence[str] = ()) -> Run | None:
    """The samples of a run that are answered by now, as a run of their own that lies elsewhere until nobody
    holds it. None where there are none, or no model answers samples.

    `seen` has the ids that an earlier look gave: they come first, so that rows keep their numbers.
    """
    folder = Path(path)
    journal = run_file(folder, "journal.sqlite")
    if run_file(folder, "spec.json") is None or journal is None:
        return None
    spec = read_spec(folder)
    benchmark = load_stored(spec)
    if "model" not in benchmark.roles:
        return None
    with contextlib.closing(Recording(journal)) as recording:
        total = recording.count_samples()
        samples = recording.samples(sample_type(type(benchmark)), MOST)
        stored = _Stored(recording, spec)
        places = {sample: place for place, sample in enumerate(seen)}
        answered = list(_answered(benchmark, samples, stored))
        answered.sort(key=lambda item: places.get(item.sample.id, len(places)))
        scored = _scored(benchmark, answered, stored)
    if not answered:
        return None
    summary = _summary(benchmark, spec, [each.score for each in scored], stored.lacking)
    part = Part(
        folder, len(answered), len(samples), first=total > len(samples), lacking=tuple(stored.lacking)
    )
    return _run(part, spec, scored, summary)


def pace(path: str | Path) -> float | None:
    """How many answers per second a run got; None where that is not known."""
    journal = run_file(Path(path), "journal.sqlite")
    if journal is None:
        return None
    with contextlib.closing(Recording(journal)) as recording:
        return recording.pace()


class _Stored:
    """The answers that a run has, of any role."""

    def __init__(self, recording: Recording, spec: RunSpec) -> None:
        self._recording = recording
        self._digests = {role: model_digest(identity) for role, identity in identities(spec).items()}
        self.lacking: list[str] = []
        """The roles that were not asked yet what scoring asks of them."""

    def responses(self, requests: Sequence[Request]) -> list[Response] | None:
        """One for each, however it ended; None where any is missing."""
        responses: list[Response] = []
        for start in range(0, len(requests), LOOKUP):
            portion = requests[start : start + LOOKUP]
            keys = [make_key(self._digests[request.role], request) for request in portion]
            found = self._recording.find(keys)
            if not found.keys() >= set(keys):
                return None
            responses += [found[key] for key in keys]
        return responses

    def answer(self, requests: Sequence[Request]) -> list[Response]:
        """For scoring, of which all is there or nothing: a figure is not of some of the answers alone."""
        if (responses := self.responses(requests)) is not None:
            return responses
        self.lacking += [role for role in {each.role: None for each in requests} if role not in self.lacking]
        return [LATER] * len(requests)


def _answered(benchmark: Benchmark, samples: Iterable[Sample], stored: _Stored) -> Iterator[Answered]:
    """The samples all of whose requests have ended."""
    characters = 0
    for sample in samples:
        requests = tuple(benchmark.requests(sample))
        responses = stored.responses(requests)
        if requests and responses:
            yield Answered(sample, requests, tuple(responses))
            characters += sum(len(response.text) + len(response.reasoning) for response in responses)
            if characters > MOST_CHARACTERS:
                return


def _scored(benchmark: Benchmark, answered: Sequence[Answered], stored: _Stored) -> list[Scored]:
    """Each score with what is known by now: without values that no sample has where a role is still to be
    asked, and with the statuses of the answers alone."""
    if not answered:
        return []
    try:
        scored = score_portion(benchmark, answered, stored.answer)
    except SealegsError:  # it may be one that the whole run has not
        scored = [Scored(score, _line(item, score)) for item in answered for score in [make_score(item)]]
    if not stored.lacking:
        return scored
    names = dict.fromkeys(name for each in scored for name in each.score.values)
    known = [name for name in names if any(each.score.values.get(name) is not None for each in scored)]
    decoder = msgspec.json.Decoder(record_type(type(benchmark)))
    return [
        _without(item, decoder.decode(each.line).score, known)
        for item, each in zip(answered, scored, strict=True)
    ]


def _without(item: Answered, score: Score, known: Sequence[str]) -> Scored:
    plain = make_score(item)
    values = {name: value for name, value in score.values.items() if name in known}
    score = replace(
        score, values=values, statuses=plain.statuses, answered=plain.answered, failures=plain.failures
    )
    return Scored(replace(score, detail=None), _line(item, score))


def _line(item: Answered, score: Score) -> bytes:
    return msgspec.json.encode(Record(sample=item.sample, answers=item.responses, score=score))


def _summary(benchmark: Benchmark, spec: RunSpec, scores: Sequence[Score], lacking: Sequence[str]) -> Summary:
    """The figures that the part has; the headline without a value where it comes at the end."""
    summary: Summary = {}
    with contextlib.suppress(Exception):  # a part may lack what a benchmark counts on
        summary = dict(summarise(benchmark, scores))
    headline = benchmark.layout.of_run(spec, summary).metrics[0]
    if headline.name not in summary:
        statuses: Counter[str] = Counter()
        for score in scores:
            statuses.update(score.statuses)
        reason = " and ".join(f"the {role} is asked at the end" for role in lacking) or "it comes at the end"
        summary[headline.name] = Figure(
            value=None, low=None, high=None, method="", reason=reason, n=len(scores),
            clusters=len({score.group for score in scores}), unit=headline.unit, statuses=dict(statuses),
            coverage=sum(score.answered for score in scores) / max(1, statuses.total()),
        )  # fmt: skip
    return summary


def _run(part: Part, spec: RunSpec, scored: Sequence[Scored], summary: Summary) -> Run:
    """The part in a folder that only this process uses, and removes."""
    path = Path(tempfile.mkdtemp(prefix="sealegs-"))
    remove = partial(shutil.rmtree, path, ignore_errors=True)
    try:
        records = b"".join(each.line + b"\n" for each in scored)
        provenance = {**spec.provenance, "records_bytes": len(records)}
        folder = RunFolder(path, replace(spec, provenance=provenance))
        folder.write_bytes("records.jsonl", records)
        folder.write_summary(summary)
        folder.write_json("spec.json", folder.spec)
        run = Run(path, part)
    except BaseException:
        remove()
        raise
    weakref.finalize(run, remove)
    return run

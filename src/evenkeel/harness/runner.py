"""From samples to scores: requests → responses → records, on one path for every benchmark."""

from __future__ import annotations

import gc
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from math import ceil
from pathlib import Path
from typing import IO, Any, TypeAlias

from evenkeel.errors import BudgetReached, DataError, EvenkeelError, RunConflict, place_of
from evenkeel.files.cache import distinct_slug
from evenkeel.harness.benchmark import Benchmark
from evenkeel.harness.budget import Budget
from evenkeel.harness.folder import Run
from evenkeel.harness.model import Metered, Model, Noted
from evenkeel.harness.progress import Progress, watch
from evenkeel.harness.scoring import FAILURE, UNCAUGHT, Scored, score_portion
from evenkeel.harness.spec import member
from evenkeel.harness.writing import RunFolder
from evenkeel.journal.journal import LOOKUP, Journal, Key, make_key, model_digest
from evenkeel.journal.recording import Recording
from evenkeel.types import KIND_NEEDS, Answered, Request, Response, RunSpec, Sample, Score

NAMED = 5
"""Versions of a model that a note lists."""
NEW_OBJECTS = 20_000
"""After which the garbage collector looks for cycles among them, while requests are sent."""
CHUNK = 25_000  # requests scored at a time: large enough for bulk work, small enough for memory

Opener: TypeAlias = Callable[[str], Model]
"""Gives the model of a role, loading nothing before it is asked."""

Refusal: TypeAlias = Callable[[int], EvenkeelError]
"""Says why so many requests are not asked, and what permits them."""

TITLES = {"model": "asking", "embedder": "embedding", "judge": "judging"}


class RequestPath:
    """The path of every request: past the journal, within the budget, to a model, into the journal."""

    def __init__(
        self,
        journal: Journal,
        identities: Mapping[str, dict[str, Any]],
        *,
        opener: Opener,
        budget: Budget,
        progress: Progress,
        titles: Mapping[str, str] = TITLES,
        reuse: Recording | None = None,
        refusals: Mapping[str, Refusal] | None = None,
    ) -> None:
        self.journal = journal
        self.budget = budget
        self._opener = opener
        self._progress = progress
        self._titles = titles
        self._reuse = reuse
        self._refusals = refusals or {}
        self._asked: dict[str, Model] = {}
        self._versions: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
        """By role: the models and fingerprints that the replies name."""
        self._digests = {role: model_digest(identity) for role, identity in identities.items()}
        budget.resume(journal.usage(), journal.put_usage)

    def ask(self, role: str, requests: Callable[[], Iterator[Request]]) -> None:
        """Have every request answered that the journal does not hold. `requests` may be iterated anew.

        Of a role that may not be asked, what failed before stays as it is; what was never asked is refused.
        """
        digest = self._digests[role]
        total = len({make_key(digest, request).key for request in requests()})
        title = self._title(role)
        if self._reuse is not None:
            self._take_over(self._reuse, title, role, requests, total)
        pending = total if self.journal.empty else sum(1 for _ in self._unanswered(role, requests()))
        refusal = self._refusals.get(role)
        if pending and refusal:
            new = self.count_missing(role, requests())
            if new:
                raise refusal(new)
            pending = 0
        self._progress.phase(title, total=total, done=total - pending)
        if not pending:
            return
        model = self._asked[role] = self._opener(role)
        watch(model, self._progress)
        if isinstance(model, Metered):
            model.count_with(self.budget.meter(role))
        with _seldom_collecting():
            while self._send(model, role, self._unanswered(role, requests())):
                self.journal.flush()
            self.journal.flush()

    def _title(self, role: str) -> str:
        """What a phase is called: `judging`, or `judging vllm:NAME` for a role that names its model."""
        kind, _, spec = role.partition(":")
        name = spec.partition("?")[0].rstrip(":")
        title = self._titles.get(kind, kind)
        return f"{title} {name}" if name else title

    def _take_over(
        self, reuse: Recording, title: str, role: str, requests: Callable[[], Iterator[Request]], total: int
    ) -> None:
        """File what another run was answered to these very requests, by this very model."""
        missing, copied = 0, 0
        stream = self._unanswered(role, requests())
        while chunk := list(islice(stream, LOOKUP)):
            pairs = {key.key: (key, request) for key, request in chunk}
            missing += len(pairs)
            for name, response in reuse.find_keys(list(pairs)).items():
                if response.status != "error":
                    self.journal.put(*pairs[name], response)
                    copied += 1
        self.journal.flush()
        if copied:
            self._progress.note(
                f"{title}: {copied:,} of {total:,} answers taken over from {reuse.path.parent}"
            )
        elif missing and role == "model":
            self._progress.note(
                f"{title}: no answer taken over from {reuse.path.parent}: it holds none to these requests "
                "from this model."
            )

    def _send(self, model: Model, role: str, pairs: Iterator[tuple[Key, Request]]) -> bool:
        """One pass over the stream; True where a limit held back what may pass once others are settled."""
        settled = 0
        digest = self._digests[role]
        under_way: dict[int, tuple[Key, Request]] = {}
        """By the identity of the request, which stays its own as long as it is kept here."""

        def requests() -> Iterator[Request]:
            for key, request in pairs:
                under_way[id(request)] = (key, request)
                yield request

        for request, response in model.answer(self.budget.admit(requests())):
            filed = under_way.pop(id(request), None)  # None where a model answers with a copy
            key = filed[0] if filed else make_key(digest, request)
            self.journal.put(key, request, response)
            self.budget.spend(request, response)
            self._progress.answered(response, usd=self.budget.usd)
            settled += response.status != "error"
        # A pass that settled nothing would be followed by the same again: what failed is for the next run.
        if self.budget.exhausted and not settled:
            raise BudgetReached(
                f"stopped at {self.budget.exhausted}. Over all its starts the run has sent "
                f"{self.budget.requests:,} requests{f', ${self.budget.usd:.4f}' if self.budget.usd else ''}: "
                "raise the limit, or leave it out, to resume."
            )
        return bool(self.budget.exhausted)

    def count_missing(self, role: str, requests: Iterable[Request]) -> int:
        """How many requests were never answered, however that ended."""
        return sum(1 for _ in self.journal.unanswered(self._digests[role], requests, again=False))

    def answer(self, requests: Sequence[Request]) -> list[Response]:
        """Have requests of any roles answered that are not yet; the answers in order."""
        for role, group in by_role(requests).items():
            self.ask(role, group.__iter__)
        return self.read(requests)

    def notes(self) -> dict[str, list[str]]:
        """By role, what the models that were asked have to say beside the figures."""
        noted = {role: model.notes() for role, model in self._asked.items() if isinstance(model, Noted)}
        for role, versions in self._versions.items():
            noted[role] = [*noted.get(role, ()), *_version_notes(versions)]
        return {role: notes for role, notes in noted.items() if notes}

    def _unanswered(self, role: str, requests: Iterable[Request]) -> Iterator[tuple[Key, Request]]:
        return self.journal.unanswered(self._digests[role], requests)

    def read(self, requests: Sequence[Request]) -> list[Response]:
        """The stored answers to requests of any roles, in order."""
        streams = {
            role: self.journal.read(self._digests[role], group) for role, group in by_role(requests).items()
        }
        responses = [next(streams[request.role]) for request in requests]
        for request, response in zip(requests, responses, strict=True):
            if response.model or response.fingerprint:
                self._versions[request.role].add((response.model, response.fingerprint))
        return responses


def _version_notes(versions: set[tuple[str, str]]) -> Iterator[str]:
    """Where a server's replies name more than one model, or more than one version of its software."""
    for what, names in (
        ("models", {model for model, _ in versions}),
        ("system fingerprints", {fingerprint for _, fingerprint in versions}),
    ):
        if len(names) > 1:
            listed = sorted(name or "none" for name in names)
            more = f" and {len(listed) - NAMED:,} more" if len(listed) > NAMED else ""
            yield (
                f"The server's replies name {len(listed):,} {what}: {', '.join(listed[:NAMED])}{more}. The "
                "figures are of all of them together."
            )


@contextmanager
def _seldom_collecting() -> Iterator[None]:
    """Let Python's garbage collector pass over what is there already (modules, samples, a model), and look
    at the rest seldom: at its usual pace it takes a third of the time of many small requests."""
    thresholds = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()


def by_role(requests: Iterable[Request]) -> dict[str, list[Request]]:
    roles: defaultdict[str, list[Request]] = defaultdict(list)
    for request in requests:
        roles[request.role].append(request)
    return roles


def ask(benchmark: Benchmark, samples: Sequence[Sample], path: RequestPath) -> None:
    """Have the model answer what the journal does not hold yet, where a model is under test."""
    if "model" not in benchmark.roles:
        return
    path.ask("model", lambda: chain.from_iterable(_requests(benchmark, sample) for sample in samples))


def check_loss(benchmark: Benchmark, samples: Sequence[Sample], path: RequestPath, folder: Path) -> None:
    """Refuse to score a run again whose journal lacks answers that its results may still hold."""
    if "model" not in benchmark.roles or member(folder, "records.jsonl") is None:
        return
    requests = chain.from_iterable(_requests(benchmark, sample) for sample in samples)
    if missing := path.count_missing("model", requests):
        raise RunConflict(
            f"{path.journal.path} lacks {missing:,} answers that the results of the run may hold, "
            "which are left as they are. Run the command that made the run again: it asks for them."
        )


def score_samples(
    benchmark: Benchmark,
    file: IO[bytes],
    samples: Sequence[Sample],
    path: RequestPath,
    note: Callable[[str], None],
) -> list[Score]:
    """From stored answers to records and the scores."""
    scores: list[Score] = []
    failed: Counter[str] = Counter()
    for score, line in scored(benchmark, samples, path):
        file.write(line + b"\n")
        scores.append(score)
        failed.update(text.removeprefix(FAILURE) for text in score.failures if text.startswith(FAILURE))
    for place, count in failed.most_common():
        note(f"scoring failed for {count:,} of {len(samples):,} samples, which count as errors: {place}")
    return scores


def scored(benchmark: Benchmark, samples: Sequence[Sample], path: RequestPath) -> Iterator[Scored]:
    """The samples with their stored answers, scored a portion at a time, which asks what it needs further."""
    for chunk in in_chunks(benchmark, samples):
        yield from score_portion(benchmark, _with_answers(benchmark, chunk, path), path.answer)


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
    except Exception as error:  # noqa: BLE001  # the figures are whole, and it is told
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


def _with_answers(benchmark: Benchmark, samples: Sequence[Sample], path: RequestPath) -> list[Answered]:
    requests = [_requests(benchmark, sample) for sample in samples]
    responses = iter(path.read(list(chain.from_iterable(requests))))
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

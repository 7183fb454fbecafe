"""multiview: does a similarity method see the view it was asked for?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from evenkeel.benchmarks.multiview.files import ROLES, Triplet, read_triplets
from evenkeel.benchmarks.multiview.methods import Method, parse_methods
from evenkeel.benchmarks.multiview.ordering import check_annotations
from evenkeel.benchmarks.multiview.page import LAYOUT, examples, notes
from evenkeel.errors import UsageError
from evenkeel.files.datasets import DataFile, Starter
from evenkeel.run.benchmark import Benchmark, Data, Recorded, Scoring
from evenkeel.types import (
    Answered,
    Capability,
    Records,
    Request,
    RunSpec,
    Sample,
    Score,
    Summary,
    to_jsonable,
)

STARTER_SHA256 = {"en": "77724533a83b04f90f2bc510ab885a8f070a3a357045d213618b93b662d9f6b4"}


class MultiviewOptions(Struct, frozen=True, kw_only=True):
    """What can be set about a multiview run."""

    method: Annotated[
        tuple[str, ...],
        Meta(
            description="What orders the triplets; repeat. bm25, embed:SPEC, embed:SPEC+instruct, "
            "rerank:SPEC, rewrite:LM+embed:SPEC, judge:SPEC, judge:SPEC+annotations, judge:SPEC+logprobs."
        ),
    ] = ("bm25",)
    instruct_template: Annotated[
        str,
        Meta(
            description="How embed:SPEC+instruct writes {INSTRUCTION} and {TEXT}.  "
            "[default: by the model's family]"
        ),
    ] = ""

    def __post_init__(self) -> None:
        parse_methods(self.method)
        if self.instruct_template and "{TEXT}" not in self.instruct_template:
            raise ValueError("--instruct-template: {TEXT} is missing in it")


def make_starter(stem: str) -> bytes:
    from evenkeel.benchmarks.multiview.files import encode_triplets
    from evenkeel.benchmarks.multiview.make.generator import compose

    return encode_triplets(compose())


class Multiview(Benchmark):
    """One sample is one triplet, ordered by every method."""

    Options = MultiviewOptions
    subject = "method"
    layout = LAYOUT
    metrics = LAYOUT.metrics
    starter = Starter(STARTER_SHA256, make_starter)

    def __init__(self, options: MultiviewOptions, *, seed: int = 0) -> None:
        super().__init__(options, seed=seed)
        self.methods = parse_methods(options.method)
        helpers: dict[str, str] = {}
        needs: defaultdict[str, set[Capability]] = defaultdict(set)
        for method in self.methods:
            for role, (spec, capability) in method.roles.items():
                helpers[role] = spec
                needs[role].add(capability)
        self.helpers: Mapping[str, str] = helpers
        self.roles: Mapping[str, frozenset[Capability]] = {
            role: frozenset(can) for role, can in needs.items()
        }

    def samples(self, files: Data) -> list[Sample]:
        """`limit` triplets of each task."""
        langs, limit = files.langs, files.limit
        if set(langs or ()) - set(self.starter.langs):
            raise UsageError("multiview takes no --lang: its triplets are as they are.")
        tasks: defaultdict[str, list[Triplet]] = defaultdict(list)
        for file in triplet_files(files):
            for triplet in read_triplets(file.path):
                tasks[triplet.task].append(triplet)
        kept = [triplets[:limit] for triplets in tasks.values()]
        check_annotations(self.methods, chain.from_iterable(kept))
        return [make_sample(triplet, number) for own in kept for number, triplet in enumerate(own, 1)]

    def choose(self, samples: Sequence[Sample], data: Data) -> Sequence[Sample]:
        """`samples` has chosen already."""
        return samples

    def requests(self, sample: Sample) -> tuple[Request, ...]:
        """Nothing is asked of a model under test: what the methods need, they ask when they order."""
        return ()

    def score(self, answered: Sequence[Answered]) -> Scoring:
        from evenkeel.benchmarks.multiview.scoring import measure, project
        from evenkeel.benchmarks.multiview.ordering import Outcome, order

        triplets = [msgspec.convert(item.sample.inputs, Triplet) for item in answered]
        outcomes: dict[str, list[Outcome]] = {}
        for method in self.methods:
            outcomes[method.name] = yield from order(
                method, triplets, instruct=self.options.instruct_template
            )
        # Where each anchor lies in a plane, by the first method that embeds texts as they are.
        plain = next((m for m in self.methods if m.kind == "embed" and not m.options), None)
        places = (yield from project(f"embed:{plain.spec}", triplets)) if plain else {}
        return measure([item.sample for item in answered], triplets, outcomes, places)

    def summarise(self, scores: Sequence[Score]) -> Summary:
        from evenkeel.benchmarks.multiview.scoring import summarise

        return summarise(scores, [method.name for method in self.methods])

    notes = staticmethod(notes)
    examples = staticmethod(examples)

    def recorded(self, path: Path, *, lang: str | None) -> Recorded:
        raise UsageError(
            "multiview has no format for recorded answers: evenkeel run multiview --data TRIPLETS --method …"
        )

    def publish(self, spec: RunSpec, records: Records) -> Iterator[tuple[str, Iterator[bytes]]]:
        from evenkeel.benchmarks.multiview.scoring import results

        yield "triplets.jsonl", (_triplet_line(record.sample) for record in records())
        yield "results.json", results(records, [method.name for method in self.methods])

    @classmethod
    def builder(cls) -> Any:
        from evenkeel.benchmarks.multiview.make.builder import MultiviewBuilder

        return MultiviewBuilder


def triplet_files(files: Sequence[DataFile]) -> Sequence[DataFile]:
    """Of a folder that `evenkeel build multiview` wrote, its triplets; otherwise all files."""
    return [file for file in files if file.path.name == "triplets.jsonl"] or files


def make_sample(triplet: Triplet, number: int) -> Sample:
    name = f"{triplet.task}-{number:04d}"
    return Sample(
        id=name,
        group=name,
        tags={"task": triplet.task, "docset": triplet.task.partition("__")[0]},
        inputs=to_jsonable(triplet),
    )


def _demand(method: Method, samples: Sequence[Sample]) -> Iterator[tuple[str, list[str]]]:
    """The kinds of requests that a method makes, and the texts that they carry at the most."""
    viewed = dict.fromkeys(
        (sample.inputs["criterion"], sample.inputs["description"], sample.inputs[role])
        for sample in samples
        for role in ROLES
    )
    by_view = [text for _, _, text in viewed]
    whole = ["\n".join(sample.inputs[role] for role in ROLES) for sample in samples]
    match method.kind:
        case "embed":
            yield "embed", by_view if method.options else list(dict.fromkeys(by_view))
        case "rewrite":
            yield "generate", by_view
            yield "embed", by_view
        case "rerank":
            yield "rank", 2 * whole
        case "judge":
            yield "loglikelihood" if "logprobs" in method.options else "generate", 4 * whole


PUBLISHED = (
    "anchor",
    "positive",
    "negative",
    "anchor_id",
    "positive_id",
    "negative_id",
    "criterion",
    "quality",
    # Without these the file, read again, would make other tasks and prompts.
    "task",
    "description",
)


def _triplet_line(sample: Sample) -> bytes:
    line = {name: sample.inputs.get(name) for name in PUBLISHED}
    return msgspec.json.encode({**line, "hard_for": sample.inputs.get("hard_for", "")}) + b"\n"

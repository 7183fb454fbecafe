"""multiview: its options, its samples, and the methods that are asked to order them.

Published (https://github.com/sarahlc888/multiview) and followed: triplets of documents under a stated
criterion, and the share that a method orders correctly (`published`), the kinds of methods (`methods`, by
name: `names`), the triplet files (`data`, `public_format`; pairs of C-STS: `csts`), and how a judge builds
triplets (`make/`).

Added, under names of its own: judges asked in both orders, log-probabilities of letters (`methods`), accuracy
both ways where the same documents are asked about under two criteria, chance, difficulty, gains by the
instruction and intervals for triplets that share documents (`added`), our own prompts (`prompts`) and
starter set. Every figure is declared in `metrics`; `page` shows a run, `view` a triplet.

How a sample becomes a figure: no model is asked about a triplet when the run begins; `score` has each method
order all of them.

    row ─ data.read_triplets ─► triplet ─ methods.order, prompts ─► picks
    picks ─ published.accuracy ─► added.accuracy, measure ─► accuracy@METHOD ─ added.summarise ─► figures
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from sealegs.benchmarks.multiview import data as formats
from sealegs.benchmarks.multiview.data import MultiviewDetail, Triplet
from sealegs.benchmarks.multiview.methods import check_annotations, order
from sealegs.benchmarks.multiview.metrics import METRICS
from sealegs.benchmarks.multiview.names import forms, parse_methods
from sealegs.benchmarks.multiview.page import LAYOUT, layout_for, notes
from sealegs.benchmarks.multiview.view import view
from sealegs.errors import UsageError
from sealegs.files.datasets import Starter
from sealegs.harness.benchmark import Benchmark, Help, Scoring, Subjects
from sealegs.harness.data import ChosenSamples, Data
from sealegs.harness.published import PublishedFiles, Publishing
from sealegs.types import Answered, Capability, Records, Request, RunSpec, Sample, Score, Summary

DEFAULT = ("bm25",)
STARTER_SHA256 = {"en": "33dcc3f12adc9dbae817a7cbbee8cc0d9a02b9a4383a78ccae20a78813104416"}


class MultiviewOptions(Struct, frozen=True, kw_only=True):
    """The options of a multiview run."""

    method: Annotated[
        tuple[str, ...],
        Meta(
            description="What orders the triplets, in one of the forms listed; repeat. Arguments of a model "
            "and settings of the method come after its SPEC: judge:openai:NAME?base_url=…&temperature=0.7; "
            "NAME=METHOD names a method."
        ),
    ] = DEFAULT
    model_arg: Annotated[
        tuple[str, ...],
        Meta(description="KEY=VALUE: an option of the backend, for every model that has it; repeat."),
    ] = ()

    def __post_init__(self) -> None:
        parse_methods(self.method, self.model_arg)


def make_starter(stem: str) -> bytes:
    from sealegs.benchmarks.multiview.make.generator import compose

    return formats.encode_triplets(compose())


def models_by_method(options: MultiviewOptions) -> dict[str, dict[str, str]]:
    """By the name of each method, the specs of its models by their roles."""
    methods = parse_methods(options.method, options.model_arg)
    return {m.name: {role: spec for role, (spec, _) in m.helpers.items()} for m in methods}


def published_files(
    benchmark: Multiview, spec: RunSpec, records: Records[Triplet, MultiviewDetail]
) -> PublishedFiles:
    yield "triplets.jsonl", formats.published_triplets(records)
    yield "results.json", formats.published_results(records, spec.subjects)


class Multiview(Benchmark[Triplet, MultiviewDetail]):
    """Does a similarity method follow the stated criterion?

    One sample is one triplet, ordered by every method.
    """

    Options = MultiviewOptions
    layout = replace(LAYOUT, for_run=layout_for)
    metrics = METRICS
    notes = staticmethod(notes)
    view = staticmethod(view)
    starter = Starter(STARTER_SHA256, make_starter, tables=False)
    recordings = None
    publishing = Publishing(published_files)
    builder = "sealegs.benchmarks.multiview.make.builder:MultiviewBuilder"
    subjects = Subjects("method", models_by_method)
    help = Help(
        "\b\nMethods:\n" + "\n".join(f"  {form:<24}{about}" for form, about in forms().items()),
        examples={
            "run": (
                "sealegs run multiview --method bm25 --method embed:embedded-embedder",
                "sealegs run multiview --data triplets.jsonl --method judge:openai:NAME "
                "--method rerank:sbert:PATH",
                "sealegs run multiview --method 'judge:openai:NAME?base_url=http://127.0.0.1:8000/v1' "
                "--method rewrite:embedded+embed:embedded-embedder",
            ),
            "score": ("sealegs run multiview --data triplets.jsonl --method bm25",),
            "build": (
                "sealegs build multiview --docs clues.csv --criterion hint "
                "--description 'How the clue hints' --judge openai:NAME --triplets 200 --out data/clues",
                "sealegs build multiview --docs labelled.jsonl --label-field topic --criterion topic "
                "--description 'What it is about' --triplets 200 --out data/topics",
                "sealegs build multiview --set gsm8k__arithmetic --docs train.jsonl --out data/gsm8k",
                "sealegs build multiview --set gsm8k__arithmetic --docs train.jsonl --judge openai:NAME "
                "--validate openai:OTHER --out data/gsm8k",
                "sealegs build multiview --seed 7",
            ),
        },
        demo={"method": ["bm25", "embed:embedded-embedder", "judge:embedded+logprobs"], "limit": 2},
        inspect={"method": ("judge:inspect",)},
        limit="triplets of each task",
    )
    options: MultiviewOptions

    def __init__(self, options: MultiviewOptions, *, seed: int = 0) -> None:
        super().__init__(options, seed=seed)
        self.methods = parse_methods(options.method, options.model_arg)
        roles: dict[str, set[Capability]] = {}
        for method in self.methods:
            for role, capability in method.roles.items():
                roles.setdefault(role, set()).add(capability)
        self.roles = roles

    def samples(self, data: Data) -> list[Sample[Triplet]]:
        """The first `limit` triplets of each task, those of a task together."""
        if set(data.langs or ()) - set(self.starter.langs):
            raise UsageError("multiview takes no --lang: its triplets are as they are.")
        tasks: defaultdict[str, list[Triplet]] = defaultdict(list)
        for triplet in formats.read_triplets(*formats.triplet_files(data)):
            tasks[triplet.task].append(triplet)
        chosen = [triplet for triplets in tasks.values() for triplet in triplets[: data.limit]]
        check_annotations(self.methods, chosen)
        samples = (
            Sample(
                id=(name := f"{task}-{number:04d}"),
                group=name,
                tags={"task": task, "docset": triplet.docset},
                inputs=triplet,
            )
            for task, triplets in tasks.items()
            for number, triplet in enumerate(triplets[: data.limit], 1)
        )
        return ChosenSamples(samples, facts=formats.about_triplets(chosen))

    def requests(self, sample: Sample) -> Sequence[Request]:
        """No model is under test: what the methods need, they ask when they order the triplets."""
        return ()

    def score(self, answered: Sequence[Answered[Triplet]]) -> Scoring:
        from sealegs.benchmarks.multiview.added import both_ways, difficulties, measure, opposite_pairs

        samples = [item.sample for item in answered]
        triplets = [sample.inputs for sample in samples]
        outcomes = {}
        for method in self.methods:
            outcomes[method.name] = yield from order(method, triplets)
        right = {
            index: {name: both_ways(of_method, pairs) for name, of_method in outcomes.items()}
            for index, pairs in opposite_pairs(triplets).items()
        }
        return [
            measure(sample, dict(zip(outcomes, each, strict=True)), difficulty, right.get(index, {}))
            for index, (sample, difficulty, *each) in enumerate(
                zip(samples, difficulties(triplets), *outcomes.values(), strict=True)
            )
        ]

    def summarise(self, scores: Sequence[Score]) -> Summary:
        from sealegs.benchmarks.multiview.added import summarise

        # Methods that embed texts as they are, beside those that read the criterion and use the same model.
        plain = {m.role: m.name for m in self.methods if m.kind == "embed" and not m.options}
        pairs = {m.name: plain[m.role] for m in self.methods if m.role in plain}
        bm25 = [m.name for m in self.methods if m.kind == "bm25"]
        return summarise(
            scores, [m.name for m in self.methods], {a: b for a, b in pairs.items() if a != b}, bm25
        )

"""MIRON: its options, its samples, and what is asked for each.

Published (https://huggingface.co/datasets/apsua/MIRON_Benchmark) and followed to the digit: the Levenshtein
score and the target confidence (`published`), and the files of examples and results (`data`). A prompt is the
prefix as it is: there is no other text.

Added, under names of its own: accepted answers, probability, bits per byte, what typos cost and every summary
(`added`), what copying scores (`baseline`), the target as a string (`strings`), clean versions that a file
does not name (`matching`), rows of TokSuite (`toksuite`), tokenizers without a model (`tokenizers`), and sets
from a seed (`make/`). Every figure is declared in `metrics`; `page` shows a run, `view` a sample.

How a sample becomes a figure:

    row ─ data.read_files ─► example ─ baseline ─► sample ─ requests ─► continuation, log-probabilities
    continuation, log-probabilities ─ added.score_examples, strings ─► values ─ added.summarise ─► figures
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from sealegs.benchmarks.miron import added, strings
from sealegs.benchmarks.miron import data as formats
from sealegs.benchmarks.miron.baseline import with_baseline
from sealegs.benchmarks.miron.data import Example, MironDetail, MironInputs
from sealegs.benchmarks.miron.matching import changed
from sealegs.benchmarks.miron.metrics import METRICS
from sealegs.benchmarks.miron.page import LAYOUT, data_notes, notes
from sealegs.benchmarks.miron.view import view
from sealegs.files.datasets import Starter
from sealegs.harness.benchmark import Benchmark, Help
from sealegs.harness.data import ChosenSamples, Data
from sealegs.harness.published import Publishing, Recorded, Recordings
from sealegs.options import ASKING
from sealegs.text.answers import Rule
from sealegs.text.token_estimate import estimate_tokens
from sealegs.types import (
    Answered,
    Capability,
    Generate,
    LogLikelihood,
    Request,
    Sample,
    Sampling,
    Score,
    Summary,
)

STARTER_SHA256 = {
    "en": "fbfc16c6b8e1524aab48cbc9978bd20e6189de3bdc06edb6fb3583bc99437aab",
    "ru": "247e01b481be134f87c8f5734f54c56381fbfad7979267c4d4b4fffeed0eedfb",
}

CONTINUATIONS = Rule(truncated=True, empty=True)
"""A base model continues a text: to end it at once is a continuation too, which the published formula scores
(Levenshtein distance to the empty text). A text that was cut off before it began is none."""


class MironOptions(Struct, frozen=True, kw_only=True):
    """What can be set about a MIRON run."""

    confidence: Annotated[
        Literal["auto", "yes", "no"],
        Meta(
            description="Whether to ask for the log-likelihood of the target; auto: where the model can.",
            extra={**ASKING, "without": {"loglikelihood": "no"}},
        ),
    ] = "auto"
    string_probability: Annotated[
        bool,
        Meta(
            description="Whether to ask for the probability of the target as a string, over all its token "
            "sequences, and so for what the tokenizer costs. Local models only; takes about ten times as "
            "long as a log-likelihood.",
            extra=ASKING,
        ),
    ] = False


def make_starter(stem: str) -> bytes:
    from sealegs.benchmarks.miron.make.generator import compose

    return b"".join(msgspec.json.encode(row) + b"\n" for row in compose(stem))


class Miron(Benchmark[MironInputs, MironDetail]):
    """Is a base model robust to its own tokenizer?

    One sample is one example: the log-likelihood of its target, and a continuation generated in its place.
    """

    Options = MironOptions
    layout = LAYOUT
    metrics = METRICS
    notes = staticmethod(notes)
    view = staticmethod(view)
    starter = Starter(STARTER_SHA256, make_starter, langs=("en", "ru"))
    recordings = Recordings(lambda benchmark, path, lang: read_recording(path, lang))
    publishing = Publishing(lambda benchmark, spec, records: formats.results_files(records))
    builder = "sealegs.benchmarks.miron.make.builder:MironBuilder"
    help = Help(
        examples={
            "run": (
                "sealegs run miron --model embedded --limit 200",
                "sealegs run miron --model hf:path/to/base-model --lang ru",
                "sealegs run miron --model hf:path/to/base-model --limit 200 --string-probability",
            ),
            "score": ("sealegs score miron miron_en.jsonl",),
            "build": ("sealegs build miron --seed 7 --per-category 200 --lang en,ru",),
        },
        demo={"model": "embedded", "limit": 10},
        inspect={"confidence": "no"},
        limit="examples of each language",
    )
    options: MironOptions

    def __init__(self, options: MironOptions, *, seed: int = 0) -> None:
        super().__init__(options, seed=seed)
        needs: set[Capability] = {"generate"}
        needs |= {"loglikelihood"} if options.confidence != "no" else set()
        needs |= {"stringlikelihood"} if options.string_probability else set()
        self.roles = {"model": frozenset(needs)}

    def samples(self, data: Data) -> list[Sample]:
        """`limit` examples of each language, as many of each category. The baseline is that of all data."""
        examples = formats.read_files(data)
        samples = with_baseline([formats.make_sample(example) for example in examples])
        chosen = balanced(examples, data.limit)
        ids = {example.id for example in chosen}
        return ChosenSamples(
            (sample for sample in samples if sample.id in ids), facts=formats.facts_of(chosen)
        )

    def requests(self, sample: Sample[MironInputs]) -> list[Request]:
        inputs, requests = sample.inputs, list[Request]()
        if self.options.string_probability:
            requests += strings.requests(inputs)
        if self.options.confidence != "no" and not inputs.no_logprobs:
            answers = [inputs.target]
            if inputs.published is None:  # what was recorded has no log-probabilities of other answers
                answers += [*added.answers_of(inputs.target, inputs.accepted), *inputs.wrong]
            requests += [
                LogLikelihood(prefix=inputs.prefix, continuation=answer, repeat=inputs.repeat)
                for answer in dict.fromkeys(answers)
            ]
        generate = Generate(prompt=inputs.prefix, sampling=self._sampling(inputs), repeat=inputs.repeat)
        return [*requests, generate]

    def _sampling(self, inputs: MironInputs) -> Sampling:
        """Greedy, until the words of the longest right answer are complete or the line ends."""
        answers = (inputs.target, *inputs.accepted)
        return Sampling(
            max_tokens=8 + 4 * max(map(estimate_tokens, answers)),
            stop=("\n",),
            words=max(len(answer.split()) for answer in answers),
        )

    def score(self, answered: Sequence[Answered[MironInputs]]) -> list[Score]:
        scores = added.score_examples(answered, CONTINUATIONS)
        return [strings.with_strings(score, item) for score, item in zip(scores, answered, strict=True)]

    def summarise(self, scores: Sequence[Score]) -> Summary:
        return added.summarise(scores)


def read_recording(path: Path, lang: str | None) -> Recorded:
    """A results file, with the baseline and warnings of what it did not state."""
    recorded, facts = formats.read_results(path, lang)
    warnings = [f"{path.name}: {note.text}" for note in data_notes(facts)]
    return recorded._replace(samples=with_baseline(recorded.samples), warnings=warnings)


def balanced(examples: Sequence[Example], limit: int | None) -> list[Example]:
    """`limit` examples of each language, as many of each category, in their own order.

    Of those that were changed, as by typos, the ones come first whose clean versions are chosen too.
    """
    if limit is None:
        return list(examples)
    chosen: set[tuple[str, str]] = set()
    for lang in dict.fromkeys(example.lang for example in examples):
        pools: defaultdict[str, list[Example]] = defaultdict(list)
        for example in examples:
            if example.lang == lang:
                pools[example.category].append(example)
        shares = _shares({category: len(pool) for category, pool in pools.items()}, limit)
        clean = {e.id for name, pool in pools.items() for e in pool[: shares[name]] if not changed(e)}
        for pool in pools.values():
            pool.sort(key=lambda example: changed(example) and example.clean_id not in clean)
        chosen |= {(lang, e.id) for name, pool in pools.items() for e in pool[: shares.get(name, 0)]}
    return [example for example in examples if (example.lang, example.id) in chosen]


def _shares(sizes: Mapping[str, int], limit: int) -> dict[str, int]:
    """`limit` dealt out one by one, in turns, to categories that still have some."""
    shares = dict.fromkeys(sizes, 0)
    while limit > 0 and (unfilled := [name for name in sizes if shares[name] < sizes[name]]):
        for name in unfilled[:limit]:
            shares[name] += 1
        limit -= len(unfilled)
    return shares

"""Models tried out before anything of a run is asked: whether they can do what their roles need."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from sealegs.harness.benchmark import Benchmark
from sealegs.harness.gate import RequestGate
from sealegs.harness.model import Model, ServedModel, SupportsPromptLogprobs
from sealegs.harness.progress import Progress, watch
from sealegs.make.builder import Builder
from sealegs.types import LogLikelihood, Sample

EXAMPLES = 3
"""Texts of each language that a server is tried out with."""


def try_out(
    benchmark: Benchmark,
    models: Mapping[str, Model],
    samples: Sequence[Sample],
    progress: Progress,
    gate: RequestGate,
) -> None:
    """Have models show that they can do what their roles need, in the languages of the data, too."""
    probe(benchmark, models, progress, gate)
    _probe_languages(benchmark, models, samples)


def probe(
    benchmark: Benchmark | Builder, models: Mapping[str, Model], progress: Progress, gate: RequestGate
) -> None:
    """Have every model probed for what its role needs; the tries count in the run's budget."""
    for role, model in models.items():
        watch(model, progress)
        if isinstance(model, ServedModel):
            model.count_with(gate, role)
        model.probe(frozenset(benchmark.roles[role]))


def _probe_languages(benchmark: Benchmark, models: Mapping[str, Model], samples: Sequence[Sample]) -> None:
    """Try out log-probabilities on a few texts of each language in the data, where a server gives them."""
    examples: defaultdict[str, defaultdict[str, list[LogLikelihood]]] = defaultdict(lambda: defaultdict(list))
    servers = {role: model for role, model in models.items() if isinstance(model, SupportsPromptLogprobs)}
    for sample in samples if any("loglikelihood" in benchmark.roles[role] for role in servers) else ():
        lang = str(sample.tags.get("lang", "the data"))
        if len(examples["model"][lang]) < EXAMPLES:
            for request in benchmark.requests(sample):
                if isinstance(request, LogLikelihood):
                    examples[request.role][lang].append(request)
    for role, model in servers.items():
        if examples[role]:
            model.probe_logprobs(examples[role])

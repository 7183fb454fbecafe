"""Models for MIRON: the share of examples that they continue rightly is set beforehand."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

from known_models.server import KnownModel, in_chance_order, share_of
from sealegs import api
from sealegs.benchmarks.miron.benchmark import Miron, MironOptions
from sealegs.files.datasets import data_file
from sealegs.harness.data import Data
from sealegs.harness.folder import Run
from sealegs.types import Sample


def play(data: Path, out: Path, right: float, **options: Any) -> tuple[Run, dict[str, str]]:
    """A run of the model, and the continuation that it gave to each example, by the example's id."""
    samples = Miron(MironOptions(confidence="no")).samples(Data([data_file(data)]))
    continuations = _continuations(samples, right)
    by_prefix = {sample.inputs.prefix: continuations[sample.id] for sample in samples}
    with KnownModel(lambda prompt, _: by_prefix[prompt]) as server:
        run = api.run(
            "miron", model="openai:known", base_url=server.url, data=str(data), out=out, confidence="no",
            **options,
        )  # fmt: skip
    return run, continuations


def _continuations(samples: list[Sample], right: float) -> dict[str, str]:
    """Of each category as many true continuations as the share says; the others get that of a neighbour."""
    categories: defaultdict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        categories[str(sample.tags["category"])].append(sample)
    given: dict[str, str] = {}
    for members in categories.values():
        shuffled = in_chance_order(members, lambda sample: sample.id)
        true, others = share_of(shuffled, right)
        given |= {sample.id: sample.inputs.target for sample in true}
        for number, sample in enumerate(others):
            rest = shuffled[number + 1 :] + shuffled
            accepted = {sample.inputs.target.strip().casefold()}
            accepted |= {answer.strip().casefold() for answer in sample.inputs.accepted}
            given[sample.id] = next(
                other.inputs.target
                for other in rest
                if other.inputs.target.strip().casefold() not in accepted
            )
    return given

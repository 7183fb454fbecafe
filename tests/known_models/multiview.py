"""Judges for multiview: the share of document pairs for which each follows the surface is set beforehand.

Such a judge picks the same document whatever the criterion asks for. So of two opposite questions about the
same documents it answers one rightly, never both.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import msgspec

from known_models.server import KnownModel, in_chance_order, share_of
from sealegs import api
from sealegs.benchmarks.multiview import data as formats
from sealegs.benchmarks.multiview.data import Triplet
from sealegs.benchmarks.multiview.names import parse_methods
from sealegs.benchmarks.multiview.prompts import judge_prompt
from sealegs.harness.folder import Run


def picks(triplets: list[Triplet], surface: float) -> list[str]:
    """The document that the judge picks for each triplet: of the pairs of opposite questions about the same
    documents, in so large a share that of the first question for both."""
    pairs: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
    for number, triplet in enumerate(triplets):
        pairs[triplet.anchor, *sorted((triplet.positive, triplet.negative))].append(number)
    chosen = [triplet.positive for triplet in triplets]
    opposite = {key: pair for key, pair in pairs.items() if len({chosen[number] for number in pair}) == 2}
    by_surface, _ = share_of(in_chance_order(list(opposite), "".join), surface)
    for key in by_surface:
        first, *others = opposite[key]
        for number in others:
            chosen[number] = triplets[first].positive
    return chosen


def play(data: Path, out: Path, surface: float) -> Run:
    """A run of the judge."""
    path = data / "triplets.jsonl"
    triplets = list(formats.read_triplets(path))
    (method,) = parse_methods(("judge:openai:known",), ())
    answers: dict[str, str] = {}
    for triplet, picked in zip(triplets, picks(triplets, surface), strict=True):
        for swapped in (False, True):
            first = triplet.negative if swapped else triplet.positive
            prompt = judge_prompt(method, triplet, swapped=swapped)
            answers[prompt] = "first" if picked == first else "second"

    def judge(prompt: str, _: int) -> str:
        answer = next(answer for known, answer in answers.items() if prompt.startswith(known))
        return msgspec.json.encode({"more_alike": answer}).decode()

    with KnownModel(judge) as server:
        spec = f"judge:openai:known?base_url={server.url}&api_key_env=NO_KEY"
        return api.run("multiview", method=[spec], data=str(path), out=out)

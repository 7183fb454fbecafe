"""From documents and a criterion to triplets: reflect, annotate, propose and select, check.

Anchors are tried in rounds until there are enough triplets, or no anchor is left. Everything is decided by
the seed and the judge's answers, so a build that is begun again asks the same questions in the same order.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from evenkeel.benchmarks.multiview.files import ROLES, Triplet, make_triplet
from evenkeel.benchmarks.multiview.make.annotate import Annotation, Asking, Noted, Schema, annotate, reflect
from evenkeel.benchmarks.multiview.make.check import order_blind, rate
from evenkeel.benchmarks.multiview.make.criteria import Criterion
from evenkeel.benchmarks.multiview.make.propose import Proposal, propose, select
from evenkeel.make.choice import shuffled
from evenkeel.make.documents import Document

HASTE = 4
"""Anchors of a round for each triplet that is missing, at the most."""
NOT_READ = ("unparsed", "refused", "error")
NOT_PICKED = ("abstained", *NOT_READ, "not_a_candidate", "same_document")
STEPS = {
    "reflect": ("asked", *NOT_READ, "categories", "tags"),
    "annotate": ("annotated", *NOT_READ, "unknown_categories", "unknown_tags"),
    "select": ("without_candidates", "proposed", *NOT_PICKED, "selected"),
    "discarded": (),
}
"""What is counted at each step, whether it happens or not; why triplets are discarded is told as it comes."""


class Settings(Struct, frozen=True, kw_only=True):
    """What is the same for all criteria."""

    docset: str
    judge: str
    triplets: int
    candidates: int
    sample: int
    min_quality: int
    seed: int
    lang: str | None = None

    @property
    def role(self) -> str:
        """The judge's role, under which it also orders triplets."""
        return f"judge:{self.judge}"


class Made(NamedTuple):
    """What came of one criterion, and how many fell by the way at each step."""

    schema: Schema | None
    annotations: list[Annotation]
    triplets: list[Triplet]
    counts: dict[str, Counter[str]]


def make(documents: Sequence[Document], criterion: Criterion, settings: Settings) -> Asking[Made]:
    """Triplets for one criterion; none, where the judge writes no schema."""
    counts: dict[str, Counter[str]] = {
        step: Counter(dict.fromkeys(names, 0)) for step, names in STEPS.items()
    }
    name = f"multiview/build/{settings.seed}/{criterion.name}"
    schema = yield from reflect(
        documents, criterion, role=settings.role, sample=settings.sample,
        rng=random.Random(f"{name}/reflect"), counts=counts["reflect"],
    )  # fmt: skip
    if schema is None:
        return Made(None, [], [], counts)
    annotations = yield from annotate(
        documents, criterion, schema, role=settings.role, counts=counts["annotate"]
    )
    noted = map(Noted, documents, annotations)
    # Drawn before it is known who was annotated: one document more or less leaves the others where they are.
    drawn = shuffled(noted, random.Random(f"{name}/anchors"))
    pool = [entry for entry in drawn if entry.annotation.status == "ok"]
    proposals = propose(pool, schema, settings.candidates, lang=settings.lang, counts=counts["select"])
    triplets = yield from _triplets(proposals, criterion, settings, counts)
    return Made(schema, annotations, triplets, counts)


def _triplets(
    proposals: Iterator[Proposal], criterion: Criterion, settings: Settings, counts: dict[str, Counter[str]]
) -> Asking[list[Triplet]]:
    """Rounds of proposals, selected and checked, until there are as many as asked for."""
    kept: list[Triplet] = []
    discarded = counts["discarded"]
    while missing := max(0, settings.triplets - len(kept)):
        size = round_size(missing, tried=counts["select"]["proposed"], kept=len(kept))
        proposed = list(islice(proposals, size))
        if not proposed:
            break
        chosen = yield from select(proposed, criterion, role=settings.role, counts=counts["select"])
        drafts = [_draft(criterion, settings.docset, found) for found in chosen]
        rated = yield from rate(
            drafts, criterion, role=settings.role, least=settings.min_quality, discarded=discarded
        )
        kept += yield from order_blind(rated, spec=settings.judge, discarded=discarded)
    if len(kept) > settings.triplets:
        discarded["surplus"] += len(kept) - settings.triplets
    return kept[: settings.triplets]


def round_size(missing: int, *, tried: int, kept: int) -> int:
    """How many anchors to try for what is missing, going by the share that was kept so far.

    missing · (tried + 1) / (kept + 1), rounded up, and at most HASTE times what is missing
    """
    return min(HASTE * missing, -(-missing * (tried + 1) // (kept + 1)))


def _draft(criterion: Criterion, docset: str, chosen: tuple[Noted, Noted, Noted]) -> Triplet:
    anchor, positive, negative = (noted.document for noted in chosen)
    triplet = make_triplet(docset, criterion, (anchor, positive, negative), hard_for="bm25")
    summaries = (noted.annotation.summary for noted in chosen)
    return replace(triplet, **{f"{role}_summary": text for role, text in zip(ROLES, summaries, strict=True)})

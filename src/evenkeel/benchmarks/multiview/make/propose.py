"""Propose and select: candidates for an anchor, of which a judge picks a positive and a negative."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from evenkeel.benchmarks.multiview.make.annotate import Asking, Noted, Schema
from evenkeel.benchmarks.multiview.make.criteria import Criterion
from evenkeel.benchmarks.multiview.make.tags import tag_rows
from evenkeel.benchmarks.multiview.make.wording import in_a_line, prompts, question
from evenkeel.run import judge
from evenkeel.text.bm25 import Alike, best, lexical_rows
from evenkeel.text.prompts import fill


class Proposal(NamedTuple):
    """An anchor with the documents that have like tags, and those that read alike."""

    anchor: Noted
    positives: list[Noted]
    negatives: list[Noted]


class Selection(Struct, frozen=True):
    """The labels of the positive and of the negative; "none" where no candidate fits."""

    positive: str
    negative: str


def propose(
    pool: Sequence[Noted], schema: Schema, k: int, *, lang: str | None, counts: Counter[str]
) -> Iterator[Proposal]:
    """Every document of the pool as an anchor, in order, with `k` candidates of each kind at the most.

    Positive candidates are the most alike by the Jaccard similarity of their tags, negative candidates by
    BM25. Scores are computed as anchors are asked for, so that a few anchors among many documents are cheap.
    """
    texts = [noted.document.text for noted in pool]
    traits = [noted.traits(schema) for noted in pool]
    anchors = range(len(pool))
    tagged, lexical = tag_rows(traits, texts, anchors), lexical_rows(texts, anchors, lang=lang)
    for anchor, by_tags, by_words in zip(pool, tagged, lexical, strict=True):
        positives = [pool[found.document] for found in best(_turned(by_tags), k)]
        negatives = [pool[found.document] for found in best(by_words, k)]
        if positives and negatives:
            yield Proposal(anchor, positives, negatives)
        else:
            counts["without_candidates"] += 1


def _turned(row: Alike) -> Alike:
    """The documents from the anchor on first, then those before it.

    Many documents have the very same tags. In the order of the set the same few of them would be the
    candidates of every anchor.
    """
    before = int(np.searchsorted(row.documents, row.anchor))
    return row._replace(documents=np.roll(row.documents, -before), scores=np.roll(row.scores, -before))


def select(
    proposals: Sequence[Proposal], criterion: Criterion, *, role: str, counts: Counter[str]
) -> Asking[list[tuple[Noted, Noted, Noted]]]:
    """Anchor, positive and negative of each proposal for which the judge picked both."""
    asked = [
        question(
            prompts().select,
            criterion,
            ANCHOR=_shown(proposal.anchor),
            POSITIVES=_listed("P", proposal.positives),
            NEGATIVES=_listed("N", proposal.negatives),
        )
        for proposal in proposals
    ]
    verdicts = yield from judge.ask(Selection, asked, role=role)
    counts["proposed"] += len(proposals)
    chosen = []
    for proposal, verdict in zip(proposals, verdicts, strict=True):
        picked = picks(proposal, verdict.value) if verdict.value else verdict.status
        counts["selected" if not isinstance(picked, str) else picked] += 1
        if not isinstance(picked, str):
            chosen.append((proposal.anchor, *picked))
    return chosen


def picks(proposal: Proposal, said: Selection) -> tuple[Noted, Noted] | str:
    """The positive and the negative that were named, or why there are none."""
    found: list[Noted] = []
    for letter, label, candidates in (
        ("P", said.positive, proposal.positives),
        ("N", said.negative, proposal.negatives),
    ):
        named = label.strip().strip(".").upper()
        if named in ("NONE", ""):
            return "abstained"
        labels = {f"{letter}{number}": noted for number, noted in enumerate(candidates, 1)}
        if named not in labels:
            return "not_a_candidate"
        found.append(labels[named])
    positive, negative = found
    return "same_document" if positive is negative else (positive, negative)


def _listed(letter: str, candidates: Sequence[Noted]) -> str:
    return "\n".join(f"{letter}{number}. {_shown(noted)}" for number, noted in enumerate(candidates, 1))


def _shown(noted: Noted) -> str:
    return fill(
        prompts().summary, TEXT=in_a_line(noted.document.text), SUMMARY=in_a_line(noted.annotation.summary)
    )

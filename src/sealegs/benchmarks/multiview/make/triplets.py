"""From documents and a criterion to triplets that a judge chooses and checks.

Anchors are tried in rounds until there are enough triplets, or no anchor is left. The seed and
the judge's answers decide everything, so a build that is begun again asks the same questions.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from sealegs import analysis as stats
from sealegs.benchmarks.multiview.data import ROLES, Triplet
from sealegs.benchmarks.multiview.make.annotate import (
    LIST_CHARACTERS,
    Annotated,
    Schema,
    annotate,
    criterion_prompt,
    in_one_line,
    reflect,
    shorten,
    template,
)
from sealegs.benchmarks.multiview.make.criteria import (
    Build,
    Criterion,
    CriterionTriplets,
    Dropped,
    dropped_words,
    make_triplet,
    portable_spec,
    readable,
)
from sealegs.benchmarks.multiview.methods import Outcome, by_verdicts
from sealegs.benchmarks.multiview.names import Method
from sealegs.make.asking import Asking, StepTally, ask
from sealegs.make.documents import Document
from sealegs.make.grammar import shuffled
from sealegs.text.bm25 import DIGITS, Floats, best, bm25_index, shared_counts
from sealegs.text.prompts import fill

CANDIDATES = 10
"""Documents to choose from, for the positive and for the negative."""
MIN_QUALITY = 3
"""What the judge rates below is discarded."""
Chosen = tuple[Annotated, Annotated, Annotated]
"""Anchor, positive and negative."""


def judge_triplets(documents: Sequence[Document], build: Build, judge: str) -> Asking[CriterionTriplets]:
    """Triplets for one criterion; none, where the judge writes no schema."""
    criterion, role = build.criterion, f"judge:{judge}"  # under which it also orders triplets in a run
    tally = StepTally()
    name = f"multiview/build/{build.seed}/{criterion.name}"
    rng = random.Random(f"{name}/reflect")
    schema = yield from reflect(documents, criterion, role=role, rng=rng, counts=tally["reflect"])
    if schema is None:
        fault = "the judge wrote no schema that can be read; try another --judge or --seed"
        return CriterionTriplets(criterion, [], tally, failures=[*_failed(tally), fault])
    annotations = yield from annotate(documents, criterion, schema, role=role, counts=tally["annotate"])
    # Shuffled before unannotated documents are left out: one more or less does not move the others.
    pairs = shuffled(map(Annotated, documents, annotations), random.Random(f"{name}/anchors"))
    pool = [pair for pair in pairs if pair.annotation.status == "ok"]
    triplets, dropped = yield from _rounds(propose(pool, schema, tally["select"]), build, judge, tally)
    tally["discarded"].update(each.reason for each in dropped)
    note = (
        f"{tally['annotate']['annotated']} documents annotated; of {tally['select']['proposed']} anchors "
        f"proposed the judge abstained from {tally['select']['abstained']}; {dropped_words(dropped)}, "
        f"{len(triplets)} kept"
    )
    failures = _failed(tally) + ([] if triplets else ["no triplet was kept; manifest.json has the reasons"])
    lines = msgspec.json.Encoder().encode_lines(annotations)
    files = {"schema.json": readable(schema), "annotations.jsonl": lines}
    return CriterionTriplets(criterion, triplets, tally, [note], dropped, failures, files)


def _failed(tally: StepTally) -> list[str]:
    count = tally.failed
    return [f"requests that failed: {count}; the same command asks them again"] if count else []


def _rounds(
    proposals: Iterator[Proposal], build: Build, judge: str, tally: StepTally
) -> Asking[tuple[list[Triplet], list[Dropped]]]:
    """Rounds of as many anchors as triplets are missing, selected and checked, until none is missing."""
    triplets: list[Triplet] = []
    dropped: list[Dropped] = []
    while proposed := list(islice(proposals, build.number - len(triplets))):
        chosen = yield from select(proposed, build.criterion, role=f"judge:{judge}", counts=tally["select"])
        drafts = [_triplet(documents, build, judge) for documents in chosen]
        rated = yield from _rate(drafts, build.criterion, judge, dropped)
        triplets += yield from _order_blind(rated, judge, dropped)
    return triplets, dropped


def _triplet(chosen: Chosen, build: Build, judge: str) -> Triplet:
    anchor, positive, negative = chosen
    triplet = make_triplet(
        build.docset,
        build.criterion,
        (anchor.document, positive.document, negative.document),
        hard_for="bm25",
    )
    notes = {role: each.annotation for role, each in zip(ROLES, chosen, strict=True)}
    return replace(
        triplet,
        **{f"{role}_summary": note.summary for role, note in notes.items()},
        labels={role: {build.criterion.name: note.category} for role, note in notes.items() if note.category},
        tags={role: note.tags for role, note in notes.items() if note.tags},
        built_by=portable_spec(judge) or "",
    )


# --- propose and select -----------------------------------------------------------------------------


class Proposal(NamedTuple):
    """An anchor with the documents that have similar tags, and those that read alike."""

    anchor: Annotated
    positives: list[Annotated]
    negatives: list[Annotated]


NONE = "none"
"""The answer where no candidate fits."""


class Selection(Struct, frozen=True):
    """The labels of the positive and of the negative; "none" where no candidate fits."""

    positive: str
    negative: str


def propose(pool: Sequence[Annotated], schema: Schema, counts: Counter[str]) -> Iterator[Proposal]:
    """Every document of the pool as an anchor, in order, with its candidates of each kind.

    Positive candidates are the most alike by the Jaccard similarity of their tags, negative candidates by
    BM25. Scores are computed as anchors are asked for, so that a few anchors among many documents are cheap.
    """
    by_words = bm25_index([annotated.document.text for annotated in pool])
    by_tags = jaccard([annotated.traits(schema) for annotated in pool])
    for index, anchor in enumerate(pool):
        tags, words = by_tags(index), by_words(index)
        tags[index] = words[index] = 0
        # Many documents have the very same tags: in the order of the set, the same few of them would be the
        # candidates of every anchor.
        positives = [pool[document] for document in best(tags, CANDIDATES, first=index)]
        negatives = [pool[document] for document in best(words, CANDIDATES)]
        if positives and negatives:
            yield Proposal(anchor, positives, negatives)
        else:
            counts["without_candidates"] += 1


def jaccard(tags: Sequence[Sequence[str]]) -> Callable[[int], Floats]:
    """The Jaccard similarity of the tags of all documents to those of one, by its index.

    J(a, b) = |A ∩ B| / |A ∪ B|
    """
    sizes = np.array([len(set(names)) for names in tags])
    shared = shared_counts(tags)

    def scores(anchor: int) -> Floats:
        both = shared(anchor)
        row: Floats = np.round(both / np.maximum(sizes[anchor] + sizes - both, 1), DIGITS)
        return row

    return scores


def select(
    proposals: Sequence[Proposal], criterion: Criterion, *, role: str, counts: Counter[str]
) -> Asking[list[Chosen]]:
    """The proposals of which the judge picked a positive and a negative."""
    prompts = [
        (
            proposal,
            criterion_prompt(
                "select",
                criterion,
                ANCHOR=_show(proposal.anchor),
                POSITIVES=_list("P", proposal.positives),
                NEGATIVES=_list("N", proposal.negatives),
            ),
        )
        for proposal in proposals
    ]
    choices = [
        {
            "positive": [*by_label("P", proposal.positives), NONE],
            "negative": [*by_label("N", proposal.negatives), NONE],
        }
        for proposal in proposals
    ]
    chosen: list[Chosen] = []
    for proposal, verdict in (yield from ask(Selection, prompts, counts, choices=choices, role=role)):
        if verdict.value is not None:
            picked = pick_documents(proposal, verdict.value)
            counts[picked if isinstance(picked, str) else "selected"] += 1
            if not isinstance(picked, str):
                chosen.append((proposal.anchor, *picked))
    counts["proposed"] += len(proposals)
    return chosen


def pick_documents(proposal: Proposal, selection: Selection) -> tuple[Annotated, Annotated] | str:
    """The positive and the negative that a judge selected, or why there are none."""
    picked: list[Annotated] = []
    for letter, label, candidates in (
        ("P", selection.positive, proposal.positives),
        ("N", selection.negative, proposal.negatives),
    ):
        label = label.strip().strip(".").upper()
        if label in (NONE.upper(), ""):
            return "abstained"
        labelled = by_label(letter, candidates)
        if label not in labelled:
            return "not_a_candidate"
        picked.append(labelled[label])
    positive, negative = picked
    return "same_document" if positive is negative else (positive, negative)


def by_label(letter: str, candidates: Sequence[Annotated]) -> dict[str, Annotated]:
    """The candidates by the labels under which a judge is shown them."""
    return {f"{letter}{number}": candidate for number, candidate in enumerate(candidates, 1)}


def _list(letter: str, candidates: Sequence[Annotated]) -> str:
    return "\n".join(f"{label}. {_show(each)}" for label, each in by_label(letter, candidates).items())


def _show(annotated: Annotated) -> str:
    """A document in a list: whole or its beginning, and its summary."""
    text = in_one_line(annotated.document.text, LIST_CHARACTERS)
    return fill(template("summary"), TEXT=text, SUMMARY=in_one_line(annotated.annotation.summary))


# --- check ------------------------------------------------------------------------------------------


class Rating(Struct, frozen=True):
    """From 1 (invalid) to 5 (ideal)."""

    quality: Literal[1, 2, 3, 4, 5]


def _rate(
    triplets: Sequence[Triplet], criterion: Criterion, judge: str, dropped: list[Dropped]
) -> Asking[list[Triplet]]:
    """The triplets that the judge rates well enough, each with its rating."""
    prompts = [
        (triplet, criterion_prompt("rate", criterion, **{
            role.upper(): shorten(text) for role, text in zip(ROLES, triplet.documents, strict=True)
        }))
        for triplet in triplets
    ]  # fmt: skip
    rated = []
    for triplet, verdict in (yield from ask(Rating, prompts, Counter(), role=f"judge:{judge}")):
        if verdict.value is None:
            dropped.append(Dropped(triplet, f"rating_{verdict.status}"))
            continue
        triplet = replace(triplet, quality=verdict.value.quality)
        if verdict.value.quality < MIN_QUALITY:
            dropped.append(Dropped(triplet, f"quality_{verdict.value.quality}"))
        else:
            rated.append(triplet)
    return rated


def _order_blind(triplets: Sequence[Triplet], spec: str, dropped: list[Dropped]) -> Asking[list[Triplet]]:
    """The triplets that the judge orders correctly in both orders, not knowing which document is which."""
    shown = [
        replace(t, anchor=shorten(t.anchor), positive=shorten(t.positive), negative=shorten(t.negative))
        for t in triplets
    ]
    ordered = []
    for triplet, outcome in zip(triplets, (yield from order_blind(shown, spec)), strict=True):
        if fault := ordering_fault(outcome):
            dropped.append(Dropped(triplet, fault))
        else:
            ordered.append(triplet)
    return ordered


def order_blind(triplets: Sequence[Triplet], spec: str) -> Asking[list[Outcome]]:
    """How a judge orders each triplet, in both orders, as it would in a run."""
    return (yield from by_verdicts(Method(f"judge:{spec}", "judge", spec=spec), triplets))


def validate(
    triplets: Sequence[Triplet], spec: str, name: str
) -> Asking[tuple[list[Triplet], list[Dropped], dict[str, Any]]]:
    """The triplets that a second judge orders as built in both orders, the others, and the agreement.

    It reads the documents whole, as methods under test do. `confirmed` is the share of triplets that it
    orders as built, of those that it answered in both orders.
    """
    outcomes = yield from order_blind(triplets, spec)
    confirmed: list[Triplet] = []
    dropped: list[Dropped] = []
    for triplet, outcome in zip(triplets, outcomes, strict=True):
        if fault := ordering_fault(outcome):
            dropped.append(Dropped(triplet, f"validation_{fault}"))
        else:
            confirmed.append(replace(triplet, confirmed_by=name))
    answered = [outcome.picks for outcome in outcomes if None not in outcome.picks]
    equal = np.array([set(picks) == {"positive"} for picks in answered], dtype=float)
    share = stats.interval_of(equal, np.arange(len(equal)), "share")
    figure = {name: getattr(share, name) for name in ("value", "low", "high", "n", "method", "reason")}
    reasons = dict(Counter(each.reason for each in dropped))
    failed = len(outcomes) - len(answered)
    return confirmed, dropped, {"by": name, "confirmed": figure, "failed": failed, "dropped": reasons}


def ordering_fault(outcome: Outcome) -> str:
    """Why a triplet was not ordered correctly in both orders; empty where it was."""
    if all(choice == "positive" for choice in outcome.picks):
        return ""
    if "negative" in outcome.picks:
        return "ordered_wrong"
    if "tie" in outcome.picks:
        return "ordered_tie"
    return f"ordering_{next(status for status in outcome.statuses if status != 'ok')}"

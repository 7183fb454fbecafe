"""From documents and a criterion to triplets: chosen and checked by a judge, or made from labels.

With a judge, anchors are tried in rounds until there are enough triplets, or no anchor is left. The seed and
the judge's answers decide everything, so a build that is begun again asks the same questions.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from evenkeel.benchmarks.multiview.files import ROLES, Triplet
from evenkeel.benchmarks.multiview.make.annotate import (
    Annotated,
    Annotation,
    Schema,
    annotate,
    criterion_prompt,
    excerpts,
    in_one_line,
    reflect,
    template,
)
from evenkeel.benchmarks.multiview.make.criteria import Criterion, make_triplet, portable_spec
from evenkeel.benchmarks.multiview.methods import Method, Outcome, by_verdicts
from evenkeel.errors import UsageError
from evenkeel.make.asking import Asking, Tally, ask
from evenkeel.make.documents import Document
from evenkeel.make.grammar import pick, shuffled
from evenkeel.text.bm25 import DIGITS, Neighbours, best, bm25_rows, counts, neighbours
from evenkeel.text.prompts import fill

if TYPE_CHECKING:
    from evenkeel.benchmarks.multiview.make.build_options import BuildOptions

MAX_OVERSHOOT = 4
"""At most so many anchors are tried in a round for each triplet that is missing."""
UNREAD = ("unparsed", "refused", "error")
STEPS = {
    "reflect": ("asked", *UNREAD, "categories", "tags"),
    "annotate": ("annotated", "parts", *UNREAD, "unknown_categories", "unknown_tags"),
    "select": (
        "without_candidates", "proposed", "abstained", *UNREAD, "not_a_candidate", "same_document", "selected"
    ),
    "discarded": (),
}  # fmt: skip
"""What the manifest counts at each step, even where it is 0; the reasons for discarding are open."""

Chosen = tuple[Annotated, Annotated, Annotated]
"""Anchor, positive and negative."""


class Dropped(NamedTuple):
    """A triplet that is not part of the set, and why."""

    triplet: Triplet
    reason: str


class Draft(NamedTuple):
    """A triplet, and the same as the judge is shown it: with notes in place of documents too long for it."""

    triplet: Triplet
    shown: Triplet


class JudgedTriplets(NamedTuple):
    """What came of one criterion, and how many documents and triplets were lost at each step."""

    criterion: Criterion
    schema: Schema | None
    annotations: list[Annotation]
    triplets: list[Triplet]
    dropped: list[Dropped]
    counts: Tally


def judge_triplets(
    documents: Sequence[Document], criterion: Criterion, docset: str, options: BuildOptions
) -> Asking[JudgedTriplets]:
    """Triplets for one criterion; none, where the judge writes no schema."""
    tally = Tally()
    for step, names in STEPS.items():
        tally[step].update(dict.fromkeys(names, 0))
    name = f"multiview/build/{options.seed}/{criterion.name}"
    schema = yield from reflect(
        documents, criterion, role=options.role, sample=options.reflect_sample,
        longest=options.list_characters, rng=random.Random(f"{name}/reflect"), counts=tally["reflect"],
    )  # fmt: skip
    if schema is None:
        return JudgedTriplets(criterion, None, [], [], [], tally)
    annotations = yield from annotate(
        documents, criterion, schema,
        role=options.role, longest=options.document_characters, counts=tally["annotate"],
    )  # fmt: skip
    # Shuffled before unannotated documents are left out: one more or less does not move the others.
    pairs = shuffled(map(Annotated, documents, annotations), random.Random(f"{name}/anchors"))
    pool = [pair for pair in pairs if pair.annotation.status == "ok"]
    proposals = propose(pool, schema, options.candidates, lang=options.lang, counts=tally["select"])
    triplets, dropped = yield from _rounds(proposals, criterion, docset, options, tally)
    tally["discarded"].update(each.reason for each in dropped)
    return JudgedTriplets(criterion, schema, annotations, triplets, dropped, tally)


def _rounds(
    proposals: Iterator[Proposal], criterion: Criterion, docset: str, options: BuildOptions, tally: Tally
) -> Asking[tuple[list[Triplet], list[Dropped]]]:
    """Rounds of proposals, selected and checked, until there are as many triplets as asked for."""
    triplets: list[Triplet] = []
    dropped: list[Dropped] = []
    while (missing := options.number - len(triplets)) > 0:
        size = round_size(missing, tried=tally["select"]["proposed"], accepted=len(triplets))
        proposed = list(islice(proposals, size))
        if not proposed:
            break
        chosen = yield from select(
            proposed, criterion, role=options.role, longest=options.list_characters, counts=tally["select"]
        )
        drafts = [_draft(documents, criterion, docset, options) for documents in chosen]
        rated = yield from _rate(drafts, criterion, options, dropped)
        triplets += yield from _order_blind(rated, options.judge or "", dropped)
    dropped += [Dropped(triplet, "surplus") for triplet in triplets[options.number :]]
    return triplets[: options.number], dropped


def round_size(missing: int, *, tried: int, accepted: int) -> int:
    """How many anchors to try for what is missing, by the share that was accepted so far.

    missing · (tried + 1) / (accepted + 1), rounded up, and at most MAX_OVERSHOOT times what is missing
    """
    return min(MAX_OVERSHOOT * missing, -(-missing * (tried + 1) // (accepted + 1)))


def _draft(chosen: Chosen, criterion: Criterion, docset: str, options: BuildOptions) -> Draft:
    anchor, positive, negative = chosen
    triplet = make_triplet(
        docset, criterion, (anchor.document, positive.document, negative.document), hard_for="bm25"
    )
    notes = {role: each.annotation for role, each in zip(ROLES, chosen, strict=True)}
    triplet = replace(
        triplet,
        **{f"{role}_summary": note.summary for role, note in notes.items()},
        labels={role: {criterion.name: note.category} for role, note in notes.items() if note.category},
        tags={role: note.tags for role, note in notes.items() if note.tags},
        built_by=portable_spec(options.judge) or "",
    )
    shown = dict(zip(ROLES, (each.shown for each in chosen), strict=True))
    return Draft(triplet, replace(triplet, **shown))


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


def propose(
    pool: Sequence[Annotated], schema: Schema, k: int, *, lang: str | None, counts: Counter[str]
) -> Iterator[Proposal]:
    """Every document of the pool as an anchor, in order, with at most `k` candidates of each kind.

    Positive candidates are the most alike by the Jaccard similarity of their tags, negative candidates by
    BM25. Scores are computed as anchors are asked for, so that a few anchors among many documents are cheap.
    """
    texts = [annotated.document.text for annotated in pool]
    traits = [annotated.traits(schema) for annotated in pool]
    anchors = range(len(pool))
    rows = zip(tag_rows(traits, texts, anchors), bm25_rows(texts, anchors, lang=lang), strict=True)
    for anchor, (by_tags, by_words) in zip(pool, rows, strict=True):
        positives = [pool[candidate.document] for candidate in best(_from_anchor(by_tags), k)]
        negatives = [pool[candidate.document] for candidate in best(by_words, k)]
        if positives and negatives:
            yield Proposal(anchor, positives, negatives)
        else:
            counts["without_candidates"] += 1


def tag_rows(
    tags: Sequence[Collection[str]], texts: Sequence[str], anchors: Sequence[int]
) -> Iterator[Neighbours]:
    """For each anchor the Jaccard similarity of the documents that share a tag with it, without itself.

        J(a, b) = |A ∩ B| / |A ∪ B|

    Documents with the anchor's text are left out, as in `bm25_rows`.
    """
    members = counts([list(dict.fromkeys(names)) for names in tags]).matrix
    sizes = np.diff(members.starts)
    for row in neighbours(members, members, texts, anchors):
        union = sizes[row.anchor] + sizes[row.documents] - row.scores
        yield row._replace(scores=np.round(row.scores / union, DIGITS))


def _from_anchor(row: Neighbours) -> Neighbours:
    """The documents from the anchor on first, then those before it.

    Many documents have the very same tags: in the order of the set, the same few of them would be the
    candidates of every anchor.
    """
    before = int(np.searchsorted(row.documents, row.anchor))
    return row._replace(documents=np.roll(row.documents, -before), scores=np.roll(row.scores, -before))


def select(
    proposals: Sequence[Proposal], criterion: Criterion, *, role: str, longest: int, counts: Counter[str]
) -> Asking[list[Chosen]]:
    """The proposals of which the judge picked a positive and a negative."""
    prompts = [
        (
            proposal,
            criterion_prompt(
                "select",
                criterion,
                ANCHOR=_show(proposal.anchor, longest),
                POSITIVES=_list("P", proposal.positives, longest),
                NEGATIVES=_list("N", proposal.negatives, longest),
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


def _list(letter: str, candidates: Sequence[Annotated], longest: int) -> str:
    labelled = by_label(letter, candidates).items()
    return "\n".join(f"{label}. {_show(each, longest)}" for label, each in labelled)


def _show(annotated: Annotated, longest: int) -> str:
    """A document in a list: whole or in excerpts, and the summary of all of it."""
    summary = in_one_line(annotated.annotation.summary)
    return fill(template("summary"), TEXT=excerpts(annotated.document.text, longest), SUMMARY=summary)


# --- check ------------------------------------------------------------------------------------------


class Rating(Struct, frozen=True):
    """From 1 (invalid) to 5 (ideal)."""

    quality: Literal[1, 2, 3, 4, 5]


def _rate(
    drafts: Sequence[Draft], criterion: Criterion, options: BuildOptions, dropped: list[Dropped]
) -> Asking[list[Draft]]:
    """The triplets that the judge rates well enough, each with its rating."""
    prompts = [
        (draft, criterion_prompt("rate", criterion, **{
            role.upper(): text for role, text in zip(ROLES, draft.shown.documents, strict=True)
        }))
        for draft in drafts
    ]  # fmt: skip
    rated = []
    for draft, verdict in (yield from ask(Rating, prompts, Counter(), role=options.role)):
        if verdict.value is None:
            dropped.append(Dropped(draft.triplet, f"rating_{verdict.status}"))
            continue
        quality = verdict.value.quality
        triplet = replace(draft.triplet, quality=quality)
        if quality < options.min_quality:
            dropped.append(Dropped(triplet, f"quality_{quality}"))
        else:
            rated.append(Draft(triplet, draft.shown))
    return rated


def _order_blind(drafts: Sequence[Draft], spec: str, dropped: list[Dropped]) -> Asking[list[Triplet]]:
    """The triplets that the judge orders correctly in both orders, not knowing which document is which."""
    outcomes = yield from order_blind([draft.shown for draft in drafts], spec)
    ordered = []
    for draft, outcome in zip(drafts, outcomes, strict=True):
        if fault := ordering_fault(outcome):
            dropped.append(Dropped(draft.triplet, fault))
        else:
            ordered.append(draft.triplet)
    return ordered


def order_blind(triplets: Sequence[Triplet], spec: str) -> Asking[list[Outcome]]:
    """How a judge orders each triplet, in both orders, as it would in a run."""
    return (yield from by_verdicts(Method(f"judge:{spec}", "judge", spec=spec), triplets))


def ordering_fault(outcome: Outcome) -> str:
    """Why a triplet was not ordered correctly in both orders; empty where it was."""
    if all(choice == "positive" for choice in outcome.picks):
        return ""
    if "negative" in outcome.picks:
        return "ordered_wrong"
    if "tie" in outcome.picks:
        return "ordered_tie"
    return f"ordering_{next(status for status in outcome.statuses if status != 'ok')}"


# --- from labels ------------------------------------------------------------------------------------


class LabelledTriplets(NamedTuple):
    triplets: list[Triplet]
    unlabelled: int = 0
    """Documents without a label, which are left out."""
    without_partner: int = 0
    """Documents that cannot be an anchor: no other document shares a label with them."""
    without_negative: int = 0
    """Anchors that were tried and share a label with every other document."""


def label_triplets(
    documents: Sequence[Document],
    criterion: Criterion,
    number: int,
    *,
    field: str,
    docset: str,
    seed: int = 0,
    lang: str | None = None,
) -> LabelledTriplets:
    """As many triplets as asked for, or as there are anchors: a document is an anchor at most once.

    Documents are alike that share at least one label of the field. The negative is the document without any
    of the anchor's labels that reads most like the anchor (highest BM25); the positive is drawn from the half
    of those that share a label which reads least like it. So a method that goes by words alone tends to the
    negative; where it does, the triplet is marked as hard for `bm25`.

    No two documents may have the same text, which `read_documents` ensures.
    """
    labelled = [document for document in documents if document.labels.get(field)]
    labels = [document.labels[field] for document in labelled]
    sizes = Counter(label for of_document in labels for label in of_document)
    if len(sizes) < 2:
        raise UsageError(
            f"'{field}': every document has the same label, so that there is no negative for any anchor."
            if sizes
            else f"'{field}': no document has a label."
        )
    members = counts(labels).matrix
    by_label = members.transposed()
    rng = random.Random(f"multiview/gold/{seed}/{criterion.name}")
    anchors = [index for index, names in enumerate(labels) if any(sizes[name] > 1 for name in names)]
    triplets: list[Triplet] = []
    without_negative = 0
    for row in bm25_rows([d.text for d in labelled], shuffled(anchors, rng), lang=lang):
        if len(triplets) == number:
            break
        scores = np.zeros(len(labelled))
        scores[row.documents] = row.scores
        alike = by_label.times(members.row(row.anchor)) > 0
        if alike.all():
            without_negative += 1
            continue
        partners = np.flatnonzero(alike & (np.arange(len(labelled)) != row.anchor))
        unlike = partners[np.argsort(scores[partners], kind="stable")][: (len(partners) + 1) // 2]
        positive, negative = pick(unlike.tolist(), rng), int(np.where(alike, -1, scores).argmax())
        chosen = (labelled[row.anchor], labelled[positive], labelled[negative])
        views = [{criterion.name: ", ".join(document.labels[field])} for document in chosen]
        hard_for = "bm25" if scores[negative] > scores[positive] else ""
        triplets.append(make_triplet(docset, criterion, chosen, labels=views, hard_for=hard_for))
    return LabelledTriplets(
        triplets,
        unlabelled=len(documents) - len(labelled),
        without_partner=len(labelled) - len(anchors),
        without_negative=without_negative,
    )

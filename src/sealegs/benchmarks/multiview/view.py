"""One triplet of multiview: its documents, and what each method made of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from sealegs.benchmarks.multiview.data import ROLES, MultiviewDetail, Triplet
from sealegs.benchmarks.multiview.metrics import METRICS
from sealegs.benchmarks.multiview.published import Pick
from sealegs.page.differences import located_words
from sealegs.page.examples import shortened
from sealegs.page.format import tag_value
from sealegs.page.view import (
    Beside,
    Block,
    Facts,
    Span,
    Text,
    View,
    value_facts,
)
from sealegs.types import Record

TripletRecord: TypeAlias = Record[Triplet, MultiviewDetail]

HEADINGS = {"anchor": "anchor", "positive": "alike under the criterion", "negative": "not alike"}
VERDICTS = {
    "positive": "right",
    "negative": "wrong",
    "tie": "tie",
    None: "no verdict",
}
SCORES = (
    "Scores are a method's own: BM25's, a cosine of embeddings, a reranker's; of a judge with logprobs, the "
    "log-probability of the document's letter, summed over both orders."
)
SHORT = 3
"""Letters of a word that is not marked as shared: most such words are in every text."""


def view(record: TripletRecord, related: Sequence[TripletRecord] = ()) -> View:
    """One triplet: its documents, what each method made of them, and what is known of it."""
    triplet, detail = record.sample.inputs, record.score.detail
    blocks: list[Block] = [
        Text("criterion", f"{triplet.criterion}: {triplet.description}"),
        Beside("", tuple(_documents(triplet))),
    ]
    if detail is not None:
        blocks.append(_methods(detail))
    blocks += [_annotations(triplet), _about(record), value_facts(record.score.values, METRICS)]
    title = f"{tag_value(record.sample.id)} · {shortened(triplet.anchor)}"
    return View(title, _label(detail), tuple(blocks))


def _label(detail: MultiviewDetail | None) -> str:
    picks = [picked for picked in detail.picks.values() if None not in picked] if detail else []
    if not picks:
        return "not scored"
    right = sum(set(picked) == {"positive"} for picked in picks)
    return f"{right} of {len(picks)} methods are right"


def _documents(triplet: Triplet) -> Iterator[Text]:
    """The three documents, in the last two the words of the anchor marked."""
    words = set(map(str.casefold, located_words(triplet.anchor).texts))
    for role, text in zip(ROLES, triplet.documents, strict=True):
        shared = (
            ()
            if role == "anchor"
            else tuple(
                Span(start, end, "shared", "word shared with the anchor")
                for word, start, end in zip(*located_words(text), strict=True)
                if word.casefold() in words and _is_marked(word)
            )
        )
        yield Text(HEADINGS[role], text, shared)


def _is_marked(word: str) -> bool:
    """Whether a word says something when it is shared: numbers, longer words, letters of other scripts."""
    return bool(re.fullmatch(r"\w+", word)) and (len(word) > SHORT or word.isdigit() or not word.isascii())


def _methods(detail: MultiviewDetail) -> Facts:
    """What each method scored and picked. A judge that is asked in both orders has two picks."""
    rows = []
    for method, picked in detail.picks.items():
        scores = tuple(f"{score:.2f}" for score in detail.scores.get(method, ())) or ("–", "–")
        margin = detail.margins.get(method)
        rows.append((method, _verdict(picked), *scores, "–" if margin is None else f"{margin:+.2g}"))
    notes = [SCORES] if detail.scores else []
    if any(len(picked) > 1 for picked in detail.picks.values()):
        notes.append(
            "A judge that is asked in both orders has a verdict for each: the alike one first, then last."
        )
    columns = ("method", "verdict", "score: alike", "score: not alike", "difference")
    return Facts("what the methods picked", tuple(rows), columns, " ".join(notes))


def _verdict(picked: Sequence[Pick | None]) -> str:
    return ", ".join(VERDICTS.get(pick, str(pick)) for pick in picked)


def _annotations(triplet: Triplet) -> Facts:
    """What is known of each document: its id, its labels, tags and summary."""
    views = list(dict.fromkeys(view for labels in triplet.labels.values() for view in labels))
    rows: list[tuple[str, ...]] = [("id", triplet.anchor_id, triplet.positive_id, triplet.negative_id)]
    rows += [(view, *(triplet.labels.get(role, {}).get(view, "–") for role in ROLES)) for view in views]
    if triplet.tags:
        rows.append(("tags", *(", ".join(triplet.tags.get(role, ())) or "–" for role in ROLES)))
    summaries = (triplet.anchor_summary, triplet.positive_summary, triplet.negative_summary)
    if any(summaries):
        rows.append(("summary", *(summary or "–" for summary in summaries)))
    columns = ("", "anchor", "alike", "not alike")
    return Facts("annotations", tuple(rows), columns)


def _about(record: TripletRecord) -> Facts:
    triplet, tags = record.sample.inputs, record.score.tags
    rows = [
        ("task", tag_value(triplet.task)),
        ("difficulty", f"{tags['difficulty']} for BM25" if "difficulty" in tags else ""),
        ("built to mislead", triplet.hard_for),
        ("the judge's rating", "" if triplet.quality is None else f"{triplet.quality} of 5"),
        ("built by", triplet.built_by),
        ("confirmed by", triplet.confirmed_by),
        ("hints", " · ".join(triplet.hints)),
    ]
    return Facts("about the triplet", tuple(row for row in rows if row[1]))

"""A prompt of MIRAE with its answers: how alike they are, where they differ, and the same question at other
levels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from sealegs.benchmarks.mirae.data import MiraeRecord
from sealegs.benchmarks.mirae.page import LAYOUT
from sealegs.benchmarks.mirae.refusals import refuses
from sealegs.page.differences import MOST_COMPARED_WORDS, differences, marked
from sealegs.page.examples import shortened
from sealegs.page.format import number_or_dash
from sealegs.page.view import (
    Matrix,
    Text,
    View,
    answer_texts,
    first_answer,
    label_of,
    related_facts,
    value_facts,
)

MOST_COMPARED = 10
"""Answers whose differences and cosines are shown."""


def view(record: MiraeRecord, related: Sequence[MiraeRecord] = ()) -> View:
    prompt, values = record.sample.inputs.question_text, record.score.values
    expected = "; ".join(" or ".join(part) for part in record.sample.inputs.expected)
    levels = related_facts(
        "the same question at every level",
        ("sample", "language", "level", "similarity", "first answer"),
        record,
        related,
        lambda each: (
            str(each.sample.tags.get("lang", "")),
            str(each.sample.tags.get("level", "")),
            label_of(each.score.values, LAYOUT.metrics[0]),
            first_answer(each),
        ),
        key=lambda each: [str(each.sample.tags.get(tag, "")) for tag in ("lang", "level")],
    )
    return View(
        f"{record.sample.id} · {shortened(prompt)}",
        label_of(values, LAYOUT.metrics[0], "mean cosine"),
        (
            Text("prompt", prompt),
            *([Text("expected answer", expected)] if expected else []),
            *_answers(record),
            *_heat_map(record),
            *levels,
            value_facts(values, LAYOUT.metrics),
        ),
    )


def _answers(record: MiraeRecord) -> list[Text]:
    """Every answer, with the words marked that the one nearest to all others does not have."""
    lang, nearest = str(record.sample.tags.get("lang", "")), _nearest(record)
    texts, number, compared = [], 0, 0
    for text in answer_texts(record.answers):
        if not text.answer:
            texts.append(text)
            continue
        answer, number = record.answers[number], number + 1
        if answer.text and (answer.status == "refused" or refuses(answer.text, lang)):
            text = replace(text, heading=f"{text.heading}, refusal", kind="refusal")
        if (right := _right(record)) is not None and answer.status != "error":
            words = right.get(number - 1)
            found = f", right ({', '.join(words)})" if words else ", not right"
            text = replace(text, heading=f"{text.heading}{found}")
        if number - 1 == nearest:
            heading = f"{text.heading}, nearest to the others"
            text = replace(text, heading=heading, kind=text.kind or "nearest")
        elif nearest is not None and answer.text and compared < MOST_COMPARED:
            compared += 1
            result = differences(answer.text, record.answers[nearest].text)
            note = f"{number_or_dash(result.shared, 'share')} of the words are also in answer {nearest + 1}."
            if not result.whole:
                note += f" Compared: the first {MOST_COMPARED_WORDS:,} words."
            title = f"not in answer {nearest + 1}"
            text = replace(text, spans=marked(result.ranges, "differs", title), note=note)
        texts.append(text)
    return texts


def _right(record: MiraeRecord) -> Mapping[int, Sequence[str]] | None:
    """The answers that give what is expected, with the words that do; None where nothing is."""
    return record.score.detail.right if record.score.detail else None


def _nearest(record: MiraeRecord) -> int | None:
    """The index of the answer with the highest sum of cosines (the medoid); None for fewer than two."""
    detail = record.score.detail
    if detail is None or len(detail.responses) < 2:
        return None
    sums = [sum(row) for row in detail.pairwise_similarities[: len(detail.responses)]]
    best = max(range(len(sums)), key=sums.__getitem__, default=None)
    index = None if best is None else detail.responses[best]
    return index if index is not None and 0 <= index < len(record.answers) else None


def _heat_map(record: MiraeRecord) -> list[Matrix]:
    detail = record.score.detail
    if detail is None or len(detail.responses) < 2:
        return []
    labels = tuple(str(index + 1) for index in detail.responses[:MOST_COMPARED])
    values = tuple(tuple(row[:MOST_COMPARED]) for row in detail.pairwise_similarities[:MOST_COMPARED])
    more = len(detail.responses) > MOST_COMPARED
    note = f"The first {MOST_COMPARED} of {len(detail.responses):,} answers." if more else ""
    return [Matrix("cosine of each pair of answers", labels, values, note)]

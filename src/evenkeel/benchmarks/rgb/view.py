"""One question of RGB: its documents, the answer with what the checks found in it, and why they decided."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from msgspec.structs import replace

from evenkeel.benchmarks.rgb.check.located import joined, locate
from evenkeel.benchmarks.rgb.files import RawAnswer, RgbRecord, parts
from evenkeel.benchmarks.rgb.page import METRICS
from evenkeel.benchmarks.rgb.scoring import CHECKS, examine_leniently, published_matches
from evenkeel.page.examples import shortened
from evenkeel.page.view import (
    Facts,
    Span,
    Text,
    View,
    answer_texts,
    first_answer,
    related_facts,
    value_facts,
)
from evenkeel.types import Tag

DECLINE = "(to say that the documents do not have the answer)"
KINDS = {
    "positive": ("true", "true: it holds the answer"),
    "wrong": ("false", "false: it holds the false answer"),
    "negative": ("irrelevant", "irrelevant: it does not hold the answer"),
}
"""Of a document: how it is drawn, and what it is, in words."""
DECISIONS = {
    "rejected": "declines",
    "detected": "reports an error",
    "false_alarms": "reports an error",
    "corrected": "corrects it",
}
"""What a check decides beside the answer's being right: the beginnings of the metrics, in words."""


class Reasons(NamedTuple):
    """Why a check decided as it did, in words, and where in the answer."""

    texts: list[str]
    spans: list[Span]


def in_short(inputs: Mapping[str, Any], tags: Mapping[str, Tag]) -> tuple[str, str]:
    """The question, and what is expected: the answer, or that the documents do not have it."""
    if tags.get("ability") == "rejection":
        return inputs["query"], DECLINE
    return inputs["query"], "; ".join(part[0] for part in parts(inputs["answer"]))


def view(record: RgbRecord, related: Sequence[RgbRecord] = ()) -> View:
    inputs = record.sample.inputs
    texts = [Text("question", inputs.query), Text("right answer", _answer_text(inputs.answer))]
    if inputs.fake:
        texts.append(Text("false answer", _answer_text(inputs.fake)))
    if inputs.note:
        texts.append(Text("note", inputs.note))
    answers = answer_texts(record.answers)
    checks: list[Facts | Text] = []
    if record.score.detail is not None and answers:
        published, lenient = _published_reasons(record), _lenient_reasons(record)
        answers[0] = replace(answers[0], spans=(*published.spans, *lenient.spans))
        checks = _checks(record, {"published": published, "lenient": lenient})
    others = related_facts(
        "the same question in other settings",
        ("sample", "setting", "published", "lenient", "answer"),
        record,
        related,
        lambda other: (
            str(other.sample.tags.get("setting", "")),
            *(_right(other, check) for check in CHECKS),
            first_answer(other),
        ),
    )
    return View(
        f"{record.sample.id} · {shortened(inputs.query)}",
        _label(record),
        (
            *texts,
            *answers,
            *checks,
            *_documents(record),
            *others,
            value_facts(record.score.values, METRICS),
        ),
    )


def _label(record: RgbRecord) -> str:
    verdicts = [f"{check} {word}" for check in CHECKS if (word := _right(record, check))]
    return ", ".join(verdicts) or str(record.sample.tags.get("setting", "")) or "not scored"


def _right(record: RgbRecord, check: str) -> str:
    """Whether an answer is right by a check, or what is known without documents; empty where not checked."""
    values = record.score.values
    value = values.get(check, values.get(f"known_{check}"))
    return "" if value is None else "right" if value else "not right"


def _answer_text(answer: RawAnswer) -> str:
    return " and ".join(" or ".join(alternatives) for alternatives in parts(answer))


# The checks, and why


def _checks(record: RgbRecord, reasons: dict[str, Reasons]) -> list[Facts | Text]:
    """What each check decided, as the run has it, and why."""
    detail = record.score.detail
    rows = [
        (check, verdict, "; ".join(reasons[check].texts))
        for check in CHECKS
        if (verdict := _verdict(record, check))
    ]
    if detail.judge:
        verdict = _verdict(record, "judge") or "no verdict that could be read"
        rows.append(("judge", verdict, f"its request ended: {detail.judge}"))
    blocks: list[Facts | Text] = [Facts("what the checks say", tuple(rows), ("check", "verdict", "why"))]
    if detail.evaluation is not None:
        blocks.append(Text("the judge's verdict in its words", detail.evaluation))
    return blocks


def _verdict(record: RgbRecord, check: str) -> str:
    """The stored decisions of a check, in words."""
    values = record.score.values
    words = [_right(record, check)]
    for kind, meaning in DECISIONS.items():
        if (value := values.get(f"{kind}_{check}")) is not None:
            words.append(f"{meaning}: {'yes' if value else 'no'}")
    return ", ".join(filter(None, words))


def _published_reasons(record: RgbRecord) -> Reasons:
    """What the published check looked for, and found to the letter."""
    answer, text = parts(record.sample.inputs.answer), record.answers[0].text
    lang = str(record.sample.tags.get("lang", ""))
    matches = published_matches(text, answer, lang)
    texts: list[str] = []
    spans: list[Span] = []

    def mark(phrase: str, kind: str, title: str) -> None:
        spans.extend(
            Span(*place, kind, f"published check: {title}") for place in occurrences(text, phrase, lang)
        )

    for phrase, meaning in ((matches.rejection, "declines"), (matches.error, "reports an error")):
        if phrase:
            texts.append(f"{meaning}: '{phrase}' is in the answer")
            mark(phrase, "reason", meaning)
    for alternative, part in zip(matches.parts, answer, strict=True):
        if alternative is None:
            texts.append(f"{_listed(part)} is not in the answer")
        else:
            texts.append(f"'{shortened(alternative)}' is in the answer")
            mark(alternative, "published", f"'{shortened(alternative)}'")
    return Reasons(texts, spans)


def _listed(part: Sequence[str]) -> str:
    return " or ".join(f"'{shortened(alternative)}'" for alternative in part)


def occurrences(text: str, phrase: str, lang: str) -> Iterator[tuple[int, int]]:
    """Where a phrase is in a text by the published comparison: in any case, Chinese without spaces."""
    gap = " *" if lang == "zh" else ""
    pattern = re.compile(gap.join(map(re.escape, phrase)), re.IGNORECASE)
    return (match.span() for match in pattern.finditer(text) if phrase)


def _lenient_reasons(record: RgbRecord) -> Reasons:
    """What the lenient check found, word by word; nothing where it was not used."""
    text, inputs = record.answers[0].text, record.sample.inputs
    examined = examine_leniently(record.sample, text)
    if examined is None:
        return Reasons([], [])
    ranges = locate(text, examined.reading.words)
    texts, spans = [], []

    def mark(place: tuple[int, int] | None, kind: str, title: str) -> str:
        if place is None:
            return ""
        spans.append(Span(*place, kind, title))
        return f" ('{shortened(text[place[0] : place[1]], 160)}')"

    verdict, words = examined.verdict, examined.reading.words[: len(ranges)]
    for decision, is_decided in (("rejected", verdict.rejected), ("detected", verdict.detected)):
        if is_decided:
            number = examined.telling(decision)
            sentence = [place for place, word in zip(ranges, words, strict=True) if word.sentence == number]
            meaning = DECISIONS[decision]
            texts.append(f"{meaning}{mark(joined(sentence), 'reason', f'lenient check: {meaning}')}")
    for match, part in zip(examined.matches, parts(inputs.answer), strict=True):
        if match is None:
            texts.append(f"{_listed(part)} is not given")
            continue
        name = shortened(part[match.alternative])
        quoted = mark(joined(ranges[match.start : match.end]), "lenient", f"lenient check: '{name}'")
        texts.append(f"'{name}' is given{quoted}")
    for match, part in zip(examined.false, parts(inputs.fake), strict=True):
        if match:
            name = shortened(part[match.alternative])
            quoted = mark(joined(ranges[match.start : match.end]), "wrong", f"the false answer: '{name}'")
            texts.append(f"names the false answer '{name}'{quoted}")
    if verdict.how == "named only":
        texts.append("but by its wording it does not give that as its answer")
    return Reasons(texts, spans)


# The documents


def _documents(record: RgbRecord) -> list[Text]:
    """Each document with what it is, and the right and the false answer marked in it to the letter."""
    inputs, lang = record.sample.inputs, str(record.sample.tags.get("lang", ""))
    sought = [
        (alternative, kind, title)
        for answer, kind, title in (
            (inputs.answer, "right", "right answer"),
            (inputs.fake, "wrong", "false answer"),
        )
        for part in parts(answer)
        for alternative in part
    ]
    texts = []
    listed = zip_longest(inputs.docs, inputs.kinds, fillvalue="")
    for number, (doc, kind) in enumerate(listed, 1):
        look, words = KINDS.get(kind, ("", ""))
        spans = tuple(
            Span(*place, which, title)
            for alternative, which, title in sought
            for place in occurrences(doc, alternative, lang)
        )
        texts.append(Text(f"document {number}{f', {words}' if words else ''}", doc, spans, kind=look))
    return texts

"""One question of RGB: its documents, the answer with what the checks found in it, and why they decided."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from msgspec.structs import replace

from sealegs.benchmarks.rgb.added import CHECKS, lenient_verdict
from sealegs.benchmarks.rgb.data import DECLINE, RgbRecord
from sealegs.benchmarks.rgb.metrics import METRICS
from sealegs.benchmarks.rgb.published import ERRORS, REJECTIONS, published_matches
from sealegs.page.examples import shortened
from sealegs.page.view import (
    Facts,
    Span,
    Text,
    View,
    answer_texts,
    first_answer,
    related_facts,
    value_facts,
)
from sealegs.text.answer_search.mention import RawAnswer, parts

KINDS = {
    "positive": ("true", "contains the answer"),
    "wrong": ("false", "contains the false answer"),
    "negative": ("irrelevant", "irrelevant"),
}
"""Of a document: how it is drawn, and what it is, in words."""
DECISIONS = {
    "rejected": "declines",
    "detected": "reports an error",
    "false_alarms": "reports an error",
    "corrected": "corrects it",
}
"""What a check decides beside the answer's being right: the beginnings of the metrics, in words."""
OUTCOME_WORDS = {
    "outcome_declined": "declined",
    "outcome_cut_off": "cut off",
    "rejected_lenient": "declined",
    "no_answer_from_memory": "from memory",
    "no_answer_invented": "invented",
    "no_answer_cut_off": "cut off",
}


def view(record: RgbRecord, related: Sequence[RgbRecord] = ()) -> View:
    inputs = record.sample.inputs
    texts = [Text("question", inputs.query)]
    if record.sample.tags.get("ability") == "rejection":
        texts.append(Text("expected", DECLINE))
        if inputs.answer:
            texts.append(Text("the answer, which no document has", _answer_text(inputs.answer)))
    else:
        texts.append(Text("expected answer", _answer_text(inputs.answer)))
    if inputs.fake:
        texts.append(Text("false answer", _answer_text(inputs.fake)))
    if inputs.note:
        texts.append(Text("note", inputs.note))
    answers = answer_texts(record.answers)
    checks: list[Facts | Text] = []
    if record.score.detail is not None and answers:
        answers[0] = replace(answers[0], spans=_marks(record, record.answers[0].text))
        checks = _checks(record)
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
    """`Right by both checks`, `Wrong by the published check`, or both words where the checks differ; and the
    outcome, where it says more: `Wrong by both checks: declined`."""
    words = {check: word for check in CHECKS if (word := _right(record, check))}
    if not words:
        return str(record.sample.tags.get("setting", "")) or "not scored"
    by = [f"{word} by the {check} check" for check, word in words.items()]
    both = len(words) > 1 and len(set(words.values())) == 1
    label = f"{words['published']} by both checks" if both else ", ".join(by)
    return ": ".join(filter(None, (label.capitalize(), _outcome(record))))


def _outcome(record: RgbRecord) -> str:
    """What became of the answer, where it is more than right or wrong."""
    values = record.score.values
    names = [name for name, word in OUTCOME_WORDS.items() if values.get(name)]
    return OUTCOME_WORDS[names[0]] if names else ""


def _right(record: RgbRecord, check: str) -> str:
    """Whether an answer is right by a check, or what is known without documents; empty where not checked."""
    values = record.score.values
    value = values.get(check, values.get(f"known_{check}"))
    return "" if value is None else "right" if value else "wrong"


def _answer_text(answer: RawAnswer) -> str:
    return " and ".join(" or ".join(alternatives) for alternatives in parts(answer))


# The checks, and why

CHECKS_NOTE = "The published check looks for the answer letter for letter, the lenient one in any spelling."


def _checks(record: RgbRecord) -> list[Facts | Text]:
    """What each check decided, as the run has it, and why."""
    detail = record.score.detail
    reasons = {"published": _published_reasons(record), "lenient": _lenient_reasons(record)}
    rows = [
        (check, verdict, "; ".join(reasons[check]))
        for check in CHECKS
        if (verdict := _verdict(record, check))
    ]
    if detail.judge:
        verdict = _verdict(record, "judge") or "could not be read"
        rows.append(("judge", verdict, f"request: {detail.judge}"))
    columns = ("check", "verdict", "why")
    blocks: list[Facts | Text] = [Facts("what the checks say", tuple(rows), columns, CHECKS_NOTE)]
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


def _published_reasons(record: RgbRecord) -> list[str]:
    """What the published check looked for, and found to the letter."""
    answer = parts(record.sample.inputs.answer)
    matches = published_matches(record.answers[0].text, answer, str(record.sample.tags.get("lang", "")))
    texts = [
        f"{meaning}: '{phrase}' is in the answer"
        for phrase, meaning in ((matches.rejection, "declines"), (matches.error, "reports an error"))
        if phrase
    ]
    for alternative, part in zip(matches.parts, answer, strict=True):
        if alternative is None:
            texts.append(f"{_listed(part)} is not in the answer")
        else:
            texts.append(f"'{shortened(alternative)}' is in the answer")
    return texts


def _lenient_reasons(record: RgbRecord) -> list[str]:
    """What the lenient check found, in whatever spelling; nothing where it was not used."""
    inputs = record.sample.inputs
    verdict = lenient_verdict(record.sample, record.answers[0].text)
    if verdict is None:
        return []
    texts = [
        f"{DECISIONS[decision]} ('{shortened(words, 160)}')"
        for decision, words in verdict.words.items()
        if decision in DECISIONS
    ]
    for match, part, label in zip(verdict.matches, parts(inputs.answer), verdict.parts, strict=True):
        given = f"'{shortened(part[match.alternative])}' is named" if match else ""
        given = given or (f"a sentence says {_listed(part)}" if label else "")
        texts.append(given or f"{_listed(part)} is not given")
    texts += [
        f"names the false answer '{shortened(part[match.alternative])}'"
        for match, part in zip(verdict.false, parts(inputs.fake), strict=True)
        if match
    ]
    if "denied" in verdict.words:
        texts.append(f"but does not give it as its answer ('{shortened(verdict.words['denied'], 160)}')")
    return texts


def _listed(part: Sequence[str]) -> str:
    return " or ".join(f"'{shortened(alternative)}'" for alternative in part)


# Marks in the answer and in the documents


def _marks(record: RgbRecord, text: str) -> tuple[Span, ...]:
    """The right and the false answer and the published phrases, to the letter."""
    inputs, lang = record.sample.inputs, str(record.sample.tags.get("lang", ""))
    right, wrong = (
        [alternative for part in parts(answer) for alternative in part]
        for answer in (inputs.answer, inputs.fake)
    )
    return tuple(
        Span(*place, kind, title)
        for phrases, kind, title in (
            (REJECTIONS, "reason", "declines"),
            (ERRORS, "reason", "reports an error"),
            (right, "right", "right answer"),
            (wrong, "wrong", "false answer"),
        )
        for phrase in phrases
        for place in _occurrences(text, phrase, lang)
    )


def _occurrences(text: str, phrase: str, lang: str) -> Iterator[tuple[int, int]]:
    """Where a phrase is in a text by the published comparison: in any case, Chinese without spaces."""
    gap = " *" if lang == "zh" else ""
    pattern = re.compile(gap.join(map(re.escape, phrase)), re.IGNORECASE)
    return (match.span() for match in pattern.finditer(text) if phrase)


def _documents(record: RgbRecord) -> list[Text]:
    """Each document with what it is."""
    inputs = record.sample.inputs
    texts = []
    for number, (doc, kind) in enumerate(zip_longest(inputs.docs, inputs.kinds, fillvalue=""), 1):
        look, words = KINDS.get(kind, ("", ""))
        heading = f"document {number}{f': {words}' if words else ''}"
        texts.append(Text(heading, doc, _marks(record, doc), kind=look))
    return texts

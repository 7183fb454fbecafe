"""One question of RGB: its documents, the answer with what the checks found in it, and why they decided."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

from msgspec.structs import replace

from evenkeel.benchmarks.rgb.check.lenient import Verdict
from evenkeel.benchmarks.rgb.check.located import joined, locate
from evenkeel.benchmarks.rgb.check.mention import Match
from evenkeel.benchmarks.rgb.files import Answer, RawAnswer, RgbRecord, parts
from evenkeel.benchmarks.rgb.page import METRICS
from evenkeel.benchmarks.rgb.scoring import (
    CHECKS,
    PublishedMatches,
    examine_leniently,
    published,
    published_matches,
)
from evenkeel.page.examples import EACH, first, shortened
from evenkeel.page.layout import Example, Examples
from evenkeel.page.metrics import declaration
from evenkeel.page.view import (
    Facts,
    Span,
    Text,
    View,
    answer_texts,
    example,
    first_answer,
    related_facts,
    value_facts,
)

KINDS = {
    "positive": ("true", "true: it holds the answer"),
    "wrong": ("false", "false: it holds the false answer"),
    "negative": ("irrelevant", "irrelevant: it does not hold the answer"),
}
"""Of a document: how it is drawn, and what it is, in words."""
MOST_PARTS = 20
"""Parts and alternatives of an answer that are marked or listed."""
MOST_DOCUMENTS = 100
MOST_SPELLINGS = 300
LONGEST = 5_000
"""Spellings of the right and the false answer, and characters of an answer, with which the lenient check is
repeated to see why it decided so; it takes long for more."""
SEARCHED = 20_000
"""Characters of a text in which occurrences are marked."""
MOST_MARKS = 50
"""Occurrences of one alternative that are marked."""
OTHER_VERSION = "the run has another {}, of another version: `evenkeel rescore` it"
DECIDED = ("rejected", "detected", "false_alarms", "corrected")
"""What a check decides beside the answer's being right: the beginnings of the metrics."""


class Reasons(NamedTuple):
    """Why a check decided as it did, in words, and where in the answer."""

    texts: list[str]
    spans: list[Span]


def view(record: RgbRecord, related: Sequence[RgbRecord] = ()) -> View:
    inputs, values = record.sample.inputs, record.score.values
    texts = [Text("question", inputs.query), Text("right answer", _answer_text(inputs.answer))]
    if inputs.fake:
        texts.append(Text("false answer", _answer_text(inputs.fake)))
    if inputs.note:
        texts.append(Text("note", inputs.note))
    answers, checks = answer_texts(record.answers), []
    if record.score.detail is not None and answers:
        reasons = {"published": published_reasons(record)}
        if lenient := lenient_reasons(record):
            reasons["lenient"] = lenient
        spans = tuple(span for each in reasons.values() for span in each.spans)
        answers[0] = replace(answers[0], spans=spans)
        checks = _checks(record, reasons)
    others = related_facts(
        "the same question in other settings",
        ("sample", "setting", "published", "lenient", "answer"),
        record,
        related,
        lambda each: (
            str(each.sample.tags.get("setting", "")),
            *(_right(each, check) for check in CHECKS),
            first_answer(each),
        ),
    )
    return View(
        f"{record.sample.id} · {shortened(inputs.query)}",
        _label(record),
        (
            *texts,
            *answers,
            *checks,
            _setting(record),
            *_documents(record),
            *others,
            value_facts(values, METRICS),
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
    rows = [(name, _verdict(record, name), "; ".join(reasons[name].texts)) for name in reasons]
    detail = record.score.detail
    judged = _verdict(record, "judge")
    if judged or detail.judge:
        rows.append(
            ("judge", judged or "no verdict that could be read", f"its request ended: {detail.judge}")
        )
    if detail.evaluation is None:
        return [Facts("what the checks say", tuple(rows), ("check", "verdict", "why"))]
    return [
        Facts("what the checks say", tuple(rows), ("check", "verdict", "why")),
        Text("the judge's verdict in its words", detail.evaluation),
    ]


def _verdict(record: RgbRecord, check: str) -> str:
    """The stored decisions of a check, in words."""
    values = record.score.values
    words = [_right(record, check)] if check != "judge" else []
    if check == "judge" and (declined := values.get("judge")) is not None:
        words.append("declines" if declined else "does not decline")
    for kind in DECIDED:
        value, metric = values.get(f"{kind}_{check}"), declaration(METRICS, f"{kind}_{check}")
        if value is not None and metric is not None:
            words.append(f"{metric.title.partition(',')[0]}: {'yes' if value else 'no'}")
    return ", ".join(filter(None, words))


def published_reasons(record: RgbRecord) -> Reasons:
    """What the published check looked for, and found to the letter."""
    answer, text = parts(record.sample.inputs.answer), record.answers[0].text
    lang = str(record.sample.tags.get("lang", ""))
    matches = published_matches(text, answer, lang)
    texts = list(_published_texts(matches, answer))
    labels = published(text, answer, lang, record.sample.inputs.noise)
    if (labels.label, labels.factlabel) != (record.score.detail.label, record.score.detail.factlabel):
        texts.append(OTHER_VERSION.format("label"))
    spans = [
        Span(start, end, "published", f"published check: '{shortened(alternative)}'")
        for alternative in dict.fromkeys(each for each in matches.parts[:MOST_PARTS] if each)
        for start, end in occurrences(text, alternative, lang)
    ]
    for phrase, what in ((matches.rejection, "declines"), (matches.error, "reports an error")):
        if phrase:
            spans += [
                Span(start, end, "reason", f"published check: {what}")
                for start, end in occurrences(text, phrase, lang)
            ]
    return Reasons(texts, spans)


def _published_texts(matches: PublishedMatches, answer: Answer) -> Iterator[str]:
    if matches.rejection:
        yield f"declines: '{matches.rejection}' is in the answer"
    for alternative, part in list(zip(matches.parts, answer, strict=True))[:MOST_PARTS]:
        if alternative is not None:
            yield f"'{shortened(alternative)}' is in the answer"
        else:
            yield f"{_listed(part)} is not in the answer"
    if matches.error:
        yield f"reports an error: '{matches.error}' is in the answer"


def _listed(part: Sequence[str]) -> str:
    names = " or ".join(f"'{shortened(each)}'" for each in part[:MOST_PARTS])
    return f"{names} (or {len(part) - MOST_PARTS} more)" if len(part) > MOST_PARTS else names


def occurrences(text: str, phrase: str, lang: str) -> Iterator[tuple[int, int]]:
    """Where a phrase is in a text as the published check compares them: in any case, Chinese without spaces.

    What that makes of a character may be longer than it is: each has the position that it comes from. Only
    the first characters are searched.
    """
    text = text[:SEARCHED]
    sources = [
        index
        for index, character in enumerate(text)
        if not (lang == "zh" and character == " ")
        for _ in character.lower()
    ]
    lower = (text.replace(" ", "") if lang == "zh" else text).lower()
    sought = phrase.lower()
    at = lower.find(sought) if sought else -1
    for _ in range(MOST_MARKS):
        if at < 0 or at + len(sought) > len(sources):
            return
        yield sources[at], sources[at + len(sought) - 1] + 1
        at = lower.find(sought, at + len(sought))


def lenient_reasons(record: RgbRecord) -> Reasons | None:
    """What the lenient check found, word by word; None where it was not used."""
    text, inputs = record.answers[0].text, record.sample.inputs
    spellings = sum(map(len, (*parts(inputs.answer), *parts(inputs.fake))))
    if len(text) > LONGEST or spellings > MOST_SPELLINGS:
        how = record.score.detail.how
        reason = "the answer is long" if len(text) > LONGEST else f"the answer has {spellings:,} spellings"
        return Reasons([f"{how} (where is not shown, since {reason})"], []) if how else None
    examined = examine_leniently(record.sample, text)
    if examined is None:
        return Reasons([OTHER_VERSION.format("verdict")], []) if record.score.detail.how else None
    ranges = locate(text, examined.reading.words)
    texts, spans = [], []

    def mark(where: tuple[int, int] | None, kind: str, title: str) -> str:
        if where is None:
            return ""
        spans.append(Span(*where, kind, title))
        return f" ('{shortened(text[where[0] : where[1]], 160)}')"

    def sentence(number: int | None) -> tuple[int, int] | None:
        words = examined.reading.words[: len(ranges)]
        return joined([each for each, word in zip(ranges, words, strict=True) if word.sentence == number])

    verdict = examined.verdict
    for decision, decided, what in (
        ("rejected", verdict.rejected, "declines"),
        ("detected", verdict.detected, "reports an error"),
    ):
        if decided:
            where = sentence(examined.telling(decision))  # type: ignore[arg-type]
            texts.append(f"{what}{mark(where, 'reason', f'lenient check: {what}')}")
    for match, part in list(zip(examined.matches, parts(inputs.answer), strict=True))[:MOST_PARTS]:
        texts.append(_lenient_text(match, part, mark, ranges))
    for match, part in list(zip(examined.false, parts(inputs.fake), strict=True))[:MOST_PARTS]:
        if match:
            name = shortened(part[match.alternative])
            quoted = mark(joined(ranges[match.start : match.end]), "wrong", f"the false answer: '{name}'")
            texts.append(f"names the false answer '{name}'{quoted}")
    if verdict.how == "named only":
        texts.append("but by its wording it does not give that as its answer")
    if not _is_stored(verdict, record):
        texts.append(OTHER_VERSION.format("verdict"))
    return Reasons(texts, spans)


def _is_stored(verdict: Verdict, record: RgbRecord) -> bool:
    """Whether the run has the same decisions of the lenient check."""
    decisions = {
        "lenient": verdict.right,
        "known_lenient": verdict.right,
        "rejected_lenient": verdict.rejected,
        "detected_lenient": verdict.detected,
        "false_alarms_lenient": verdict.detected,
        "corrected_lenient": verdict.corrected,
        "states_fake": verdict.states_fake,
    }
    values = record.score.values
    return record.score.detail.how == verdict.how and all(
        values.get(name) in (None, decision) for name, decision in decisions.items()
    )


def _lenient_text(
    match: Match | None,
    part: Sequence[str],
    mark: Callable[[tuple[int, int] | None, str, str], str],
    ranges: Sequence[tuple[int, int]],
) -> str:
    if match is None:
        return f"{_listed(part)} is not given"
    name = shortened(part[match.alternative])
    where = mark(joined(ranges[match.start : match.end]), "lenient", f"lenient check: '{name}'")
    if match.how == "overlap":
        return f"most words of '{name}' are together{where}"
    return f"'{name}' is given{where}"


# The documents


def _setting(record: RgbRecord) -> Facts:
    inputs = record.sample.inputs
    true = [str(number) for number, kind in enumerate(inputs.kinds, 1) if kind == "positive"]
    rows = [("setting", str(record.sample.tags.get("setting", ""))), ("documents", str(len(inputs.docs)))]
    if inputs.kinds:
        rows.append(("position of the true documents", ", ".join(true) or "none is true"))
    elif inputs.docs:
        rows.append(("position of the true documents", "not known: the answers were recorded elsewhere"))
    return Facts("how it was asked", tuple(rows))


def _documents(record: RgbRecord) -> list[Text]:
    """Each document with what it is, and the right and the false answer marked in it to the letter."""
    inputs, lang = record.sample.inputs, str(record.sample.tags.get("lang", ""))
    sought = [
        (alternative, kind, title)
        for answer, kind, title in (
            (inputs.answer, "right", "right answer"),
            (inputs.fake, "wrong", "false answer"),
        )
        for part in parts(answer)[:MOST_PARTS]
        for alternative in part[:MOST_PARTS]
    ]
    texts = []
    listed = list(zip_longest(inputs.docs, inputs.kinds[: len(inputs.docs)], fillvalue=""))
    for number, (doc, kind) in enumerate(listed[:MOST_DOCUMENTS], 1):
        look, words = KINDS.get(kind, ("", ""))
        matches = [
            (alternative, which, title)
            for alternative, which, title in sought
            if published_matches(doc, ((alternative,),), lang).parts[0] is not None
        ]
        spans = tuple(
            Span(start, end, which, title)
            for alternative, which, title in matches
            for start, end in occurrences(doc, alternative, lang)
        )
        texts.append(Text(f"document {number}{f', {words}' if words else ''}", doc, spans, kind=look))
    if len(listed) > MOST_DOCUMENTS:
        more = f"{len(listed) - MOST_DOCUMENTS:,} more: see records.jsonl."
        texts.append(Text("further documents", more))
    return texts


# Examples


def examples(records: Callable[[], Iterator[RgbRecord]]) -> list[Examples]:
    rates = {float(r.sample.tags["noise"]) for r in records() if "noise" in r.sample.tags}
    most = max(rates, default=0.0)

    def right_under_noise(record: RgbRecord) -> bool:
        rate = float(record.sample.tags.get("noise", -1))
        return rate == most and record.score.values.get("published") == 1

    def answered_without_answer(record: RgbRecord) -> bool:
        return record.sample.tags["ability"] == "rejection" and record.score.values.get("lenient") == 0

    def misled(record: RgbRecord) -> bool:
        """The false answer is given, and not only named to report it."""
        values = record.score.values
        return values.get("states_fake") == 1 and values["lenient"] == 0

    def checks_differ(record: RgbRecord) -> bool:
        values = record.score.values
        return "lenient" in values and values.get("published") != values["lenient"]

    def group(title: str, is_shown: Callable[[RgbRecord], bool], note: str = "") -> Examples:
        return Examples(
            title=title, note=note, items=first(records(), is_shown, lambda record: example(view(record)))
        )

    return [
        Examples(
            title="Right without noise, wrong with the most",
            note="The same questions, answered from the same true documents among more that do not help.",
            items=_lost_to_noise(records, min(rates), most) if len(rates) > 1 else (),
        ),
        group("Right under the most noise", right_under_noise),
        group("Answered though no document has the answer", answered_without_answer),
        group("Misled by false documents", misled),
        group(
            "Reported an error though no document is false",
            lambda record: record.score.values.get("false_alarms_published") == 1,
        ),
        group("Where the two checks differ", checks_differ),
        group(
            "Prompts that lack documents",
            lambda record: bool(record.sample.inputs.note),
            "The question has fewer documents than were asked for, or none that holds the answer.",
        ),
    ]


def _lost_to_noise(
    records: Callable[[], Iterator[RgbRecord]], least: float, most: float
) -> tuple[Example, ...]:
    """Questions that were right at the lowest rate and wrong at the highest, with the answers at both."""
    by_question: defaultdict[str, dict[float, RgbRecord]] = defaultdict(dict)
    for record in records():
        rate = float(record.sample.tags.get("noise", -1))
        if rate in (least, most) and record.score.answered:
            by_question[record.sample.group][rate] = record
    lost = [
        (rates[least], rates[most])
        for rates in by_question.values()
        if len(rates) == 2
        and rates[least].score.values["published"]
        and not rates[most].score.values["published"]
    ]
    return tuple(
        Example(
            label=f"{len(lost)} in all",
            title=f"{quiet.sample.group} · {shortened(quiet.sample.inputs.query)}",
            parts=(
                ("right answer", _answer_text(quiet.sample.inputs.answer)),
                (f"answer at noise {least:g}", quiet.answers[0].text),
                (f"answer at noise {most:g}", noisy.answers[0].text),
                *((f"{text.heading}, at noise {most:g}", text.body) for text in _documents(noisy)),
            ),
        )
        for quiet, noisy in lost[:EACH]
    )

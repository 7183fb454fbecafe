"""One example of MIRON: the target, the continuation, its tokens, and its clean version."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from sealegs.benchmarks.miron.data import MironRecord
from sealegs.benchmarks.miron.metrics import METRICS, QUADRANTS
from sealegs.benchmarks.miron.strings import PART, is_known
from sealegs.page.differences import diff_columns, marked, mutual_differences
from sealegs.page.format import number, number_or_dash
from sealegs.page.view import (
    Beside,
    Block,
    Facts,
    Text,
    Tokens,
    View,
    answer_texts,
    chance,
    related_facts,
    value_facts,
)
from sealegs.types import StringProbability

MOST_VERSIONS = 5
"""Versions with typos that are set beside the clean one."""
MOST_ACCEPTED = 50
TITLE_CHARACTERS = 60
"""Of the prefix, in a title."""
REPLACEMENT = "\ufffd"
"""What is written for bytes that are no whole character."""


def view(record: MironRecord, related: Sequence[MironRecord] = ()) -> View:
    inputs, values, detail = record.sample.inputs, record.score.values, record.score.detail
    generated = detail.generated if detail else None
    blocks: list[Block] = [Text("prefix", inputs.prefix)]
    if generated is None:
        blocks += [Text("target", inputs.target, kind="target"), *answer_texts(record.answers)]
    else:
        both = diff_columns("", ("target", inputs.target), ("Answer 1", generated), letters=True)
        target, answer = both.columns
        blocks.append(replace(both, columns=(target, replace(answer, answer=1))))
    if inputs.accepted:
        answers = [answer.strip() for answer in inputs.accepted[:MOST_ACCEPTED]]
        blocks.append(Text("also right", " · ".join(answers)))
    if inputs.wrong:
        blocks.append(Text("wrong choices", " · ".join(answer.strip() for answer in inputs.wrong)))
    blocks += [*_tokens(record), *_quadrant(record), *_string(record), *_versions(record, related)]
    blocks += related_facts(
        "the clean version and those with typos",
        ("sample", "typos", "generated", "score", "confidence"),
        record,
        related,
        lambda each: (
            str(each.sample.tags.get("edits", "–")),
            (each.score.detail.generated if each.score.detail else None) or "–",
            number_or_dash(each.score.values.get("lev_score"), "score"),
            number_or_dash(each.score.values.get("target_confidence"), "score"),
        ),
    )
    blocks.append(value_facts(values, METRICS))
    title = f"{record.sample.id} · {_last_words(inputs.prefix)} ▸{inputs.target[:60]}"
    return View(title, _label(record), tuple(blocks))


def _last_words(text: str) -> str:
    """The end of a text, from the beginning of a word where it has spaces."""
    if len(text) <= TITLE_CHARACTERS:
        return text
    end = text[-TITLE_CHARACTERS - 1 :]
    _, space, words = end.partition(" ")
    return f"… {words if space else end[1:]}"


def _label(record: MironRecord) -> str:
    values = record.score.values
    score, probability = values.get("lev_score"), values.get("answer_probability")
    words = [f"score {number(score, 'score')}"] if score is not None else ["not scored"]
    return ", ".join(words + ([f"probability {chance(probability)}"] if probability is not None else []))


def _tokens(record: MironRecord) -> Iterator[Tokens]:
    """The target's tokens with the probability of each after the text before it."""
    # The target is the first text whose log-likelihood was asked; a string probability is asked before it.
    index = 1 if PART in record.score.parts else 0
    response = record.answers[index] if index < len(record.answers) else None
    detail = record.score.detail
    logprobs = response.logprobs if response else None
    if logprobs is None or detail is None or not detail.tokens or logprobs.tokens != detail.tokens:
        return
    probabilities = tuple(math.exp(min(0.0, value)) for value in logprobs.values)
    notes = []
    if logprobs.merged:
        notes.append("Tokens merge across the boundary of prefix and target.")
    if any(REPLACEMENT in token for token in logprobs.tokens):
        notes.append(
            f"{REPLACEMENT} is a part of a character: the tokenizer splits the character's bytes into tokens."
        )
    yield Tokens("tokens of the target", logprobs.tokens, probabilities, " ".join(notes))


def _quadrant(record: MironRecord) -> Iterator[Facts]:
    for metric in METRICS:
        if metric.name in QUADRANTS and record.score.values.get(metric.name) == 1:
            yield Facts("what that means", ((metric.title, f"{metric.meaning} {metric.caution}"),))


def _string(record: MironRecord) -> Iterator[Facts]:
    """The target as a string, in whatever tokens, beside its own tokens."""
    string = next((answer.string for answer in record.answers if answer.string), None)
    if string is None:
        return
    rows = [("in its own tokens", _chance(string.own))]
    rows.append(("as a string, in any tokens", _bounds(string.low, string.high, string)))
    if string.healed_low is not None and string.healed_high is not None:
        rows.append(
            ("the same, after the prefix as text", _bounds(string.healed_low, string.healed_high, string))
        )
    yield Facts("probability of the target as a string", tuple(rows))


def _chance(logarithm: float | None) -> str:
    if logarithm is None:
        return "not known: tokens merge across the boundary"
    return chance(math.exp(min(0.0, logarithm)))


def _bounds(low: float, high: float, string: StringProbability) -> str:
    return _chance(low) if is_known(string) else f"{_chance(low)} to {_chance(high)}"


def _versions(record: MironRecord, related: Sequence[MironRecord]) -> Iterator[Beside]:
    """The clean prefix beside each with typos, of which this example is one or the other."""
    by_id = {each.sample.id: each for each in (*related, record)}
    clean = by_id.get(record.sample.group)
    if clean is None:
        return
    noisy = [each for each in by_id.values() if each.sample.id != clean.sample.id]
    if clean.sample.id != record.sample.id:
        noisy = [record]
    for each in noisy[:MOST_VERSIONS]:
        texts = (each.sample.inputs.prefix, clean.sample.inputs.prefix)
        typos, missing = mutual_differences(*texts, letters=True)
        yield Beside(
            "without and with typos",
            (
                Text(
                    f"clean: {clean.sample.id}",
                    clean.sample.inputs.prefix,
                    marked(missing.ranges, "differs", "not in the version with typos"),
                ),
                Text(
                    f"with typos: {each.sample.id}",
                    each.sample.inputs.prefix,
                    marked(typos.ranges, "edited", "typo"),
                ),
            ),
        )

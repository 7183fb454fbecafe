"""What MIRON shows: of an example the target, the continuation, its tokens and its clean version; of a run
pictures, tables and notes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evenkeel.benchmarks.miron import strings
from evenkeel.benchmarks.miron.baseline import against_copying
from evenkeel.benchmarks.miron.data import MironRecord
from evenkeel.benchmarks.miron.metrics import METRICS, QUADRANTS
from evenkeel.benchmarks.miron.strings import PART, is_known
from evenkeel.page.differences import marked, mutual_differences, side_by_side
from evenkeel.page.format import known
from evenkeel.page.layout import Bars, Column, Curve, Layout, Note, Points, Table
from evenkeel.page.view import (
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
from evenkeel.types import RunSpec, StringProbability, Summary

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
        blocks.append(side_by_side("", ("target", inputs.target), ("Answer 1", generated), letters=True))
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
            known(each.score.values.get("lev_score"), "score"),
            known(each.score.values.get("target_confidence"), "score"),
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
    words = [f"score {score:.0f}"] if score is not None else ["not scored"]
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
    for name, (title, meaning) in QUADRANTS.items():
        if record.score.values.get(name) == 1:
            yield Facts("what that means", ((title, meaning),))


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


# --- the page of a run ------------------------------------------------------------------------------

DRIFTS = (Column("score_drift", "score"), Column("confidence_drift", "confidence"))
STRING_TABLES = (
    Table(
        title="What the tokenizer costs, in bits",
        rows="category",
        columns="lang",
        metrics=(Column("tokenizer_cost", "other tokens"), Column("boundary_cost", "boundary")),
    ),
    Table(
        title="The target as a string",
        rows="category",
        metrics=(
            Column("string_bits_per_byte", "bits/byte"),
            Column("strings_known", "known"),
        ),
    ),
)


LAYOUT = Layout(
    metrics=METRICS,
    question="Is a base model robust to its own tokenizer?",
    name="Tokenizer robustness (MIRON)",
    words={"edits": "typos", "edit": "kind of typo", "edited": "words with typos"},
    verdict="Continuations score {} of 100",
    correct=("accepted_match",),
    baseline=Column("copy_score", "repeating a word of the prompt"),
    remarks=against_copying,
    counted=("examples", "clean texts"),
    facts=(
        *(Column(each.name, each.title) for each in METRICS[1:] if each.main and "*" not in each.name),
        Column("tokens_and_target_confidence", "rank correlation of tokens and confidence"),
        Column("tokens_and_lev_score", "rank correlation of tokens and score"),
    ),
    pictures=(
        Bars(
            title="Score by category",
            metric="lev_score",
            along="category",
            lines="lang",
            y_title="Levenshtein score",
        ),
        Bars(
            title="Between repeating a word of the prompt (0) and all right (100), by category",
            metric="rescaled_score",
            along="category",
            lines="lang",
            y_title="score: 0 is repeating a word, 100 all right",
        ),
        Curve(
            title="Confidence by the number of tokens of the target",
            metric="target_confidence",
            along="target_tokens",
            lines="lang",
            x_title="tokens of the target (8: eight or more)",
            y_title="target confidence",
        ),
        Curve(
            title="Score by the number of tokens of the target",
            metric="lev_score",
            along="target_tokens",
            lines="lang",
            x_title="tokens of the target (8: eight or more)",
            y_title="Levenshtein score",
        ),
        Curve(
            title="What typos cost",
            metric="score_drift",
            along="edits",
            lines="lang",
            x_title="typos in the context",
            y_title="score of the clean version − with typos",
        ),
        Points(
            title="Score against confidence",
            x="lev_score",
            y="target_confidence",
            colour="category",
            x_title="Levenshtein score",
            y_title="target confidence",
        ),
    ),
    tables=(
        Table(
            title="By category and language",
            rows="category",
            columns="lang",
            metrics=(
                Column("lev_score", "score"),
                Column("rescaled_score", "from repeating (0) to right (100)"),
                Column("exact_match", "exact"),
                Column("target_confidence", "confidence"),
            ),
        ),
        Table(
            title="What repeating the rarest word of the prompt scores",
            rows="category",
            columns="lang",
            metrics=(Column("copy_score", "score"),),
        ),
        Table(
            title="Other measures",
            rows="category",
            metrics=(
                Column("accepted_match", "right"),
                Column("bits_per_byte", "bits/byte"),
                Column("target_tokens", "tokens"),
                Column("boundary_merges", "merges"),
            ),
        ),
        Table(
            title="Is the text right, and was the model sure of it?",
            rows="category",
            metrics=tuple(Column(each.name, each.title) for each in METRICS if each.name in QUADRANTS),
        ),
        *STRING_TABLES,
        Table(
            title="Right answers lost to each kind of change, of 100 on the clean versions",
            rows="category",
            columns="lang",
            metrics=(Column("relative_drop", "lost"),),
        ),
        Table(title="What typos cost, by their number", rows="edits", metrics=DRIFTS),
        Table(title="What typos cost, by their kind", rows="edit", metrics=DRIFTS),
        Table(title="What typos cost, by the words they are in", rows="edited", metrics=DRIFTS),
        Table(
            title="What typos cost, by their number and the words they are in",
            rows="edits",
            columns="edited",
            metrics=DRIFTS,
            total=False,
        ),
        Table(
            title="Rank correlation with the number of tokens",
            rows="category",
            columns="lang",
            metrics=(
                Column("tokens_and_target_confidence", "confidence"),
                Column("tokens_and_lev_score", "score"),
            ),
        ),
    ),
    cautions=(
        "The published text does not say where a continuation ends. Here it is trimmed to the target's "
        "number of words, or at a line break.",
        "Text goes to the model as it is: no chat template, and a start token only where the model's own "
        "tokenizer puts one.",
        "A Levenshtein score gives most of its points to a wrong form of the right word. The rescaled score, "
        "which is 0 for repeating a word of the prompt, and the exact match separate a model from that.",
    ),
    citation="MIRON: base models and their tokenizers, https://huggingface.co/datasets/apsua/MIRON_Benchmark",
)


def notes(spec: RunSpec, summary: Summary) -> list[Note]:
    """What is missing, and what the files did not state."""
    notes = []
    if "target_confidence" not in summary:
        text = "Target confidence is not available: the model gives no log-probabilities of a text."
        notes.append(Note(text, warning=True))
    merged = summary.get("targets_merged_into_prefix")
    if merged is not None and merged.value:
        text = f"{merged.value * merged.n:.0f} targets merge wholly into the prefix: confidence 0 there."
        notes.append(Note(text, warning=True))
    return notes + data_notes(spec.data) + strings.notes(summary)


def data_notes(facts: Mapping[str, Any]) -> list[Note]:
    """What the files did not state, in words; the facts are those of `data.facts_of`."""
    notes = []
    if spaced := facts.get("spaced"):
        notes.append(
            Note(
                f"A space was put before {spaced:,} targets: prefix and target met without one.", warning=True
            )
        )
    if langs := facts.get("lang_by_script"):
        counts = ", ".join(f"{count:,} {lang}" for lang, count in langs.items())
        text = f"The language of some examples is known by their script alone: {counts}."
        notes.append(Note(f"{text} A field 'lang' in each row states it."))
    if count := facts.get("clean_by_text"):
        notes.append(Note(f"The clean versions of {count:,} examples with typos were found by their text."))
    if count := facts.get("no_clean_version"):
        text = f"Drift leaves out {count:,} examples with typos: their clean versions are not in this run."
        notes.append(Note(text))
    return notes

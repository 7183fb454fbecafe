"""How MIRON is shown: its metrics, pictures and tables, its notes and examples."""

from __future__ import annotations

from evenkeel.benchmarks.miron import strings
from evenkeel.benchmarks.miron.files import MironRecord
from evenkeel.page.examples import first
from evenkeel.page.layout import Bars, Column, Curve, Example, Examples, Layout, Note, Points, Table
from evenkeel.page.metrics import Metric
from evenkeel.types import Records, RunSpec, Summary

METRICS = (
    Metric("lev_score", "Levenshtein score", "score", "higher"),
    Metric("target_confidence", "target confidence", "score", "higher"),
    Metric("exact_match", "exact match", "share", "higher"),
    Metric("bits_per_byte", "bits per byte of the target", "bits", "lower"),
    Metric("target_tokens", "tokens of the target", "count", None),
    Metric("last_word_tokens", "tokens of the last word before the target", "count", None),
    Metric("boundary_merges", "tokens that merge across the boundary", "share", "lower"),
    Metric("targets_merged_into_prefix", "targets that merge wholly into the prefix", "share", "lower"),
    Metric("start_token", "texts before which the tokenizer puts a start token", "share", None),
    Metric("knows", "right and sure", "share", "higher"),
    Metric("doubts", "right and not sure", "share", None),
    Metric("slips", "sure and not right", "share", "lower"),
    Metric("does_not_know", "neither right nor sure", "share", "lower"),
    Metric("score_drift", "score lost to typos", "points", "lower"),
    Metric("confidence_drift", "confidence lost to typos", "points", "lower"),
    Metric("tokens_and_*", "rank correlation with the number of tokens", "correlation", None),
    *strings.METRICS,
)

STOPS = {
    "target": "as many tokens as the target has in the model's own tokenizer, cut at the first line break",
    "word": "as many words as the target has, cut at the first line break",
    "line": "up to the first line break, at most 64 tokens",
    "tokens": "{count} tokens, cut at the first line break",
}

DRIFTS = (Column("score_drift", "score"), Column("confidence_drift", "confidence"))

QUADRANTS = {
    "knows": ("Knows", "right, and sure of it"),
    "doubts": ("Doubts", "right, but the probability is spread: over other ways to go on, or to spell it"),
    "slips": ("Slips", "sure of the true continuation, and yet it writes another"),
    "does_not_know": ("Does not know", "neither right nor sure"),
}

LAYOUT = Layout(
    metrics=METRICS,
    question="Is a base model robust to its own tokenizer?",
    counted=("examples", "clean examples"),
    facts=(
        Column("target_confidence", "target confidence"),
        Column("exact_match", "exact match"),
        Column("bits_per_byte", "bits per byte of the target"),
        Column("tokenizer_cost", "bits of the target lost to other tokens"),
        Column("boundary_cost", "bits of the target lost to the token before it"),
        Column("score_drift", "score lost to typos"),
        Column("confidence_drift", "confidence lost to typos"),
        Column("tokens_and_target_confidence", "rank correlation of tokens and confidence"),
        Column("tokens_and_lev_score", "rank correlation of tokens and score"),
    ),
    pictures=(
        Bars(
            title="Score by category",
            metric="lev_score",
            along="category",
            groups="lang",
            y_title="Levenshtein score",
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
            metrics=(Column("lev_score", "score"), Column("target_confidence", "confidence")),
        ),
        Table(
            title="Beside the published measures",
            rows="category",
            metrics=(
                Column("exact_match", "exact"),
                Column("bits_per_byte", "bits/byte"),
                Column("target_tokens", "tokens"),
                Column("last_word_tokens", "last word"),
                Column("boundary_merges", "merges"),
            ),
        ),
        Table(
            title="Knows, doubts, slips, does not know",
            rows="category",
            metrics=tuple(Column(name, title.lower()) for name, (title, _) in QUADRANTS.items()),
        ),
        *strings.TABLES,
        Table(title="What typos cost, by their number", rows="edits", metrics=DRIFTS),
        Table(title="What typos cost, by their kind", rows="edit", metrics=DRIFTS),
    ),
    cautions=(
        "The stop rule decides the score, and the published text states none: ours is named above.",
        "Text goes to the model as it is: no chat template, and a start token only where the model's own "
        "tokenizer puts one.",
        "Confidence is a mean over tokens, so that tokenizers are not compared by it; bits per byte are.",
        "A target that the tokenizer merges wholly into the prefix has confidence 0, as published; such "
        "targets are counted.",
        "The quadrants part at a score of 80 and a confidence of 50.",
    ),
    citation="MIRON: base models and their tokenizers, https://huggingface.co/datasets/apsua/MIRON_Benchmark",
)


def notes(spec: RunSpec, summary: Summary) -> list[Note]:
    """The stop rule, the start token, and what is missing."""
    notes = []
    if "stop" in spec.options:
        kind, _, count = spec.options["stop"].partition("=")
        notes.append(Note(f"Written greedily, {STOPS[kind].format(count=count)}."))
    start = summary.get("start_token")
    if start is not None and start.value is not None:
        before = "a start token before every text" if start.value else "no start token before a text"
        notes.append(Note(f"The tokenizer puts {before}."))
    if "target_confidence" not in summary:
        text = "Target confidence is not available: the model gives no log-probabilities of a text."
        notes.append(Note(text, warning=True))
    merged = summary.get("targets_merged_into_prefix")
    if merged is not None and merged.value:
        text = f"{merged.value * merged.n:.0f} targets merge wholly into the prefix: confidence 0 there."
        notes.append(Note(text, warning=True))
    return notes + strings.notes(summary)


def examples(records: Records) -> list[Examples]:
    """Some of each quadrant."""
    return [
        Examples(
            title=title,
            note=f"{meaning[0].upper()}{meaning[1:]}.",
            items=first(records(), lambda record, name=name: record.score.values.get(name) == 1, _example),  # type: ignore[misc]
        )
        for name, (title, meaning) in QUADRANTS.items()
    ]


def _example(record: MironRecord) -> Example:
    inputs, values, detail = record.sample.inputs, record.score.values, record.score.detail
    parts = [("prefix", inputs.prefix), ("target", inputs.target), ("generated", detail.generated or "")]
    if detail.tokens:
        parts.append(("tokens of the target", " | ".join(detail.tokens)))
    return Example(
        label=f"score {values['lev_score']:.0f}, confidence {values['target_confidence']:.0f}",
        title=f"{record.sample.id} · {inputs.prefix[-60:]} ▸{inputs.target}",
        parts=tuple(parts),
    )

"""What is shown of a run of MIRON: pictures, tables and notes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sealegs.benchmarks.miron import strings
from sealegs.benchmarks.miron.baseline import against_copying
from sealegs.benchmarks.miron.metrics import METRICS, QUADRANTS
from sealegs.page.format import nouns
from sealegs.page.layout import Bars, Column, Curve, Layout, Note, Points, Table
from sealegs.types import RunSpec, Summary

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
        count = round(merged.value * merged.n)
        text = (
            f"{nouns(count, 'targets')} merge{'s' * (count == 1)} wholly into the prefix: confidence 0 there."
        )
        notes.append(Note(text, warning=True))
    return notes + data_notes(spec.data) + strings.notes(summary)


def data_notes(facts: Mapping[str, Any]) -> list[Note]:
    """What the files did not state, in words; the facts are those of `data.facts_of`."""
    notes = []
    if spaced := facts.get("spaced"):
        notes.append(
            Note(
                f"A space was put before {nouns(spaced, 'targets')}: prefix and target met without one.",
                warning=True,
            )
        )
    if langs := facts.get("lang_by_script"):
        counts = ", ".join(f"{count:,} {lang}" for lang, count in langs.items())
        text = f"The language of some examples is known by their script alone: {counts}."
        notes.append(Note(f"{text} A field 'lang' in each row states it."))
    if count := facts.get("clean_by_text"):
        text = f"The clean versions of {nouns(count, 'examples')} with typos were found by their text."
        notes.append(Note(text))
    if count := facts.get("no_clean_version"):
        their = "its clean version is" if count == 1 else "their clean versions are"
        text = f"What typos cost leaves out {nouns(count, 'examples')} with typos: {their} not in this run."
        notes.append(Note(text))
    return notes

"""How MIRON is shown: its metrics, pictures and tables, and its notes."""

from __future__ import annotations

from evenkeel.benchmarks.miron import strings
from evenkeel.page.layout import Bars, Column, Curve, Layout, Note, Points, Table
from evenkeel.page.metrics import Metric
from evenkeel.page.tables import values_of
from evenkeel.types import RunSpec, Summary

METRICS = (
    Metric("lev_score", "Levenshtein score", "score", "higher"),
    Metric("target_confidence", "target confidence", "score", "higher"),
    Metric("exact_match", "exact match", "share", "higher"),
    Metric("accepted_match", "right: the target or another accepted answer", "share", "higher"),
    Metric("lev_score_by_words", "Levenshtein score of as many words as the target has", "score", "higher"),
    Metric("lev_score_by_tokens", "Levenshtein score of as many tokens as the target has", "score", "higher"),
    Metric("target_probability", "probability of the whole target", "share", "higher"),
    Metric("answer_probability", "probability of a right continuation", "share", "higher"),
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
    Metric("rescaled_score", "score between the baseline (0) and all right (100)", "points", "higher"),
    Metric("copy_score", "score of copying the rarest word of the prefix", "score", None),
    Metric("copy_match", "right by copying the rarest word of the prefix", "share", None),
    Metric("closest_copy_score", "score of copying the words closest to the target", "score", None),
    Metric("closest_copy_match", "right by copying the words closest to the target", "share", None),
    Metric("majority_score", "score of the most frequent target of the others", "score", None),
    Metric("majority_match", "right by the most frequent target of the others", "share", None),
    Metric("lang_by_script", "examples whose language is told by their script", "share", None),
    Metric("clean_by_text", "examples whose clean version was found by its text", "share", None),
    Metric("no_clean_version", "examples with typos without a clean version", "share", None),
    *strings.METRICS,
)

BASELINES = ("copy", "closest_copy", "majority")
"""Continuations that need no model, and see no target but for the closest copy."""

STOPS = {
    "target": "as many tokens as the target has in the model's own tokenizer, cut at the first line break",
    "word": "as many words as the target has, cut at the first line break",
    "line": "up to the first line break, at most 64 tokens",
    "tokens": "{count} tokens, cut at the first line break",
}

DRIFTS = (Column("score_drift", "score"), Column("confidence_drift", "confidence"))

QUADRANTS = {
    "knows": ("Knows", "it writes a right continuation, with a probability of one half or more"),
    "doubts": (
        "Doubts",
        "it writes a right continuation, to which it gives less than one half: the rest goes to other "
        "continuations, or to other tokens of the same text",
    ),
    "slips": (
        "Slips",
        "it writes another continuation, though it gives one half or more to the right ones: the text goes "
        "on inside the word, or several answers share the probability, or the server does not take the "
        "likeliest token",
    ),
    "does_not_know": (
        "Does not know",
        "it writes another continuation, and gives less than one half to the right ones",
    ),
}

LAYOUT = Layout(
    metrics=METRICS,
    question="Is a base model robust to its own tokenizer?",
    counted=("examples", "clean examples"),
    facts=(
        Column("target_confidence", "target confidence"),
        Column("rescaled_score", "score between the baseline (0) and all right (100)"),
        Column("exact_match", "exact match"),
        Column("accepted_match", "right, accepted answers included"),
        Column("lev_score_by_words", "score of as many words as the target has"),
        Column("lev_score_by_tokens", "score of as many tokens as the target has"),
        Column("target_probability", "probability of the whole target"),
        Column("bits_per_byte", "bits per byte of the target"),
        Column("tokenizer_cost", "bits of the target lost to other tokens"),
        Column("boundary_cost", "bits of the target lost to the token before it"),
        Column("score_drift", "score lost to typos"),
        Column("confidence_drift", "confidence lost to typos"),
        Column(
            "tokens_and_target_confidence",
            "rank correlation of tokens and confidence, within category and language",
        ),
        Column("tokens_and_lev_score", "rank correlation of tokens and score, within category and language"),
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
            title="Score beside baselines that need no model",
            rows="category",
            columns="lang",
            metrics=(Column("copy_score", "copy"), Column("majority_score", "majority")),
        ),
        Table(
            title="Score rescaled: 0 is the better of these baselines, 100 all right",
            rows="category",
            columns="lang",
            metrics=(Column("rescaled_score", "rescaled"), Column("closest_copy_score", "closest copy")),
        ),
        Table(
            title="Right, beside the same baselines",
            rows="category",
            metrics=(
                Column("accepted_match", "right"),
                Column("copy_match", "copy"),
                Column("closest_copy_match", "closest copy"),
                Column("majority_match", "majority"),
            ),
        ),
        Table(
            title="Score under both stop rules",
            rows="category",
            metrics=(
                Column("lev_score", "this run's"),
                Column("lev_score_by_words", "as many words"),
                Column("lev_score_by_tokens", "as many tokens"),
            ),
            several=True,
        ),
        Table(
            title="Beside the published measures",
            rows="category",
            metrics=(
                Column("exact_match", "exact"),
                Column("target_probability", "P(target)"),
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
        "The stop rule decides the score, and the published text states none: ours is named above.",
        "Text goes to the model as it is: no chat template, and a start token only where the model's own "
        "tokenizer puts one.",
        "Confidence is a mean over tokens, so that tokenizers are not compared by it; bits per byte are.",
        "A target that the tokenizer merges wholly into the prefix has confidence 0, as published; such "
        "targets are counted.",
        "A Levenshtein score gives most of its points to a wrong form of the right word: see what copying a "
        "word of the prefix scores, and the rescaled score.",
        "The closest copy sees the target to choose its words: it is the most that copying could reach.",
        "The quadrants take a text as right where it begins with the target or an accepted answer, word for "
        "word, and a model as sure where it gives these one half or more.",
        "Correlations are means of those within each category of each language: that a category is harder "
        "and has longer targets makes none.",
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
    if left_out := spec.data.get("left_out"):
        notes.append(Note(f"Files without rows were left out: {', '.join(left_out)}."))
    return notes + _data_notes(summary) + strings.notes(summary)


def _data_notes(summary: Summary) -> list[Note]:
    """What the files did not state."""
    notes = []
    if "lang_by_script" in summary:
        langs = values_of(summary, "lang_by_script", "lang")
        counts = ", ".join(f"{summary[f'lang_by_script/lang={lang}'].n:,} {lang}" for lang in langs)
        text = f"The language of some examples is told by their script alone: {counts}."
        notes.append(Note(f"{text} A field 'lang' in each row states it."))
    if "clean_by_text" in summary:
        count = summary["clean_by_text"].n
        notes.append(Note(f"The clean versions of {count:,} examples with typos were found by their text."))
    if "no_clean_version" in summary:
        count, drifting = summary["no_clean_version"].n, summary.get("score_drift")
        cannot = "Drift cannot be computed" if drifting is None else "Drift leaves some examples out"
        text = f"{cannot}: no clean version is in this run for {count:,} examples with typos."
        notes.append(Note(text, warning=drifting is None))
    return notes

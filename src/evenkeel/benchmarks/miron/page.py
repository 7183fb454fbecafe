"""What MIRON shows: its metrics, pictures and tables, and its notes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenkeel.benchmarks.miron import strings
from evenkeel.benchmarks.miron.baseline import against_copying
from evenkeel.page.layout import Bars, Column, Curve, Layout, Note, Points, Table
from evenkeel.page.metrics import Metric
from evenkeel.types import RunSpec, Summary

PUBLISHED = (
    Metric(
        "lev_score",
        "Levenshtein score",
        "score",
        "higher",
        meaning="100 × (1 − edits / characters of the longer one), the mean over the examples. Edits are the "
        "fewest insertions, deletions and substitutions of characters between the target and the "
        "continuation, which is cut after as many words as the target has, or at a line break.",
        caution="A wrong form of the right word gets most of its points: see what repeating a word of the "
        "prompt scores.",
        main=True,
    ),
    Metric(
        "target_confidence",
        "target confidence",
        "score",
        "higher",
        meaning="100 × exp(mean of ln P(token | the text before it)) over the tokens of a target, the "
        "mean over the examples; 0 for a target without a token of its own.",
        caution="It is a mean over tokens, so that models with other tokenizers are not compared by it.",
        main=True,
        needs_coverage=True,
    ),
)
"""The figures of the published script."""

ADDED = (
    Metric(
        "rescaled_score",
        "score between repeating a word of the prompt (0) and all right (100)",
        "points",
        "higher",
        meaning="100 · (1 − Σ (100 − lev_score) / Σ (100 − copy_score)) over the examples.",
        caution="It is negative where repeating a word scores more; with typos that scores little, because "
        "the rarest word is often the misspelt one.",
        main=True,
    ),
    Metric(
        "copy_score",
        "score of repeating the rarest word of the prompt",
        "score",
        None,
        meaning="The Levenshtein score of a word copied from the prefix: the word that the fewest "
        "prefixes of the data in its language have, and of several such words the last.",
        caution="It is a property of the data; in Morphology it reaches two thirds of the points and more.",
        main=True,
    ),
    Metric(
        "exact_match",
        "exact match",
        "share",
        "higher",
        meaning="The share of continuations, cut as for the Levenshtein score, that are the target character "
        "for character.",
        caution="Another right answer counts as wrong.",
    ),
    Metric(
        "accepted_match",
        "right: the target or another accepted answer",
        "share",
        "higher",
        meaning="The share of texts that begin with the target or an accepted answer, whose last word ends "
        "there; spaces and the Unicode form make no difference, case does.",
        caution="A right answer that the data does not list counts as wrong.",
        main=True,
    ),
    Metric(
        "answer_probability",
        "probability of a right continuation",
        "share",
        "higher",
        meaning="Σ P(answer) over the target and the accepted answers, each the product of the "
        "probabilities of its own tokens; the mean over the examples.",
        caution="Unknown where tokens merge across the boundary; other tokens of the same text do not count.",
    ),
    Metric(
        "bits_per_byte",
        "bits per byte of the target",
        "bits",
        "lower",
        meaning="Σ bits / Σ bytes over the examples: −log₂ P of the target's tokens, summed over all "
        "tokens of all targets, over the targets' bytes in UTF-8. Comparable between tokenizers.",
        caution="A Russian letter has two bytes: compare models within a language. Examples whose "
        "tokens merge across the boundary are left out.",
        main=True,
        weight=strings.TARGET_BYTES,
    ),
    Metric(
        strings.TARGET_BYTES,
        "bytes of the target",
        "count",
        None,
        meaning="The length of the target in UTF-8, its leading space included: the mean over the examples.",
        caution="It is a property of the data, and the weight of an example in bits_per_byte.",
    ),
    Metric(
        "target_tokens",
        "tokens of the target",
        "count",
        None,
        meaning="Into how many tokens the tokenizer splits the target after its prefix, the mean over "
        "examples.",
        caution="Neither more nor fewer is better by itself.",
    ),
    Metric(
        "boundary_merges",
        "tokens that merge across the boundary",
        "share",
        "lower",
        meaning="The share of examples whose prefix is split differently alone and before the target.",
        caution="Of these the probability of the target in its own tokens is unknown.",
    ),
    Metric(
        "targets_merged_into_prefix",
        "targets that merge wholly into the prefix",
        "share",
        "lower",
        meaning="The share of targets that have no token of their own after the prefix.",
        caution="Their confidence is 0, as published, whatever the model knows.",
    ),
    Metric(
        "knows",
        "right and sure",
        "share",
        "higher",
        meaning="The share of examples with a right text (accepted_match) and an answer_probability of "
        "one half or more, of those where both are known.",
        caution="Sure is under this tokenizer's own tokens.",
    ),
    Metric(
        "doubts",
        "right and not sure",
        "share",
        None,
        meaning="The share of examples with a right text (accepted_match) and an answer_probability of "
        "less than one half, of those where both are known.",
        caution="The rest may be with other right continuations, or with other tokens of the same text.",
    ),
    Metric(
        "slips",
        "sure and not right",
        "share",
        "lower",
        meaning="The share of examples with a wrong text (accepted_match) and an answer_probability of "
        "one half or more, of those where both are known.",
        caution="With greedy decoding it is near 0 by arithmetic: many mean that the server does not use it.",
    ),
    Metric(
        "does_not_know",
        "neither right nor sure",
        "share",
        "lower",
        meaning="The share of examples with a wrong text (accepted_match) and an answer_probability of "
        "less than one half, of those where both are known.",
        caution="A right continuation that the data does not list counts here.",
    ),
    Metric(
        "score_drift",
        "score lost to typos",
        "points",
        "lower",
        meaning="The Levenshtein score of the clean version minus that of the same example with typos, "
        "the mean over the examples with typos.",
        caution="Where the clean version is not named it is found by its text; negative is a gain.",
        main=True,
    ),
    Metric(
        "confidence_drift",
        "confidence lost to typos",
        "points",
        "lower",
        meaning="The target confidence of the clean version minus that of the same example with typos, "
        "the mean over the examples with typos.",
        caution="A model without confidence on the clean text has nothing to lose.",
        main=True,
    ),
    Metric(
        "tokens_and_*",
        "rank correlation with the number of tokens",
        "correlation",
        None,
        meaning="Spearman's ρ of the number of the target's tokens and the metric within each category "
        "of each language, the mean of these weighted by their examples.",
        caution="Longer and rarer words have more tokens and are harder: it does not say that tokens are the "
        "cause.",
        main=True,
    ),
)
METRICS = (*PUBLISHED, *ADDED, *strings.METRICS)

DRIFTS = (Column("score_drift", "score"), Column("confidence_drift", "confidence"))

QUADRANTS = {
    "knows": ("Right and sure", "it writes a right continuation, with a probability of one half or more"),
    "doubts": (
        "Right and not sure",
        "it writes a right continuation, to which it gives less than one half: the rest goes to other "
        "continuations, or to other tokens of the same text",
    ),
    "slips": (
        "Sure, and not right",
        "it writes another continuation, though it gives one half or more to the right ones: the text "
        "continues inside the word, or several answers share the probability, or the server does not take "
        "the likeliest token",
    ),
    "does_not_know": (
        "Neither right nor sure",
        "it writes another continuation, and gives less than one half to the right ones",
    ),
}


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
    """What the files did not state, in words; the facts are those of `files.facts_of`."""
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

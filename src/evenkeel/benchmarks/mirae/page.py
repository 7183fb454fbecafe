"""How MIRAE is shown: its metrics, pictures and tables, its notes and examples."""

from __future__ import annotations

from itertools import combinations

from evenkeel.benchmarks.mirae.files import LANGUAGES, MiraeRecord
from evenkeel.page.examples import answer_parts, extremes, shortened
from evenkeel.page.layout import Column, Curve, Example, Examples, Heatmap, Layout, Note, Table
from evenkeel.page.metrics import Metric
from evenkeel.types import Records, RunSpec, Summary

READS = 0.9
"""The share of translated sentences from which an embedder counts as reading a language."""

FURTHER = {"embedder-2": "2nd", "embedder-3": "3rd", "embedder-4": "4th"}
"""The embedders beside the first, by role."""

LEVELS_TITLE = "level (1: about 30 tokens, 7: about 2,000)"

METRICS = (
    Metric("mean_similarity", "Answer consistency", "cosine", "higher"),
    Metric("std_similarity", "spread of the cosines", "cosine", "lower"),
    Metric("max_similarity", "cosine of the two most similar answers", "cosine", "higher"),
    Metric("min_similarity", "cosine of the two least similar answers", "cosine", "higher"),
    Metric("whole_similarity", "consistency with long answers read whole", "cosine", "higher"),
    Metric("similarity_to_shortest", "similarity to the answers at the shortest level", "cosine", "higher"),
    Metric("drift", "change because of the longer prompt", "cosine", "lower"),
    Metric("across_*", "the same question in two languages", "cosine", "higher"),
    Metric("meanings", "distinct meanings among the answers", "count", "lower"),
    Metric("semantic_entropy", "semantic entropy", "nats", "lower"),
    Metric("duplicates", "answers that are the same text", "share", None),
    Metric("cut_by_embedder", "answers longer than the embedder reads", "share", "lower"),
    Metric("cut_by_max_tokens", "answers cut at max-tokens", "share", "lower"),
    Metric("empty", "empty answers", "share", "lower"),
    Metric("refusals", "refusals", "share", "lower"),
    Metric("answer_tokens", "tokens of an answer", "tokens", None),
    Metric("embedder_reads", "translated sentences that the embedder matches", "share", "higher"),
    Metric("trend_per_doubling", "consistency per doubling of the prompt", "cosine", "higher"),
    Metric("last_minus_first_level", "longest level minus shortest", "cosine", "higher"),
    Metric("rank_correlation", "rank correlation with another embedder", "correlation", None),
)

LAYOUT = Layout(
    metrics=METRICS,
    question="Does it say the same thing when asked again, and when the prompt grows?",
    pictures=(
        Curve(
            title="Consistency by prompt length",
            metric="mean_similarity",
            along="level",
            lines="lang",
            x_title=LEVELS_TITLE,
            y_title="mean cosine of the answers",
        ),
        Curve(
            title="Drift: how much of the change is due to the longer prompt",
            metric="drift",
            along="level",
            lines="lang",
            x_title=LEVELS_TITLE,
            y_title="cosine within levels − across",
        ),
        Heatmap(title="The answers to one prompt, each against each", detail="pairwise_similarities"),
    ),
    tables=(
        Table(title="Consistency by level", rows="level", metric="mean_similarity", columns="domain"),
        Table(
            title="Consistency by language",
            rows="level",
            metric="mean_similarity",
            columns="lang",
            several=True,
        ),
        Table(
            title="The same question in two languages",
            rows="level",
            metrics=tuple(Column(f"across_{a}_{b}", f"{a}–{b}") for a, b in combinations(LANGUAGES, 2)),
        ),
        Table(
            title="The same answers by other measures",
            rows="level",
            several=True,
            metrics=(
                Column("mean_similarity", "headline"),
                Column("whole_similarity", "read whole"),
                *(Column(f"mean_similarity@{role}", f"{nth} embedder") for role, nth in FURTHER.items()),
            ),
        ),
        Table(
            title="What changes because the prompt grew",
            rows="level",
            metrics=(
                Column("similarity_to_shortest", "to the shortest"),
                Column("drift", "drift"),
                Column("meanings", "meanings"),
                Column("semantic_entropy", "entropy"),
            ),
        ),
        Table(
            title="What the similarity hides",
            rows="level",
            metrics=(
                Column("answer_tokens", "tokens"),
                Column("cut_by_max_tokens", "at max-tokens"),
                Column("cut_by_embedder", "past embedder"),
                Column("duplicates", "duplicates"),
                Column("refusals", "refusals"),
                Column("empty", "empty"),
            ),
        ),
    ),
    facts=(
        Column("trend_per_doubling", "consistency per doubling of the prompt"),
        Column("last_minus_first_level", "longest level minus shortest"),
        Column("whole_similarity", "consistency with long answers read whole"),
        *(
            Column(f"rank_correlation@{role}", f"rank correlation with the {nth} embedder")
            for role, nth in FURTHER.items()
        ),
    ),
    cautions=(
        "The cosine says how similar two answers are, not whether either is right.",
        "An embedder reads only the first part of a long answer (256 tokens for all-MiniLM-L6-v2).",
        "Answers cut by max-tokens are scored as far as they go, as the published script does.",
        "Refusals are recognised by the server's status and by how an answer begins; evasions are not.",
    ),
    citation="MIRAE: the consistency of answers as prompts grow, https://github.com/greatgompang/MIRAE",
)


def notes(spec: RunSpec, summary: Summary) -> list[Note]:
    """A warning for each language that the embedder does not read."""
    warnings = []
    for name, figure in summary.items():
        metric, _, lang = name.partition("/lang=")
        if metric == "embedder_reads" and lang and figure.value is not None and figure.value < READS:
            text = (
                f"The embedder does not read '{lang}': it matched {figure.value:.0%} of {figure.n} "
                "translated sentences. Its figures there say how similar the wording is, not the meaning."
            )
            warnings.append(Note(text, warning=True))
    return warnings


def examples(records: Records) -> list[Examples]:
    note = "Prompts at both ends of the scale, with every answer."
    items = extremes(records, LAYOUT.headline, _example)
    return [Examples(title="The least and the most alike", note=note, items=items)]


def _example(record: MiraeRecord) -> Example:
    prompt = record.sample.inputs.question_text
    return Example(
        label=f"{record.score.values[LAYOUT.headline]:.4f}",
        title=f"{record.sample.id} · {shortened(prompt)}",
        parts=(("prompt", prompt), *answer_parts(record.answers)),
    )

"""How MIRAE is shown: its metrics, pictures and tables, and its notes."""

from __future__ import annotations

from itertools import combinations
from typing import get_args

from evenkeel.benchmarks.mirae.files import LANGUAGES
from evenkeel.benchmarks.mirae.meanings import Method
from evenkeel.page.format import capitalised
from evenkeel.page.layout import Column, Curve, Heatmap, Layout, Note, Table
from evenkeel.page.metrics import Metric
from evenkeel.types import MIXED, RunSpec, Summary

READS = 0.9
"""The share of translated sentences from which an embedder counts as reading a language."""

MIN_QUESTIONS = 4
"""Questions that are asked together for a chance floor: every one has three others at least."""

FURTHER = {"embedder-2": "2nd", "embedder-3": "3rd", "embedder-4": "4th"}
"""The embedders beside the first, by role."""

BY_FURTHER = {"mean_similarity": "", "chance_floor": ", floor", "corrected_similarity": ", corrected"}

HIGH_FLOOR = 0.5
"""The cosine of answers to different questions from which a language needs another embedder."""
MULTILINGUAL = "sbert:sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2"
"""An embedder that reads fifty languages."""

NOMINAL, ESTIMATED = "nominal lengths of the levels", "estimated lengths of the prompts"
"""What a trend is fitted over."""

LEVELS_TITLE = "level (1: about 30 tokens, 7: about 2,000)"

METRICS = (
    Metric("mean_similarity", "Answer consistency", "cosine", "higher"),
    Metric("std_similarity", "spread of the cosines", "cosine", "lower", by_repeats=True),
    Metric("max_similarity", "cosine of the two most similar answers", "cosine", "higher", by_repeats=True),
    Metric("min_similarity", "cosine of the two least similar answers", "cosine", "higher", by_repeats=True),
    Metric("chance_floor", "cosine of answers to different questions", "cosine", None, by_others=True),
    Metric("corrected_similarity", "consistency corrected for chance", "cosine", "higher", by_others=True),
    Metric("whole_similarity", "consistency with long answers read whole", "cosine", "higher"),
    Metric(
        "similarity_to_shortest",
        "similarity to the answers at the shortest level",
        "cosine",
        "higher",
        against="level",
    ),
    Metric("drift", "change because of the longer prompt", "cosine", "lower", against="level"),
    Metric("across_*", "the same question in two languages", "cosine", "higher"),
    Metric(
        "meanings",
        "distinct meanings (chains of cosines; @nli, @judge: entailment)",
        "count",
        "lower",
        by_repeats=True,
    ),
    Metric("semantic_entropy", "semantic entropy (of the same groups)", "nats", "lower", by_repeats=True),
    Metric("cut_pairs", "pairs of answers not read whole when meanings were compared", "share", "lower"),
    Metric("duplicates", "answers that are the same text", "share", None, by_repeats=True),
    Metric("cut_by_embedder", "answers longer than the embedder reads", "share", "lower"),
    Metric("cut_by_max_tokens", "answers cut at max-tokens", "share", "lower"),
    Metric("empty", "empty answers", "share", "lower"),
    Metric("refusals", "refusals", "share", "lower"),
    Metric("disclaimers", "answers after a disclaimer", "share", None),
    Metric("answer_tokens", "tokens of an answer, as the model counts them", "tokens", None),
    Metric("estimated_tokens", "tokens of an answer, estimated", "tokens", None),
    Metric("prompt_tokens", "tokens of a prompt, estimated", "tokens", None),
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
            title="Consistency corrected for chance",
            rows="level",
            columns="lang",
            metrics=(
                Column("chance_floor", "chance floor"),
                Column("corrected_similarity", "corrected"),
            ),
        ),
        Table(
            title="Consistency corrected for chance, by domain",
            rows="domain",
            metrics=(
                Column("mean_similarity", "published"),
                Column("chance_floor", "chance floor"),
                Column("corrected_similarity", "corrected"),
            ),
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
                *(
                    Column(f"{metric}@{role}", f"{nth} embedder{what}")
                    for role, nth in FURTHER.items()
                    for metric, what in BY_FURTHER.items()
                ),
            ),
        ),
        Table(
            title="What changes because the prompt grew",
            rows="level",
            metrics=(
                Column("similarity_to_shortest", "to the shortest"),
                Column("drift", "drift"),
            ),
        ),
        Table(
            title="Distinct meanings among the answers",
            rows="level",
            metrics=(
                Column("meanings", "by cosine"),
                Column("semantic_entropy", "entropy"),
                *(
                    Column(f"{metric}@{method}", f"{title} {method}")
                    for method in get_args(Method)
                    for metric, title in (
                        ("meanings", "by"),
                        ("semantic_entropy", "entropy"),
                        ("cut_pairs", "cut"),
                    )
                ),
            ),
        ),
        Table(
            title="How long the prompts are",
            rows="level",
            total=False,
            metrics=(Column("prompt_tokens", "tokens (est.)"),),
        ),
        Table(
            title="Padding that only adds length, and padding that adds wishes",
            rows="padding",
            total=False,
            metrics=(
                Column("mean_similarity", "consistency"),
                Column("drift", "drift"),
                Column("trend_per_doubling", "per doubling"),
                Column("prompt_tokens", "prompt (est.)"),
            ),
        ),
        Table(
            title="Where the question is in the prompt",
            rows="position",
            total=False,
            metrics=(
                Column("mean_similarity", "consistency"),
                Column("drift", "drift"),
                Column("trend_per_doubling", "per doubling"),
                Column("prompt_tokens", "prompt (est.)"),
            ),
        ),
        Table(
            title="What the similarity hides",
            rows="level",
            metrics=(
                Column("answer_tokens", "tokens"),
                Column("estimated_tokens", "tokens (est.)"),
                Column("cut_by_max_tokens", "at max-tokens"),
                Column("cut_by_embedder", "past embedder"),
                Column("duplicates", "duplicates"),
                Column("refusals", "refusals"),
                Column("disclaimers", "disclaimers"),
                Column("empty", "empty"),
            ),
        ),
    ),
    facts=(
        Column("corrected_similarity", "consistency corrected for chance"),
        Column("chance_floor", "chance floor: cosine of answers to different questions"),
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
        "The published cosine does not begin at 0: answers to different questions have one too, the chance "
        "floor, which differs by embedder, language and length. Compare languages by the corrected figure.",
        "An embedder reads only the first part of a long answer (256 tokens for all-MiniLM-L6-v2).",
        "Answers cut by max-tokens are scored as far as they go, as the published script does.",
        "Meanings by cosine are chains of answers whose cosine is at least 1 − --meaning-distance: "
        "paraphrases may count as several, and different answers in like words as one. --meanings nli:SPEC "
        "or judge:SPEC asks whether answers entail each other.",
        "Refusals are recognised by the server's status and by how an answer begins, with patterns of the "
        "same reach in English, Korean and Chinese; one that declines and then answers is a disclaimer.",
    ),
    citation="MIRAE: the consistency of answers as prompts grow, https://github.com/greatgompang/MIRAE",
)


def notes(spec: RunSpec, summary: Summary) -> list[Note]:
    """Warnings where figures may mislead, and what those of this run depend on."""
    warnings = _embedder_warnings(spec, summary)
    if spec.options.get("chunked") and _unknown(summary, "cut_by_embedder"):
        warnings.append(
            "--chunked: the embedder does not say which answers it cut, so that none can be read whole. "
            "Use an embedder on this machine (embedded-embedder, sbert: or hf:)."
        )
    facts = []
    if spec.data.get("source") == "recorded":
        facts.append("A file of recorded answers does not say whether max-tokens cut them: that is unknown.")
    if (trend := summary.get("trend_per_doubling")) and trend.basis == NOMINAL:
        facts.append(f"The trend is over the {NOMINAL}: the file has only the beginning of a prompt.")
    if _unknown(summary, "chance_floor"):
        facts.append(
            f"The chance floor is unknown: it takes at least {MIN_QUESTIONS} questions in a language, with "
            "answers."
        )
    elif (floor := summary.get("chance_floor")) and floor.basis.startswith(MIXED):
        facts.append(f"Portions of the run have floors of different kinds. {capitalised(floor.basis)}.")
    elif floor and "domain" not in floor.basis:
        facts.append(f"There are too few questions for a floor in each domain. {capitalised(floor.basis)}.")
    paddings = dict.fromkeys(each.scope["padding"] for each in summary.values() if "padding" in each.scope)
    if paddings:
        facts.append(f"Drift and trend are those of this padding: {', '.join(paddings)}.")
    return [*(Note(text, warning=True) for text in warnings), *map(Note, facts)]


def _embedder_warnings(spec: RunSpec, summary: Summary) -> list[str]:
    """For each language that the embedder does not read, or where its cosines begin high, a sentence."""
    embedders = spec.options.get("embedder") or ("embedded-embedder",)
    warnings = []
    langs = dict.fromkeys(each.scope["lang"] for each in summary.values() if set(each.scope) == {"lang"})
    for lang in langs:
        reads, floor = (summary.get(f"{name}/lang={lang}") for name in ("embedder_reads", "chance_floor"))
        sentences = []
        if reads and reads.value is not None and reads.value < READS:
            sentences.append(
                f"The embedder does not read '{lang}': it matched {reads.value:.0%} of {reads.n} "
                "translated sentences. Its figures there say how similar the wording is, not the meaning."
            )
            if len(langs) > 1:
                sentences.append(f"Figures across languages are left out for '{lang}' because of it.")
        if floor and floor.value is not None and floor.value >= HIGH_FLOOR:
            sentences.append(
                f"In '{lang}' even answers to different questions have a cosine of {floor.value:.2f}: the "
                "published figure says little there, see the corrected one."
            )
        if sentences and len(embedders) < 2:
            sentences.append(
                "Recommended: a multilingual embedder, beside this one "
                f"(--embedder {embedders[0]} --embedder {MULTILINGUAL}) or in its place."
            )
        if sentences:
            warnings.append(" ".join(sentences))
    return warnings


def _unknown(summary: Summary, metric: str) -> bool:
    """Whether a run has a figure of a metric that has no value."""
    return metric in summary and summary[metric].value is None

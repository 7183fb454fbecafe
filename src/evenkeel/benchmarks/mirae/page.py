"""What MIRAE shows: its metrics, pictures and tables, and its notes."""

from __future__ import annotations

from itertools import combinations

from evenkeel.benchmarks.mirae.files import LANGUAGES
from evenkeel.page.layout import Column, Curve, Layout, Note, Table
from evenkeel.page.metrics import Metric, scope_of
from evenkeel.types import RunSpec, Summary

READS = 0.9
"""The share of translated sentences from which an embedder counts as reading a language."""
IDENTICAL = 0.5
"""The share of prompts with identical answers from which the repeats do not count as independent."""
HIGH_FLOOR = 0.5
"""The cosine of answers to different questions from which a language needs another embedder."""
MULTILINGUAL = "sbert:sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2"
"""An embedder that reads fifty languages."""

FLOOR = "chance floor: other questions of the same language, domain and level"
NOMINAL, ESTIMATED = "nominal lengths of the levels", "estimated lengths of the prompts"
"""What a trend is fitted over."""
LEVELS_TITLE = "level (1: about 30 tokens, 7: about 2,000)"

PUBLISHED = (
    Metric(
        "mean_similarity",
        "Similarity of the answers' texts (SBERT cosine)",
        "cosine",
        "higher",
        meaning="The mean cosine of the embeddings of all pairs of answers to one prompt; 1 where all are "
        "the same text.",
        caution="It is of texts, not of what they claim: yes and no to the same question have a cosine of "
        "about 0.9. It does not begin at 0: answers to different questions have a cosine too.",
        main=True,
    ),
    Metric(
        "std_similarity",
        "spread of the cosines",
        "cosine",
        "lower",
        meaning="The population standard deviation of the cosines of the pairs of answers to one prompt.",
        caution="It grows with the number of answers.",
        depends_on="answers",
    ),
    Metric(
        "max_similarity",
        "cosine of the two most similar answers",
        "cosine",
        "higher",
        meaning="The highest cosine of two answers to one prompt.",
        caution="It grows with the number of answers, and two equal texts give 1.",
        depends_on="answers",
    ),
    Metric(
        "min_similarity",
        "cosine of the two least similar answers",
        "cosine",
        "higher",
        meaning="The lowest cosine of two answers to one prompt.",
        caution="It falls with the number of answers, and one refusal among them decides it.",
        depends_on="answers",
    ),
)
"""The figures of the published script."""

JUDGED = (
    Metric(
        "same_meaning",
        "Pairs of answers with the same meaning",
        "share",
        "higher",
        meaning="The share of pairs of answers to one prompt of which, says the judge, each entails the "
        "other (groups as in Kuhn, Gal & Farquhar 2023); the mean over prompts.",
        caution="It is what the judge says. Long answers seldom entail each other in every detail.",
        main=True,
    ),
    Metric(
        "judged_meanings",
        "distinct meanings, says the judge",
        "count",
        "lower",
        meaning="How many groups of answers that entail each other the answers to one prompt fall into.",
        caution="It grows with the number of answers.",
        main=True,
        depends_on="answers",
    ),
    Metric(
        "judged_entropy",
        "semantic entropy, by the judge's meanings",
        "nats",
        "lower",
        meaning="−Σ pₖ ln pₖ over the shares of the answers in each of the judge's groups (Kuhn, Gal & "
        "Farquhar 2023, the discrete form).",
        caution="Shares of a few answers underestimate the entropy.",
        main=True,
        depends_on="answers",
    ),
)
"""What a judge adds."""

ADDED = (
    Metric(
        "corrected_similarity",
        "similarity corrected for chance",
        "cosine",
        "higher",
        meaning="1 − (1 − s)/(1 − F) with the mean similarity s and the chance floor F: 0 where answers to "
        "one prompt are as alike as answers to different questions, 1 where all are the same. The value of a "
        "prompt is its contribution to that mean: with its share of a jackknife of F, not s corrected by F.",
        caution="It depends on the other questions of the run: runs over other questions are not compared.",
        main=True,
        depends_on="samples",
    ),
    Metric(
        "chance_floor",
        "cosine of answers to different questions",
        "cosine",
        None,
        meaning="The mean cosine of answers to different questions of the same language, domain, level and "
        "padding; the value of a prompt is its contribution to a jackknife of that mean.",
        caution="It belongs to the embedder, the language and the questions, and needs three questions of a "
        "domain.",
        main=True,
        depends_on="samples",
    ),
    Metric(
        "trend_per_doubling",
        "similarity per doubling of the prompt",
        "cosine",
        "higher",
        meaning="The slope of the mean similarity over log₂ of the prompt's tokens, the mean over questions.",
        caution="It assumes a straight line; the chance floor changes with the length too.",
        main=True,
    ),
    Metric(
        "drift",
        "change because of the longer prompt",
        "cosine",
        "lower",
        meaning="(W₁ + Wₖ)/2 − C₁ₖ: the mean similarity within the shortest level of a question and within "
        "level k, less the mean cosine across the two; without a level, the mean over all longer levels.",
        caution="Zero where the longer prompt changes nothing beyond sampling, also if both levels are "
        "inconsistent.",
        main=True,
        depends_on="level",
    ),
    Metric(
        "across_*",
        "the same question in two languages",
        "cosine",
        "higher",
        meaning="The mean cosine of an answer in one language and one in the other, at the same level.",
        caution="It is not corrected for chance, and left out for languages that the embedder does not read.",
    ),
    Metric(
        "identical_answers",
        "prompts whose answers are all the same text",
        "share",
        None,
        meaning="The share of prompts to which every answer is the same, to the letter.",
        caution="Where it is high the repeats were not independent: a cache, a fixed seed, temperature 0.",
        main=True,
        depends_on="answers",
    ),
    Metric(
        "refusals",
        "refusals",
        "share",
        "lower",
        meaning="The share of requests that did not fail of which the server refused the answer, or the text "
        "has a declining phrase in its first 300 characters and fewer than 150 tokens after it.",
        caution="Texts are recognised by a short list of phrases in each language, not by a reader.",
        main=True,
    ),
    Metric(
        "cut_by_embedder",
        "answers longer than the embedder reads",
        "share",
        "lower",
        meaning="The share of answers whose ends do not count in the cosines.",
        caution="An embedder on a server may not say what it cut: the figure is then unknown, not 0.",
        main=True,
    ),
    Metric(
        "cut_by_max_tokens",
        "answers cut at max-tokens",
        "share",
        "lower",
        meaning="The share of answers that ended because max-tokens was reached.",
        caution="They are scored as far as they go, as the published script does; of recorded answers it is "
        "unknown.",
        main=True,
    ),
    Metric(
        "estimated_tokens",
        "tokens of an answer, estimated",
        "tokens",
        None,
        meaning="The mean length of an answer in tokens, estimated in one way for all models.",
        caution="It is an estimate, fitted to a tokenizer for English.",
    ),
    Metric(
        "prompt_tokens",
        "tokens of a prompt, estimated",
        "tokens",
        None,
        meaning="The length of a prompt in tokens, estimated from its text.",
        caution="It is unknown where a recorded file has only the beginning of a prompt.",
    ),
    Metric(
        "embedder_reads",
        "translated sentences that the embedder matches",
        "share",
        "higher",
        meaning="The share of eight translated sentences whose nearest English sentence is the one they "
        "translate.",
        caution="Below 90 % the figures of that language mean nothing.",
    ),
)
METRICS = (*PUBLISHED, *JUDGED, *ADDED)

LAYOUT = Layout(
    metrics=METRICS,
    question="Does it say the same thing when asked again, and when the prompt grows?",
    name="Consistency (MIRAE)",
    verdict="Repeated answers have a similarity of {}",
    baseline=Column("chance_floor", "comparing answers to different questions"),
    pictures=(
        Curve(
            title="Similarity of the answers' texts by prompt length",
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
    ),
    tables=(
        Table(title="Similarity by level", rows="level", metric="mean_similarity", columns="domain"),
        Table(
            title="Similarity by language",
            rows="level",
            metric="mean_similarity",
            columns="lang",
            several=True,
        ),
        Table(
            title="Similarity corrected for chance",
            rows="level",
            columns="lang",
            metrics=(
                Column("chance_floor", "chance floor"),
                Column("corrected_similarity", "corrected"),
            ),
        ),
        Table(
            title="Similarity by domain, published and corrected for chance",
            rows="domain",
            several=True,
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
            title="Meanings among the answers, says the judge",
            rows="level",
            metrics=(
                Column("same_meaning", "pairs with the same"),
                Column("judged_meanings", "distinct"),
                Column("judged_entropy", "entropy"),
            ),
        ),
        Table(
            title="Neutral and demanding padding",
            rows="padding",
            total=False,
            metrics=(
                Column("mean_similarity", "similarity"),
                Column("drift", "drift"),
                Column("trend_per_doubling", "per doubling"),
                Column("prompt_tokens", "prompt tokens (est.)"),
            ),
        ),
        Table(
            title="Length, refusals and duplicates",
            rows="level",
            metrics=(
                Column("prompt_tokens", "prompt tokens (est.)"),
                Column("estimated_tokens", "answer tokens (est.)"),
                Column("cut_by_max_tokens", "cut at max-tokens"),
                Column("cut_by_embedder", "cut by embedder"),
                Column("identical_answers", "identical"),
                Column("refusals", "refusals"),
            ),
        ),
    ),
    facts=tuple(Column(metric.name, metric.title) for metric in (*JUDGED, *ADDED) if metric.main),
    cautions=(
        "The published cosine does not begin at 0: answers to different questions have one too, the chance "
        "floor, which differs by embedder, language and length. Compare languages by the corrected figure.",
        "An embedder reads only the first part of a long answer (256 tokens for all-MiniLM-L6-v2).",
        "A cosine does not see contradictions: --judge SPEC has a model say which answers mean the same.",
    ),
    citation="MIRAE: the consistency of answers as prompts grow, https://github.com/greatgompang/MIRAE",
)


def notes(spec: RunSpec, summary: Summary) -> list[Note]:
    """Warnings where figures may mislead, and what those of this run depend on."""
    warnings = [Note(text, warning=True) for text in _embedder_warnings(summary)]
    if are_identical(summary):
        same = f"{summary['identical_answers'].value:.0%} of the prompts got the same text every time"
        text = f"{same}: the repeats were not independent (a cache, a fixed seed, temperature 0), and their "
        warnings.append(Note(f"{text}similarity is 1 by construction.", warning=True, doubt=same))
    facts = []
    if spec.data.get("source") == "recorded":
        facts.append("A file of recorded answers does not say whether max-tokens cut them: that is unknown.")
    if (trend := summary.get("trend_per_doubling")) and trend.basis == NOMINAL:
        facts.append(f"The trend is over the {NOMINAL}: the file has only the beginning of a prompt.")
    floors = [figure for name, figure in summary.items() if scope_of(name)[0] == "chance_floor"]
    if floors and all(floor.value is None for floor in floors):
        facts.append("The chance floor is unknown: it needs three answered questions of a domain.")
    paddings = dict.fromkeys(each.scope["padding"] for each in summary.values() if "padding" in each.scope)
    if paddings:
        facts.append(f"Drift and trend are measured with this padding: {', '.join(paddings)}.")
    return [*warnings, *map(Note, facts)]


def are_identical(summary: Summary) -> bool:
    """Whether most prompts have identical answers."""
    figure = summary.get("identical_answers")
    return figure is not None and figure.value is not None and figure.value >= IDENTICAL


def unread_languages(summary: Summary) -> list[str]:
    """The languages that the embedder does not read."""
    prefix = "embedder_reads/lang="
    return [
        name.removeprefix(prefix)
        for name, figure in summary.items()
        if name.startswith(prefix) and figure.value is not None and figure.value < READS
    ]


def _embedder_warnings(summary: Summary) -> list[str]:
    """For each language that the embedder does not read, or where its cosines begin high, a sentence."""
    warnings = []
    langs = dict.fromkeys(each.scope["lang"] for each in summary.values() if set(each.scope) == {"lang"})
    unread = unread_languages(summary)
    for lang in langs:
        floor = summary.get(f"chance_floor/lang={lang}")
        if lang in unread:
            reads = summary[f"embedder_reads/lang={lang}"]
            warnings.append(
                f"The embedder does not read '{lang}': it matched {reads.value:.0%} of {reads.n} translated "
                "sentences. Its figures there mean nothing, corrected or not; figures across "
                "languages are left out. Score again with a multilingual embedder: "
                f"--embedder {MULTILINGUAL}."
            )
        elif floor and floor.value is not None and floor.value >= HIGH_FLOOR:
            warnings.append(
                f"In '{lang}' even answers to different questions have a cosine of {floor.value:.2f}: the "
                f"published figure says little there. Recommended: --embedder {MULTILINGUAL}."
            )
    if unread and len(langs) > 1:
        warnings.append("There is no figure over all languages because of it: see each language by itself.")
    return warnings

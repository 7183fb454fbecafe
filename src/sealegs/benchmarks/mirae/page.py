"""What MIRAE shows: its pictures and tables, and its notes."""

from __future__ import annotations

from itertools import combinations

from msgspec.structs import replace

from sealegs.benchmarks.mirae.data import LANGUAGES
from sealegs.benchmarks.mirae.metrics import JUDGED, METRICS
from sealegs.page.format import nouns, number
from sealegs.page.layout import Column, Curve, Layout, Note, Table
from sealegs.page.tables import values_of
from sealegs.types import RunSpec, Summary

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
NOT_JUDGED = "Contradictions between answers were not looked for: a run with a judge finds them."
"""The last sentence of a verdict by texts alone."""
PADDINGS = {
    "elaborate": "sentences that add demands to the question",
    "neutral": "sentences that add nothing but length",
}
LEVELS_TITLE = "level (1: about 30 tokens, 7: about 2,000)"

LAYOUT = Layout(
    metrics=METRICS,
    question="Does it say the same thing when asked again, and when the prompt grows?",
    name="Consistency (MIRAE)",
    words={
        "padding": "what makes prompts longer",
        "padding=elaborate": "further demands (elaborate)",
        "padding=neutral": "nothing new (neutral)",
    },
    verdict="The texts of repeated answers have a similarity (SBERT cosine) of {}",
    remarks=lambda summary: [*_known_answers(summary), *_not_judged(summary)],
    correct=("right_rate",),
    baseline=Column("chance_floor", "comparing answers to different questions"),
    pictures=(
        Curve(
            title="Pairs of answers with the same meaning, says the judge, by prompt length",
            metric="same_meaning",
            along="level",
            lines="lang",
            x_title=LEVELS_TITLE,
            y_title="pairs of answers with the same meaning",
        ),
        Curve(
            title="Right every time, by prompt length",
            metric="right_every_time",
            along="level",
            lines="lang",
            x_title=LEVELS_TITLE,
            y_title="prompts whose answer is known",
        ),
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
            y_title="how much more alike within a level than across levels (cosine)",
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
                Column("chance_floor", "answers to other questions"),
                Column("corrected_similarity", "corrected"),
            ),
        ),
        Table(
            title="Similarity by domain, published and corrected for chance",
            rows="domain",
            several=True,
            metrics=(
                Column("mean_similarity", "published"),
                Column("chance_floor", "answers to other questions"),
                Column("corrected_similarity", "corrected"),
            ),
        ),
        Table(
            title="The same question in two languages",
            rows="level",
            metrics=tuple(Column(f"across_{a}_{b}", f"{a}–{b}") for a, b in combinations(LANGUAGES, 2)),
        ),
        Table(
            title="Questions whose answer is known",
            rows="level",
            metrics=(
                Column("right_every_time", "right every time"),
                Column("right_sometimes", "sometimes"),
                Column("right_never", "never"),
                Column("right_rate", "right answers"),
            ),
        ),
        Table(
            title="Right k times in a row (pass^k)",
            rows="k",
            total=False,
            metrics=(Column("pass_hat_k", "prompts whose answer is known"),),
        ),
        Table(
            title="Spread over the wordings of a question, and over repeats",
            rows="level",
            metrics=(
                Column("wording_spread", "over wordings"),
                Column("repeat_spread", "over repeats"),
                Column("wording_share", "due to the wording"),
            ),
        ),
        Table(
            title="Right answers over the wordings of a question",
            rows="level",
            metrics=(
                Column("right_worst_wording", "worst"),
                Column("right_mean_wording", "mean"),
                Column("right_best_wording", "best"),
                Column("right_wording_spread", "variance over wordings"),
                Column("right_repeat_spread", "over repeats"),
            ),
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
            title="Tokens of the prompts by language, estimated",
            rows="level",
            metric="prompt_tokens",
            columns="lang",
            several=True,
        ),
        Table(
            title="By what makes the prompts longer",
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
                Column("cut_by_embedder", "longer than the embedder reads"),
                Column("identical_answers", "identical"),
                Column("refusals", "refusals"),
            ),
        ),
    ),
    cautions=(
        "The published cosine does not begin at 0: answers to different questions have one too, "
        "which differs by embedder, language and length. Compare languages by the corrected figure.",
        "An embedder reads only the first part of a long answer (256 tokens for all-MiniLM-L6-v2).",
        "A cosine does not see contradictions: a judge says which answers mean the same.",
    ),
    citation="MIRAE: the consistency of answers as prompts grow, https://github.com/greatgompang/MIRAE",
)


def layout_for(spec: RunSpec, summary: Summary) -> Layout:
    """With a judge, what it says of the meanings leads; of several languages each has a table by domain."""
    by_level, *others = LAYOUT.tables
    langs = values_of(summary, METRICS[0].name, "lang")
    in_each = [
        replace(by_level, title=f"{by_level.title}: {LANGUAGES.get(lang, lang)}", within={"lang": lang})
        for lang in langs[: len(langs) if len(langs) > 1 else 0]
    ]
    layout = replace(LAYOUT, tables=(by_level, *in_each, *others))
    return layout if JUDGED[0].name not in summary else _judged(layout)


def _judged(layout: Layout) -> Layout:
    others = tuple(metric for metric in METRICS if metric is not JUDGED[0])
    return replace(
        layout,
        metrics=(JUDGED[0], *others),
        verdict="{} of the pairs of answers to a prompt mean the same, says the judge",
        baseline=None,
        remarks=_known_answers,
    )


def _known_answers(summary: Summary) -> list[str]:
    """How often questions with a known answer are answered right, in a sentence; none without any."""
    names = ("right_every_time", "right_sometimes", "right_never")
    figures = [summary[name] for name in names if name in summary]
    if len(figures) < len(names) or any(figure.value is None for figure in figures):
        return []
    every, sometimes, never = (number(figure.value or 0.0, "share") for figure in figures)
    lacking = "" if figures[0].coverage == 1 else " and of which no reply is missing"
    prompts = f"{nouns(figures[0].n, 'prompts')} whose answer is known{lacking}"
    return [f"Of {prompts}, {every} were given it every time, {sometimes} sometimes and {never} never."]


def _not_judged(summary: Summary) -> list[str]:
    """That contradictions were not looked for, where answers were compared at all."""
    figures = (figure for figure in summary.values() if figure.metric == METRICS[0].name)
    return [NOT_JUDGED] if any(figure.value is not None for figure in figures) else []


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
    floors = [figure for figure in summary.values() if figure.metric == "chance_floor"]
    if floors and all(floor.value is None for floor in floors):
        facts.append(
            "How alike answers to different questions are is unknown: it takes three answered questions of a "
            "domain."
        )
    paddings = dict.fromkeys(each.scope["padding"] for each in summary.values() if "padding" in each.scope)
    if paddings:
        kinds = "; ".join(f"{PADDINGS.get(name, name)} ({name})" for name in paddings)
        facts.append(f"What makes the longer prompts of this run longer: {kinds}.")
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
                "published figure says little there; read the similarity corrected for chance."
                + ("" if lang == "en" else f" Recommended: --embedder {MULTILINGUAL}.")
            )
    if unread and len(langs) > 1:
        warnings.append("There is no figure over all languages because of it: see each language by itself.")
    return warnings

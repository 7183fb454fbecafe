"""The question set of a seed: the questions of the bank at seven lengths, in the published file format."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from statistics import fmean
from typing import Any

from sealegs.benchmarks.mirae.data import LANGUAGES, TARGETS
from sealegs.benchmarks.mirae.make.texts import (
    PADDINGS,
    Count,
    Padding,
    TextSource,
    bank_text,
    cut_to_levels,
    elaborated,
    neutral,
    question_ids,
)
from sealegs.make.grammar import seeded
from sealegs.text.token_estimate import APPROXIMATE, TokenCounter

GENERATOR = "sealegs-mirae"
VERSION = 8
"""Goes up whenever the code or a bank changes the texts of a seed."""


def compose(
    language: str = "en",
    seed: int = 0,
    counter: TokenCounter = APPROXIMATE,
    questions: Collection[int] | None = None,
    paddings: Sequence[Padding] = PADDINGS,
) -> dict[str, Any]:
    """The question set of a seed, in the published file format; `questions` keeps only those ids.

    Every language has the same texts, cut after the same sentence.
    """
    chosen = [number for number in question_ids() if questions is None or number in questions]
    rows = []
    for padding in paddings:
        for number in chosen:
            bank = bank_text(language, f"{number:02}")
            key = ("mirae", VERSION, seed, number)
            sources = {lang: _source(lang, number, padding, seeded(*key)) for lang in LANGUAGES}
            levels = cut_to_levels(sources, counter.count)[language]
            rows.append(
                row(number, bank.header["domain"], padding, levels, counter.count, expected=bank.expected)
            )
    made_by = {"generator": GENERATOR, "generator_version": VERSION, "seed": seed}
    return question_file(
        rows, language=LANGUAGES[language], asked=len(chosen), counter=counter, made_by=made_by
    )


def _source(lang: str, number: int, padding: Padding, rng: random.Random) -> TextSource:
    text = elaborated(lang, number, rng) if padding == "elaborate" else neutral(lang, rng)
    return TextSource(bank_text(lang, f"{number:02}").header["question"], text)


def question_file(
    rows: list[dict[str, Any]],
    *,
    language: str,
    asked: int,
    counter: TokenCounter,
    made_by: Mapping[str, Any],
) -> dict[str, Any]:
    """Questions in the published file format, with how they came about."""
    ranges = {f"level_{level}": f"~{target} tokens" for level, target in enumerate(TARGETS, start=1)}
    ranges["level_1"] += " (baseline)"
    measured = {
        f"level_{level}": round(fmean(fields[f"level_{level}_tokens"] for fields in rows))
        for level in range(1, len(TARGETS) + 1)
        if rows
    }
    successful = len({fields["question_id"] for fields in rows})
    return {
        "metadata": {
            "research_project": "MIRAE",
            "language": language,
            "total_questions": successful,
            "augmentation_status": {"successful": successful, "total_questions": asked},
            "level_token_ranges": ranges,
            "level_mean_tokens": measured,
            **made_by,
            "token_counter": counter.name,
        },
        "questions": rows,
    }


def row(
    question_id: int,
    domain: str,
    padding: Padding,
    texts: Sequence[str],
    count: Count,
    *,
    expected: Sequence[Sequence[str]] = (),
    wording: int = 0,
) -> dict[str, Any]:
    """One question with its levels in the published format, what surrounds it, which of its wordings it is,
    and the right answer."""
    fields: dict[str, Any] = {"question_id": question_id, "domain": domain, "padding": padding}
    if wording:
        fields["wording"] = wording
    if expected:
        fields["expected"] = [list(part) for part in expected]
    for level, text in enumerate(texts, start=1):
        fields |= {f"level_{level}_text": text, f"level_{level}_tokens": count(text)}
    return fields

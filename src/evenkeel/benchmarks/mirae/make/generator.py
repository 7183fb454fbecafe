"""The question set of a seed: topics of the banks, each at seven lengths, in the published file format."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from evenkeel.benchmarks.mirae.files import TARGETS
from evenkeel.benchmarks.mirae.make.lengths import Count, compose_levels
from evenkeel.benchmarks.mirae.make.phrases import Bank, connectives, topics
from evenkeel.errors import UsageError
from evenkeel.make.grammar import seeded
from evenkeel.text.token_estimate import APPROXIMATE, TokenCounter

GENERATOR = "evenkeel-mirae"
VERSION = 1
"""Goes up whenever the code or a bank changes the texts of a seed."""


def compose(
    language: str = "en",
    seed: int = 0,
    counter: TokenCounter = APPROXIMATE,
    questions: Collection[int] | None = None,
) -> dict[str, Any]:
    """The question set of a seed, in the published file format; `questions` keeps only those ids.

    The random numbers do not depend on the language: with parallel banks, a seed then says much the same
    things in every language, as far as lengths allow.
    """
    phrases = connectives(language)
    rows = []
    for topic in topics(language):
        if questions is not None and topic.id not in questions:
            continue
        rng = seeded(GENERATOR, VERSION, seed, topic.id)
        try:
            texts = compose_levels(topic.question, Bank(phrases, topic), rng, TARGETS, counter.count)
        except UsageError as error:
            raise UsageError(f"Question {topic.id}: {error}") from None
        rows.append(row(topic.id, topic.domain, texts, counter.count))
    made_by = {"generator": GENERATOR, "generator_version": VERSION, "seed": seed}
    return question_file(rows, language=phrases.name, asked=len(rows), counter=counter, made_by=made_by)


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
    return {
        "metadata": {
            "research_project": "MIRAE",
            "language": language,
            "total_questions": len(rows),
            "augmentation_status": {"successful": len(rows), "total_questions": asked},
            "level_token_ranges": ranges,
            **made_by,
            "token_counter": counter.name,
        },
        "questions": rows,
    }


def row(question_id: int, domain: str, texts: Sequence[str], count: Count) -> dict[str, Any]:
    """One question with its levels in the published format."""
    fields: dict[str, Any] = {"question_id": question_id, "domain": domain}
    for level, text in enumerate(texts, start=1):
        fields |= {f"level_{level}_text": text, f"level_{level}_tokens": count(text)}
    return fields

"""The question set of a seed: topics of the banks, each at seven lengths, in the published file format."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any

from evenkeel.benchmarks.mirae.files import TARGETS
from evenkeel.benchmarks.mirae.make.lengths import Composer, Count, Levels
from evenkeel.benchmarks.mirae.make.phrases import (
    PADDINGS,
    Bank,
    Padding,
    connectives,
    generic,
    languages,
    topics,
)
from evenkeel.errors import UsageError
from evenkeel.text.token_estimate import APPROXIMATE, TokenCounter

GENERATOR = "evenkeel-mirae"
VERSION = 3
"""Goes up whenever the code or a bank changes the texts of a seed."""


def compose(
    language: str = "en",
    seed: int = 0,
    counter: TokenCounter = APPROXIMATE,
    questions: Collection[int] | None = None,
    paddings: Sequence[Padding] = tuple(PADDINGS),
) -> dict[str, Any]:
    """The question set of a seed, in the published file format; `questions` keeps only those ids.

    A question is planned once for all languages, whichever of them is asked for. Only lengths that another
    counter gives are fitted in one language alone: few tokenizers count all languages alike.
    """
    name = connectives(language).name
    chosen = [topic for topic in topics(language) if questions is None or topic.id in questions]
    langs = tuple(languages()) if counter is APPROXIMATE else (language,)
    levels = {
        (padding, topic.id): planned_levels(topic.id, padding, seed, langs, counter)
        for topic in chosen
        for padding in paddings
    }
    rows = [
        row(
            topic.id,
            topic.domain,
            padding,
            levels[padding, topic.id].texts[language],
            counter.count,
        )
        for padding in paddings
        for topic in chosen
    ]
    made_by = {"generator": GENERATOR, "generator_version": VERSION, "seed": seed}
    return question_file(rows, language=name, asked=len(chosen), counter=counter, made_by=made_by)


@lru_cache(maxsize=320)
def planned_levels(
    topic_id: int, padding: Padding, seed: int, langs: tuple[str, ...], counter: TokenCounter
) -> Levels:
    """One question of the starter set at every level, in each of the languages."""
    try:
        return _composer(topic_id, langs, counter).levels(
            padding, (GENERATOR, VERSION, seed, topic_id), TARGETS
        )
    except UsageError as error:
        raise UsageError(f"Question {topic_id}: {error}") from None


@lru_cache(maxsize=1)
def _composer(topic_id: int, langs: tuple[str, ...], counter: TokenCounter) -> Composer:
    of_langs = {lang: next(topic for topic in topics(lang) if topic.id == topic_id) for lang in langs}
    banks = {
        lang: Bank(connectives(lang), topic.topic, (topic, generic(lang))) for lang, topic in of_langs.items()
    }
    return Composer({lang: topic.question for lang, topic in of_langs.items()}, banks, counter.count)


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
    successful = len({fields["question_id"] for fields in rows})
    return {
        "metadata": {
            "research_project": "MIRAE",
            "language": language,
            "total_questions": successful,
            "augmentation_status": {"successful": successful, "total_questions": asked},
            "level_token_ranges": ranges,
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
) -> dict[str, Any]:
    """One question with its levels in the published format, and what surrounds it."""
    fields: dict[str, Any] = {"question_id": question_id, "domain": domain, "padding": padding}
    for level, text in enumerate(texts, start=1):
        fields |= {f"level_{level}_text": text, f"level_{level}_tokens": count(text)}
    return fields

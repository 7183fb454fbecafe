"""Language options of the builders: comma-separated codes, checked."""

from __future__ import annotations

from collections.abc import Collection


def parse_languages(codes: str, available: Collection[str]) -> list[str]:
    """The languages of an option such as `en,zh`, each once."""
    languages = list(dict.fromkeys(code.strip() for code in codes.split(",") if code.strip()))
    for lang in languages:
        if lang not in available:
            raise ValueError(f"unknown language '{lang}'; available: {', '.join(available)}")
    return languages

"""Builds a MIRON set from a seed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from sealegs.benchmarks.miron.data import LANGUAGES
from sealegs.benchmarks.miron.make.generator import compose
from sealegs.make.builder import Built, parse_languages
from sealegs.types import Asking, Capability


class BuildOptions(Struct, frozen=True, kw_only=True):
    """Options of building a set."""

    seed: Annotated[int, Meta(description="Another seed gives another set.")] = 0
    per_category: Annotated[
        int, Meta(ge=1, description="Examples of each category, divided evenly among the languages.")
    ] = 1000
    lang: Annotated[str, Meta(description="The languages: en,ru.")] = "en,ru"

    def __post_init__(self) -> None:
        languages = parse_languages(self.lang, LANGUAGES)
        if not languages:
            raise ValueError("--lang: give at least one language")
        if self.per_category < len(languages):
            raise ValueError(f"--per-category {self.per_category}: must be at least 1 for each language")


class MironBuilder:
    """Builds a file for each language."""

    Options = BuildOptions
    asks = False
    roles: Mapping[str, frozenset[Capability]] = {}
    helpers: Mapping[str, str] = {}

    def __init__(self, options: BuildOptions) -> None:
        self.options = options

    def build(self) -> Asking[Built]:
        yield from ()  # no model is asked
        languages, total = parse_languages(self.options.lang, LANGUAGES), self.options.per_category
        files = {}
        for index, lang in enumerate(languages):
            share = total * (index + 1) // len(languages) - total * index // len(languages)
            rows = compose(lang, seed=self.options.seed, per_category=share)
            files[f"miron_{lang}.jsonl"] = msgspec.json.Encoder().encode_lines(rows)
        return Built(files, notes=[], failures=[])

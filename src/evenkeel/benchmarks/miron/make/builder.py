"""Make a MIRON set from a seed."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from evenkeel.benchmarks.miron.files import LANGUAGES
from evenkeel.benchmarks.miron.make.generator import compose
from evenkeel.run.benchmark import Built
from evenkeel.types import Capability, Request, Response


class BuildOptions(Struct, frozen=True, kw_only=True):
    """What can be set about building a set."""

    seed: Annotated[int, Meta(description="Another seed gives another set.")] = 0
    per_category: Annotated[
        int, Meta(ge=1, description="Examples of each category, dealt out evenly to the languages.")
    ] = 1000
    lang: Annotated[str, Meta(description="The languages: en,ru.")] = "en,ru"

    def __post_init__(self) -> None:
        for lang in self.languages:
            if lang not in LANGUAGES:
                raise ValueError(f"there is no language '{lang}'; there is: {', '.join(LANGUAGES)}")
        if not self.languages:
            raise ValueError("--lang: name a language at least")
        if self.per_category < len(self.languages):
            raise ValueError(f"--per-category {self.per_category}: ask for one in each language at least")

    @property
    def languages(self) -> list[str]:
        return list(dict.fromkeys(lang.strip() for lang in self.lang.split(",") if lang.strip()))


class MironBuilder:
    """Makes a file for each language."""

    Options = BuildOptions
    folder = True
    roles: Mapping[str, frozenset[Capability]] = {}
    helpers: Mapping[str, str] = {}

    def __init__(self, options: BuildOptions) -> None:
        self.options = options

    def build(self) -> Generator[Sequence[Request], Sequence[Response], Built]:
        yield from ()  # no model is asked
        langs, total = self.options.languages, self.options.per_category
        files = {}
        for number, lang in enumerate(langs):
            share = total * (number + 1) // len(langs) - total * number // len(langs)
            rows = compose(lang, seed=self.options.seed, per_category=share)
            files[f"miron_{lang}.jsonl"] = b"".join(msgspec.json.encode(row) + b"\n" for row in rows)
        return Built(files, notes=[], failures=[])

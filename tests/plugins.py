"""A benchmark and a backend of someone else's, as small as they can be."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
from msgspec import Struct

from sealegs.harness import registry
from sealegs.harness.benchmark import Benchmark
from sealegs.harness.data import Data
from sealegs.models.registry import BACKENDS, Backend
from sealegs.types import Generate, Request, Response, Sample, Sampling

RULES: dict[str, Callable[[str], str]] = {
    "m": lambda prompt: "" if prompt == "empty" else prompt,
    "judge": lambda prompt: prompt,
    "loud": str.upper,
    "quiet": lambda prompt: prompt if int(prompt.removeprefix("word")) % 2 else "what?",
}


class Rule:
    """`rule:NAME` answers by a rule above."""

    class Options(Struct, frozen=True, kw_only=True):
        pass

    capabilities = frozenset({"generate"})
    asked: ClassVar[list[Request]] = []

    def __init__(self, name: str, options: Options) -> None:
        self.name = name

    def identity(self) -> dict[str, Any]:
        return {"spec": f"rule:{self.name}"}

    def probe(self, needs: frozenset[str]) -> None: ...

    def answer(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Response]]:
        for request in requests:
            self.asked.append(request)
            assert isinstance(request, Generate)
            yield request, Response(status="ok", text=RULES[self.name](str(request.prompt)))

    def close(self) -> None: ...


class Words(Benchmark):
    """A sample for each word of the data; a subclass says how answers are scored."""

    roles = {"model": {"generate"}}

    def samples(self, data: Data) -> list[Sample]:
        return [
            Sample(
                id=row.name, group=row.name, tags={"lang": str(row.fields["lang"])}, inputs=dict(row.fields)
            )
            for row in data.rows()
        ]

    def requests(self, sample: Sample) -> Sequence[Request]:
        return [Generate(prompt=sample.inputs["word"], sampling=Sampling(max_tokens=4))]


def install(monkeypatch: pytest.MonkeyPatch, **benchmarks: type[Benchmark]) -> None:
    """Have the backend and these benchmarks be known by their names."""
    for name, cls in benchmarks.items():
        monkeypatch.setitem(registry._LOADED, name, cls)
    monkeypatch.setitem(BACKENDS, "rule", Backend("plugins:Rule", True, "answers by a rule"))
    Rule.asked.clear()


def install_package(folder: Path, name: str, modules: Mapping[str, str], entry_points: str) -> None:
    """Put a package where pip would."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entry_points)
    for file, content in modules.items():
        (folder / file).write_text(content)


def write_words(path: Path, words: Iterable[tuple[str, str]]) -> Path:
    """Words with their languages."""
    path.write_text("".join(json.dumps({"word": word, "lang": lang}) + "\n" for word, lang in words))
    return path

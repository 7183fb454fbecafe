"""What a builder is, what it gives back, and the language option that builders share."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from typing import ClassVar, Protocol, runtime_checkable

from msgspec import Struct

from sealegs.files.datasets import DataFile
from sealegs.page.grid import Displayed
from sealegs.types import Asking, Capability


class Built(Displayed, Struct, frozen=True):
    """A data set that was made: its files, notes on them, and what failed."""

    files: Mapping[str, bytes]
    """By name."""
    notes: list[str]
    failures: list[str]


class Builder(Protocol):
    """Makes a benchmark's data set. Like scoring, it yields requests where it needs a model."""

    Options: ClassVar[type[Struct]]
    asks: ClassVar[bool]
    """Whether it may ask a model."""

    @property
    def roles(self) -> Mapping[str, Set[Capability]]: ...

    @property
    def helpers(self) -> Mapping[str, str]: ...

    def build(self) -> Asking[Built]: ...


@runtime_checkable
class FindsFaults(Protocol):
    """A builder that sees what is wrong with a set that can be read: after a person has edited it."""

    @staticmethod
    def faults(files: Sequence[DataFile]) -> Iterable[str]: ...


def parse_languages(codes: str, available: Collection[str]) -> list[str]:
    """The languages of an option such as `en,zh`, each once."""
    languages = list(dict.fromkeys(code.strip() for code in codes.split(",") if code.strip()))
    for lang in languages:
        if lang not in available:
            raise ValueError(f"unknown language '{lang}'; available: {', '.join(available)}")
    return languages

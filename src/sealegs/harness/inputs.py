"""What a sample asks, said by its inputs: in a row of a table, to other projects, and to pair two runs."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence, Set
from typing import Any, ClassVar, NamedTuple

import msgspec
from msgspec import Struct

from sealegs.files.jsonfile import strings_in
from sealegs.types import Tag


class RowText(NamedTuple):
    """A sample in a row of a table."""

    question: str
    expected: str = ""
    """The expected answer, where there is one."""
    setting: str = ""
    """What distinguishes it from other samples with the same question, in words."""


class Inputs(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base class of a benchmark's inputs, for `Benchmark[MyInputs, MyDetail]`. All of it has a default."""

    not_asked: ClassVar[Set[str]] = frozenset()
    """Fields that do not change what is asked: what a recorded file says of the answer, say."""

    def row(self, tags: Mapping[str, Tag]) -> RowText:
        """The sample in a row of a table. Default: its first text."""
        return RowText(_first_text(msgspec.to_builtins(self)))

    def targets(self) -> Sequence[str]:
        """The texts that are right, for the formats of other projects."""
        return ()

    def fingerprint(self) -> Any:
        """What it asks, made short: two runs are paired by samples with equal ones. Default: a digest."""
        fields = msgspec.to_builtins(self)
        return _digest({name: value for name, value in fields.items() if name not in self.not_asked})


def row_text(inputs: Any, tags: Mapping[str, Tag]) -> RowText:
    """A sample in a row of a table, whatever its inputs are."""
    row = inputs.row(tags) if isinstance(inputs, Inputs) else RowText("")
    return row if row.question else row._replace(question=_first_text(msgspec.to_builtins(inputs)))


def fingerprint(inputs: Any) -> Any:
    """What a sample asks, made short, whatever its inputs are."""
    return inputs.fingerprint() if isinstance(inputs, Inputs) else _digest(msgspec.to_builtins(inputs))


def _digest(fields: Any) -> bytes:
    return hashlib.sha256(msgspec.json.encode(fields, order="deterministic")).digest()


def _first_text(inputs: Any) -> str:
    """The first text that is more than a code; where all are single words, the first of them."""
    texts = strings_in(inputs)
    return next((text for text in texts if not _is_code(text)), texts[0] if texts else "")


def _is_code(text: str) -> bool:
    """Whether a text is one word, as the name of a language or a setting is."""
    return text.isascii() and not any(map(str.isspace, text.strip()))

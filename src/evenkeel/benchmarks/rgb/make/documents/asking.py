"""What a model is asked while a set is made, in which words, and what became of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from evenkeel.benchmarks.rgb.files import Lang
from evenkeel.run import judge
from evenkeel.text.prompts import fill
from evenkeel.types import Message, Request, Response, Status

T = TypeVar("T")
Kind = TypeVar("Kind", bound=Struct)
Asking: TypeAlias = Generator[Sequence[Request], Sequence[Response], T]

OF_PASSAGE = 1024
"""Tokens of a rewritten passage, with room for a language that takes many."""
WHY: dict[Status, str] = {"refused": "refused", "error": "failed"}


class Wording(Struct, frozen=True, forbid_unknown_fields=True):
    """The words of one language; places to fill stand in braces."""

    question: str
    read: str
    rewrite: str
    manners: tuple[str, ...]
    """Ways to tell a passage anew, so that each rewriting is another."""
    join: str
    fake: str
    twin: str
    of_passage: tuple[str, ...]
    """A question that says this cannot be asked without its passage."""


@cache
def wordings() -> dict[str, Wording]:
    content = resources.files("evenkeel.benchmarks.rgb.make.documents").joinpath("prompts.json").read_bytes()
    return msgspec.json.decode(content, type=dict[str, Wording])


class Tally:
    """At each step: how many were kept, and how many dropped for which reason."""

    def __init__(self) -> None:
        self._kept: Counter[str] = Counter()
        self._dropped: dict[str, Counter[str]] = {}

    def keep(self, step: str) -> None:
        self._dropped.setdefault(step, Counter())
        self._kept[step] += 1

    def drop(self, step: str, why: str) -> None:
        self._dropped.setdefault(step, Counter())[why] += 1

    def note(self, step: str, status: Status) -> None:
        """Count how a request ended: kept, or dropped as refused, failed or unreadable."""
        if status in ("ok", "truncated"):
            self.keep(step)
        else:
            self.drop(step, WHY.get(status, status))

    @property
    def failed(self) -> int:
        """Requests that got no answer: the next build asks them again."""
        return sum(reasons[WHY["error"]] for reasons in self._dropped.values())

    def notes(self) -> list[str]:
        """A line for each step."""
        return [self._note(step, reasons) for step, reasons in self._dropped.items()]

    def _note(self, step: str, reasons: Counter[str]) -> str:
        kept = self._kept[step]
        told = "; ".join(f"{count} dropped: {why}" for why, count in reasons.items())
        return f"{step}: {kept} of {kept + reasons.total()}{f' ({told})' if told else ''}"


class Author:
    """The model that writes a set, asked in one language."""

    def __init__(self, lang: Lang) -> None:
        self.lang: Lang = lang
        self.wording = wordings()[lang]
        self.tally = Tally()

    def ask(
        self,
        kind: type[Kind],
        step: str,
        template: str,
        places: Sequence[Mapping[str, str]],
        *,
        max_tokens: int = judge.MAX_TOKENS,
    ) -> Asking[list[Kind | None]]:
        """For each filling of the template what the model wrote; None, and counted, where it did not."""
        questions = [(Message("user", fill(template, **values)),) for values in places]
        verdicts = yield from judge.ask(kind, questions, role="model", max_tokens=max_tokens)
        for verdict in verdicts:
            if verdict.value is None:
                self.tally.note(step, verdict.status)
        return [verdict.value for verdict in verdicts]

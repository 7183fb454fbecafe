"""How a run's answers ended, and what to do where many of them are cut off or empty."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import chain, repeat
from typing import NamedTuple

from evenkeel.page.layout import Note
from evenkeel.run.answers import ESTIMATED_LENGTH, IN_REASONING, is_blank
from evenkeel.run.folder import Run
from evenkeel.types import Record, Response, RunSpec

MANY = 0.05
"""The share of requests from which a warning is due."""


class Endings(NamedTuple):
    """How many of the texts that a model was asked for ended in which way."""

    asked: int
    reasoning: int
    """Cut off at the token limit while the model was still reasoning."""
    before_text: int
    """Cut off at the token limit before any text."""
    empty: int
    """Ended by the model itself with nothing in them, or with nothing but reasoning."""
    cut: int
    """Cut off at the token limit, and scored as far as they go."""
    estimated: int
    """Written to an estimated length, for the server does not count tokens."""


def endings(records: Iterable[Record]) -> Endings:
    kinds: Counter[str] = Counter()
    for record in records:
        for answer, part in zip(record.answers, chain(record.score.parts, repeat("")), strict=False):
            if part != "weighed":
                kinds["asked"] += 1
                kinds[_kind(answer, record.score.statuses)] += 1
    return Endings(*(kinds[name] for name in Endings._fields))


def _kind(answer: Response, scored: dict[str, int]) -> str:
    """What a text is counted under. What a stop rule takes for whole, though it was cut, is not cut off."""
    blank = is_blank(answer.text)
    match answer.status:
        case "truncated" if blank:
            return "reasoning" if answer.reasoning or IN_REASONING in answer.reason else "before_text"
        case "truncated" if scored.get("truncated"):
            return "cut"
        case "ok" | "unparsed" if blank and scored.get("unparsed"):
            return "empty"
        case "ok" if answer.reason == ESTIMATED_LENGTH:
            return "estimated"
        case _:
            return "other"


def ending_notes(run: Run) -> list[Note]:
    """Warnings for the terminal and the page: how many answers are missing or cut off, and what to do."""
    if "model" not in run.spec.models:
        return []
    found = endings(run.records())
    missing = found.reasoning + found.before_text + found.empty
    notes = []
    if missing > MANY * found.asked:
        parts = {
            "cut off inside the reasoning": found.reasoning,
            "cut off before any text": found.before_text,
            "empty": found.empty,
        }
        listed = ", ".join(f"{count:,} {how}" for how, count in parts.items() if count)
        text = f"{missing:,} of {found.asked:,} requests brought no answer: {listed}. They are not scored."
        notes.append(Note(f"{text} {_advice(run.spec, reasons=True)}".rstrip(), warning=True))
    if found.cut > MANY * found.asked:
        text = f"{found.cut:,} of {found.asked:,} answers were cut off, and are scored as far as they go."
        notes.append(Note(f"{text} {_advice(run.spec, reasons=False)}".rstrip(), warning=True))
    if found.estimated:
        text = (
            f"{found.estimated:,} of {found.asked:,} continuations have an estimated length: the server "
            "gives neither log-probabilities of these texts nor a count of their tokens."
        )
        notes.append(Note(text, warning=True))
    return notes


def _advice(spec: RunSpec, *, reasons: bool) -> str:
    """What to do about it, in the options that this run has."""
    limit = spec.options.get("max_tokens")
    ways = [f"a larger --max-tokens (here {limit})"] if limit else []
    if reasons and str(spec.models["model"]["spec"]).startswith("openai:"):
        ways.append("""less reasoning (--model-arg extra_body='{"reasoning_effort":"low"}')""")
    return f"Try {' or '.join(ways)}." if ways and not _recorded(spec) else ""


def _recorded(spec: RunSpec) -> bool:
    return bool(spec.data.get("source") == "recorded")

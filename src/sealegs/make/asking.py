"""A step of a build that asks a model: ask, read, check, count what cannot be used.

Like scoring, the functions here are generators that yield requests and are sent their responses.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from msgspec import Struct

from sealegs.text import judge
from sealegs.types import Asking as Asking
from sealegs.types import Message

Item = TypeVar("Item")
Key = TypeVar("Key", bound=Hashable)
Fields = TypeVar("Fields", bound=Struct)


class StepTally(defaultdict[str, Counter[str]]):
    """By step: how many items came out `ok`, and how many were dropped for which reason."""

    def __init__(self) -> None:
        super().__init__(Counter)

    def passes(self, step: str, fault: str) -> bool:
        """Whether an item has no fault; one that has is counted under it."""
        if fault:
            self[step][fault] += 1
        return not fault

    def accept(self, step: str, fault: str = "") -> bool:
        """Whether an item has no fault; it is counted under its fault, or else as `ok`."""
        self[step][fault or "ok"] += 1
        return not fault

    @property
    def failed(self) -> int:
        """Requests that got no answer: the next build asks them again."""
        return sum(
            number
            for counts in self.values()
            for reason, number in counts.items()
            if reason.endswith("error")  # also that of a rating or an ordering
        )

    def notes(self) -> list[str]:
        """A line for each step that did anything."""
        lines = []
        for step, counts in self.items():
            dropped = "; ".join(f"{n} dropped: {reason}" for reason, n in counts.items() if reason != "ok")
            if counts:
                lines.append(
                    f"{step}: {counts['ok']} of {counts.total()}{f' ({dropped})' if dropped else ''}"
                )
        return lines


def ask(
    kind: type[Fields],
    prompts: Sequence[tuple[Item, Sequence[Message]]],
    counts: Counter[str],
    *,
    choices: Sequence[judge.Choices] = (),
    role: str = "model",
    max_tokens: int = judge.MAX_TOKENS,
) -> Asking[list[tuple[Item, judge.JudgeVerdict[Fields]]]]:
    """Every item with what the model answered to its prompt, read under the fields of `kind`.

    `choices` are those of each prompt, if any. An answer that is missing or cannot be read is counted under
    its status.
    """
    items = [item for item, _ in prompts]
    verdicts = yield from judge.ask(
        kind, [prompt for _, prompt in prompts], choices=choices, role=role, max_tokens=max_tokens
    )
    counts.update(verdict.status for verdict in verdicts if verdict.value is None)
    return list(zip(items, verdicts, strict=True))


class Draft(NamedTuple):
    """A text that a model wrote, and why it cannot be used, if so."""

    text: str
    fault: str


def ask_until_usable(
    items: Sequence[Key], attempt: Callable[[Mapping[Key, str], int], Asking[list[Draft]]], tries: int
) -> Asking[tuple[dict[Key, str], dict[Key, str]]]:
    """The texts that could be used, and the last fault of each item that has none after so many tries.

    `attempt(faults, number)` asks for a draft of each item, given what was wrong with the one before; what is
    at fault is asked for again.
    """
    texts: dict[Key, str] = {}
    faults = dict.fromkeys(items, "")
    for number in range(tries):
        pending = dict(faults)
        drafts = yield from attempt(pending, number)
        for item, draft in zip(pending, drafts, strict=True):
            if draft.fault:
                faults[item] = draft.fault
            else:
                texts[item] = draft.text
                del faults[item]
        if not faults:
            break
    return texts, faults

"""A server on loopback that plays a model whose behaviour is known, because a rule decides every reply.

    with KnownModel(rule) as server:
        run = api.run("rgb", model="openai:known", base_url=server.url, ...)

The rule is given the prompt and how often that prompt was answered before, so that a prompt that is asked
five times can get five replies that differ as the rule wants.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import TypeAlias, TypeVar

from scripted import Scripted

Rule: TypeAlias = Callable[[str, int], str]
Item = TypeVar("Item")


class KnownModel(Scripted):
    """Plays one model; texts to embed get the vectors of every loopback server."""

    def __init__(self, rule: Rule) -> None:
        super().__init__(lambda prompt: rule(prompt, self.answered[prompt] - 1))


def in_chance_order(items: Sequence[Item], name: Callable[[Item], str]) -> list[Item]:
    """The same order on every machine, which nothing in the data explains."""
    return sorted(items, key=lambda item: sha256(name(item).encode()).digest())


def share_of(items: Sequence[Item], share: float) -> tuple[Sequence[Item], Sequence[Item]]:
    """As many items as the share says, to the nearest one, and the rest."""
    number = round(share * len(items))
    return items[:number], items[number:]

"""A server on loopback that plays a model whose behaviour is known, because a rule decides every reply.

    with KnownModel(rule) as server:
        run = api.run("rgb", model="openai:known", base_url=server.url, ...)

The rule is given the prompt and how often that prompt was answered before, so that a prompt that is asked
five times can get five replies that differ as the rule wants.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any, Self, TypeAlias, TypeVar

import msgspec

from loopback import Loopback

Rule: TypeAlias = Callable[[str, int], str]
CUT_OFF = "\N{HORIZONTAL ELLIPSIS}"
"""A reply that ends so is cut off at the token limit."""
Item = TypeVar("Item")


class KnownModel(Loopback):
    """Plays one model; texts to embed get the vectors of every loopback server."""

    def __init__(self, rule: Rule, **behaviour: Any) -> None:
        super().__init__(**behaviour)
        self.rule = rule

    def __enter__(self) -> Self:
        super().__enter__()
        return self

    def _answer(self, path: str, body: Any, key: str) -> bytes:
        if path not in ("/v1/chat/completions", "/v1/completions") or body.echo:
            return super()._answer(path, body, key)
        prompt = "\n".join(turn.content for turn in body.messages) or body.prompt
        text = self.rule(prompt, self.answered[prompt])
        self.answered[prompt] += 1
        finish = "length" if text.endswith(CUT_OFF) else "stop"
        choice: dict[str, Any] = {"index": 0, "finish_reason": finish}
        choice |= {"message": {"role": "assistant", "content": text}} if body.messages else {"text": text}
        return msgspec.json.encode({"model": "known", "choices": [choice]})


def in_chance_order(items: Sequence[Item], name: Callable[[Item], str]) -> list[Item]:
    """The same order on every machine, which nothing in the data explains."""
    return sorted(items, key=lambda item: sha256(name(item).encode()).digest())


def share_of(items: Sequence[Item], share: float) -> tuple[Sequence[Item], Sequence[Item]]:
    """As many items as the share says, to the nearest one, and the rest."""
    number = round(share * len(items))
    return items[:number], items[number:]

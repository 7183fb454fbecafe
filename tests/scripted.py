"""A server whose answers follow a rule, for tests of whole runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import msgspec

from loopback import Loopback


class Scripted(Loopback):
    """`Scripted(lambda prompt: "yes")`; the messages of a chat are put to the rule as one text."""

    def __init__(self, rule: Callable[[str], str], **behaviour: Any) -> None:
        super().__init__(**behaviour)
        self.rule = rule

    def __enter__(self) -> Self:
        super().__enter__()
        return self

    def _answer(self, path: str, body: Any, key: str) -> bytes:
        if path != "/v1/chat/completions":
            return super()._answer(path, body, key)
        prompt = "\n".join(turn.content for turn in body.messages)
        self.answered[prompt] += 1
        message = {"role": "assistant", "content": self.rule(prompt)}
        choice = {"message": message, "finish_reason": "stop"}
        return msgspec.json.encode({"model": "loop", "choices": [choice]})

"""A server whose answers follow a rule, for tests of whole runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from loopback import Loopback


class Scripted(Loopback):
    """`Scripted(lambda prompt: "yes")`; the messages of a chat are put to the rule as one text. `answered`
    counts a prompt before the rule is asked.

    An answer that ends with `…` is cut off at the token limit. A rule may also give a whole choice.
    """

    def __init__(self, rule: Callable[[str], str | dict[str, Any]], **behaviour: Any) -> None:
        super().__init__(**behaviour)
        self.rule = rule

    def _answer(self, path: str, body: Any, key: str) -> bytes:
        if path not in ("/v1/chat/completions", "/v1/completions") or body.echo:
            return super()._answer(path, body, key)
        prompt = "\n".join(turn.content for turn in body.messages) or body.prompt
        self.answered[prompt] += 1
        choice = self.rule(prompt)
        if isinstance(choice, str):
            message = {"message": {"role": "assistant", "content": choice}}
            finish = "length" if choice.endswith("…") else "stop"
            choice = {"finish_reason": finish, **(message if body.messages else {"text": choice})}
        return msgspec.json.encode({"model": "loop", "choices": [choice]})

"""For tests of whole runs: a server whose answers follow a rule, and the command line in this process."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Self

import msgspec
import pytest

from evenkeel.cli import main
from loopback import Loopback


def called(monkeypatch: pytest.MonkeyPatch, *args: object) -> int:
    """The exit code of the command line, without the cost of another process."""
    monkeypatch.setattr(sys, "argv", ["evenkeel", *map(str, args)])
    with pytest.raises(SystemExit) as left:
        main()
    return int(left.value.code or 0)


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
        return msgspec.json.encode({"choices": [{"message": message, "finish_reason": "stop"}]})

"""A backend for tests of engines: `scripted` answers by a rule, and fails where the prompt says so."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar

from msgspec import Struct

from sealegs.types import Capability, Generate, Request, Response


class Scripted:
    """Answers by a rule."""

    class Options(Struct, frozen=True, kw_only=True):
        shout: bool = False

    named = False
    capabilities: ClassVar[frozenset[Capability]] = frozenset({"generate"})

    def __init__(self, options: Options) -> None:
        self._options = options

    def identity(self) -> dict[str, Any]:
        return {"spec": "scripted", "shout": self._options.shout}

    def probe(self, needs: frozenset[Capability]) -> None:
        pass

    def answer(self, requests: Iterable[Request]) -> Iterator[tuple[Request, Response]]:
        for request in requests:
            assert isinstance(request, Generate)
            prompt = request.prompt if isinstance(request.prompt, str) else request.prompt[-1].content
            if "[die]" in prompt:
                os.kill(os.getpid(), signal.SIGKILL)
            if (once := re.search(r"\[die once (.+)\]", prompt)) and not Path(once[1]).exists():
                Path(once[1]).touch()
                os.kill(os.getpid(), signal.SIGKILL)
            if "[raise]" in prompt:
                raise ValueError("a row that no model can read")
            text = f"{prompt[::-1]} {request.repeat}"
            yield request, Response(status="ok", text=text.upper() if self._options.shout else text)

    def close(self) -> None:
        pass

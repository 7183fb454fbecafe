"""Constrained decoding: texts that follow a JSON schema by construction.

Before each token, every token is ruled out after which the text could no longer become JSON of the schema.
llguidance computes which; it has no dependencies, and its masks cost about a hundredth of a step of the
smallest model on a CPU.
"""

from __future__ import annotations

import importlib.util
from functools import cache
from typing import TYPE_CHECKING, Any

from sealegs.models.reasoning import closes_reasoning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy as np
    from numpy.typing import NDArray

SEPARATORS = {"item_separator": ", ", "key_separator": ": ", "whitespace_flexible": False}
"""As most JSON in a model's training data is written. Free white space would let a model write only that."""


class Grammars:
    """The schemas that one model was asked to follow, compiled once each."""

    def __init__(self, tokenizer: Any, width: int, end_ids: Iterable[int]) -> None:
        self.problems: list[str] = []
        """Why texts were generated without a constraint."""
        self._compiled = cache(self._compile)
        self._tokens: Any = None
        if importlib.util.find_spec("llguidance") is None:
            self._refuse("the package llguidance is not installed (pip install llguidance)")
            return
        from llguidance.hf import from_tokenizer

        ends = sorted(end_ids)
        try:
            self._tokens = from_tokenizer(
                tokenizer, n_vocab=max(width, len(tokenizer)), eos_token=ends or None
            )
        except (ValueError, RuntimeError) as error:
            self._refuse(f"llguidance cannot use the model's tokenizer: {_first_line(str(error))}")

    def constraint(self, schema: str, *, thinking: bool = False) -> Constraint | None:
        """What keeps one text to a schema; None where that cannot be done, which `problems` explains."""
        matcher = self._compiled(schema) if schema and self._tokens is not None else None
        return None if matcher is None else Constraint(matcher.deep_copy(), self._refuse, thinking=thinking)

    def _compile(self, schema: str) -> Any:
        from llguidance import LLMatcher

        try:
            grammar = LLMatcher.grammar_from_json_schema(schema, overrides=SEPARATORS)
        except ValueError as error:
            self._refuse(f"llguidance cannot read the schema: {_first_line(str(error))}")
            return None
        matcher = LLMatcher(self._tokens, grammar, log_level=0)
        if matcher.is_error():
            self._refuse(f"llguidance cannot follow the schema: {_first_line(matcher.get_error())}")
            return None
        return matcher

    def _refuse(self, problem: str) -> None:
        self.problems.append(f"JSON answers did not have to follow their schema: {problem}.")


class Constraint:
    """Keeps one row to its schema while its text grows: from the start, or from the end of its reasoning."""

    def __init__(self, matcher: Any, refuse: Callable[[str], None], *, thinking: bool) -> None:
        self.thinking = thinking
        self._matcher = matcher
        self._refuse = refuse

    @property
    def complete(self) -> bool:
        """Whether nothing can follow but the end."""
        return bool(self._matcher.is_stopped() and not self._matcher.is_error())

    def allowed(self, width: int) -> NDArray[np.bool_]:
        """Which of the first `width` tokens may come next."""
        import numpy as np

        if self.thinking or self._matcher.is_error():
            return np.ones(width, dtype=bool)
        bits = np.frombuffer(self._matcher.compute_bitmask(), dtype=np.uint8)
        allowed = np.unpackbits(bits, bitorder="little")[:width].astype(bool)
        return np.pad(allowed, (0, width - len(allowed)))

    def add(self, token: int, recent: str) -> None:
        """Take note of a token; `recent` is the text that it ends."""
        if self.thinking:
            self.thinking = not closes_reasoning(recent)
        elif not self._matcher.is_error():
            self._matcher.consume_token(token)
            if self._matcher.is_error():
                self._refuse(f"llguidance took no further token: {_first_line(self._matcher.get_error())}")


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0].rstrip(".")

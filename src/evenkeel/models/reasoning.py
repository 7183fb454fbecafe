"""What a model thought aloud, told apart from what it answered."""

from __future__ import annotations

OPEN, CLOSE = "<think>", "</think>"


def without_thought(content: str) -> tuple[str, str, bool]:
    """The text without its leading thought, the thought, and whether the thought ended."""
    opened = content.lstrip().startswith(OPEN)
    # Some chat templates open the thought inside the prompt, so that only its end is in the reply.
    implied = OPEN not in content and content.count(CLOSE) == 1
    if not opened and not implied:
        return content, "", True
    thought, end, text = content.partition(CLOSE)
    return text.lstrip(), thought.strip().removeprefix(OPEN).strip(), bool(end)

"""Prompt templates: texts with slots in capitals, such as `{QUERY}` and `{DOCS}`, kept in data files."""

from __future__ import annotations

import re

from sealegs.types import Message


def fill(template: str, **values: str) -> str:
    """A template with its slots filled in one pass; braces in a value and unknown slots stay as they are."""
    return re.sub(r"\{([A-Z_]+)\}", lambda slot: values.get(slot[1], slot[0]), template)


def user_prompt(template: str, **values: str) -> tuple[Message, ...]:
    """A filled template as the one message of a user."""
    return (Message("user", fill(template, **values)),)

"""What counts as an answer: one rule for all benchmarks, with what each of them declares."""

from __future__ import annotations

import re
import string
import unicodedata
from typing import NamedTuple

from sealegs.types import Generate, Request, Response, Status

EMPTY = "empty answer"
"""Why a text that ended by itself is `unparsed`: there is nothing in it to score."""
IN_REASONING, BEFORE_TEXT = "inside the reasoning", "before any text"
"""Where an answer was cut off that has no text."""
NOT_CLOSED, AFTER_REASONING = "reasoning block not closed", f"{EMPTY} after the reasoning"
"""Why a reply of reasoning alone that was not cut off is `unparsed`."""


class Rule(NamedTuple):
    """Which texts a benchmark takes for answers. One that says nothing is an answer only where declared."""

    truncated: bool
    """A text that was cut off counts, as far as it goes."""
    empty: bool = False
    """A text that ended by itself counts even if nothing is in it: the continuation of a plain text may be
    empty, the answer to a question may not."""

    def counts(self, response: Response) -> bool:
        """Whether a response is an answer. A text that was cut off before it began never is."""
        match response.status:
            case "ok":
                return self.empty or not is_blank(response.text)
            case "truncated":
                return self.truncated and not (response.text == "" if self.empty else is_blank(response.text))
            case _:
                return False

    def status(self, response: Response) -> Status:
        """How a response ended: a text without content is `unparsed`, whatever the model called its end."""
        return "unparsed" if response.status == "ok" and not self.counts(response) else response.status

    def failure(self, response: Response) -> list[str]:
        """What a run's list of failures lacks: why a response that calls itself `ok` is no answer."""
        return [f"unparsed: {EMPTY}"] if self.status(response) != response.status else []


def rule_for(request: Request) -> Rule:
    """Which texts answer a request, whatever the benchmark: a plain text may be continued by nothing."""
    return Rule(truncated=True, empty=isinstance(request, Generate) and isinstance(request.prompt, str))


def ending(status: Status, text: str, reasoning: str, *, closed: bool, cut: str) -> tuple[Status, str]:
    """How a chat's answer ended, and why it is not ok: nothing written, or nothing but reasoning, is none."""
    if status == "truncated":
        if not is_blank(text):
            return status, cut
        return status, f"{cut} {IN_REASONING if reasoning or not closed else BEFORE_TEXT}"
    if not closed:
        return "unparsed", NOT_CLOSED
    if is_blank(text):
        return "unparsed", AFTER_REASONING if reasoning else EMPTY
    return status, ""


def is_reasoning_only(response: Response) -> bool:
    """Whether a reply has reasoning and no answer, however it ended."""
    return any(words in response.reason for words in (IN_REASONING, NOT_CLOSED, AFTER_REASONING))


# Texts that show nothing

_SPECIAL = re.compile(r"<\|[a-z_0-9]{1,30}\|>|</?(?:s|bos|eos|pad|unk|end_of_turn|answer)>", re.IGNORECASE)
"""Tokens that frame an answer, which some servers leave in its text."""
_SEEN = frozenset(string.ascii_letters + string.digits)
_UNSEEN = {"\u2800", "\u3164", "\u115f", "\u1160", "\uffa0"}
"""Letters by their category that have no shape: a Braille pattern without dots, fillers of Hangul."""


def is_blank(text: str) -> bool:
    """Whether a text shows nothing: only spaces, line breaks, unseen characters and tokens that frame it."""
    if text.lstrip()[:1] in _SEEN:  # as nearly all texts begin; no token that frames one does
        return False
    return all(map(_is_unseen, _SPECIAL.sub("", text)))


def _is_unseen(letter: str) -> bool:
    unseen = letter.isspace() or letter in _UNSEEN or "\ufe00" <= letter <= "\ufe0f"
    return unseen or unicodedata.category(letter) in ("Cc", "Cf")

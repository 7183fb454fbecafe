"""What counts as an answer: one rule for all benchmarks, with what each of them declares."""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Iterator
from functools import cache
from typing import Literal, NamedTuple, TypeAlias

from msgspec import Struct

from evenkeel.files.package_data import read_json
from evenkeel.text.token_estimate import estimate_tokens
from evenkeel.text.word_splitting import normalized
from evenkeel.types import Response, Status

EMPTY = "empty answer"
"""Why a text that ended by itself is `unparsed`: there is nothing in it to score."""
IN_REASONING, BEFORE_TEXT = "inside the reasoning", "before any text"
"""Where an answer was cut off that has no text."""
ESTIMATED_LENGTH = "length estimated"
"""Said of a text that was to have as many tokens as another, where the server does not count them."""


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


def ending(status: Status, text: str, reasoning: str, *, closed: bool, cut: str) -> tuple[Status, str]:
    """How a chat's answer ended, and why it is not ok: nothing written, or nothing but reasoning, is none."""
    if status == "truncated":
        if not is_blank(text):
            return status, cut
        return status, f"{cut} {IN_REASONING if reasoning or not closed else BEFORE_TEXT}"
    if not closed:
        return "unparsed", "reasoning block not closed"
    if is_blank(text):
        return "unparsed", f"{EMPTY} after the reasoning" if reasoning else EMPTY
    return status, ""


# Refusals and disclaimers

OPENING_CHARACTERS = 1_500
"""Characters of an answer that are read for what it begins with."""
ANSWERING = 40
"""Tokens after words that decline from which an answer is given all the same: fewer give a reason."""
LISTED = 60
"""The same for a list that comes after an offer: a shorter one lists what is offered."""

Kind: TypeAlias = Literal["declines", "disclaims", "offers", "content"]
Opening: TypeAlias = Literal["answer", "disclaimer", "refusal"]


class Wording(Struct, frozen=True):
    """A language's patterns, for one part of a sentence each; a part is lower-cased and in form NFKC."""

    lead: tuple[str, ...]
    """What is said before the matter: an apology, thanks."""
    declines: tuple[str, ...]
    """`I cannot help with that`"""
    disclaims: tuple[str, ...]
    """What the speaker is not or has not: `As an AI, I have no opinions`"""
    negations: tuple[str, ...]
    """What else a speaker denies of itself, which counts after one of the two above."""
    offers: tuple[str, ...]
    """Something else instead: `If you like, I can …`"""
    contrast: tuple[str, ...]
    """What begins a sentence that answers nevertheless: `However`"""
    split: tuple[str, ...]
    """The same within a sentence: `, but`"""
    concession: tuple[str, ...]
    """`Although A, B` with both as groups."""


class Part(NamedTuple):
    """A part of a sentence."""

    kind: Kind
    tokens: int
    contrasted: bool
    listed: bool


def opening_of(text: str, lang: str) -> Opening:
    """What an answer begins with, by the patterns of its language and of English, in which models fall back.

    What follows words that decline is an answer where a contrast introduces it (`but`), or from so many
    tokens on; after a mere disclaimer any statement is. Offers, and questions back, are none.
    """
    parts = _parts(text, lang)
    first = next(parts, None)
    if first and first.kind == "content":  # `That is a fine idea, but I cannot …`
        before, first = first, next(parts, None)
        if not first or not first.contrasted or first.kind != "declines" or before.tokens >= ANSWERING:
            return "answer"
    if not first or first.kind == "offers":
        return "answer"
    rest = [first, *parts]
    content = [part for part in rest if part.kind == "content"]
    if any(part.contrasted for part in content):
        return "disclaimer"
    tokens = sum(part.tokens for part in content)
    declined = any(part.kind == "declines" for part in rest)
    least = ANSWERING if declined else LISTED if all(part.listed for part in content) else 4
    return "disclaimer" if content and tokens >= least else "refusal"


def _parts(text: str, lang: str) -> Iterator[Part]:
    """The parts of an answer's first sentences, without what is only said before the matter."""
    wording = _wording(lang)
    plain = (
        normalized("NFKC", text[: 2 * OPENING_CHARACTERS])[:OPENING_CHARACTERS]
        .lower()
        .replace("’", "'")
        .replace("‘", "'")
    )
    if plain.lstrip()[:1] in {'"', "“", "「", "«"}:
        return  # someone else's words
    contrasted = listed = denied = False
    for line in _lines(_MARKUP.sub("", plain)):
        item = re.match(r"\s*(?:[-•·]|\d{1,2}[.)])\s*", line)
        sentence = line[item.end() :] if item else line.strip()
        contrasted = (contrasted and bool(item)) or bool(wording["contrast"].search(sentence[:30]))
        if concession := wording["concession"].search(sentence):
            halves = [group for group in concession.groups() if group]
        else:
            halves = wording["split"].split(_without_lead(sentence, wording["lead"]))
        for number, half in enumerate(halves):
            part = _without_lead(half.strip(), wording["lead"])
            if not any(map(str.isalnum, part)):
                continue
            kinds: tuple[Kind, ...] = ("declines", "disclaims", "offers")
            kind: Kind = next((kind for kind in kinds if wording[kind].search(part)), "content")
            if kind == "content" and denied and wording["negations"].search(part):
                kind = "disclaims"
            elif kind == "content" and part.rstrip().endswith("?"):
                kind = "offers"
            denied = denied or kind in ("declines", "disclaims")
            introduces = part.rstrip().endswith(":")
            if not item:
                listed = kind == "offers" and introduces
            yield Part(kind, estimate_tokens(part), contrasted or number > 0, listed and bool(item))
            contrasted = contrasted or (introduces and number > 0)


_MARKUP = re.compile(r"[*_#>`]")
_STOP = re.compile(r"[.!?。\n]")
_SPACE = re.compile(r"\s*")


def _lines(text: str) -> Iterator[str]:
    """The sentences and lines of a text, each looked for only when it is asked for. A number and a period
    end no sentence: it may be a list's."""
    start = at = 0
    while stop := _STOP.search(text, at):
        at = stop.end()
        blank = _SPACE.match(text, at)
        after = blank.end() if blank else at
        if stop[0] == "\n":
            yield text[start : stop.start()]
            while text[at : at + 1] == "\n":
                at += 1
        elif stop[0] == ".":
            if after == at or text[stop.start() - 1 : stop.start()].isdecimal():
                continue
            yield text[start:at]
            at = after
        else:
            yield text[start:at]
            at = at if stop[0] == "。" else after
        start = at
    yield text[start:]


def _without_lead(part: str, pattern: re.Pattern[str]) -> str:
    while (lead := pattern.search(part)) and lead.end():
        part = part[lead.end() :].lstrip(" ,.;:!-–—。")
    return part


@cache
def _wording(lang: str) -> dict[str, re.Pattern[str]]:
    """By field of the wording, the patterns of a language and of English in one."""
    wordings = read_json(__package__, "refusals.json", type=dict[str, Wording])
    langs = [code for code in dict.fromkeys((lang, "en")) if code in wordings]
    return {
        name: re.compile("|".join(each for code in langs for each in getattr(wordings[code], name)))
        for name in Wording.__struct_fields__
    }


_SPECIAL = re.compile(r"<\|[a-z_0-9]{1,30}\|>|</?(?:s|bos|eos|pad|unk|end_of_turn|answer)>", re.IGNORECASE)
"""Tokens that frame an answer, which some servers leave in its text."""
_SEEN = frozenset(string.ascii_letters + string.digits)
_UNSEEN = {"\u2800", "\u3164", "\u115f", "\u1160", "\uffa0"}
"""Letters by their category that have no shape: a Braille pattern without dots, fillers of Hangul."""


def is_blank(text: str) -> bool:
    """Whether a text shows nothing: only spaces, line breaks, unseen characters and tokens that frame it."""
    if text[:1] in _SEEN:  # as nearly all texts begin; no token that frames one does
        return False
    return all(map(_is_unseen, _SPECIAL.sub("", text)))


def _is_unseen(letter: str) -> bool:
    unseen = letter.isspace() or letter in _UNSEEN or "\ufe00" <= letter <= "\ufe0f"
    return unseen or unicodedata.category(letter) in ("Cc", "Cf")

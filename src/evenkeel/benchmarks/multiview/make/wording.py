"""What a judge reads while triplets are built: the prompts, and documents shortened for them."""

from __future__ import annotations

from functools import cache
from importlib import resources

import msgspec
from msgspec import Struct

from evenkeel.benchmarks.multiview.make.criteria import Criterion
from evenkeel.text.prompts import fill
from evenkeel.types import Message

LONGEST = 2_000
"""Characters of a document in a prompt; the triplets hold it whole."""
LISTED = 600
"""Characters of a document among many in one prompt."""


class Prompts(Struct, frozen=True, forbid_unknown_fields=True):
    """The words of all prompts, with places in capitals."""

    criterion: str
    reflect: str
    annotate: str
    select: str
    rate: str
    summary: str
    none: str


@cache
def prompts() -> Prompts:
    content = (
        resources.files("evenkeel.benchmarks.multiview.make").joinpath("build_prompts.json").read_bytes()
    )
    return msgspec.json.decode(content, type=Prompts)


def question(template: str, criterion: Criterion, **places: str) -> tuple[Message, ...]:
    """A prompt about a criterion, its other places filled in."""
    return (Message("user", fill(template, CRITERION=told(criterion), **places)),)


def told(criterion: Criterion) -> str:
    head = fill(prompts().criterion, NAME=criterion.name, DESCRIPTION=criterion.description)
    return "\n".join([head, *(f"- {hint}" for hint in criterion.hints)])


def shortened(text: str, longest: int = LONGEST) -> str:
    return text if len(text) <= longest else f"{text[:longest].rstrip()} […]"


def in_a_line(text: str, longest: int = LISTED) -> str:
    """A text among others: without breaks of its own, which could pass for the end of it."""
    return shortened(" ".join(text.split()), longest)

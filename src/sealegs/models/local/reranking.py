"""Causal rerankers: how likely `yes` is against `no` after a prompt with a query and a document."""

from __future__ import annotations

import re
from collections.abc import Sequence

import torch
from jinja2 import TemplateError
from msgspec import Struct

from sealegs.files.package_data import read_json
from sealegs.models.local.causal import Causal
from sealegs.text.prompts import fill
from sealegs.types import Message, Rank

INSTRUCTED = "<Instruct>:"
"""Begins a query that has its instruction."""


class Templates(Struct, frozen=True):
    """The prompts of causal rerankers."""

    chat: str
    """What a chat model is asked that was not trained to rank."""
    families: dict[str, str]
    """The whole text that a reranker was trained on, by a part of the model's name."""
    instruct: str
    """How a query without an instruction is put to a reranker of a family."""


def rank_ids(causal: Causal, request: Rank, template: str) -> list[int] | str:
    """The prompt of a pair as token ids, or why there is none."""
    templates = read_json(__package__, "reranking.json", type=Templates)
    query = request.query
    if not template:
        name = re.split(r"[/:]", causal.spec.lower().rstrip("/"))[-1]
        template = next((text for part, text in templates.families.items() if part in name), "")
        if template and not query.startswith(INSTRUCTED):
            query = fill(templates.instruct, QUERY=query)
    if template:
        return causal.tokenise(fill(template, QUERY=query, DOCUMENT=request.document), special=False)
    question = fill(templates.chat, QUERY=query, DOCUMENT=request.document)
    try:
        return causal.chat((Message("user", question),))
    except TemplateError as error:
        return f"the chat template refuses this chat: {error}"


@torch.inference_mode()
def log_odds(causal: Causal, rows: Sequence[Sequence[int]]) -> list[float]:
    """log p(yes) − log p(no) for the token after each row."""
    logits = causal.read(rows, [1] * len(rows), use_cache=False).logits[:, -1].float()
    yes, no = (causal.tokenise(answer, special=False)[0] for answer in ("yes", "no"))
    return [float(value) for value in (logits[:, yes] - logits[:, no]).tolist()]

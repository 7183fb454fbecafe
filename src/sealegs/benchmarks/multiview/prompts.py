"""multiview's prompts, for judges, summaries, rerankers and embedders: `prompts.json`, filled in."""

from __future__ import annotations

import re

from msgspec import Struct

from sealegs.benchmarks.multiview.data import Triplet
from sealegs.benchmarks.multiview.names import Method
from sealegs.files.package_data import read_json
from sealegs.models.registry import split_spec
from sealegs.text.prompts import fill


class MethodPrompts(Struct, frozen=True):
    """The templates of all prompts, with slots in capitals."""

    judge: str
    summaries: str
    logprobs: str
    rewrite: str
    rerank: dict[str, str]
    """By the family of the model, as `instruct`."""
    instruct: dict[str, str]


def prompts() -> MethodPrompts:
    return read_json(__package__, "prompts.json", type=MethodPrompts)


def judge_prompt(method: Method, triplet: Triplet, *, swapped: bool) -> str:
    """What a judge reads of a triplet: the positive first, or swapped."""
    pairs = [(triplet.positive, triplet.positive_summary), (triplet.negative, triplet.negative_summary)]
    (first, first_summary), (second, second_summary) = reversed(pairs) if swapped else pairs
    summaries = ""
    if "annotations" in method.options:
        summaries = fill(
            prompts().summaries,
            ANCHOR_SUMMARY=triplet.anchor_summary,
            FIRST_SUMMARY=first_summary,
            SECOND_SUMMARY=second_summary,
        )
    slots = {
        "CRITERION": triplet.criterion,
        "DESCRIPTION": triplet.description,
        "ANCHOR": triplet.anchor,
        "FIRST": first,
        "SECOND": second,
    }
    if "logprobs" in method.options:
        return fill(prompts().logprobs, **slots, SUMMARIES=summaries)
    return fill(prompts().judge, **slots) + summaries


def family_template(templates: dict[str, str], spec: str) -> str:
    """The template of a model's family: the first that begins a word of the model's name."""
    name = re.split(r"[/:]", split_spec(spec)[0].lower().rstrip("/"))[-1]
    return next(text for family, text in templates.items() if re.search(rf"(?<![a-z0-9]){family}", name))


def instructed(template: str, triplet: Triplet) -> list[str]:
    """Anchor, positive and negative in an instruction template."""
    instruction = triplet.instruction or triplet.description
    return [fill(template, INSTRUCTION=instruction, TEXT=text) for text in triplet.documents]

"""Answers are given as they end, not when the last of their batch has."""

from __future__ import annotations

from sealegs.models.hf import HuggingFace
from sealegs.types import Generate, Sampling


def test_a_short_answer_comes_before_its_batch_has_ended(shared: HuggingFace) -> None:
    long = Generate(prompt="the keel holds", sampling=Sampling(max_tokens=40, temperature=0.9))
    short = Generate(prompt="the keel holds", sampling=Sampling(max_tokens=1))
    answers = shared.answer([long, short])
    first, response = next(answers)
    assert (first, response.tokens_out) == (short, 1)
    assert [request for request, _ in answers] == [long]

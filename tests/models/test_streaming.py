"""Answers are given as they end, not when the last of their batch has."""

from __future__ import annotations

from evenkeel.models.hf import HuggingFace
from evenkeel.types import Generate, LogLikelihood, Request, Sampling


def test_a_short_answer_comes_before_its_batch_has_ended(shared: HuggingFace) -> None:
    long = Generate(prompt="the keel holds", sampling=Sampling(max_tokens=40, temperature=0.9))
    short = Generate(prompt="the keel holds", sampling=Sampling(max_tokens=1))
    answers = shared.answer([long, short])
    first, response = next(answers)
    assert (first, response.tokens_out) == (short, 1)
    assert [request for request, _ in answers] == [long]


def test_a_scored_continuation_comes_with_its_text(shared: HuggingFace) -> None:
    requests: list[Request] = []
    for prefix, target in (("the keel", " holds a course to the north and the boats"), ("a boat", " sails")):
        requests += [
            LogLikelihood(prefix=prefix, continuation=target),
            Generate(prompt=prefix, sampling=Sampling(max_tokens=2 * len(target.split()))),
        ]
    order = [requests.index(request) for request, _ in shared.answer(requests)]
    assert sorted(order) == [0, 1, 2, 3]
    assert set(order[:2]) == {2, 3}

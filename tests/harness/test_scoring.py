"""One odd answer never stops a run: it is that sample's error, with the place, and the rest goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from sealegs.errors import BudgetReached, DataError
from sealegs.harness.benchmark import Scoring
from sealegs.harness.scoring import Scored, score_portion
from sealegs.types import Answered, Embed, Generate, Request, Response, Sample, Sampling, Score

Answer = Callable[[Sequence[Request]], list[Response]]


class Lengths:
    """Scores the length of an answer; `bad`, two of `clash` and the sample `never` cannot be scored."""

    def score(self, answered: Sequence[Answered]) -> Scoring:
        yield [Embed(text=item.sample.id) for item in answered]
        texts = [item.responses[0].text for item in answered]
        if "bad" in texts or texts.count("clash") > 1 or "never" in [item.sample.id for item in answered]:
            raise KeyError
        return [self._score(item, item.responses[0]) for item in answered]

    @staticmethod
    def _score(item: Answered, response: Response) -> Score:
        ok = response.status == "ok"
        values = {"length": float(len(response.text)) if ok else None}
        group = item.sample.group
        return Score(
            sample_id=item.sample.id, group=group, tags={}, values=values, answered=int(ok), statuses={}
        )


def items(*texts: str, names: Sequence[str] = "abcd", groups: str = "1122") -> list[Answered]:
    return [
        Answered(
            Sample(id=name, group=group, tags={}, inputs={}),
            (Generate(prompt=name, sampling=Sampling()),),
            (Response(status="ok", text=text),),
        )
        for text, name, group in zip(texts, names, groups, strict=False)
    ]


def scored(
    answered: Sequence[Answered], answer: Answer = lambda requests: [Response(status="ok")] * len(requests)
) -> list[Scored]:
    benchmark: Any = Lengths()
    return score_portion(benchmark, answered, answer)


def test_a_sample_that_cannot_be_scored_is_an_error_with_its_place() -> None:
    found = scored(items("a", "bad", "ccc", "dddd"))
    assert [one.score.values["length"] for one in found] == [1, None, 3, 4]
    assert b'"failures":["scoring failed: KeyError in harness/test_scoring.py:' in found[1].line
    assert b'"text":"bad"' in found[1].line  # the answer itself stays


def test_a_group_that_fails_only_together_fails_as_a_whole() -> None:
    found = scored(items("clash", "fine", "clash", "fine", groups="1112"))
    assert [one.score.answered for one in found] == [0, 0, 0, 1]


def test_a_sample_that_fails_whatever_was_answered_stops_the_run() -> None:
    with pytest.raises(DataError, match=r"sample never: .*KeyError in harness/test_scoring.py"):
        scored(items("a", "b", names=["never", "other"]))


@pytest.mark.parametrize("error", [BudgetReached("stopped"), MemoryError()])
def test_what_must_stop_a_run_stops_it(error: BaseException) -> None:
    def raising(requests: Sequence[Request]) -> list[Response]:
        raise error

    with pytest.raises(type(error)):
        scored(items("a"), raising)

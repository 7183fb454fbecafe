"""One odd answer never stops a run: it is that sample's error, with the place, and the rest goes on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from evenkeel.errors import BudgetReached, DataError
from evenkeel.harness.benchmark import Scoring
from evenkeel.harness.scoring import Scored, score_portion
from evenkeel.types import Answered, Embed, Generate, Request, Response, Sample, Sampling, Score


class Benchmark:
    """Scores the length of an answer; a group's scores carry the sum of their lengths."""

    def __init__(self, *, further: bool = False) -> None:
        self.further = further
        self.calls = 0

    def score(self, answered: Sequence[Answered]) -> Scoring:
        self.calls += 1
        if self.further:
            yield [Embed(text=item.sample.id) for item in answered]
        texts = {item.sample.id: item.responses[0].text for item in answered}
        sums: dict[str, int] = {}
        for item in answered:
            if item.responses[0].status == "ok":
                text = texts[item.sample.id]
                sums[item.sample.group] = sums.get(item.sample.group, 0) + len(text)
                {"bad": {}}.get(text, {"known": 1})["known"]
                if "clash" in text and any(t == "clash first" for t in texts.values()) and text[-1] != "t":
                    raise ZeroDivisionError
        return [self._score(item, sums.get(item.sample.group, 0)) for item in answered]

    @staticmethod
    def _score(item: Answered, together: int) -> Score:
        ok = item.responses[0].status == "ok"
        return Score(
            sample_id=item.sample.id,
            group=item.sample.group,
            tags={},
            values={
                "length": float(len(item.responses[0].text)) if ok else None,
                "together": float(together),
            },
            statuses={item.responses[0].status: 1},
            answered=int(ok),
        )


def answered(name: str, group: str, text: str) -> Answered:
    request = Generate(prompt=name, sampling=Sampling())
    sample: Sample = Sample(id=name, group=group, tags={}, inputs={})
    return Answered(sample, (request,), (Response(status="ok", text=text),))


def answer(requests: Sequence[Request]) -> list[Response]:
    return [Response(status="ok")] * len(requests)


def scored(items: Sequence[Answered], benchmark: Any = Benchmark()) -> list[Scored]:  # noqa: B008
    return score_portion(benchmark, items, answer)


def items(*texts: str) -> list[Answered]:
    return [answered(f"s{n}", f"g{n // 2}", text) for n, text in enumerate(texts)]


def test_a_sample_that_cannot_be_scored_is_an_error_with_its_place() -> None:
    found = scored(items("a", "bad", "ccc", "dddd"))
    assert [one.score.values["length"] for one in found] == [1, None, 3, 4]
    assert [one.score.values["together"] for one in found] == [1, 1, 7, 7]
    assert b'"failures":["scoring failed: KeyError in harness/test_scoring.py:' in found[1].line
    assert b'"text":"bad"' in found[1].line  # the answer itself stays


def test_a_group_that_fails_only_together_fails_as_a_whole() -> None:
    whole = [answered(f"s{n}", "g", text) for n, text in enumerate(("clash first", "fine", "clash again"))]
    found = scored([*whole, answered("s3", "h", "fine")])
    assert [one.score.answered for one in found] == [0, 0, 0, 1]


class Broken(Benchmark):
    """Fails for one sample, whatever is answered."""

    def score(self, answered: Sequence[Answered]) -> Scoring:
        if any(item.sample.id == "s1" for item in answered):
            raise RuntimeError
        return (yield from super().score(answered))


def test_a_sample_that_fails_whatever_was_answered_stops_the_run() -> None:
    with pytest.raises(DataError, match=r"sample s1: .*RuntimeError in harness/test_scoring.py"):
        scored(items("a", "b", "c"), Broken())


@pytest.mark.parametrize("error", [BudgetReached("stopped"), MemoryError()])
def test_what_must_stop_a_run_stops_it(error: BaseException) -> None:
    def raising(requests: Sequence[Request]) -> list[Response]:
        raise error

    with pytest.raises(type(error)):
        score_portion(Benchmark(further=True), items("a"), raising)  # type: ignore[arg-type]

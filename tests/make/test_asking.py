"""A step of a build that asks a model: what is counted, and what is asked for again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct

from sealegs.make.asking import Asking, Draft, StepTally, ask, ask_until_usable
from sealegs.text.prompts import user_prompt
from sealegs.types import Generate, Request, Response, Sampling

T = TypeVar("T")


class Colour(Struct):
    colour: str


def answered(asking: Generator[Sequence[Request], Sequence[Response], T], *rounds: Sequence[Response]) -> T:
    """The result after these rounds of responses."""
    next(asking)
    for responses in rounds:
        try:
            asking.send(responses)
        except StopIteration as done:
            value: T = done.value
            return value
    raise AssertionError("more was asked for")


def ok(text: str) -> Response:
    return Response(status="ok", text=text)


def test_a_tally_notes_every_step_in_the_order_of_work() -> None:
    tally = StepTally()
    assert tally.accept("questions")
    assert not tally.accept("questions", "empty")
    assert tally.passes("questions", "")
    assert not tally.passes("questions", "empty")
    tally.accept("questions", "error")
    tally.accept("answers", "unparsed")
    assert tally["nothing"] == {}
    assert tally.notes() == [
        "questions: 1 of 4 (2 dropped: empty; 1 dropped: error)",
        "answers: 0 of 1 (1 dropped: unparsed)",
    ]
    assert tally.failed == 1


def test_unusable_answers_are_counted_by_their_status() -> None:
    counts: Counter[str] = Counter()
    prompts = [(number, user_prompt("Colour {NUMBER}?", NUMBER=str(number))) for number in range(4)]
    responses = [ok('{"colour": "red"}'), Response(status="refused"), ok("blue"), ok('{"colour": "black"}')]
    answers = answered(ask(Colour, prompts, counts), responses, [ok("still blue")])
    colours = [(number, verdict.value.colour) for number, verdict in answers if verdict.value]
    assert colours == [(0, "red"), (3, "black")]
    assert counts == {"refused": 1, "unparsed": 1}


def test_only_items_at_fault_are_asked_for_again() -> None:
    attempts: list[tuple[dict[str, str], int]] = []

    def attempt(items: Mapping[str, str], number: int) -> Asking[list[Draft]]:
        attempts.append((dict(items), number))
        responses = yield [Generate(prompt=item, sampling=Sampling(), repeat=number) for item in items]
        return [Draft(r.text, "" if r.text.isupper() else f"{r.text} is small") for r in responses]

    rounds = [[ok("A"), ok("b"), ok("c")], [ok("b"), ok("C")], [ok("bb")]]
    texts, faults = answered(ask_until_usable(["a", "b", "c"], attempt, 3), *rounds)
    assert (texts, faults) == ({"a": "A", "c": "C"}, {"b": "bb is small"})
    assert attempts == [
        ({"a": "", "b": "", "c": ""}, 0),
        ({"b": "b is small", "c": "c is small"}, 1),
        ({"b": "b is small"}, 2),
    ]

"""Verdicts: what is asked for, how an answer is read, and what happens to one that cannot be."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Annotated, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from sealegs.files.jsonfile import json_objects
from sealegs.text.judge import MAX_TOKENS, JudgeVerdict, ask, characters, items, read, schema_of
from sealegs.types import Generate, Message, Request, Response, Status

pytestmark = pytest.mark.slow


class Claim(Struct, frozen=True):
    """One statement."""

    text: str
    kind: Literal["fact", "opinion"] = "fact"


class Opinion(Struct, frozen=True):
    right: bool
    score: int
    claims: tuple[Claim, ...] = ()


GOOD = '{"right": true, "score": 7, "claims": [{"text": "it floats"}]}'
OPINION = Opinion(True, 7, (Claim("it floats"),))


def answer(text: str, status: Status = "ok", reason: str = "") -> Response:
    return Response(status=status, text=text, reason=reason)


def question(text: str) -> tuple[Message, ...]:
    return (Message("system", "Be fair."), Message("user", text))


Asking = Generator[Sequence[Request], Sequence[Response], list[JudgeVerdict[Opinion]]]


def next_requests(asking: Asking, responses: Sequence[Response] | None = None) -> list[Generate]:
    """The requests that follow these responses."""
    requests = next(asking) if responses is None else asking.send(responses)
    assert all(isinstance(request, Generate) for request in requests)
    return [request for request in requests if isinstance(request, Generate)]


def verdicts(asking: Asking, responses: Sequence[Response]) -> list[JudgeVerdict[Opinion]]:
    """The verdicts after these responses, where no request follows."""
    with pytest.raises(StopIteration) as done:
        asking.send(responses)
    results: list[JudgeVerdict[Opinion]] = done.value.value
    return results


# The schema


def test_a_schema_is_closed_at_every_depth_and_wants_every_field() -> None:
    schema = msgspec.json.decode(schema_of(Opinion))
    assert schema["type"] == "object"
    assert schema["properties"]["claims"]["items"] == {"$ref": "#/$defs/Claim"}
    assert list(schema["$defs"]) == ["Claim"]
    for part in (schema, schema["$defs"]["Claim"]):
        assert part["additionalProperties"] is False
        assert part["required"] == list(part["properties"])
    assert schema["$defs"]["Claim"]["properties"]["kind"]["enum"] == ["fact", "opinion"]


class Bounded(Struct, frozen=True):
    label: str
    names: Annotated[tuple[Annotated[str, characters(3)], ...], items(2, least=1)] = ()
    note: Annotated[str, characters(5, least=1)] = ""


def test_bounds_and_choices_are_asked_for_and_an_answer_beyond_them_is_read() -> None:
    schema = msgspec.json.decode(schema_of(Bounded, {"label": ["P1", "none"]}))["properties"]
    assert schema["label"] == {"type": "string", "enum": ["P1", "none"]}
    assert (schema["names"]["minItems"], schema["names"]["maxItems"]) == (1, 2)
    assert schema["names"]["items"] == {"type": "string", "maxLength": 3}
    assert (schema["note"]["minLength"], schema["note"]["maxLength"]) == (1, 5)
    none = msgspec.json.decode(schema_of(Bounded, {"label": [], "names": []}))["properties"]
    assert (none["names"]["maxItems"], none["label"]["enum"]) == (0, [""])
    beyond = Bounded("P99", ("a" * 50,) * 9, "n" * 5_000)
    assert read(Bounded, answer(msgspec.json.encode(beyond).decode())) == JudgeVerdict(beyond, "ok")
    assert read(Bounded, answer('{"label": ""}')).value == Bounded("")


# Reading


@pytest.mark.parametrize(
    "text",
    [
        f"```json\n{GOOD}\n```",
        f"Let me see. The set {{1, 2}} is small.\n\n{GOOD}\n\nI hope that helps {{really}}.",
        f"{GOOD}\n{GOOD.replace('true', 'false')}",
        GOOD.replace("7", '"7"').replace("true", '"true"'),
        GOOD.replace('"score"', '"why": "well", "score"'),
    ],
)
def test_an_object_is_read_whatever_surrounds_it(text: str) -> None:
    assert read(Opinion, answer(text)) == JudgeVerdict(OPINION, "ok", "")


@pytest.mark.parametrize("text", [f"Perhaps {GOOD}, but", GOOD[:-1], ""])
def test_what_was_cut_off_before_its_verdict_is_none(text: str) -> None:
    """An object further on may be a draft of one that was still being thought about."""
    assert read(Opinion, answer(f"{GOOD} And", "truncated", "length")).value == OPINION
    verdict = read(Opinion, answer(text, "truncated", "length"))
    assert (verdict.value, verdict.status) == (None, "unparsed")
    assert "length" in verdict.reason


def test_half_a_character_in_a_verdict_can_be_stored() -> None:
    verdict = read(Claim, answer(r'{"text": "it floats \ud83d", "kind": "fact"}'))
    assert verdict.value == Claim("it floats \ufffd")
    assert msgspec.json.encode(verdict.value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("It is right.", "there is no whole JSON object in it"),
        (GOOD[:-1], "missing required field"),  # the claim inside is whole, and no opinion
        ('{"right": true}', "missing required field `score`"),
        ('{"right": "perhaps", "score": 7}', "Expected `bool`, got `str` - at `$.right`"),
        ('{"right": true, "score": 7, "claims": [{"text": 1}]}', "at `$.claims[0].text`"),
        ('{"a":' * 100_000, "there is no whole JSON object in it"),
    ],
)
def test_what_cannot_be_read_is_unparsed_with_the_reason(text: str, reason: str) -> None:
    verdict = read(Opinion, answer(text))
    assert (verdict.value, verdict.status) == (None, "unparsed")
    assert reason in verdict.reason


@pytest.mark.parametrize("status", ["refused", "error"])
def test_a_refusal_is_no_verdict_even_if_it_holds_an_object(status: Status) -> None:
    assert read(Opinion, answer(GOOD, status, "content_filter")) == JudgeVerdict(
        None, status, "content_filter"
    )


@given(st.text(), st.text(st.characters(exclude_characters="{")))
def test_no_text_breaks_the_reading(after: str, before: str) -> None:
    results = {"right": True, "score": 7, "claims": [{"text": "it floats"}]}
    assert next(json_objects(f"{before}{GOOD}{after}"), None) == results
    assert read(Opinion, answer(after)).status in ("ok", "unparsed")


# Asking


def test_a_question_carries_the_schema_as_a_field_and_in_words() -> None:
    asking = ask(Opinion, [question("Is it so?")])
    (request,) = next_requests(asking)
    user = request.prompt[-1]
    assert isinstance(user, Message)
    assert request.prompt[:-1] == (Message("system", "Be fair."),)
    assert user.content.startswith("Is it so?\n\n")
    assert schema_of(Opinion) in user.content
    assert (request.schema, request.role, request.repeat) == (schema_of(Opinion), "judge", 0)
    assert (request.sampling.temperature, request.sampling.max_tokens) == (0.0, MAX_TOKENS)
    assert verdicts(asking, [answer(GOOD)]) == [JudgeVerdict(OPINION, "ok")]


def test_only_what_cannot_be_read_is_asked_again_and_with_what_was_wrong() -> None:
    asking = ask(Opinion, [question("a"), question("b"), question("c")])
    first = next_requests(asking)
    (again,) = next_requests(asking, [answer(GOOD), answer('{"right": true}'), answer("", "refused")])
    assert again.schema == first[1].schema
    assert again.prompt[0] == first[1].prompt[0]
    before, after = first[1].prompt[-1], again.prompt[-1]
    assert isinstance(before, Message)
    assert isinstance(after, Message)
    assert after.content.startswith(before.content)
    assert "missing required field `score`" in after.content.removeprefix(before.content)
    results = verdicts(asking, [answer(GOOD.replace("7", "3"))])
    assert [verdict.value.score for verdict in results if verdict.value] == [7, 3]
    assert results[2].status == "refused"

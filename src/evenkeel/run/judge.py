"""A verdict from a model: asked for under a schema, read, repaired once, else counted as unparsed.

What is wanted is a msgspec struct; its fields are the schema. Verdicts are asked like anything else, by
yielding requests, so that they are journaled, resumed and kept within the budget.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Generator, Iterator, Sequence
from functools import cache
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec
from msgspec import Struct

from evenkeel.files.jsontext import objects, without_halves
from evenkeel.run.answers import is_blank
from evenkeel.types import Generate, Message, Request, Response, Sampling, Status

T = TypeVar("T", bound=Struct)

MAX_TOKENS = 512
NO_OBJECT = "there is no whole JSON object in it"


class Verdict(NamedTuple, Generic[T]):
    """What a judge said of one thing: a value, or why there is none."""

    value: T | None
    status: Status
    reason: str = ""


def ask(
    kind: type[T],
    questions: Sequence[Sequence[Message]],
    *,
    role: str = "judge",
    max_tokens: int = MAX_TOKENS,
    repeats: Sequence[int] | None = None,
) -> Generator[Sequence[Request], Sequence[Response], list[Verdict[T]]]:
    """A verdict of the given kind on each question, in order.

    An answer that does not follow the schema is sent back once with what is wrong with it; the second is
    final. A refusal or a failed request is not argued with.
    """
    sampling = Sampling(max_tokens=max_tokens)
    schema = schema_of(kind)
    instructed = [(*question[:-1], _instructed(question[-1], schema)) for question in questions]
    asked = [
        Generate(prompt=question, sampling=sampling, schema=schema, role=role, repeat=repeat)
        for question, repeat in zip(instructed, repeats or [0] * len(instructed), strict=True)
    ]
    verdicts = [read(kind, response) for response in (yield asked)]
    broken = [place for place, verdict in enumerate(verdicts) if verdict.status == "unparsed"]
    if broken:
        again = [_sent_back(asked[place], verdicts[place].reason) for place in broken]
        for place, response in zip(broken, (yield again), strict=True):
            verdicts[place] = read(kind, response)
    return verdicts


def read(kind: type[T], response: Response) -> Verdict[T]:
    """The first JSON object in an answer that is a verdict, whatever prose or code fence stands around it.

    Of an answer that was cut off only what it begins with, if that is whole: an object further on may be a
    draft of one that was still being thought about. An answer that says nothing is no verdict.
    """
    if response.status in ("refused", "error"):
        return Verdict(None, response.status, response.reason)
    if response.status == "unparsed" or is_blank(response.text):
        return Verdict(None, "unparsed", response.reason or NO_OBJECT)
    cut = response.status == "truncated"
    reason = f"it was cut off ({response.reason or 'length'})" if cut else ""
    for found in _leading(response.text) if cut else objects(response.text):
        try:
            return Verdict(msgspec.convert(found, kind, strict=False), "ok")
        except (msgspec.ValidationError, RecursionError) as error:
            reason = reason or str(error)
    return Verdict(None, "unparsed", reason or NO_OBJECT)


def _leading(text: str) -> Iterator[Any]:
    """The JSON object that a text begins with, in a code fence or not."""
    start = text.lstrip().removeprefix("```json").removeprefix("```").lstrip()
    if start.startswith("{"):
        with contextlib.suppress(ValueError, RecursionError):
            yield json.JSONDecoder().raw_decode(without_halves(start))[0]


@cache
def schema_of(kind: type[Struct]) -> str:
    """The JSON schema of a struct as text, closed against further fields as strict servers want it."""
    (root,), parts = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    own = str(root["$ref"]).rpartition("/")[2]
    for part in parts.values():
        if part.get("type") == "object":
            part |= {"additionalProperties": False, "required": list(part.get("properties", ()))}
            part.pop("title", None)
    others: dict[str, Any] = {name: part for name, part in parts.items() if name != own}
    return msgspec.json.encode({**parts[own], **({"$defs": others} if others else {})}).decode()


def _instructed(question: Message, schema: str) -> Message:
    """The schema in words too, for servers that cannot be held to it."""
    return Message(
        question.role,
        f"{question.content}\n\nAnswer with one JSON object and nothing else. Its schema:\n{schema}",
    )


def _sent_back(asked: Generate, reason: str) -> Generate:
    """The same question anew, with what was wrong.

    The broken answer itself is left out: it may be long, and a model tends to repeat what it reads.
    """
    assert not isinstance(asked.prompt, str)
    *before, last = asked.prompt
    note = f"\n\nAn earlier answer could not be read: {reason}. Give only the JSON object, complete."
    again = Message(last.role, last.content + note)
    return msgspec.structs.replace(asked, prompt=(*before, again))

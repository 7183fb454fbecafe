"""Structured answers from a model: asked for under a schema, read, sent back once, else `unparsed`.

The fields of a msgspec struct are the schema. A bound or a choice is in the schema that is sent, for models
that are made to follow it, and not in what is checked: an answer beyond it is read like any other. Like
scoring, asking is a generator that yields requests, so that verdicts are journaled, resumed and kept within
the budget.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec
from msgspec import Meta, Struct

from sealegs.files.jsonfile import check_depth, json_objects, replace_half_pairs
from sealegs.text.answers import is_blank
from sealegs.types import Asking, Generate, Message, Response, Sampling, Status

T = TypeVar("T", bound=Struct)
Choices = Mapping[str, Sequence[str]]
"""By field: the texts that it is chosen among. A field with none stays empty."""

MAX_TOKENS = 512
NO_OBJECT = "there is no whole JSON object in it"


class JudgeVerdict(NamedTuple, Generic[T]):
    """What a judge answered about one thing: a value, or why there is none."""

    value: T | None
    status: Status
    reason: str = ""


def ask(
    kind: type[T],
    prompts: Sequence[Sequence[Message]],
    *,
    choices: Sequence[Choices] = (),
    role: str = "judge",
    max_tokens: int = MAX_TOKENS,
    temperature: float = 0.0,
) -> Asking[list[JudgeVerdict[T]]]:
    """A verdict of the given kind for each prompt, in order; `choices` are those of each prompt, if any.

    An answer that does not follow the schema is asked for once more, with the reason; the second is final.
    A refusal or a failed request is not asked again.
    """
    schemas = [schema_of(kind, each) for each in choices or [{}] * len(prompts)]
    # The schema is in the prompt too, for servers that do not enforce it.
    instruction = "\n\nAnswer with one JSON object and nothing else. Its schema:\n"
    requests = [
        Generate(
            prompt=_with_note(prompt, instruction + schema),
            sampling=Sampling(max_tokens=max_tokens, temperature=temperature),
            schema=schema,
            role=role,
        )
        for prompt, schema in zip(prompts, schemas, strict=True)
    ]
    verdicts = [read(kind, response) for response in (yield requests)]
    unparsed = [index for index, verdict in enumerate(verdicts) if verdict.status == "unparsed"]
    if unparsed:
        responses = yield [_repair(requests[index], verdicts[index].reason) for index in unparsed]
        for index, response in zip(unparsed, responses, strict=True):
            verdicts[index] = read(kind, response)
    return verdicts


def read(kind: type[T], response: Response) -> JudgeVerdict[T]:
    """The first JSON object of an answer that is a verdict, whatever prose or code fence surrounds it.

    Of an answer that was cut off, only an object that it begins with counts, if that is whole: one further on
    may be a draft written while reasoning. A blank answer is not a verdict.
    """
    if response.status in ("refused", "error"):
        return JudgeVerdict(None, response.status, response.reason)
    if response.status == "unparsed" or is_blank(response.text):
        return JudgeVerdict(None, "unparsed", response.reason or NO_OBJECT)
    truncated = response.status == "truncated"
    reason = f"it was cut off ({response.reason or 'length'})" if truncated else ""
    for candidate in _leading_object(response.text) if truncated else json_objects(response.text):
        try:
            return JudgeVerdict(msgspec.convert(candidate, kind, strict=False), "ok")
        except (msgspec.ValidationError, RecursionError) as error:
            reason = reason or str(error)
    return JudgeVerdict(None, "unparsed", reason or NO_OBJECT)


def characters(most: int, least: int = 0) -> Meta:
    """Asks for so many characters of a text; one that is longer or shorter is read all the same."""
    return _bounds("Length", most, least)


def items(most: int, least: int = 0) -> Meta:
    """Asks for so many items of a list; one with more or fewer is read all the same."""
    return _bounds("Items", most, least)


def _bounds(what: str, most: int, least: int) -> Meta:
    return Meta(extra_json_schema={f"max{what}": most} | ({f"min{what}": least} if least else {}))


def without_bounds(schema: str) -> str:
    """A schema without the numbers of characters and items, for servers that refuse them."""
    names = {f"{end}{what}" for end in ("min", "max") for what in ("Length", "Items")}

    def stripped(part: Any) -> Any:
        if isinstance(part, list):
            return [stripped(each) for each in part]
        if not isinstance(part, dict):
            return part
        # A field may have such a name: its value is a schema, not a number.
        return {k: stripped(v) for k, v in part.items() if not (k in names and isinstance(v, int))}

    return msgspec.json.encode(stripped(msgspec.json.decode(schema))).decode()


def schema_of(kind: type[Struct], choices: Choices | None = None) -> str:
    """The JSON schema of a struct as text, closed against further fields, as strict servers require."""
    schema = _schema(kind)
    fields: dict[str, Any] = schema["properties"]
    chosen = {name: _choice(fields[name], texts) for name, texts in (choices or {}).items()}
    return msgspec.json.encode(schema | {"properties": fields | chosen}).decode()


@cache
def _schema(kind: type[Struct]) -> dict[str, Any]:
    (root,), parts = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    for part in parts.values():
        if part.get("type") == "object":
            part |= {"additionalProperties": False, "required": list(part.get("properties", ()))}
            part.pop("title", None)
    schema: dict[str, Any] = parts.pop(str(root["$ref"]).rpartition("/")[2])
    return {**schema, **({"$defs": parts} if parts else {})}


def _choice(field: Mapping[str, Any], texts: Sequence[str]) -> dict[str, Any]:
    """The schema of a field, a text or a list of texts, that is chosen among these."""
    if field["type"] == "string":
        return {**field, "enum": list(texts) or [""]}
    chosen = {"items": {**field["items"], "enum": list(texts)}} if texts else {}
    return {**field, **chosen, "maxItems": len(texts)}


def _leading_object(text: str) -> Iterator[Any]:
    """The JSON object that a text begins with, in a code fence or not."""
    start = text.lstrip().removeprefix("```json").removeprefix("```").lstrip()
    if start.startswith("{"):
        with contextlib.suppress(ValueError, RecursionError):
            yield json.JSONDecoder().raw_decode(replace_half_pairs(check_depth(start)))[0]


def _repair(request: Generate, reason: str) -> Generate:
    """The same request with what was wrong with the answer.

    The answer itself is left out: it may be long, and a model tends to repeat what it reads.
    """
    assert not isinstance(request.prompt, str)
    note = f"\n\nAn earlier answer could not be read: {reason}. Give only the JSON object, complete."
    return msgspec.structs.replace(request, prompt=_with_note(request.prompt, note))


def _with_note(prompt: Sequence[Message], note: str) -> tuple[Message, ...]:
    *earlier, last = prompt
    return (*earlier, Message(last.role, last.content + note))

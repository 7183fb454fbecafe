"""The key of a request: the hash of who is asked (the model's identity), what is asked, and the repeat.

So five repeats of one prompt are five entries of a journal, and the same question in another run is the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from evenkeel.errors import DataError
from evenkeel.types import Embed, Generate, LogLikelihood, Rank, Request, StringLikelihood

HALF_A_CHARACTER = "its text holds half a character (a lone surrogate), which JSON cannot. Remove it."

_encode = msgspec.json.Encoder().encode


class Key(NamedTuple):
    """Where an answer is filed: under `key`; `digest` is that of the request's content alone."""

    key: bytes
    digest: bytes


class Keyed(NamedTuple):
    """A request with its key, which is made once and stays with it until the answer is stored."""

    key: Key
    request: Request


def model_digest(identity: Mapping[str, Any]) -> bytes:
    return hashlib.sha256(msgspec.json.encode(identity, order="deterministic")).digest()


def make_key(model: bytes, request: Request) -> Key:
    """The key of a request to the model with this digest."""
    try:
        digest = hashlib.sha256(content(request)).digest()
    except UnicodeEncodeError:
        raise DataError("a request", HALF_A_CHARACTER) from None
    return Key(hashlib.sha256(model + digest + request.repeat.to_bytes(8, "big")).digest(), digest)


def content(request: Request) -> bytes:
    """What is asked, as JSON. The role stays out: it says whom to ask, and the model's digest who that is."""
    match request:
        case Generate():
            schema = [request.schema] if request.schema else []
            return _encode(["generate", request.prompt, request.sampling, *schema])
        case LogLikelihood():
            return _encode(["loglikelihood", request.prefix, request.continuation])
        case StringLikelihood():
            return _encode(["stringlikelihood", request.prefix, request.continuation])
        case Embed():
            return _encode(["embed", request.text])
        case Rank():
            return _encode(["rank", request.query, request.document])

"""Embedding servers that misnumber, misshape or lose vectors, and stored vectors that cannot be compared."""

from __future__ import annotations

import base64
import json
import math
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web

from loopback import DIMENSIONS, Loopback, embedding
from models.hostile import answers, model_of
from models.tiny import ask
from runs import run_small
from sealegs.errors import ModelUnreachable
from sealegs.models.openai.protocol import read_vectors
from sealegs.models.registry import load_model
from sealegs.models.vectors import usable, vector_problem
from sealegs.types import Embed, Response

Item = dict[str, Any]


def packed(*numbers: float) -> bytes:
    return struct.pack(f"<{len(numbers)}f", *numbers)


class Numbering(Loopback):
    """An embedding server that numbers or spoils its vectors by a rule of the text and its place."""

    def __init__(self, spoil: Callable[[str, int, Item], Item], **behaviour: Any) -> None:
        super().__init__(**behaviour)
        self.spoil = spoil

    def _embeddings(self, body: Any) -> bytes:
        reply = msgspec.json.decode(super()._embeddings(body))
        texts = [body.input] if isinstance(body.input, str) else body.input
        data = sorted(reply["data"], key=lambda item: item["index"])
        pairs = enumerate(zip(texts, data, strict=True))
        return json.dumps({"data": [self.spoil(text, index, item) for index, (text, item) in pairs]}).encode()


def embed(server: Loopback, texts: list[str]) -> list[Response]:
    return ask(load_model("openai:e", base_url=server.url), *(Embed(text=text) for text in texts))


TEXTS = [f"text number {number}" for number in range(8)]


@pytest.fixture(scope="module")
def right() -> list[Response]:
    with Loopback() as server:
        return embed(server, TEXTS)


def vectors_of(responses: list[Response]) -> list[bytes | None]:
    return [response.vector for response in responses]


def renumbered(number: Callable[[int], Any]) -> Callable[[str, int, Item], Item]:
    return lambda text, index, item: {**item, "index": number(index)}


@pytest.mark.parametrize(
    "number",
    [
        lambda index: index % 4,  # restarts within the batch
        lambda index: index + 1,
        lambda index: index if index else None,
        lambda index: bool(index),
    ],
)
def test_numbers_that_are_no_order_attach_no_vector_to_a_text(number: Callable[[int], Any]) -> None:
    with Numbering(renumbered(number)) as server:
        responses = embed(server, TEXTS)
    assert {(each.status, each.vector) for each in responses} == {("unparsed", None)}
    assert "embed_batch=1" in responses[0].reason


def test_a_checked_order_is_followed_and_none_is_that_of_the_reply(right: list[Response]) -> None:
    def unnumbered(text: str, index: int, item: Item) -> Item:
        return {"embedding": item["embedding"]}

    with Numbering(unnumbered, record=True) as server:
        assert vectors_of(embed(server, TEXTS)) == vectors_of(right)
    assert len(server.bodies) == 1
    with Loopback() as numbered:  # in reverse, by their numbers
        assert vectors_of(embed(numbered, TEXTS)) == vectors_of(right)


@pytest.mark.parametrize("vectors", ["as asked", "float"])
def test_texts_are_embedded_many_at_a_time(vectors: str) -> None:
    texts = [f"text number {i}" for i in range(150)]
    with Loopback(vectors=vectors, record=True) as server:
        responses = answers(model_of(server), [Embed(text=text) for text in texts])
    assert [len(body["input"]) for body in server.bodies] == [64, 64, 22]
    for request, response in responses.items():
        assert isinstance(request, Embed)
        assert response.vector == struct.pack(f"<{DIMENSIONS}f", *embedding(request.text))
    tokens = sum(response.tokens_in or 0 for response in responses.values())
    assert tokens == sum(len(text) // 4 + 1 for text in texts)


BROKEN: dict[str, Any] = {
    "zeros": [0.0, -0.0, 0.0],
    "overflow": [1e39, 1.0, 0.0],
    "true": [True, False, True],
    "null inside": [1.0, None, 2.0],
    "odd bytes": base64.b64encode(b"12345").decode(),
    "nan": base64.b64encode(packed(math.nan, 1, 2)).decode(),
}


@pytest.mark.parametrize("vector", BROKEN.values(), ids=BROKEN)
def test_what_has_no_direction_is_unparsed_and_its_neighbour_is_not(vector: Any) -> None:
    reply = {"data": [{"index": 1, "embedding": vector}, {"index": 0, "embedding": [1.0, 2.0, 3.0]}]}
    good, bad = read_vectors(msgspec.json.encode(reply), 2)
    assert (good.status, good.vector) == ("ok", packed(1, 2, 3))
    assert (bad.status, bad.vector) == ("unparsed", None)
    assert bad.reason


def test_stored_vectors_of_another_size_or_damaged_are_unparsed() -> None:
    stored = [packed(1, 2, 3), packed(3, 2, 1), packed(1, 2), b"12345", b"", packed(0, 0, 0), packed(2, 2, 2)]
    checked = usable([Response(status="ok", vector=vector) for vector in stored])
    assert [response.status for response in checked] == ["ok", "ok", *["unparsed"] * 4, "ok"]
    assert [response.vector for response in checked] == [*stored[:2], None, None, None, None, stored[6]]
    assert checked[2].reason == "the vector has 2 numbers, the others 3"
    assert usable([]) == []
    assert usable([Response(status="error", reason="HTTP 500")])[0].reason == "HTTP 500"
    assert vector_problem(packed(1e-18, 0)) == vector_problem(packed(1e19, 0)) == ""


# Whole runs


def test_a_run_survives_vectors_of_unequal_size_and_its_coverage_says_so(tmp_path: Path) -> None:
    def shorter(text: str, index: int, item: Item) -> Item:
        short = base64.b64encode(packed(1, 2, 3)).decode()
        return {**item, "embedding": short} if text.startswith("Answer 2") else item

    with Numbering(shorter, words=5) as server:
        run = run_small("mirae", tmp_path / "run", server, limit=2, repeats=4)
    assert run.headline.coverage == pytest.approx(3 / 4)
    assert run.failures() == {"not embedded: the vector has 3 numbers, the others 384": 2}
    assert (run.headline.value or 0) > 0.5


def test_a_vector_of_no_number_is_unparsed_and_its_neighbours_stay(right: list[Response]) -> None:
    """As Python writes them: `NaN` and `Infinity` are no JSON."""

    def numberless(text: str, index: int, item: Item) -> Item:
        return {**item, "embedding": [math.nan, math.inf, 1.0]} if index == 2 else item

    with Numbering(numberless) as server:
        responses = embed(server, TEXTS)
    assert [response.status for response in responses] == ["ok", "ok", "unparsed", *["ok"] * 5]


@pytest.mark.parametrize("status", [500, 429])
def test_a_server_that_fails_is_not_asked_for_halves_of_a_batch(status: int) -> None:
    texts = [Embed(text=f"text {number}") for number in range(64)]
    with Loopback(always=status) as server, pytest.raises(ModelUnreachable, match=f"HTTP {status}"):
        answers(model_of(server, retries=1), texts)
    assert server.requests == 2


def test_a_text_that_is_refused_costs_no_other() -> None:
    class Picky(Loopback):
        def _embeddings(self, body: Any) -> bytes:
            if "text 5" in body.input:
                raise web.HTTPBadRequest(text='{"error": {"message": "text 5 is too long"}}')
            return super()._embeddings(body)

    with Picky() as server:
        responses = answers(model_of(server), [Embed(text=f"text {number}") for number in range(8)])
    refused = [request for request, answer in responses.items() if answer.status != "ok"]
    assert refused == [Embed(text="text 5")]


def test_a_text_at_which_the_server_fails_costs_its_call_and_ends_no_run() -> None:
    class Failing(Loopback):
        def _embeddings(self, body: Any) -> bytes:
            if "text 70" in body.input:
                raise web.HTTPInternalServerError(text="out of memory")
            return super()._embeddings(body)

    texts = [Embed(text=f"text {number}") for number in range(192)]
    with Failing() as server:
        responses = answers(model_of(server, concurrency=1, retries=1), texts)
    assert [responses[text].status for text in texts] == ["ok"] * 64 + ["error"] * 64 + ["ok"] * 64
    assert server.requests == 4

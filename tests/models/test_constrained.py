"""Constrained decoding: JSON by its schema from any local model, whatever shares the batch."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import pytest
from msgspec import Struct

from models.hostile import chat
from models.tiny import ask, open_hf, tiny_model
from sealegs.models.hf import HuggingFace
from sealegs.text.judge import characters, read, schema_of
from sealegs.types import Generate, Sampling

pytest.importorskip("llguidance")


class Verdict(Struct):
    more_alike: Literal["first", "second", "tie"]


class Part(Struct):
    name: str
    note: str = ""


class Bounded(Struct):
    category: str
    tags: tuple[str, ...]
    summary: Annotated[str, characters(20, least=1)]


class Nested(Struct):
    parts: tuple[Part, ...]
    rating: Literal[1, 2, 3]


def question(
    kind: type[Struct] | None, text: str = "Compare.", *, repeat: int = 0, **sampling: object
) -> Generate:
    schema = schema_of(kind) if kind else ""
    return chat(text, schema=schema, repeat=repeat, **{"max_tokens": 40, **sampling})


def test_random_weights_write_json_by_the_schema_in_a_batch_with_free_texts(shared: HuggingFace) -> None:
    """Without the constraint these weights write no JSON at all; other rows are what they are alone."""
    free = [question(None, text) for text in ("Compare.", "A longer text to compare with.")]
    verdicts = [
        question(Verdict, text, temperature=temperature, repeat=repeat)
        for text in ("Compare.", "Another text, of another length.")
        for temperature, repeat in ((0.0, 0), (1.0, 0), (1.0, 1), (1.0, 2))
    ]
    ratings = [question(Nested, "Rate.", temperature=1.5, repeat=n, max_tokens=100) for n in range(4)]
    mixed = [free[0], *verdicts, *ratings, free[1]]
    responses = dict(zip(mixed, ask(shared, *mixed), strict=True))
    values = [msgspec.json.decode(responses[request].text, type=Verdict) for request in verdicts]
    assert {responses[request].status for request in verdicts} == {"ok"}
    assert len({value.more_alike for value in values}) > 1
    assert [responses[request] for request in free] == ask(shared, *free)
    assert [responses[request] for request in verdicts] == [ask(shared, request)[0] for request in verdicts]
    for request in ratings:
        response = responses[request]
        assert response.text.startswith('{"parts": [')
        if response.status == "ok":
            msgspec.json.decode(response.text, type=Nested)
    assert all(re.search(r"[^ -~]|[A-Za-z]", responses[request].text) for request in free)


def test_lists_and_texts_end_at_their_bounds_and_names_are_chosen(shared: HuggingFace) -> None:
    """Random weights, which end neither a list nor a text by themselves, say what a builder can read."""
    names = ["rain and storm", "sums"]
    for kind, choices in (
        (Bounded, {"category": names, "tags": names}),
        (Bounded, {"category": [], "tags": []}),
    ):
        schema = schema_of(kind, choices)
        requests = [
            msgspec.structs.replace(question(None, repeat=n, temperature=1.0, max_tokens=120), schema=schema)
            for n in range(4)
        ]
        for response in ask(shared, *requests):
            value = msgspec.json.decode(response.text, type=Bounded)
            assert response.status == "ok"
            assert value.category in (choices["category"] or [""])
            assert len(value.tags) <= len(choices["tags"])
            assert set(value.tags) <= set(names)
            assert 1 <= len(value.summary) <= 20


def test_what_is_cut_off_says_so_and_is_no_verdict(shared: HuggingFace) -> None:
    requests = [question(Nested, "Rate.", temperature=1.0, max_tokens=tokens) for tokens in range(1, 9)]
    for response in ask(shared, *requests):
        assert response.status == "truncated"
        assert read(Nested, response).status == "unparsed"


def test_a_model_that_opens_with_reasoning_is_bound_after_it(tmp_path: Path) -> None:
    """Its template opens the block. Weights that never close it are free to the end, and no answer."""
    folder = tiny_model(tmp_path)
    template = (folder / "chat_template.jinja").read_text()
    (folder / "chat_template.jinja").write_text(f"{template}<think>\n")
    model = open_hf(folder)
    (response,) = ask(model, question(Verdict))
    assert (response.status, response.text) == ("truncated", "")
    assert response.reasoning
    causal = model.causal()
    (closing,) = (causal.tokenise("</think>", special=False),)
    constraint = causal.grammars.constraint(schema_of(Verdict), thinking=True)
    assert constraint is not None
    assert constraint.allowed(49152).all()
    for number, token in enumerate(closing):
        assert constraint.thinking
        constraint.add(token, causal.text(closing[: number + 1]))
    assert not constraint.thinking
    allowed = constraint.allowed(49152)
    assert 0 < allowed.sum() < 10
    assert all(causal.token_text(int(token)).startswith("{") for token in allowed.nonzero()[0])


def test_a_schema_that_cannot_be_followed_is_told_and_the_text_is_free(folder: Path) -> None:
    model = open_hf(folder)
    odd = Generate(
        prompt="Write", sampling=Sampling(max_tokens=4), schema='{"type": "object", "not": {"required": []}}'
    )
    plain = Generate(prompt="Write", sampling=Sampling(max_tokens=4))
    (response,), (expected,) = ask(model, odd), ask(model, plain)
    assert response == expected
    (note,) = model.notes()
    assert note.startswith("JSON answers did not have to follow their schema: llguidance cannot follow")
    model.close()
    assert model.notes() == [note]


def test_a_token_that_the_schema_forbids_is_told_and_the_text_is_free(tmp_path: Path) -> None:
    """As where a tokenizer spells its tokens in another way than llguidance reads them."""
    model = open_hf(tiny_model(tmp_path))
    constraint = model.causal().grammars.constraint(schema_of(Verdict))
    assert constraint is not None
    (forbidden, *_) = (~constraint.allowed(49152)).nonzero()[0]
    constraint.add(int(forbidden), "")
    assert constraint.allowed(49152).all()
    assert "llguidance took no further token" in model.notes()[-1]

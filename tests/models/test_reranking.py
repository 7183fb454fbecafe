"""Scores from rerankers that are causal models, and from /rerank servers."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from loopback import Loopback, shared_words
from models.tiny import ask, open_hf, tiny_model
from sealegs.models.hf import HuggingFace
from sealegs.models.local.responses import rank_response
from sealegs.models.openai.dialect import Dialect
from sealegs.models.openai.options import OpenAIOptions
from sealegs.models.openai.protocol import read_scores
from sealegs.models.openai.transport import TryFailed
from sealegs.models.registry import load_model
from sealegs.types import Rank, Response

TEXTS = ["a keel", "the harbour light at dawn, seen from the sea", "rope", "한국어 汉语"]


# Causal models


def test_a_rank_is_the_log_odds_of_yes_after_the_chat(folder: Path, shared: HuggingFace) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model, tokenizer = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    requests = [Rank(query="a keel", document=text) for text in TEXTS[:3]]
    yes, no = (tokenizer(word, add_special_tokens=False)["input_ids"][0] for word in ("yes", "no"))
    for request, response in zip(requests, ask(shared, *requests), strict=True):
        question = "Does the document below fit the query? Answer with one word, yes or no.\n\n"
        question += f"Query: a keel\n\nDocument: {request.document}"
        chat = [{"role": "user", "content": question}]
        ids = tokenizer.apply_chat_template(
            chat, add_generation_prompt=True, return_tensors="pt", return_dict=True
        )
        with torch.no_grad():
            logits = model(**ids).logits[0, -1].log_softmax(-1)
        assert response.rank == pytest.approx(float(logits[yes] - logits[no]), abs=1e-3)
    assert ask(shared, Rank(query="a", document="b " * 500))[0].status == "error"


def test_a_reranker_of_a_family_reads_the_prompt_it_was_trained_on(tmp_path: Path) -> None:
    model = open_hf(tiny_model(tmp_path / "Qwen3-Reranker-Tiny"))
    from sealegs.models.local.reranking import rank_ids

    causal = model.causal()
    instructed, plain = (
        causal.text(ids)
        for query in ("<Instruct>: as tools\n<Query>: a keel", "a keel")
        if not isinstance(ids := rank_ids(causal, Rank(query=query, document="rope"), ""), str)
    )
    assert "<Instruct>: as tools\n<Query>: a keel\n<Document>: rope" in instructed
    assert "<Query>: a keel\n<Document>: rope" in plain
    assert plain.count("<Instruct>: ") == 1
    assert plain.endswith("<think>\n\n</think>\n\n")
    other = open_hf(tmp_path / "Qwen3-Reranker-Tiny", rank_template="{QUERY} | {DOCUMENT} =")
    ids = rank_ids(other.causal(), Rank(query="{DOCUMENT}", document="rope"), "{QUERY} | {DOCUMENT} =")
    assert not isinstance(ids, str)
    assert causal.text(ids) == "{DOCUMENT} | rope ="
    assert other.identity()["rank_template"] == "{QUERY} | {DOCUMENT} ="
    assert "rank_template" not in model.identity()


# Servers


def test_documents_of_one_query_go_in_one_call_and_a_refused_one_alone() -> None:
    with Loopback(record=True) as server:
        model = load_model("openai:loop", base_url=server.url, concurrency=1)
        requests = [
            Rank(query=query, document=f"{query} {n} {'[poison]' if (query, n) == ('a', 2) else ''}")
            for query in ("a", "b c")
            for n in range(5)
        ]
        responses = ask(model, *requests)
    assert server.bodies[0]["documents"] == [request.document for request in requests[:5]]
    for request, response in zip(requests, responses, strict=True):
        if "[poison]" in request.document:
            assert (response.status, response.rank) == ("error", None)
        else:
            assert response.rank == shared_words(request.query, request.document)


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (b'{"results": [{"index": 0, "relevance_score": 1}]}', "which result belongs to which text"),
        (b'[{"index": 1, "score": 1}, {"index": 1, "score": 2}]', "does not run from 0 to 1"),
        (b'[{"score": 1}, {"score": 2}]', "does not run from 0 to 1"),
        (b'[{"index": 0, "score": "0.5"}, {"index": 1, "score": true}]', "the score is not a number"),
        (b'[{"index": 0, "score": 1e300}, {"index": 1, "score": -1e300}]', "the score is out of range"),
    ],
)
def test_a_hostile_reply_is_no_score(reply: bytes, problem: str) -> None:
    responses = read_scores(reply, 2)
    assert [response.status for response in responses] == ["unparsed", "unparsed"]
    assert all(problem in response.reason for response in responses)


def test_scores_come_in_the_order_of_the_documents() -> None:
    scores = b'{"index": 2, "relevance_score": 3}, {"index": 0, "score": 0}, {"index": 1, "score": -1.5}'
    reply = b'{"results": [' + scores + b"]}"
    assert [response.rank for response in read_scores(reply, 3)] == [0, -1.5, 3]
    assert read_scores(b'[{"score": 0.25}]', 1) == [Response(status="ok", rank=0.25)]


# What a server refuses


@pytest.mark.parametrize(
    ("message", "left_out"),
    [
        ("Unsupported value: 'temperature' does not support 0 with this model.", ["temperature"]),
        ("`temperature` and `top_p` are deprecated for this model", ["temperature", "top_p"]),
        ("Unrecognized request argument supplied: seed", ["seed"]),
        ("this prompt about temperatures is not allowed", []),
        ("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", []),
    ],
)
def test_a_field_is_left_out_only_where_it_is_refused_as_such(message: str, left_out: list[str]) -> None:
    dialect = Dialect("m", OpenAIOptions(send_seed=True), {})
    dialect.learn(TryFailed("HTTP 400", message, status=400))
    assert [note.split("'")[1] for note in dialect.notes()] == left_out
    body = dialect._encoded({"temperature": 0, "top_p": 0.5, "seed": 1, "prompt": "x"})
    assert [name for name in ("temperature", "top_p", "seed") if f'"{name}"'.encode() not in body] == left_out


@pytest.mark.parametrize("score", [math.nan, math.inf])
def test_a_score_that_is_not_finite_is_a_failure(score: float) -> None:
    assert rank_response(score).status == "error"

"""On a CPU the digits of an answer do not depend on what shares its batch, nor on the number of threads."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from evenkeel.models.embedded import embedded_folder, embedder_folder
from evenkeel.models.hf import HuggingFace
from evenkeel.models.local import causal
from evenkeel.models.local.batching import Budget
from evenkeel.models.local.steps import rows
from evenkeel.models.registry import load_model
from evenkeel.types import Embed, LogLikelihood, Rank, Request, Response, StringLikelihood
from models.tiny import ARCHITECTURES, open_hf, same_bits, say, tiny_model

TEXTS = (
    "The quick brown fox jumps over the lazy dog and runs",
    "Hello",
    "Once upon a time there was a harbour in which",
    "1 2 3",
)
AFTER = " and more of the same"
JOINING = {"LlamaConfig", "GPT2Config"}
"""Architectures whose rows can be continued together whatever their length."""


def requests() -> list[Request]:
    asked: list[Request] = []
    for number, text in enumerate(TEXTS):
        asked += [
            LogLikelihood(prefix=text, continuation=AFTER),
            LogLikelihood(prefix=text, continuation=" A"),
            say(text, length_of=AFTER, beyond=6, words=4),
            *(say(text, temperature=1.0, top_p=0.9, repeat=repeat, max_tokens=9) for repeat in range(3)),
            say(text, max_tokens=3 + 5 * number),
            StringLikelihood(prefix=text, continuation=" ship"),
            Embed(text=text),
            Rank(query=text, document=TEXTS[0]),
        ]
    return asked


@pytest.fixture
def _threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def answers(
    model: HuggingFace, asked: list[Request], *, concurrency: int = 16, workers: int = 2
) -> dict[Request, Response]:
    """What a model answers that was opened with another concurrency, where there are so many cores."""
    model._causal()
    model._rows = concurrency
    model._budget = Budget(rows=concurrency, tokens=model._budget.tokens)
    model._workers = workers
    torch.set_num_threads(workers)
    done = dict(model.answer(asked))
    assert len(done) == len(asked)
    return done


@same_bits
@pytest.mark.usefixtures("_threads")
@pytest.mark.parametrize("architecture", ["LlamaConfig", "GPT2Config", "Gemma3TextConfig", "Lfm2Config"])
def test_a_causal_model_gives_the_same_bits_in_any_batch(architecture: str, tmp_path: Path) -> None:
    model = open_hf(tiny_model(tmp_path, architecture, **ARCHITECTURES[architecture]))
    expected = answers(model, requests())
    assert all(response.status != "error" for response in expected.values())
    assert model._causal().joins == (architecture in JOINING)
    for concurrency, workers in ((1, 1), (3, 2), (64, 3)):
        asked = requests()
        random.Random(concurrency).shuffle(asked)
        assert answers(model, asked, concurrency=concurrency, workers=workers) == expected
    # What a killed run left over: some of what was read together before is asked alone.
    for part in (requests()[::2], requests()[2::10]):
        assert answers(model, part) == {request: expected[request] for request in part}


@same_bits
@pytest.mark.usefixtures("_threads")
def test_the_embedded_model_gives_the_same_bits_in_any_batch() -> None:
    model = open_hf(embedded_folder())
    asked: list[Request] = [LogLikelihood(prefix=text, continuation=" A") for text in TEXTS]
    asked += [say(text, temperature=1.0, top_p=0.9, max_tokens=4) for text in TEXTS]
    assert answers(model, asked[::-1], concurrency=3, workers=1) == answers(model, asked)


@same_bits
@pytest.mark.usefixtures("_threads")
def test_padding_and_a_shared_attention_would_change_digits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without what keeps rows apart the last digits follow the batch: so the comparison above can fail."""
    monkeypatch.setattr(
        causal.Causal, "_of_equal_length", lambda loaded, texts, *, apart: [list(range(len(texts)))]
    )
    monkeypatch.setattr(causal, "use_row_attention", lambda model: None)
    monkeypatch.setattr(causal, "joins_rows", lambda loaded: False)
    model = open_hf(tiny_model(tmp_path, hidden_size=576, intermediate_size=1536))
    asked: list[Request] = [LogLikelihood(prefix=text, continuation=AFTER) for text in TEXTS]
    assert answers(model, asked, workers=1) != answers(model, asked, concurrency=1, workers=1)


@same_bits
@pytest.mark.usefixtures("_threads")
@pytest.mark.parametrize(("inputs", "outputs"), [(576, 1536), (1536, 576), (384, 384)])
def test_a_product_has_the_same_bits_for_any_number_of_rows(inputs: int, outputs: int) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    layer = torch.nn.Linear(inputs, outputs)
    rows.fill_products(layer)
    states = torch.randn(300, inputs)
    with torch.inference_mode():
        whole = layer(states)
        for count in (1, 2, 7, 15, 16, 17, 129):
            assert torch.equal(layer(states[:count]), whole[:count])
            assert torch.equal(layer(states[None, -count:]), whole[None, -count:])


def test_a_layer_that_gives_more_than_a_product_is_left_as_it_is() -> None:
    """The router of Llama 4 is a linear layer that gives scores and logits."""
    from transformers import Llama4TextConfig
    from transformers.models.llama4.modeling_llama4 import Llama4Router

    router = Llama4Router(Llama4TextConfig(hidden_size=16, num_local_experts=2))
    states = torch.randn(3, 16)
    expected = router(states)
    rows.fill_products(router)
    assert all(torch.equal(one, other) for one, other in zip(router(states), expected, strict=True))


@same_bits
@pytest.mark.usefixtures("_threads")
def test_an_embedder_gives_the_same_bits_in_any_batch() -> None:
    words = TEXTS[0].split()
    draw = random.Random(0)
    texts = [" ".join(draw.choices(words, k=draw.randint(1, 60))) for _ in range(60)]
    vectors = []
    for threads, options in ((2, {}), (1, {"concurrency": 1}), (3, {"concurrency": 3, "batch_tokens": 4096})):
        torch.set_num_threads(threads)
        model = load_model(f"sbert:{embedder_folder()}", device="cpu", **options)
        draw.shuffle(texts)
        vectors.append(
            {
                request.text: each.vector
                for request, each in model.answer([Embed(text=text) for text in texts])
                if isinstance(request, Embed)
            }
        )
        model.close()
    assert vectors[0] == vectors[1] == vectors[2]
    assert all(vectors[0].values())


def test_a_lone_text_is_computed_as_in_plain_transformers(shared: HuggingFace) -> None:
    from transformers import AutoModelForCausalLM

    loaded = shared._causal()
    plain = AutoModelForCausalLM.from_pretrained(loaded.model.config._name_or_path).eval()
    [(_, response)] = shared.answer([LogLikelihood(prefix=TEXTS[0], continuation=AFTER)])
    ids = loaded.tokenise(TEXTS[0] + AFTER)
    with torch.inference_mode():
        logprobs = plain(torch.tensor([ids])).logits[0].log_softmax(-1)
    assert response.logprobs is not None
    count = len(response.logprobs.values)
    places = range(len(ids) - count, len(ids))
    assert list(response.logprobs.values) == pytest.approx(
        [float(logprobs[at - 1, ids[at]]) for at in places], abs=1e-4
    )

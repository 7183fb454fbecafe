"""On a CPU an answer does not depend on what shares its batch, nor on the number of threads."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest
import torch

from models.tiny import say
from sealegs.models.embedded import embedder_folder
from sealegs.models.hf import HuggingFace
from sealegs.models.local.batching import Budget
from sealegs.models.registry import load_model
from sealegs.types import Embed, LogLikelihood, Rank, Request, Response, StringLikelihood

TEXTS = (
    "The quick brown fox jumps over the lazy dog and runs",
    "Hello",
    "Once upon a time there was a harbour in which",
    "1 2 3",
)
AFTER = " and more of the same"


def requests() -> list[Request]:
    asked: list[Request] = []
    for number, text in enumerate(TEXTS):
        asked += [
            LogLikelihood(prefix=text, continuation=AFTER),
            LogLikelihood(prefix=text, continuation=" A"),
            say(text, words=4),
            *(say(text, temperature=1.0, top_p=0.9, repeat=repeat, max_tokens=9) for repeat in range(3)),
            say(text, max_tokens=3 + 5 * number),
            StringLikelihood(prefix=text, continuation=" ship"),
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
    model.causal()
    model._rows = concurrency
    model._budget = Budget(rows=concurrency, tokens=model._budget.tokens)
    model._workers = workers
    torch.set_num_threads(workers)
    done = dict(model.answer(asked))
    assert len(done) == len(asked)
    return done


def check_alike(response: Response, expected: Response) -> None:
    """Texts are equal; log-probabilities differ by at most 1e-5."""
    assert (response.status, response.text) == (expected.status, expected.text)
    values, others = ((each.logprobs.values if each.logprobs else ()) for each in (response, expected))
    assert list(values) == pytest.approx(list(others), abs=1e-5)
    assert response.rank == pytest.approx(expected.rank, abs=1e-5)
    if response.string and expected.string:
        assert response.string.low == pytest.approx(expected.string.low, abs=1e-5)


@pytest.mark.usefixtures("_threads")
@pytest.mark.parametrize(
    "each",
    ["LlamaConfig", "Gemma3TextConfig", pytest.param("Lfm2Config", marks=pytest.mark.full)],
    indirect=True,
)
def test_an_answer_does_not_depend_on_its_batch(each: HuggingFace) -> None:
    expected = answers(each, requests())
    assert all(response.status != "error" for response in expected.values())
    batches = [random.Random(concurrency).sample(requests(), len(requests())) for concurrency in (1, 64)]
    for concurrency, asked in zip((1, 64), batches, strict=True):
        for request, response in answers(each, asked, concurrency=concurrency, workers=1).items():
            check_alike(response, expected[request])
    # What a killed run left over: some of what was read together before is asked alone.
    for request, response in answers(each, requests()[::2]).items():
        check_alike(response, expected[request])


@pytest.mark.usefixtures("_threads")
def test_a_vector_does_not_depend_on_its_batch() -> None:
    words = TEXTS[0].split()
    draw = random.Random(0)
    texts = [" ".join(draw.choices(words, k=draw.randint(1, 60))) for _ in range(20)]
    vectors = []
    for threads, options in ((2, {}), (1, {"concurrency": 3, "batch_tokens": 4096})):
        torch.set_num_threads(threads)
        model = load_model(f"sbert:{embedder_folder()}", device="cpu", **options)
        shuffled: list[Request] = [Embed(text=text) for text in draw.sample(texts, len(texts))]
        responses = dict(model.answer(shuffled))
        model.close()
        vectors.append([np.frombuffer(responses[Embed(text=text)].vector or b"", "<f4") for text in texts])
    for other in vectors[1:]:
        assert np.abs(np.stack(other) - np.stack(vectors[0])).max() < 1e-6

"""One step of generation: its noise, its attention, and what it may not depend on."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
import torch

from models import tiny
from models.tiny import ARCHITECTURES, ask, naive_ids, open_hf, say, shapes_read, tiny_model
from sealegs.models.hf import HuggingFace
from sealegs.models.local import causal, generation
from sealegs.models.local.checks import reads_padded
from sealegs.models.local.generation import TokenisedPrompt, generate
from sealegs.models.local.reading import SHARED, shared_beginning
from sealegs.models.local.steps import attention, recorded
from sealegs.models.local.steps.attention import NAME, rounded_up, step_attention, widened
from sealegs.models.local.steps.recorded import RecordedSteps
from sealegs.models.local.steps.sampling import largest_in_nucleus, log_exponentials
from sealegs.types import LogLikelihood, Request

TEXTS = (*tiny.TEXTS, "1 2 3")


# Noise


NOISE = (
    *((-0.37248, -0.59944, 0.17158), (-0.20964, 0.58055, -0.44865), (0.87758, -0.36739, 0.28089)),
    *((-7.13085, -0.49803, -1.33359), (0.92040, -0.36619, -2.50865), (-6.11783, -5.34781, -2.00014)),
)


def test_noise_has_the_same_digits_on_every_machine() -> None:
    """A seed gives the texts of yesterday: the digits are those of unsigned arithmetic, which wraps."""
    seeds = torch.tensor(np.array([0, 2**63, 2**64 - 1], np.uint64).view(np.int64))
    noise = [row[::200].tolist() for step in (0, 100_000) for row in log_exponentials(seeds, step, 500)]
    assert noise == [pytest.approx(row, abs=1e-4) for row in NOISE]


def test_the_nucleus_is_that_of_sorted_probabilities() -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(60, 3000, generator=generator) * torch.linspace(0.01, 8, 60)[:, None]
    shares = torch.linspace(0.01, 0.99, 60)[torch.randperm(60, generator=generator)]
    ordered, order = logits.double().softmax(-1).sort(-1, descending=True)
    inside = torch.zeros(60, 3000, dtype=torch.bool).scatter(
        -1, order, ordered.cumsum(-1) - ordered < shares[:, None]
    )
    differing = 0
    for _ in range(40):
        scores = torch.rand(60, 3000, generator=generator)  # so most of the largest are outside
        expected = scores.masked_fill(~inside, -torch.inf).argmax(-1)
        differing += int((largest_in_nucleus(scores, logits.softmax(-1), shares) != expected).sum())
    assert differing <= 24  # of 2,400, each at a rounding error: the last token of the nucleus


def test_tokens_tied_at_the_edge_of_the_nucleus_stay() -> None:
    probabilities = torch.tensor([[0.4, 0.2, 0.2, 0.1, 0.1]]).expand(5, -1)
    tokens = largest_in_nucleus(torch.eye(5), probabilities, torch.full((5,), 0.5))
    assert tokens.tolist() == [0, 1, 2, 0, 0]


# Attention


@pytest.mark.parametrize("shared_keys", [1, 2, 4])
@pytest.mark.parametrize("kind", ["none", "bool", "float"])
@pytest.mark.parametrize("places", [8, 13])
def test_attention_of_a_step_is_that_of_torch(shared_keys: int, kind: str, places: int) -> None:
    torch.manual_seed(0)
    query = torch.randn(3, 4, 1, 16)
    stores = torch.randn(2, 3, 4 // shared_keys, 40, 16)
    stores[..., places:, :] = 0
    key, value = (widened(store, places) for store in stores)
    visible = torch.rand(3, 1, 1, places) > 0.4
    visible[..., -1] = True
    mask = {"none": None, "bool": visible, "float": torch.where(visible, 0.5, -1e9)}[kind]
    ours = step_attention(query, key, value, mask, None)
    keys, values = (each.repeat_interleave(shared_keys, 1) for each in (key, value))
    theirs = torch.nn.functional.scaled_dot_product_attention(query, keys, values, attn_mask=mask)
    assert torch.allclose(ours, theirs.transpose(1, 2), atol=1e-6)
    plain = step_attention(query, key.clone(), value.clone(), mask, None)
    assert torch.allclose(ours, plain, atol=1e-6)
    assert rounded_up(places) % 8 == 0
    assert not torch.allclose(ours, step_attention(query, key, value, mask, 1.0), atol=1e-3)


@pytest.mark.parametrize("architecture", ["LlamaConfig", "MistralConfig"])
def test_a_model_with_it_writes_the_same(architecture: str, tmp_path: Path) -> None:
    model = open_hf(tiny_model(tmp_path, architecture, **ARCHITECTURES[architecture]))
    causal = model.causal()
    prompts = [TokenisedPrompt(tuple(causal.tokenise(text)), 0, 1, 0, 12, ()) for text in TEXTS]
    expected = [naive_ids(model, list(prompt.ids), 12) for prompt in prompts]
    causal.can_merge_cache = False  # as on a GPU
    assert causal.model.config._attn_implementation == NAME
    assert reads_padded(causal)
    for each, ids in zip(generate(causal, prompts), expected, strict=True):
        assert each.ids == [token for token in ids if token not in causal.end_ids]
    [alone] = generate(causal, prompts[:1])
    assert alone.ids == [token for token in expected[0] if token not in causal.end_ids]


# Reading tokens a step late


def test_tokens_that_are_read_late_give_the_same_texts(
    shared: HuggingFace, monkeypatch: pytest.MonkeyPatch
) -> None:
    [whole] = ask(shared, say(TEXTS[0], max_tokens=12))
    requests: list[Request] = [
        say(text, repeat=repeat, temperature=float(repeat), max_tokens=1 + 3 * repeat)
        for text in TEXTS
        for repeat in range(4)
    ]
    requests += [say(TEXTS[0], max_tokens=12, stop=(whole.text[10:14],)), say("word " * 120, max_tokens=40)]
    at_once = ask(shared, *requests)
    monkeypatch.setattr(generation, "AHEAD", {"cpu"})
    assert ask(shared, *requests) == at_once


# Steps with a fixed number of keys, as a GPU records them


@pytest.mark.parametrize("architecture", ["LlamaConfig", "Gemma3TextConfig"])
def test_steps_with_places_to_spare_give_the_same_texts(
    architecture: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = open_hf(tiny_model(tmp_path, architecture, **ARCHITECTURES[architecture]))
    requests: list[Request] = [
        say(text, repeat=repeat, temperature=float(repeat), top_p=1 - repeat / 10, max_tokens=1 + 9 * repeat)
        for text in TEXTS[:3]
        for repeat in range(3)
    ]
    requests += [LogLikelihood(prefix=text, continuation=" and more of it") for text in TEXTS]
    requests += [say(text, words=5) for text in TEXTS]
    requests += [say("word " * 120, max_tokens=40)]  # to the end of the context
    expected = ask(model, *requests)
    monkeypatch.setattr(generation, "RECORDED", {"cpu"})
    monkeypatch.setattr(recorded, "BLOCK", 8)
    monkeypatch.setattr(recorded, "ROOM", 16)
    with patch.object(RecordedSteps, "read", autospec=True, side_effect=RecordedSteps.read) as read:
        assert ask(model, *requests) == expected
    assert read.called == (architecture != "Gemma3TextConfig")  # a sliding window has no places to spare


def test_rows_of_one_prompt_share_its_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Prompts of unequal length, padded on the right, and rows that end at different steps."""
    model = open_hf(tiny_model(tmp_path, "LlamaConfig", **ARCHITECTURES["LlamaConfig"]))
    requests: list[Request] = [
        say(text, repeat=repeat, temperature=1.0, max_tokens=1 + 7 * repeat + number)
        for number, text in enumerate(TEXTS[:3])
        for repeat in range(1 + 2 * number)
    ]
    expected, attend = ask(model, *requests), attention._attention_with_prompts
    for module in (causal, generation):
        monkeypatch.setattr(module, "RIGHT_PADDED", {"cpu"})
    monkeypatch.setattr(causal, "PART_TOKENS", 12)
    monkeypatch.setattr(generation, "RECORDED", {"cpu"})
    monkeypatch.setattr(recorded, "BLOCK", 8)
    with patch.object(attention, "_attention_with_prompts", side_effect=attend) as attending:
        assert ask(model, *requests) == expected
    assert attending.called


@pytest.mark.parametrize("heads", [2, 4])
def test_what_all_prompts_begin_with_is_read_once(
    heads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = ARCHITECTURES["LlamaConfig"] | {"num_key_value_heads": heads}
    model = open_hf(tiny_model(tmp_path, "LlamaConfig", **settings))
    requests = [say(f"{' '.join(2 * TEXTS)} {text}", max_tokens=1) for text in TEXTS]
    expected = ask(model, *requests)
    monkeypatch.setattr(causal, "RIGHT_PADDED", {"cpu"})
    with shapes_read(model) as shapes:
        assert ask(model, *requests) == expected
    rows = [model.causal().tokenise(str(request.prompt)) for request in requests]
    start = shared_beginning(rows)
    assert start > SHARED
    assert shapes == [(1, start), (len(rows), max(map(len, rows)) - start)]

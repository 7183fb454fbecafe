"""`hf:` on a GPU against the same model on the CPU. Skipped where there is no CUDA device."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from models.tiny import TEXTS, ask, logprobs_of, open_hf, say, tiny_model
from sealegs.models.hf import HuggingFace
from sealegs.models.local import batching
from sealegs.models.local.causal import Causal, Step
from sealegs.models.local.steps.attention import NAME, SharedPrompts, slots_of, step_attention
from sealegs.models.local.steps.recorded import RecordedSteps
from sealegs.models.registry import load_model
from sealegs.types import LogLikelihood, Request

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("tiny"), max_position_embeddings=4096)


def on_gpu(folder: Path, **args: object) -> HuggingFace:
    model = load_model(f"hf:{folder}", device="cuda", **args)
    assert isinstance(model, HuggingFace)
    return model


@pytest.fixture(scope="module")
def gpu(folder: Path) -> Iterator[HuggingFace]:
    model = on_gpu(folder, dtype="float32")
    yield model
    model.close()


def test_repeats_that_share_a_prompt_are_the_same_as_alone(gpu: HuggingFace) -> None:
    requests = [
        say(text * 8, repeat=repeat, temperature=1.0, max_tokens=20 + 30 * repeat)
        for text in TEXTS
        for repeat in range(4)
    ]
    together = [response.text for response in ask(gpu, *requests)]
    assert together == [ask(gpu, request)[0].text for request in requests]


@pytest.mark.parametrize(("dtype", "tokens"), [("float32", 8), ("bfloat16", 1)])
def test_texts_after_the_same_beginning_are_those_of_the_cpu(folder: Path, dtype: str, tokens: int) -> None:
    """In half precision, which rounds otherwise on each device, their first tokens."""
    requests = [say(f"{' '.join(8 * TEXTS)} {text}", max_tokens=tokens) for text in TEXTS]
    texts = []
    for device in ("cuda", "cpu"):
        model = load_model(f"hf:{folder}", device=device, dtype=dtype)
        texts.append([response.text for response in ask(model, *requests)])
        model.close()
    assert texts[0] == texts[1]


def test_texts_end_where_they_do_on_the_cpu(folder: Path, gpu: HuggingFace) -> None:
    """Though the GPU is a step ahead of what is read: at a stop string, or at the number of tokens."""
    cpu = open_hf(folder, dtype="float32")
    whole = ask(cpu, *(say(text) for text in TEXTS))
    requests = [
        say(text, stop=(response.text[6:9],)) for text, response in zip(TEXTS, whole, strict=True)
    ] + [say(text, max_tokens=1 + number) for number, text in enumerate(TEXTS)]
    assert ask(gpu, *requests) == ask(cpu, *requests)
    cpu.close()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("kind", ["LlamaConfig", "Qwen3Config", "GemmaConfig"])
def test_fused_kernels_give_the_digits_of_the_models_own_code(tmp_path: Path, dtype: str, kind: str) -> None:
    """Whatever the batch; of Gemma, whose norms and activations are others, the rotations are fused alone."""
    model = on_gpu(tiny_model(tmp_path, kind), dtype=dtype)
    network = model.causal().model
    torch.manual_seed(0)
    batches = [torch.randint(0, 300, shape, device="cuda") for shape in ((1, 1), (3, 17), (40, 60))]
    with torch.inference_mode():
        fused = [network(ids).logits for ids in batches]
        replaced = [module for module in network.modules() if "forward" in vars(module)]
        for module in replaced:
            del module.forward
        assert all(map(torch.equal, fused, (network(ids).logits for ids in batches)))
    assert replaced
    model.close()


def test_nothing_is_fused_in_single_precision(gpu: HuggingFace) -> None:
    assert not any("forward" in vars(module) for module in gpu.causal().model.modules())


def test_half_precision_gives_the_same_log_probabilities_with_and_without_kernels(folder: Path) -> None:
    model = on_gpu(folder, dtype="bfloat16")
    requests = [LogLikelihood(prefix=text, continuation=" and more of it") for text in TEXTS]
    fused = [logprobs_of(response).values for response in ask(model, *requests)]
    for module in model.causal().model.modules():
        vars(module).pop("forward", None)
    for ours, eager in zip(fused, ask(model, *requests), strict=True):
        assert ours == pytest.approx(logprobs_of(eager).values, abs=2e-2)
    model.close()


@pytest.mark.parametrize("prompts", [None, [0, 0, 1, 1, 2, 2], [0, 1, 2, 0, 0, 1], [0, 0, 0, 0, 0, 0]])
def test_the_fused_softmax_of_a_step_is_that_of_torch(prompts: list[int] | None) -> None:
    """Of rows alone, and of rows that share prompts, in order or not."""
    from sealegs.models.local.steps.fused import masked_softmax

    torch.manual_seed(0)
    query = torch.randn(6, 8, 1, 64, device="cuda", dtype=torch.bfloat16)
    key, value = torch.randn(2, 6, 2, 21, 64, device="cuda", dtype=torch.bfloat16)
    before = 0
    if prompts is not None:
        before, slots = 40, slots_of(prompts)
        shared = torch.randn(2, max(prompts) + 1, 2, before, 64, device="cuda", dtype=torch.bfloat16)
        in_order = slots[0] == list(range(6))
        order = (None, None) if in_order else tuple(torch.tensor(each, device="cuda") for each in slots)
        key.prompts = SharedPrompts(shared[0], shared[1], *order)
    mask = torch.rand(6, 1, 1, before + 21, device="cuda") > 0.3
    mask[..., -1] = True
    fused, plain = (step_attention(query, key, value, mask, None, each) for each in (masked_softmax, None))
    assert torch.allclose(fused, plain, atol=0.02)


def test_attention_of_a_step_is_that_of_the_fused_kernels(gpu: HuggingFace) -> None:
    assert gpu.causal().model.config._attn_implementation == NAME
    torch.manual_seed(0)
    query = torch.randn(5, 8, 1, 64, device="cuda", dtype=torch.bfloat16)
    key, value = torch.randn(2, 5, 2, 21, 64, device="cuda", dtype=torch.bfloat16)
    mask = torch.rand(5, 1, 1, 21, device="cuda") > 0.3
    mask[..., -1] = True
    keys, values = (each.repeat_interleave(4, 1) for each in (key, value))
    theirs = torch.nn.functional.scaled_dot_product_attention(query, keys, values, attn_mask=mask)
    ours = step_attention(query, key, value, mask, None)
    assert torch.allclose(ours, theirs.transpose(1, 2), atol=0.02)


def test_log_probabilities_are_those_of_the_cpu(folder: Path, gpu: HuggingFace) -> None:
    requests = [LogLikelihood(prefix=text, continuation=" and more of it") for text in TEXTS]
    cpu = open_hf(folder, dtype="float32")
    for ours, theirs in zip(ask(gpu, *requests), ask(cpu, *requests), strict=True):
        assert logprobs_of(ours).tokens == logprobs_of(theirs).tokens
        assert logprobs_of(ours).values == pytest.approx(logprobs_of(theirs).values, abs=2e-3)
    cpu.close()


def wait_for_the_device(*_: object) -> None:
    torch.ones(1, device="cuda").item()


def test_recorded_steps_give_the_texts_of_the_cpu(folder: Path, gpu: HuggingFace) -> None:
    """Over several widths of the keys, with rows that end early, sampled from a nucleus or greedy."""
    requests: list[Request] = [
        say(text, temperature=float(n % 3 > 0), top_p=1 - n / 20, repeat=n, max_tokens=10 + 30 * n)
        for text in TEXTS
        for n in range(6)
    ]
    cpu = open_hf(folder, dtype="float32")
    assert [r.text for r in ask(gpu, *requests)] == [r.text for r in ask(cpu, *requests)]
    assert gpu.causal().cuda_graph_ok
    cpu.close()


@pytest.mark.parametrize("noticed", [True, False])
def test_steps_that_wait_for_the_device_are_not_recorded(
    folder: Path, gpu: HuggingFace, noticed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even where that shows only in a recording that fails: memory can be given back after it."""
    if not noticed:
        monkeypatch.setattr(RecordedSteps, "_waits", RecordedSteps._forward)  # gives None: it does not wait
    model = on_gpu(folder, dtype="float32")
    model.causal().model.register_forward_pre_hook(wait_for_the_device)
    requests = [say(text, max_tokens=100) for text in TEXTS]
    assert ask(model, *requests) == ask(gpu, *requests)
    assert model.causal().cuda_graph_ok is False
    batching.free_memory()
    assert ask(model, *requests) == ask(gpu, *requests)
    model.close()


def test_memory_that_runs_out_in_a_recording_halves_the_batch(
    folder: Path, gpu: HuggingFace, monkeypatch: pytest.MonkeyPatch
) -> None:
    forward, failures = Causal.forward, 0

    def short_of_memory(*args: Any, **kwargs: Any) -> Step:
        nonlocal failures
        if torch.cuda.is_current_stream_capturing() and not failures:
            failures += 1
            torch.empty(2**45, device="cuda")
        return forward(*args, **kwargs)

    model = on_gpu(folder, dtype="float32")
    ask(model, say("warm"))
    tokens = model._budget.tokens
    monkeypatch.setattr(Causal, "forward", short_of_memory)
    requests = [say(text, repeat=n, temperature=1.0, max_tokens=100) for text in TEXTS for n in range(4)]
    assert [r.text for r in ask(model, *requests)] == [r.text for r in ask(gpu, *requests)]
    assert failures == 1
    assert model._budget.tokens < tokens
    assert model.causal().cuda_graph_ok
    model.close()


def test_running_out_of_real_memory_halves_the_batch(tmp_path: Path) -> None:
    """A wide model with room for few rows: the batch shrinks until it fits, and every request is answered."""
    path = tiny_model(tmp_path, hidden_size=1024, intermediate_size=4096, max_position_embeddings=4096)
    model = on_gpu(path, dtype="float32", concurrency=256, batch_tokens=10_000_000)
    ask(model, say("warm"))
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + 600 * 2**20) / total)
    try:
        requests = [say(f"{n} " + "word " * 1500, max_tokens=4) for n in range(64)]
        responses = ask(model, *requests)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert {response.status for response in responses} <= {"ok", "truncated"}
    assert model._budget.tokens < 10_000_000
    model.close()

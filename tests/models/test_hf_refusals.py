"""What `hf:` refuses to load: a checkpoint that is not whole, and a model that is not causal."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from models.tiny import (
    ARCHITECTURES,
    EACH_ARCHITECTURE,
    ask,
    change_tensors,
    drop_tensors,
    logprobs_of,
    open_hf,
    say,
    tiny_gguf,
    tiny_model,
    tiny_other,
)
from sealegs.errors import MissingExtra, UsageError
from sealegs.models.hf import HuggingFace
from sealegs.models.local.checks import check_causal
from sealegs.types import LogLikelihood

Tensors = dict[str, Any]
PAIR = LogLikelihood(prefix="The sky", continuation=" is blue")


def refused(path: Path, **args: Any) -> str:
    """The error that a model ends with before it answers anything."""
    model = open_hf(path, **args)
    with pytest.raises(UsageError) as error:
        ask(model, PAIR)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)
    return str(error.value)


# Tensors


@pytest.fixture(scope="module")
def untied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("untied"), tie_word_embeddings=False)


@pytest.fixture(scope="module")
def gguf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A GGUF file that lacks two tensors."""
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    return tiny_gguf(path, leave_out=["blk.0.ffn_up", "output_norm"])


@pytest.fixture
def copied(untied: Path, tmp_path: Path) -> Path:
    return shutil.copytree(untied, tmp_path / "copied")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (drop_tensors("lm_head"), "1 tensor (lm_head.weight) is missing, and would be "),
        (drop_tensors("q_proj"), "2 tensors (model.layers.0.self_attn.q_proj.weight, "),
        (
            lambda tensors: tensors.update({"v_head.weight": torch.zeros(1, 64)}),
            "1 tensor (v_head.weight) is unexpected",
        ),
        (
            lambda tensors: tensors.update({"model.norm.weight": torch.ones(32)}),
            "1 tensor (model.norm.weight: [32] in the file, [64] in the model) is of another shape",
        ),
    ],
    ids=["head", "projections", "unexpected", "shape"],
)
def test_a_checkpoint_with_other_tensors_is_refused_by_name(
    copied: Path, change: Callable[[Tensors], None], message: str
) -> None:
    error = refused(change_tensors(copied, change))
    assert message in error
    assert "LlamaForCausalLM" in error


def test_tied_weights_and_old_buffers_are_not_missed(untied: Path, copied: Path, tmp_path: Path) -> None:
    buffer = {"model.layers.0.self_attn.rotary_emb.inv_freq": torch.zeros(8)}
    change_tensors(copied, lambda tensors: tensors.update(buffer))
    assert ask(open_hf(copied), PAIR) == ask(open_hf(untied), PAIR)
    tied = tiny_model(tmp_path / "tied", tie_word_embeddings=True)
    [response] = ask(open_hf(tied), PAIR)
    assert logprobs_of(response).tokens == (" is", " blue")


def test_a_gguf_file_without_tensors_is_refused_by_name(gguf: Path) -> None:
    assert "2 tensors (model.layers.0.mlp.up_proj.weight, model.norm.weight) are missing" in refused(gguf)


# Files


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (lambda whole: whole[:-1000], r"and its header names [\d,]+\. Fetch it again"),
        (lambda whole: whole[:100], "its 100 bytes end within the header"),
        (lambda whole: (5).to_bytes(8, "little") + b"{nix}", "its header cannot be read"),
        (lambda whole: b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
    ],
)
def test_an_incomplete_weights_file_is_refused_by_name(
    copied: Path, content: Callable[[bytes], bytes], message: str
) -> None:
    file = copied / "model.safetensors"
    file.write_bytes(content(file.read_bytes()))
    with pytest.raises(UsageError, match=message) as error:
        open_hf(copied).probe(frozenset())  # before anything is asked
    assert str(file) in str(error.value)


def test_a_missing_shard_is_refused_by_name(untied: Path, copied: Path) -> None:
    (copied / "model.safetensors").unlink()
    AutoModelForCausalLM.from_pretrained(untied).save_pretrained(copied, max_shard_size="10MB")
    assert ask(open_hf(copied), PAIR) == ask(open_hf(untied), PAIR)
    shard = sorted(copied.glob("*.safetensors"))[1]
    shard.unlink()
    assert f"lacks 1 of the weights files that its index names: {shard.name}." in refused(copied)


@pytest.mark.parametrize("size", [100, 2000, -5000])
def test_an_incomplete_gguf_file_is_refused(gguf: Path, tmp_path: Path, size: int) -> None:
    path = tmp_path / "tiny.gguf"
    path.write_bytes(gguf.read_bytes()[:size])
    complete_header = size == -5000
    assert ("tiny.gguf is not a complete GGUF file" in refused(path)) != complete_header


@pytest.mark.parametrize("length", [2**40, 2**63])
def test_a_gguf_header_that_names_more_than_its_file_is_refused(length: int, tmp_path: Path) -> None:
    """132 bytes, of which a reader that believes them makes lists without end."""
    key = struct.pack("<Q", 7) + b"general"
    counts = struct.pack("<4sIQQ", b"GGUF", 3, 0, 1)
    path = tmp_path / "tiny.gguf"
    for value in (struct.pack("<IIQ", 9, 4, length), struct.pack("<IQ", 8, length)):
        path.write_bytes((counts + key + value).ljust(132, b"\0"))
        with pytest.raises(UsageError, match=r"tiny\.gguf is not a complete GGUF file"):
            open_hf(path).identity()
    path.write_bytes(struct.pack("<4sIQQ", b"GGUF", 3, length, 0).ljust(132, b"\0"))
    with pytest.raises(UsageError, match="its header names"):
        open_hf(path).identity()


# Causality


def test_an_encoder_decoder_model_is_refused(tmp_path: Path) -> None:
    path = tiny_other(tmp_path, "BartForConditionalGeneration")
    assert "is an encoder-decoder model; hf: needs a causal" in refused(path)


@pytest.mark.parametrize("model_class", ["BertForMaskedLM", "RobertaForCausalLM"])
def test_a_model_that_reads_both_ways_is_refused(model_class: str, tmp_path: Path) -> None:
    assert "is not causal" in refused(tiny_other(tmp_path, model_class))


def test_positions_that_do_not_begin_at_0_are_refused(tmp_path: Path) -> None:
    """RoBERTa's kind begins after the id of its padding token."""
    message = refused(tiny_model(tmp_path, "RobertaConfig", is_decoder=True))
    assert "does not count the places of a text from 0" in message


def ahead(states: torch.Tensor, places: int) -> torch.Tensor:
    """Every place sees a little of the one so many places further on."""
    return states + 0.05 * torch.cat([states[:, places:], torch.zeros_like(states[:, :places])], 1)


def in_blocks(states: torch.Tensor, size: int) -> torch.Tensor:
    """Every place sees a little of all of its block."""
    blocks = [block.mean(1, keepdim=True).expand_as(block) for block in torch.split(states, size, 1)]
    return states + 0.05 * torch.cat(blocks, 1)


@pytest.fixture(scope="module", params=["float32", pytest.param("bfloat16", marks=pytest.mark.full)])
def causal_model(folder: Path, request: pytest.FixtureRequest) -> Iterator[HuggingFace]:
    """In single and in half precision."""
    model = open_hf(folder, dtype=request.param)
    yield model
    model.close()


@pytest.mark.parametrize(
    "leak",
    [
        *(lambda states, n=n: ahead(states, n) for n in (1, 20)),
        *(lambda states, n=n: in_blocks(states, n) for n in (2, 64)),
        # Of a text its beginning only, and padded text only.
        lambda states: torch.cat([in_blocks(states[:, :4], 4), states[:, 4:]], 1),
        lambda states: ahead(states, 1) if states.shape[1] in (11, 35) else states,
    ],
)
def test_every_kind_of_leak_is_found(causal_model: HuggingFace, leak: Any) -> None:
    causal = causal_model.causal()
    check_causal(causal)
    hook = causal.model.model.embed_tokens.register_forward_hook(lambda module, args, states: leak(states))
    try:
        with pytest.raises(UsageError, match="LlamaForCausalLM is not causal"):
            check_causal(causal)
    finally:
        hook.remove()


@pytest.mark.parametrize("architecture", EACH_ARCHITECTURE)
def test_a_causal_model_in_half_precision_is_not_refused(architecture: str, tmp_path: Path) -> None:
    model = open_hf(tiny_model(tmp_path, architecture, **ARCHITECTURES[architecture]), dtype="bfloat16")
    assert model.causal().can_pad == (architecture not in ("RwkvConfig", "MiniMaxConfig", "MptConfig"))


def test_an_adapter_is_not_ignored(tmp_path: Path) -> None:
    path = tiny_model(tmp_path)
    (path / "adapter_config.json").write_text('{"peft_type": "LORA"}')
    with pytest.raises(MissingExtra, match="which has an adapter, needs the package 'peft'"):
        ask(open_hf(path), say("Hello"))
    before = open_hf(path).identity()
    (path / "adapter_config.json").write_text('{"peft_type": "LORA", "lora_alpha": 32}')
    assert open_hf(path).identity() != before

"""Models with random weights, small enough to make on the fly, with the embedded model's real tokenizer;
and how the tests ask them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from sealegs.harness.model import Model
from sealegs.models.embedded import embedded_folder, embedded_gguf, embedder_folder
from sealegs.models.hf import HuggingFace
from sealegs.models.registry import load_model
from sealegs.types import Generate, Logprobs, Message, Request, Response, Sampling

TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja")
SIZES = {"vocab_size": 49152, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2}
HEADS = {"num_attention_heads": 4, "num_key_value_heads": 2}
ENDS = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 2}
CONTEXT = {"max_position_embeddings": 128}

ARCHITECTURES: dict[str, dict[str, Any]] = {
    "LlamaConfig": {},
    "GPT2Config": {},
    "MistralConfig": {"sliding_window": 8},
    "Gemma3TextConfig": {
        "sliding_window": 8,
        "head_dim": 16,
        "layer_types": ["sliding_attention", "full_attention"],
    },
    "Lfm2Config": {"layer_types": ["conv", "full_attention"]},
    "MambaConfig": {},
    "RwkvConfig": {"context_length": 128, "attention_hidden_size": 64},
    "MptConfig": {"d_model": 64, "n_heads": 4, "n_layers": 2, "max_seq_len": 128},
    "MiniMaxConfig": {
        "layer_types": ["linear_attention", "full_attention"],
        "head_dim": 16,
        "num_local_experts": 4,
        "block_size": 8,
    },
    "GPTNeoConfig": {"window_size": 8, "attention_types": [[["global", "local"], 1]]},
}

COMMON = ("LlamaConfig", "Gemma3TextConfig", "MambaConfig")
"""Plain attention, sliding windows, a recurrent state: the others are tried by `make full`."""
EACH_ARCHITECTURE = [
    name if name in COMMON else pytest.param(name, marks=pytest.mark.full) for name in ARCHITECTURES
]

TEXTS = ("The quick brown fox jumps over the lazy dog and runs", "Hello", "Once upon a time there was")
TOKENS = 1000
VOCABULARY = ("tokens", "merges", "token_type")


def tiny_model(folder: Path, config_class: str = "LlamaConfig", **settings: Any) -> Path:
    """Write a model folder. The weights are spread wide, so that no two tokens are nearly as likely."""
    import torch
    import transformers

    torch.manual_seed(0)
    settings = {**SIZES, **HEADS, **ENDS, **CONTEXT, "initializer_range": 0.3, **settings}
    config = getattr(transformers, config_class)(**settings)
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    return with_tokenizer(folder)


def tiny_other(folder: Path, model_class: str, **settings: Any) -> Path:
    """Write a model folder of any other class of transformers."""
    import torch
    import transformers

    torch.manual_seed(0)
    cls = getattr(transformers, model_class)
    sizes = {"d_model": 64, "encoder_layers": 1, "decoder_layers": 1, "num_layers": 1, "num_hidden_layers": 1}
    heads = {"encoder_attention_heads": 4, "decoder_attention_heads": 4, "num_heads": 4, "d_kv": 16}
    wide = {"encoder_ffn_dim": 96, "decoder_ffn_dim": 96, "d_ff": 96, "decoder_start_token_id": 1}
    settings = {**SIZES, **HEADS, **ENDS, **CONTEXT, **sizes, **heads, **wide, **settings}
    cls(cls.config_class(**settings)).save_pretrained(folder)
    return with_tokenizer(folder)


def with_tokenizer(folder: Path) -> Path:
    for name in TOKENIZER_FILES:
        shutil.copy(embedded_folder() / name, folder)
    return folder


def with_template(folder: Path, copy: Path, single: str) -> Path:
    """The same model, its tokenizer made to put special tokens around every text."""
    from tokenizers.processors import TemplateProcessing
    from transformers import AutoTokenizer

    shutil.copytree(folder, copy)
    tokenizer = AutoTokenizer.from_pretrained(copy)
    ids = [(token, tokenizer.convert_tokens_to_ids(token)) for token in ("<|im_start|>", "<|im_end|>")]
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(single=single, special_tokens=ids)
    tokenizer.save_pretrained(copy)
    return copy


def drop_tensors(part: str) -> Callable[[dict[str, Any]], None]:
    """A change that takes out every tensor with this in its name."""

    def change(tensors: dict[str, Any]) -> None:
        for name in [name for name in tensors if part in name]:
            del tensors[name]

    return change


def change_tensors(folder: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """Write a folder's weights again after a change."""
    from safetensors.torch import load_file, save_file

    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


@cache
def embedded_reader() -> Any:
    """The embedded model's file; reading its header takes seconds."""
    import gguf

    return gguf.GGUFReader(embedded_gguf())


def tiny_gguf(path: Path, *, leave_out: Sequence[str] = ()) -> Path:
    """Write a GGUF file: the embedded model's header and first tokens, with one small random layer."""
    import gguf
    import numpy as np

    reader = embedded_reader()
    writer = gguf.GGUFWriter(path, "llama")
    sizes = {"embedding_length": 64, "block_count": 1, "feed_forward_length": 96, "rope.dimension_count": 16}
    sizes |= {"attention.head_count": 4, "attention.head_count_kv": 2, "context_length": 128}
    for key, size in sizes.items():
        writer.add_uint32(f"llama.{key}", size)
    tokens, merges, types = (reader.fields[f"tokenizer.ggml.{of}"].contents() for of in VOCABULARY)
    tokens = tokens[:TOKENS]
    known = set(tokens)
    merges = [merge for merge in merges if merge.replace(" ", "") in known]
    shortened = dict(
        zip((f"tokenizer.ggml.{of}" for of in VOCABULARY), (tokens, merges, types[:TOKENS]), strict=True)
    )
    for field in reader.fields.values():
        derived = field.name.startswith("GGUF.") or field.name == "general.architecture"
        if derived or field.name.removeprefix("llama.") in sizes:
            continue
        kind, sub = field.types[0], field.types[-1] if len(field.types) > 1 else None
        writer.add_key_value(field.name, shortened.get(field.name, field.contents()), kind, sub)
    draw = np.random.default_rng(0)
    shapes: dict[str, tuple[int, ...]] = {"token_embd": (TOKENS, 64), "output_norm": (64,)}
    block: dict[str, tuple[int, ...]] = {"attn_norm": (64,), "ffn_norm": (64,), "attn_output": (64, 64)}
    block |= {"attn_q": (64, 64), "attn_k": (32, 64), "attn_v": (32, 64)}
    block |= {"ffn_gate": (96, 64), "ffn_up": (96, 64), "ffn_down": (64, 96)}
    shapes |= {f"blk.0.{name}": shape for name, shape in block.items()}
    for name, shape in shapes.items():
        if name in leave_out:
            continue
        writer.add_tensor(f"{name}.weight", draw.normal(0, 0.3, shape).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def tiny_cross_encoder(folder: Path, *, labels: int = 1) -> Path:
    """Write a cross-encoder with random weights, spread wide."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(0)
    config = BertConfig(
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=128,
        initializer_range=0.3,
        num_labels=labels,
    )
    BertForSequenceClassification(config).save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt"):
        shutil.copy(embedder_folder() / name, folder)
    return folder


def open_hf(path: Path | str, **args: Any) -> HuggingFace:
    model = load_model(f"hf:{path}", device="cpu", **args)
    assert isinstance(model, HuggingFace)
    return model


def ask(model: Model, *requests: Request) -> list[Response]:
    """The responses in the order of the requests."""
    answered = dict(model.answer(requests))
    assert len(answered) == len(set(requests))
    return [answered[request] for request in requests]


@contextmanager
def shapes_read(model: HuggingFace) -> Iterator[list[tuple[int, ...]]]:
    """The shapes of the token ids that the network is given."""
    shapes: list[tuple[int, ...]] = []
    hook = model.causal().model.register_forward_pre_hook(
        lambda module, args, kwargs: shapes.append(tuple(kwargs["input_ids"].shape)), with_kwargs=True
    )
    yield shapes
    hook.remove()


def naive_ids(model: HuggingFace, ids: list[int], count: int) -> list[int]:
    """What transformers' own greedy generation writes after one prompt alone."""
    import torch

    mask = torch.ones(1, len(ids))
    whole = model.causal().model.generate(
        torch.tensor([ids]), attention_mask=mask, do_sample=False, max_new_tokens=count
    )
    return [int(token) for token in whole[0, len(ids) :]]


def say(prompt: str, *, repeat: int = 0, **sampling: Any) -> Generate:
    return Generate(prompt=prompt, sampling=Sampling(**{"max_tokens": 12, **sampling}), repeat=repeat)


def chat(*turns: tuple[str, str], **sampling: Any) -> Generate:
    messages = tuple(Message(role, content) for role, content in turns)
    return Generate(prompt=messages, sampling=Sampling(**{"max_tokens": 12, **sampling}))


def logprobs_of(response: Response) -> Logprobs:
    assert response.status == "ok"
    assert response.logprobs is not None
    return response.logprobs

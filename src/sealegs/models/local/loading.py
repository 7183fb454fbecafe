"""Loads a causal model and its tokenizer, or refuses them: files, tensors and causality are checked."""

from __future__ import annotations

import gc
import logging
import pickle
import struct
import warnings
from functools import partial
from importlib.util import find_spec
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from sealegs.errors import MissingExtra, UsageError
from sealegs.models.local.causal import Causal
from sealegs.models.local.checks import (
    REPORTED,
    check_causal,
    check_config,
    check_positions,
    check_tensors,
    has_plain_cache,
    joins_rows,
    loading_of,
    reads_padded,
)
from sealegs.models.local.steps.attention import use_step_attention
from sealegs.models.local.weights import Weights, first_line, quiet_transformers, tokenizer_errors
from sealegs.models.tokenizer_files import Encoded, TextTokenizer, needs_conversion, read_tokenizer

LOAD_ERRORS = (
    *(OSError, ValueError, RuntimeError, LookupError, ImportError, AttributeError, TypeError),
    *(struct.error, pickle.UnpicklingError, EOFError, SafetensorError),
)
"""All that the libraries raise over files that are not what they should be."""

HALF = frozenset({torch.float16, torch.bfloat16})
"""Types in which parts of a model are fused on a GPU."""

log = logging.getLogger(__name__)


def load_tokenizer(weights: Weights, *, trust_remote_code: bool = False) -> Any:
    """The tokenizer of transformers that comes with a model's files."""
    quiet_transformers()
    from transformers import AutoTokenizer

    source: dict[str, Any] = {"gguf_file": weights.gguf_file} if weights.gguf_file else {}
    source |= {"trust_remote_code": True} if trust_remote_code else {}
    with tokenizer_errors(weights.path):
        return AutoTokenizer.from_pretrained(weights.folder, local_files_only=True, **source)


def text_tokenizer(weights: Weights) -> TextTokenizer:
    """A model's tokenizer for texts alone."""
    try:
        loaded = load_tokenizer(weights)
    except UsageError:
        if not needs_conversion(weights.path):
            raise
        return read_tokenizer(weights.folder)  # transformers needs further packages for it
    fast = getattr(loaded, "is_fast", False)

    def encode(text: str) -> Encoded:
        encoding = loaded(text, verbose=False, return_offsets_mapping=fast)
        return Encoded(list(encoding["input_ids"]), encoding["offset_mapping"] if fast else None)

    return TextTokenizer(encode, backend=loaded.backend_tokenizer if fast else None)


def load(spec: str, weights: Weights, *, dtype: str, device: str, trust_remote_code: bool) -> Causal:
    """Load a model, or refuse it: complete files, every tensor present, and proof that it is causal."""
    quiet_transformers()
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    if not gc.get_freeze_count():
        gc.freeze()  # what was imported stays: walking it again and again took a sixth of MIRON on a GPU
    target = pick_device(device, spec)
    if target.type == "cuda":
        # cuDNN's attention plans anew for every length of keys, which takes longer than the attention itself.
        torch.backends.cuda.enable_cudnn_sdp(False)
    source: dict[str, Any] = {"trust_remote_code": trust_remote_code, "local_files_only": True}
    if weights.gguf_file:
        source["gguf_file"] = weights.gguf_file
        # "auto" would ask the file for its type, and a quantised file has none that torch could compute in.
        dtype = "float32" if dtype == "auto" else dtype
    if (weights.folder / "adapter_config.json").is_file() and not find_spec("peft"):
        # Without its package transformers ignores an adapter, and gives the base model's figures.
        raise MissingExtra(f"{spec}, which has an adapter,", package="peft", install="pip install peft")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if not weights.gguf_file:
                check_config(spec, AutoConfig.from_pretrained(weights.folder, **source))
            with tokenizer_errors(weights.path):
                tokenizer = AutoTokenizer.from_pretrained(weights.folder, **source)
            model, info = AutoModelForCausalLM.from_pretrained(
                weights.folder, dtype=dtype, weights_only=True, **REPORTED, **source
            )
            check_tensors(spec, weights.path, loading_of(model, info))
            if target.type in ("cuda", "cpu"):
                use_step_attention(model)
            model = model.to(target).eval()
            if target.type == "cuda" and model.dtype in HALF:
                _fuse(spec, model)
            elif target.type == "cpu" and model.dtype == torch.bfloat16:
                _multiply_in_float32(model)
            causal = Causal(spec, model, tokenizer)
            check_causal(causal)
            check_positions(causal)
            causal.can_pad = causal.can_pad and reads_padded(causal)
            causal.kv_only = causal.can_pad and has_plain_cache(causal)
            causal.can_merge_cache = target.type == "cpu" and joins_rows(causal)
            return causal
    except LOAD_ERRORS as error:
        reason = first_line(error)
        raise UsageError(f"{spec}: the model in {weights.path} cannot be loaded: {reason}.") from error


@torch.inference_mode()
def _fuse(spec: str, model: Any) -> None:
    """Let kernels compute what they can of a model. They are compiled here, which may not be possible."""
    try:
        from sealegs.models.local.steps.fused import use_fused_kernels

        log.info("%s: %s parts are fused.", spec, use_fused_kernels(model))
    except Exception as error:  # noqa: BLE001  # Triton, its compiler and the driver raise what they like
        log.info("%s: nothing is fused, as %s", spec, first_line(error))


def _multiply_in_float32(model: Any) -> None:
    """On a CPU that has no products in bfloat16, take them in float32: torch's own take a hundred times as
    long, and add up in float32 too."""
    if not torch.ops.mkldnn._is_mkldnn_bf16_supported():
        products: list[Any] = [module for module in model.modules() if type(module) is nn.Linear]
        for module in products:
            module.forward = partial(_product, module)


def _product(linear: nn.Linear, x: Tensor) -> Tensor:
    bias = None if linear.bias is None else linear.bias.float()
    return nn.functional.linear(x.float(), linear.weight.float(), bias).to(x.dtype)


def pick_device(device: str, spec: str) -> torch.device:
    has_mps = torch.backends.mps.is_available()
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "mps" if has_mps else "cpu")
    chosen = torch.device(device)
    count = {"cuda": torch.cuda.device_count(), "mps": int(has_mps)}.get(chosen.type, 1)
    if (chosen.index or 0) >= count:
        raise UsageError(f"{spec}: there is no device '{device}' here; use device=auto or device=cpu.")
    return chosen

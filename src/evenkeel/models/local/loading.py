"""Load a causal model, or refuse it: whole files, every tensor in place, and proof that it is causal."""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from typing import Any

from evenkeel.errors import MissingExtra, UsageError
from evenkeel.models.local.causal import LOAD_ERRORS, Causal, pick_device
from evenkeel.models.local.checks import check_causal, check_config, reads_padded
from evenkeel.models.local.tensors import check_tensors, watched_loading
from evenkeel.models.local.weights import Weights, first_line, quiet_transformers


def load(spec: str, weights: Weights, *, dtype: str, device: str, trust_remote_code: bool) -> Causal:
    quiet_transformers()
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    place = pick_device(device, spec)
    source: dict[str, Any] = {"trust_remote_code": trust_remote_code, "local_files_only": True}
    if weights.gguf_file:
        source["gguf_file"] = weights.gguf_file
        # "auto" would ask the file for its type, and a quantised file has none that torch could compute in.
        dtype = "float32" if dtype == "auto" else dtype
    if (weights.folder / "adapter_config.json").is_file() and not find_spec("peft"):
        # Without its package transformers passes over an adapter, and gives the base model's figures.
        raise MissingExtra(f"{spec}, which has an adapter,", package="peft", install="pip install peft")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if not weights.gguf_file:
                check_config(spec, AutoConfig.from_pretrained(weights.folder, **source))
            tokenizer = AutoTokenizer.from_pretrained(weights.folder, **source)
            with watched_loading() as loadings:
                model = AutoModelForCausalLM.from_pretrained(weights.folder, dtype=dtype, **source)
            check_tensors(spec, weights.path, loadings)
            causal = Causal(spec, model.to(place).eval(), tokenizer)
            check_causal(causal)
            causal.pads = causal.pads and reads_padded(causal)
            return causal
    except LOAD_ERRORS as error:
        reason = first_line(error)
        raise UsageError(f"{spec}: the model in {weights.path} cannot be loaded: {reason}.") from error

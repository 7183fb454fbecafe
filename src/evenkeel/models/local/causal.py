"""A causal model of transformers in memory: its tokenizer, one forward call, its limits.

This file imports torch; it is itself imported when the first request comes.
"""

from __future__ import annotations

import inspect
import pickle
import struct
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from jinja2 import TemplateError
from safetensors import SafetensorError
from torch import Tensor

from evenkeel.errors import UsageError
from evenkeel.models.boundary import appended_tokens, without_appended
from evenkeel.types import Message

CACHES = ("past_key_values", "cache_params")
"""What a model calls its state between steps: keys and values, or a recurrent state."""

LOAD_ERRORS = (
    *(OSError, ValueError, RuntimeError, LookupError, ImportError, AttributeError, TypeError),
    *(struct.error, pickle.UnpicklingError, EOFError, SafetensorError),
)
"""All that the libraries raise over files that are not what they should be."""

UNPADDED = frozenset({"rwkv", "recurrent_gemma"})
"""Models whose forward takes a mask and runs its recurrent state over the padding all the same."""

FALLBACK_STOP = "\nUser:"


class Step(NamedTuple):
    """What a forward call gives back."""

    logits: Tensor
    cache: Any


class Causal:
    """A loaded model. `spec` is how a person named it."""

    def __init__(self, spec: str, model: Any, tokenizer: Any) -> None:
        self.spec, self.model, self.tokenizer = spec, model, tokenizer
        self.device: torch.device = model.device
        config = model.config.get_text_config()
        self.context: int | None = getattr(config, "max_position_embeddings", None)
        ends = getattr(model.generation_config, "eos_token_id", None)
        ends = ends if isinstance(ends, list) else [ends]
        self.end_ids = frozenset(end for end in (*ends, tokenizer.eos_token_id) if end is not None)
        starts = (tokenizer.bos_token_id, tokenizer.eos_token_id)
        self.start_id: int | None = next((start for start in starts if start is not None), None)
        self._appended = appended_tokens(lambda text: tokenizer(text)["input_ids"])
        leading, before_a = (self._tokenise(text, special=True)[:1] for text in ("", "a"))
        self.start: str = tokenizer.decode(leading) if leading == before_a else ""
        """The start token that the tokenizer puts before every text by itself."""
        self._accepts = inspect.signature(model.forward).parameters
        self._cache_name = next((name for name in CACHES if name in self._accepts), None)
        # Where positions are counted by places of the cache, or attention reaches only so many places back,
        # a place that is masked out still shifts what comes after it.
        windowed = getattr(config, "window_size", None) is not None
        self.skips = "position_ids" in self._accepts and not windowed
        """Whether places of the cache can be masked out without a trace."""
        self.pads = "attention_mask" in self._accepts and config.model_type not in UNPADDED
        """Whether rows of unequal length can share a batch."""
        # A prompt comes once for each repeat, and a prefix once for each continuation.
        self._tokenised = lru_cache(maxsize=1024)(self._tokenise)
        self._ahead: dict[str, list[int]] = {}
        self.piece = lru_cache(maxsize=None)(lambda token: str(tokenizer.decode([token])))
        """A single token as text."""

    def tokens_that_fit(self) -> int:
        """About how many tokens one batch may have on this CUDA device.

        Two fifths of the free memory, over what a token takes: its keys and values in every layer, and the
        widest activations of the layer that is being computed.
        """
        config = self.model.config.get_text_config()
        hidden, layers = config.hidden_size, config.num_hidden_layers
        wide = getattr(config, "intermediate_size", None) or 4 * hidden
        heads = getattr(config, "num_attention_heads", None) or 1
        kept = getattr(config, "num_key_value_heads", None) or heads
        numbers = (
            2 * layers * kept * (getattr(config, "head_dim", None) or hidden // heads) + 3 * wide + 8 * hidden
        )
        free, _ = torch.cuda.mem_get_info(self.device)
        return max(4096, int(0.4 * free / (numbers * self.model.dtype.itemsize)))

    def read_ahead(self, texts: Iterable[str]) -> None:
        """Tokenise texts that will be asked for next, all at once, which takes a fraction of the time."""
        distinct = list(dict.fromkeys(texts))
        ids = self.tokenizer(distinct)["input_ids"] if distinct else []
        self._ahead = dict(zip(distinct, ids, strict=True))

    def tokenise(self, text: str, *, special: bool = True) -> list[int]:
        """Token ids: if `special` after the tokenizer's own start token; never before its own end token."""
        if special and text in self._ahead:
            return without_appended(self._ahead[text], self._appended)
        return list(self._tokenised(text, special))

    def _tokenise(self, text: str, special: bool) -> list[int]:
        ids = self.tokenizer(text, add_special_tokens=special)["input_ids"]
        return without_appended(ids, self._appended) if special else ids

    def chat(self, messages: Sequence[Message]) -> list[int]:
        """A chat by the model's own template; without one, as `User: …` lines and an open `Assistant:`.

        A template that knows no system role (Gemma's) gets the system's text in front of the first turn.
        """
        if self.tokenizer.chat_template is None:
            lines = [f"{message.role.capitalize()}: {message.content}" for message in messages]
            return self.tokenise("\n".join([*lines, "Assistant:"]))
        turns = [{"role": message.role, "content": message.content} for message in messages]
        try:
            text = self.tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
        except TemplateError:
            if len(turns) < 2 or turns[0]["role"] != "system":
                raise
            first, second, *rest = turns
            turns = [{**second, "content": f"{first['content']}\n\n{second['content']}"}, *rest]
            text = self.tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
        return self.tokenise(text, special=False)

    def text(self, ids: Sequence[int], *, after: Sequence[int] = ()) -> str:
        """Ids as text. What stands `after` which ids matters: some tokenizers drop a text's first space."""
        lead = list(after[-8:])
        before, whole = (self._decode(part) for part in (lead, [*lead, *ids]))
        return whole[len(before) :] if whole.startswith(before) else self._decode(ids)

    def _decode(self, ids: Sequence[int]) -> str:
        return str(self.tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False))

    def pad(self, rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        """Rows of ids, padded on the left so that all end together, and the mask of what is real."""
        width = max(map(len, rows))
        ids = torch.zeros((len(rows), width), dtype=torch.long)
        mask = torch.zeros_like(ids)
        for row, (values, real) in enumerate(zip(ids, mask, strict=True)):
            values[width - len(rows[row]) :] = torch.tensor(rows[row])
            real[width - len(rows[row]) :] = 1
        return ids.to(self.device), mask.to(self.device)

    def forward(
        self, ids: Tensor, mask: Tensor, *, keep: int = 1, cache: Any = None, use_cache: bool = True
    ) -> Step:
        """Logits at the last `keep` places of `ids`, which follow what is in the cache.

        `mask` covers all places so far. Where nothing is padded it is left out, for then the attention
        runs on a faster path.
        """
        positions = (mask.cumsum(-1) - 1).clamp_min(0)[:, -ids.shape[1] :]
        # A recurrent state holds what came before; a mask is then for the new places alone.
        seen = mask if self._cache_name == "past_key_values" else mask[:, -ids.shape[1] :]
        given = {
            "input_ids": ids,
            "attention_mask": None if bool(seen.all()) else seen,
            "position_ids": positions,
            "use_cache": use_cache,
            "logits_to_keep": keep,
        }
        if cache is not None and self._cache_name:
            given[self._cache_name] = cache
        out = self.model(
            **{name: value for name, value in given.items() if name in self._accepts}, return_dict=True
        )
        return Step(out.logits[:, -keep:], out.get(self._cache_name) if self._cache_name else None)


def pick_device(device: str, spec: str) -> torch.device:
    has_mps = torch.backends.mps.is_available()
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "mps" if has_mps else "cpu")
    chosen = torch.device(device)
    there = {"cuda": torch.cuda.device_count(), "mps": int(has_mps)}.get(chosen.type, 1)
    if (chosen.index or 0) >= there:
        raise UsageError(f"{spec}: there is no device '{device}' here; use device=auto or device=cpu.")
    return chosen

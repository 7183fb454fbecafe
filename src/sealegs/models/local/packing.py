"""Texts as padded batches of token ids, each text tokenised once.

transformers tokenises a batch into lists of Python numbers, pads them there and makes tensors of them, which
takes longer than a GPU takes to embed the texts. Here the tokenizer's own library gives the ids, and numpy
pads them. A packer is only used where it gives exactly what the model's own preprocessing gives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

PROBES = ("A text to embed.", "  Two spaces, capital Ä and 中文 🙂\n", "long " * 9_000, "")
KNOWN = {"input_ids", "attention_mask", "token_type_ids"}

Features = Mapping[str, Any]


class Packer:
    """Tokenises for one model, with its limit of tokens, and pads batches."""

    def __init__(self, tokenizer: Any, limit: int | None, like: Features) -> None:
        from tokenizers import Tokenizer

        self._encoder = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
        self._encoder.no_padding()
        self._encoder.no_truncation()
        if limit is not None:
            self._encoder.enable_truncation(limit, direction=tokenizer.truncation_side)
        self._left = tokenizer.padding_side == "left"
        self._padding = {
            "input_ids": tokenizer.pad_token_id,
            "attention_mask": 0,
            "token_type_ids": tokenizer.pad_token_type_id,
        }
        self._names = [name for name, value in like.items() if isinstance(value, Tensor)]
        self.constants = {name: value for name, value in like.items() if name not in self._names}

    def encode(self, texts: Sequence[str]) -> tuple[list[NDArray[np.int64]], list[bool]]:
        """The ids of every text as far as the model reads it, and whether its end is cut off."""
        encodings = self._encoder.encode_batch_fast(list(texts))
        return [np.array(each.ids, np.int64) for each in encodings], [
            bool(each.overflowing) for each in encodings
        ]

    def pad(self, rows: Sequence[NDArray[np.int64]], device: torch.device) -> dict[str, Any]:
        """The features of a batch, as the model takes them."""
        width = max(map(len, rows))
        arrays = {name: np.full((len(rows), width), self._padding[name], np.int64) for name in self._names}
        for index, row in enumerate(rows):
            place = slice(width - len(row), None) if self._left else slice(len(row))
            arrays["input_ids"][index, place] = row
            arrays["attention_mask"][index, place] = 1
            if "token_type_ids" in arrays:
                arrays["token_type_ids"][index, place] = 0
        tensors = {name: torch.from_numpy(array).to(device) for name, array in arrays.items()}
        return {**tensors, **self.constants}


def packer_of(
    tokenizer: Any, limit: int | None, prompt: str, preprocess: Callable[[list[str]], Features]
) -> Packer | None:
    """A packer that gives what `preprocess` gives, tried on a few texts; None where there is none such."""
    if getattr(tokenizer, "backend_tokenizer", None) is None or tokenizer.pad_token_id is None:
        return None
    previous = None
    for texts in (list(PROBES[:2]), list(PROBES), [PROBES[2]]):
        expected = preprocess(texts)
        tensors = {name for name, value in expected.items() if isinstance(value, Tensor)}
        if not {"input_ids", "attention_mask"} <= tensors <= KNOWN:
            return None
        packer = Packer(tokenizer, limit, expected)
        given = packer.pad(packer.encode([prompt + text for text in texts])[0], torch.device("cpu"))
        if not all(torch.equal(given[name], expected[name]) for name in tensors):
            return None
        if previous is not None and packer.constants != previous.constants:
            return None
        previous = packer
    return previous

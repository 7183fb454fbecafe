"""The weights of a real tiny model behind a server on loopback, with prompt log-probabilities as servers
give them: tokens shown in several ways, tokens put before and behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import msgspec

from loopback import Loopback


class Served(Loopback):
    def __init__(
        self,
        folder: Path,
        *,
        shown: Literal["decoded", "stored", "bytes"] = "decoded",
        before: str = "",
        behind: str = "",
        counts: bool = True,
        echoes: Any = lambda prompt: True,
        **behaviour: Any,
    ) -> None:
        """`before` and `behind` name special tokens that this server puts around every text; it gives no
        log-probabilities of a prompt that `echoes` refuses, and no usage unless it `counts`."""
        super().__init__(**behaviour)
        import transformers

        self.tokenizer: Any = transformers.AutoTokenizer.from_pretrained(folder)
        self.model: Any = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
        self.shown, self.counts, self.echoes = shown, counts, echoes
        self.around = [
            self.tokenizer.convert_tokens_to_ids(part) if part else None for part in (before, behind)
        ]

    def _ids(self, text: str) -> list[int]:
        before, behind = ([token] if token is not None else [] for token in self.around)
        return [*before, *self.tokenizer(text, add_special_tokens=False)["input_ids"], *behind]

    def _token_text(self, token: int) -> str:
        if self.shown == "stored":
            return str(self.tokenizer.convert_ids_to_tokens(token))
        text = str(self.tokenizer.decode([token]))
        if self.shown == "bytes" and "\ufffd" in text:
            from sealegs.models.local.vocabulary import byte_letters

            letters = byte_letters()
            return "bytes:" + "".join(
                f"\\x{letters[letter]:02x}" for letter in self.tokenizer.convert_ids_to_tokens(token)
            )
        return text

    def _echo(self, body: Any) -> bytes:
        import torch

        ids = self._ids(body.prompt)
        with torch.inference_mode():
            logits = self.model(torch.tensor([ids])).logits[0].float().log_softmax(-1)
        values: list[float | None] = [None, *(float(logits[i, token]) for i, token in enumerate(ids[1:]))]
        logprobs: dict[str, Any] = {"tokens": list(map(self._token_text, ids)), "token_logprobs": values}
        known = self.echoes(body.prompt)
        choice = {"text": body.prompt, "finish_reason": "length", "logprobs": logprobs if known else None}
        return msgspec.json.encode(self._replied(choice, len(ids)))

    def _replied(self, choice: dict[str, Any], tokens: int) -> dict[str, Any]:
        return {"choices": [choice], **({"usage": {"prompt_tokens": tokens}} if self.counts else {})}

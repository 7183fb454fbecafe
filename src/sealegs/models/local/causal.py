"""A causal model of transformers in memory: its tokenizer, one forward call, its limits.

This file imports torch; it is itself imported when the first request comes.
"""

from __future__ import annotations

import inspect
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import torch
from jinja2 import TemplateError
from torch import Tensor
from transformers import PreTrainedTokenizerFast

from sealegs.models.boundary import appended_tokens, without_appended
from sealegs.models.local.batching import check_stopped
from sealegs.models.local.constrained import Grammars
from sealegs.models.local.reading import ReadBatch, StepState, is_padded, pad, shared_beginning
from sealegs.models.local.steps.attention import NAME, rounded_up
from sealegs.models.local.steps.caches import repeated, stacked
from sealegs.models.local.vocabulary import Vocabulary, read_vocabulary
from sealegs.models.local.weights import tokenizer_errors
from sealegs.page.format import nouns
from sealegs.types import Message

CACHES = ("past_key_values", "cache_params")
"""What a model calls its state between steps: keys and values, or a recurrent state."""

UNPADDED = frozenset({"rwkv", "recurrent_gemma", "mpt"})
"""Models whose forward takes a mask and runs its recurrent state over the padding all the same, or fails
where a text and its padding together are longer than the context."""

FALLBACK_STOP = "\nUser:"
"""Ends the answer of a model without a chat template."""

LOGITS = 8
"""Places of a row whose logits are in memory at once, about: the tokens of a short continuation."""
LOGIT_BYTES = 2**28
"""That all of them take in a batch on a CPU, about."""

READ_TOKENS = 512
"""Tokens that a CPU reads at once, where no single text has more: then the activations stay in its cache."""

PART_TOKENS = 16_384
"""Padded tokens that a GPU reads at once: enough for its products, and few for its cache."""

RIGHT_PADDED = frozenset({"cuda"})
"""Devices on which prompts are padded on the right."""


SAY_S = 0.5
"""Between two lines on how far it is."""


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
        lengths = (getattr(config, name, None) for name in ("max_position_embeddings", "max_seq_len"))
        self.context: int | None = next((length for length in lengths if length is not None), None)
        self.top_p: float | None = None
        """Takes the place of the requests' own, where it is given."""
        self.top_k: int | None = None
        ends = getattr(model.generation_config, "eos_token_id", None)
        ends = ends if isinstance(ends, list) else [ends]
        self.end_ids = frozenset(end for end in (*ends, tokenizer.eos_token_id) if end is not None)
        starts = (tokenizer.bos_token_id, tokenizer.eos_token_id)
        self.start_id: int | None = next((start for start in starts if start is not None), None)
        self._appended = appended_tokens(self._encode)
        leading, before_a = (self._tokenise(text, special=True)[:1] for text in ("", "a"))
        self.start: str = tokenizer.decode(leading) if leading == before_a else ""
        """The start token that the tokenizer puts before every text by itself."""
        self._parameters = inspect.signature(model.forward).parameters
        self._cache_name = next((name for name in CACHES if name in self._parameters), None)
        # Where positions are counted by places of the cache, or attention reaches only so many places back,
        # a place that is masked out still shifts what comes after it.
        windowed = getattr(config, "window_size", None) is not None
        self.can_mask_cache = "position_ids" in self._parameters and not windowed
        """Whether places of the cache can be masked out without a trace."""
        self.can_pad = "attention_mask" in self._parameters and config.model_type not in UNPADDED
        """Whether rows of unequal length can share a batch."""
        self.kv_only = False
        """Whether the cache holds nothing but keys and values, of which any place can be masked out."""
        self.can_merge_cache = False
        """Whether rows that were read apart can be continued together, to the same digits as alone."""
        self.cuda_graph_ok: bool | None = None
        """Whether a step can be recorded for a GPU; None where that was not tried."""
        # A prompt comes once for each repeat, and a prefix once for each continuation.
        self._tokenised = lru_cache(maxsize=1024)(self._tokenise)
        self.chat_text = lru_cache(maxsize=1024)(self._chat_text)
        self._ahead: dict[tuple[str, bool], list[int]] = {}
        self.token_text = lru_cache(maxsize=None)(lambda token: str(tokenizer.decode([token])))
        """A single token as text."""
        self._grammars: Grammars | None = None
        self._say: Callable[[str], None] | None = None
        self._counts: Counter[str] = Counter()
        self._doing, self._next = "", 0.0

    def report_to(self, say: Callable[[str], None]) -> None:
        """Say from now on what is done, and how many tokens that is."""
        self._say, self._counts, self._doing = say, Counter(), ""

    def count(self, doing: str, tokens: int) -> None:
        """Count tokens that are read or written next, and say so at once or now and then."""
        self._counts[doing] += tokens
        if self._say is not None and (doing != self._doing or time.monotonic() >= self._next):
            self._doing, self._next = doing, time.monotonic() + SAY_S
            self._say(f"{doing}: {nouns(self._counts[doing], 'tokens')}")

    @cached_property
    def vocabulary(self) -> Vocabulary | None:
        """The bytes of every token; None where they are not known."""
        backend = getattr(self.tokenizer, "backend_tokenizer", None)
        return read_vocabulary(backend) if backend is not None else None

    @property
    def grammars(self) -> Grammars:
        """The JSON schemas that texts are made to follow."""
        if self._grammars is None:
            width = getattr(self.model.config.get_text_config(), "vocab_size", 0)
            self._grammars = Grammars(self.tokenizer, width, self.end_ids)
        return self._grammars

    def schema_problems(self) -> list[str]:
        """Why texts were not made to follow their schema."""
        return list(dict.fromkeys(self._grammars.problems)) if self._grammars else []

    def tokens_that_fit(self) -> int:
        """About how many tokens one batch may have on this CUDA device.

        Most of the free memory, over what a token takes: its keys and values in every layer, and the
        widest activations of the layer that is being computed.
        """
        config = self.model.config.get_text_config()
        hidden, layers = config.hidden_size, config.num_hidden_layers
        widest = getattr(config, "intermediate_size", None) or 4 * hidden
        heads = getattr(config, "num_attention_heads", None) or 1
        key_heads = getattr(config, "num_key_value_heads", None) or heads
        head_size = getattr(config, "head_dim", None) or hidden // heads
        numbers = 2 * layers * key_heads * head_size + 3 * widest + 8 * hidden
        free, _ = torch.cuda.mem_get_info(self.device)
        return max(4096, int(0.85 * free / (numbers * self.model.dtype.itemsize)))

    def rows_that_fit(self) -> int:
        """How many rows one batch may have: their logits take a tenth of a GPU's memory, else LOGIT_BYTES."""
        width = self.model.config.get_text_config().vocab_size
        cuda = self.device.type == "cuda"
        room = 0.1 * torch.cuda.mem_get_info(self.device)[0] if cuda else LOGIT_BYTES
        return max(1, int(room / (LOGITS * width * self.model.dtype.itemsize)))

    def read_ahead(self, texts: Iterable[tuple[str, bool]]) -> None:
        """Tokenise texts that will be asked for next, each with whether it is `special`, all at once: that
        takes a fraction of the time."""
        distinct = sorted(set(texts), key=itemgetter(1))
        self._ahead = {}
        for special, several in groupby(distinct, itemgetter(1)):
            kind = list(several)
            self._ahead |= zip(kind, self._encode_all([text for text, _ in kind], special), strict=True)

    def _encode_all(self, texts: list[str], special: bool) -> list[list[int]]:
        """As `_encode`; by the tokenizer's own library, where transformers adds nothing but time to it."""
        if getattr(type(self.tokenizer), "_encode_plus", None) is not PreTrainedTokenizerFast._encode_plus:
            return [list(ids) for ids in self._encode(texts, special=special)]
        self._encode(texts[0], special=special)  # which sets the library's options
        with tokenizer_errors(self.tokenizer.name_or_path):
            encoded = self.tokenizer.backend_tokenizer.encode_batch_fast(texts, add_special_tokens=special)
        return [each.ids for each in encoded]

    def tokenise(self, text: str, *, special: bool = True) -> list[int]:
        """Token ids: if `special` after the tokenizer's own start token; never before its own end token."""
        ids = self._ahead.get((text, special))
        if ids is None:
            return list(self._tokenised(text, special))
        return without_appended(ids, self._appended) if special else list(ids)

    def _tokenise(self, text: str, special: bool) -> list[int]:
        ids = self._encode(text, special=special)
        return without_appended(ids, self._appended) if special else ids

    def _encode(self, text: str | list[str], *, special: bool = True) -> Any:
        with tokenizer_errors(self.tokenizer.name_or_path):
            return self.tokenizer(text, add_special_tokens=special)["input_ids"]

    def chat(self, messages: Sequence[Message]) -> list[int]:
        """The token ids of a chat."""
        text, special = self.chat_text(tuple(messages))
        return self.tokenise(text, special=special)

    def _chat_text(self, messages: tuple[Message, ...]) -> tuple[str, bool]:
        """A chat by the model's own template; without one, as `User: …` lines and an open `Assistant:`. And
        whether the tokenizer puts its start token before that.

        A template without a system role (Gemma's) gets the system's text in front of the first turn.
        """
        if self.tokenizer.chat_template is None:
            lines = [f"{message.role.capitalize()}: {message.content}" for message in messages]
            return "\n".join([*lines, "Assistant:"]), True
        turns = [{"role": message.role, "content": message.content} for message in messages]
        try:
            text = self.tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
        except TemplateError:
            if len(turns) < 2 or turns[0]["role"] != "system":
                raise
            first, second, *rest = turns
            turns = [{**second, "content": f"{first['content']}\n\n{second['content']}"}, *rest]
            text = self.tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
        return text, False

    def text(self, ids: Sequence[int], *, after: Sequence[int] = ()) -> str:
        """Ids as text. What comes before them matters: some tokenizers drop a text's first space."""
        lead = list(after[-8:])
        before, whole = (self._decode(part) for part in (lead, [*lead, *ids]))
        return whole[len(before) :] if whole.startswith(before) else self._decode(ids)

    def _decode(self, ids: Sequence[int]) -> str:
        return str(self.tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False))

    def pad(self, rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        """Padded rows and their mask, on the model's device."""
        ids, mask = pad(rows)
        return ids.to(self.device), mask.to(self.device)

    def forward(
        self,
        ids: Tensor,
        mask: Tensor,
        *,
        keep: int = 1,
        cache: Any = None,
        use_cache: bool = True,
        padded: bool | None = None,
    ) -> Step:
        """Logits at the last `keep` places of `ids`, which follow what is in the cache.

        `mask` covers all places so far. Where nothing is `padded` it is left out, for then the attention
        runs on a faster path; where that is not known, the mask is looked at, which waits for the device.
        """
        new = ids.shape[1]
        # A recurrent state holds what came before; a mask is then for the new places alone.
        visible = mask if self._cache_name == "past_key_values" else mask[:, -new:]
        if padded is None:
            padded = not bool(visible.all())
        arguments = {
            "input_ids": ids,
            "attention_mask": visible if padded else None,
            "position_ids": self._positions(mask)[:, -new:],
            "use_cache": use_cache,
            "logits_to_keep": keep,
        }
        if cache is not None and self._cache_name:
            arguments[self._cache_name] = cache
        accepted = {name: value for name, value in arguments.items() if name in self._parameters}
        if cache is None or new > 1:
            self.count("reading prompts", ids.numel())
        out = self.model(**accepted, return_dict=True)
        return Step(out.logits[:, -keep:], out.get(self._cache_name) if self._cache_name else None)

    def read_prompts(self, rows: Sequence[Sequence[int]]) -> ReadBatch:
        """Read texts that will be continued; the logits are those at each one's last token.

        On a GPU they are padded on the right where the cache allows it: no text sees what comes after it,
        so that attention needs no mask, with which it takes several times as long. And they are read a part
        at a time: what is computed of a few thousand tokens stays in the GPU's cache. What all begin with
        (a system message, a template) is read once.
        """
        head = self.model.get_output_embeddings()
        if self.device.type not in RIGHT_PADDED or not self.kv_only or head is None:
            return self.read(rows, [1] * len(rows))
        width = rounded_up(max(map(len, rows)))
        start = shared_beginning(rows) if self.model.config._attn_implementation == NAME else 0
        beginning = self.forward(*self.pad([rows[0][:start]]), padded=False).cache if start else None
        logits, caches = [], []
        for part in self._parts(rows):
            ids, mask = (each.to(self.device) for each in pad(part, right=True))
            last = torch.tensor([[[len(row) - 1 - start]] for row in part], device=self.device)
            hook = head.register_forward_pre_hook(lambda _, given, at=last: given[0].take_along_dim(at, 1))
            cache = repeated(beginning, len(part)) if beginning is not None else None
            try:
                step = self.forward(ids[:, start:], mask, keep=0, cache=cache, padded=False)
            finally:
                hook.remove()
            logits.append(step.logits)
            caches.append(step.cache)
        cache = stacked(caches, width)
        ids, mask = (each.to(self.device) for each in pad(rows, right=True, width=width))
        batch = StepState(cache, ids, mask, padded=True, shrinks=False)
        return ReadBatch(
            rows, torch.cat(logits), [(cache, row) for row in range(len(rows))], batch, can_mask_cache=True
        )

    def _parts(self, rows: Sequence[Sequence[int]]) -> Iterator[Sequence[Sequence[int]]]:
        """Neighbouring rows that are read together."""
        start = 0
        while start < len(rows):
            count, longest = 0, 0
            for row in rows[start:]:
                longest = max(longest, len(row))
                if count and (count + 1) * longest > PART_TOKENS:
                    break
                count += 1
            yield rows[start : start + count]
            start += count

    def read(
        self, rows: Sequence[Sequence[int]], keep: Sequence[int], *, use_cache: bool = True
    ) -> ReadBatch:
        """Read texts from their beginnings; `keep`: for each the number of places at its end with logits.

        On a CPU those of equal length are read together, so that nothing is padded; unless they are to be
        continued together, and the model's cache does not allow to join them.
        """
        if self.device.type != "cpu" or (use_cache and not self.can_merge_cache):
            ids, mask = self.pad(rows)
            padded = is_padded(rows)
            step = self.forward(ids, mask, keep=max(keep), use_cache=use_cache, padded=padded)
            batch = StepState(step.cache, ids, mask, padded, shrinks=False)
            in_batch = [(step.cache, row) for row in range(len(rows))]
            return ReadBatch(rows, step.logits, in_batch, batch, self.can_mask_cache)
        logits: Tensor | None = None
        caches: list[tuple[Any, int]] = [(None, 0)] * len(rows)
        for lines in self._of_equal_length(rows):
            check_stopped()
            texts = [rows[line] for line in lines]
            ids, mask = self.pad(texts)
            count = min(ids.shape[1], max(keep[line] for line in lines))
            step = self.forward(ids, mask, keep=count, use_cache=use_cache, padded=is_padded(texts))
            if logits is None:
                logits = step.logits.new_zeros((len(rows), max(keep), step.logits.shape[-1]))
            logits[lines, -count:] = step.logits
            for row, line in enumerate(lines):
                caches[line] = step.cache, row
        assert logits is not None
        return ReadBatch(rows, logits, caches)

    def _of_equal_length(self, rows: Sequence[Sequence[int]]) -> list[list[int]]:
        """Rows by number, those of equal length together, but no more than the CPU's cache holds."""
        by_length: dict[int, list[int]] = {}
        for line, row in enumerate(rows):
            by_length.setdefault(len(row), []).append(line)
        parts = []
        for length, lines in by_length.items():
            most = max(1, READ_TOKENS // max(1, length))
            parts += [lines[start : start + most] for start in range(0, len(lines), most)]
        return parts

    def _positions(self, mask: Tensor) -> Tensor:
        """The position of every place. A row that is done may go along beyond the context."""
        return (mask.cumsum(-1) - 1).clamp(0, (self.context or mask.shape[1]) - 1)

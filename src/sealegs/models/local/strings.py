"""The probability that a text goes on with a string, over all token sequences that spell it.

A model gives probabilities to tokens, and a string has many tokenizations: ` ships` is one token, or ` ship`
and `s`, or ` sh`, `ip` and `s`. The text after a context begins with the string exactly where its tokens are
a *cover* of it: t₁ … tₖ of which all but the last end within the string, and the last ends with it or after.
Two covers exclude each other, so

    P(text begins with the string | context) = Σ over covers  Π P(tᵢ | context, t₁ … tᵢ₋₁)

(Cao & Rimell 2021, arXiv 2109.02550; Phan et al. 2024, arXiv 2410.09303; Vieira et al. 2024,
arXiv 2412.03719). The covers form a tree. It is searched from the sequences with the most probability down:
what was counted is a lower bound, and with the probability of all that was not followed an upper bound.

The context ends with the prefix's own tokens or, with token healing, before the last of them: that token's
text is then spelled again together with the string, and P(prefix's end + string) / P(prefix's end) is
conditional on the prefix as text, whatever tokens it falls into.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sealegs.models.boundary import find_boundary
from sealegs.models.local.causal import Causal
from sealegs.models.local.vocabulary import SPACE, Vocabulary
from sealegs.types import StringProbability

TOLERANCE = 1e-4
"""Where less than this share of the probability is not followed further, the sum is taken to be complete: the
bounds are then closer than 0.00015 bits."""
MOST_SEQUENCES = 400
"""Token sequences that are followed further for one string, beside the tokenizer's own."""
SHARE = 4
"""Token sequences that are followed at once for one string on a CPU."""
MOST_TARGET = 256
"""Tokens that a string may have in the tokenizer's own spelling."""
MOST_LOGITS = 64_000_000
"""Logits at the tokenizer's own tokens of all strings that are searched together."""

NOTHING = -math.inf
"""The logarithm of no probability."""

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class StringTarget:
    """A string to spell after a context."""

    context: tuple[int, ...]
    path: tuple[int, ...]
    """The tokenizer's own tokens after the context: the prefix's last one where it is spelled again, and
    those of the string where no token merges across the boundary."""
    goal: bytes
    """What is to be spelled: the text of the prefix's last token, and then the string."""
    healed: int
    """How many bytes of it are the prefix's; 0 where there is no token to take back."""
    merged: bool

    @property
    def tokens(self) -> int:
        return len(self.context) + len(self.path)

    @property
    def read(self) -> int:
        """How many tokens of the path are read: after the last one of the string nothing is asked."""
        return len(self.path) - (not self.merged)


def target_of(causal: Causal, prefix: str, continuation: str) -> StringTarget | str:
    """What is to be spelled for a continuation, or why it cannot be."""
    vocabulary = causal.vocabulary
    if vocabulary is None:
        return "the bytes of the tokenizer's tokens are not known"
    before, whole = causal.tokenise(prefix), causal.tokenise(prefix + continuation)
    start, merged = find_boundary(before, whole)
    shared = next((i for i, (a, b) in enumerate(zip(before, whole, strict=False)) if a != b), start)
    if any(token not in vocabulary.spellings for token in whole[shared:]):
        return "the tokenizer has no token for a part of the target, or reads it as a special token"
    if merged and any(token not in vocabulary.spellings for token in before[shared:]):
        return "the tokenizer reads the end of the prefix as a special token"
    context, spelled = vocabulary.spell(before), vocabulary.spell(whole)
    string = spelled[len(context) :]
    if not spelled.startswith(context) or _letters(string.decode(errors="replace")) != _letters(
        _normalised(causal.tokenizer.backend_tokenizer, continuation)
    ):
        return "the tokenizer does not spell the prefix and the target as they are written"
    if not string:
        return "there is nothing to spell"
    own = () if merged else tuple(whole[start:])
    if len(own) > MOST_TARGET:
        return (
            f"a target of {len(own)} tokens; the probability of a string is given for {MOST_TARGET} at most"
        )
    if len(before) > 1 and before[-1] in vocabulary.spellings:
        last = vocabulary.spellings[before[-1]]
        return StringTarget(tuple(before[:-1]), (before[-1], *own), last + string, len(last), merged)
    if not before and causal.start_id is None:
        return "an empty prefix, and no start token to condition on"
    return StringTarget(tuple(before) or (causal.start_id or 0,), own, string, 0, merged)


def _normalised(backend: Any, text: str) -> str:
    return str(backend.normalizer.normalize_str(text)) if backend.normalizer else text


def _letters(text: str) -> str:
    """A text without its spaces, which some tokenizers add or take away."""
    return "".join(text.replace(SPACE, " ").split())


class Node(NamedTuple):
    """A token sequence after the context, which spells a part of the goal."""

    mass: float
    """Its log-probability."""
    spelled: int
    """How many bytes of the goal."""
    kept: int
    """How many tokens of the path it begins with."""
    more: tuple[int, ...] = ()
    """The tokens that come after those."""


@dataclass
class Search:
    """The covers of one target: log-probabilities of what was counted, and what could be followed further."""

    target: StringTarget
    vocabulary: Vocabulary
    begins: float = NOTHING
    """The text after the prefix's tokens begins with the string."""
    healed: float = NOTHING
    """The text after the context begins with the goal."""
    prefixed: float = NOTHING
    """The text after the context begins with the prefix's part of the goal."""
    own: float | None = None
    """The tokenizer's own tokens of the string."""
    start: float = 0.0
    """The prefix's last token, after which the string begins."""
    broken: bool = False
    """Whether the model gave what is no number: its weights overflow in half precision, say."""
    followed: int = 0
    _open: list[Node] = field(default_factory=list)

    def follow_path(self, logprobs: Floats) -> None:
        """Count what branches off the tokenizer's own tokens; a line of log-probabilities for each place."""
        target, spelled, mass = self.target, 0, 0.0
        own = [float(line[token]) for line, token in zip(logprobs, target.path, strict=False)]
        self.start = own[0] if target.healed else 0.0
        self.own = None if target.merged else math.fsum(own[1:] if target.healed else own)
        for place, line in enumerate(logprobs):
            self.follow(Node(mass, spelled, place), line)
            if place < target.read:
                mass += own[place]
                spelled += len(self.vocabulary.spellings[target.path[place]])

    def follow(self, node: Node, logprobs: Floats) -> None:
        """Count the covers that one more token completes, and queue the sequences that go on."""
        target, words = self.target, self.vocabulary
        if np.isnan(logprobs[0]):
            self.broken = True
            return
        rest, width = target.goal[node.spelled :], len(logprobs)
        complete = node.mass + _total(logprobs, words.beginning_with(rest))
        self.healed = _plus(self.healed, complete)
        if node.kept or not target.healed:
            self.begins = _plus(self.begins, complete - self.start)
        if node.spelled < target.healed:
            prefixed = words.beginning_with(target.goal[node.spelled : target.healed])
            self.prefixed = _plus(self.prefixed, node.mass + _total(logprobs, prefixed))
        own = target.path[node.kept] if not node.more and node.kept < target.read else None
        for token, length in words.within(rest):
            mass = node.mass + float(logprobs[token]) if token < width and token != own else NOTHING
            if mass > NOTHING:
                self._open.append(Node(mass, node.spelled + length, node.kept, (*node.more, token)))

    def next_nodes(self, most: int, room: float) -> list[Node]:
        """The likeliest sequences of at most `room` tokens; none where the search is over."""
        if self.broken or self._complete():
            return []
        self._open.sort(key=lambda node: -node.mass)
        fitting = (node for node in self._open if node.kept + len(node.more) <= room)
        nodes = list(islice(fitting, min(most, MOST_SEQUENCES - self.followed)))
        self.followed += len(nodes)
        chosen = set(nodes)
        self._open = [node for node in self._open if node not in chosen]
        return nodes

    def _rest(self) -> tuple[float, float, float]:
        """What the sequences that were not followed add at most to `begins`, `healed` and `prefixed`."""
        after = [node.mass - self.start for node in self._open if node.kept or not self.target.healed]
        before = [node.mass for node in self._open if node.spelled < self.target.healed]
        return _sum(after), _sum([node.mass for node in self._open]), _sum(before)

    def _complete(self) -> bool:
        counted = (self.begins, self.healed, self.prefixed)
        small = math.log(TOLERANCE)
        return all(rest <= low + small for low, rest in zip(counted, self._rest(), strict=True))

    def result(self) -> StringProbability | str:
        """The bounds that were reached, or why there are none."""
        if self.broken:
            return "the model gave a log-probability that is not finite"
        if self.begins == NOTHING:
            return (
                "none of the token sequences that were followed spells the target after the prefix's tokens"
            )
        rest, healed_rest, prefixed_rest = self._rest()
        healed = healed_high = None
        if self.target.healed:
            healed = min(0.0, self.healed - _plus(self.prefixed, prefixed_rest))
            healed_high = min(0.0, _plus(self.healed, healed_rest) - self.prefixed)
        return StringProbability(
            own=self.own,
            low=min(0.0, self.begins),
            high=min(0.0, _plus(self.begins, rest)),
            healed_low=healed,
            healed_high=healed_high,
        )


def _plus(a: float, b: float) -> float:
    """log(exp a + exp b)"""
    return float(np.logaddexp(a, b))


def _sum(values: Sequence[float]) -> float:
    return float(np.logaddexp.reduce(np.array(values))) if values else NOTHING


def _total(logprobs: Floats, tokens: NDArray[np.intp]) -> float:
    """The log-probability of any of some tokens. A tokenizer may have tokens that the model has not."""
    known = logprobs[tokens[tokens < len(logprobs)]]
    return float(np.logaddexp.reduce(known)) if len(known) else NOTHING


@torch.inference_mode()
def string_probabilities(
    causal: Causal, targets: Sequence[StringTarget], *, rows: int
) -> list[StringProbability | str]:
    """The probability of each target, or why there is none; read in batches of `rows` token sequences."""
    width = getattr(causal.model.config.get_text_config(), "vocab_size", 0) or len(causal.tokenizer)
    places = 1 + max(target.read for target in targets)
    together = max(1, MOST_LOGITS // (places * width))
    parts = (targets[start : start + together] for start in range(0, len(targets), together))
    return [search.result() for part in parts for search in _searched(causal, part, rows=rows)]


def _searched(causal: Causal, targets: Sequence[StringTarget], *, rows: int) -> list[Search]:
    """The covers of all targets, searched together."""
    assert causal.vocabulary is not None
    reading = ReadPaths(causal, targets)
    searches = [Search(target, causal.vocabulary) for target in targets]
    for search, logprobs in zip(searches, reading.paths(), strict=True):
        search.follow_path(logprobs)
    room = [(causal.context or math.inf) - len(target.context) for target in targets]
    active = list(range(len(targets)))
    on_cpu = causal.device.type == "cpu"
    while active:
        # How many are followed before a search may end must there not depend on the other searches.
        share = SHARE if on_cpu else max(1, rows // len(active))
        picked = {row: searches[row].next_nodes(share, room[row]) for row in active[:rows]}
        nodes = [(row, node) for row, of_row in picked.items() for node in of_row]
        for (row, node), logprobs in zip(nodes, reading.after(nodes), strict=True):
            searches[row].follow(node, logprobs)
        active = [row for row in active if picked.get(row, True)]
    return searches


class ReadPaths:
    """The targets' contexts and paths, read once. What comes after them is read on from there where rows can
    be joined, else from its beginning."""

    def __init__(self, causal: Causal, targets: Sequence[StringTarget]) -> None:
        self._causal, self._targets = causal, targets
        texts = [(*target.context, *target.path[: target.read]) for target in targets]
        self._reading = causal.read(
            texts, [1 + target.read for target in targets], use_cache=causal.can_merge_cache
        )
        self._logits: Tensor | None = self._reading.logits

    def paths(self) -> Iterator[Floats]:
        """The log-probabilities at every place of each target's path, once."""
        assert self._logits is not None
        for target, logits in zip(self._targets, self._logits, strict=True):
            yield _logprobs(logits[-1 - target.read :])
        self._logits = None

    def after(self, nodes: Sequence[tuple[int, Node]]) -> Iterable[Floats]:
        """The log-probabilities after each node of a target."""
        if not nodes:
            return []
        kept = [(*self._targets[row].context, *self._targets[row].path[: node.kept]) for row, node in nodes]
        if not self._causal.can_merge_cache:
            texts = [(*before, *node.more) for before, (_, node) in zip(kept, nodes, strict=True)]
            return _logprobs(self._causal.read(texts, [1] * len(texts), use_cache=False).logits[:, -1])
        ids, mask = self._causal.pad([node.more for _, node in nodes])
        _, before = self._causal.pad(kept)
        cache = self._reading.join([row for row, _ in nodes], [len(each) for each in kept])
        step = self._causal.forward(ids, torch.cat([before, mask], dim=1), cache=cache)
        return _logprobs(step.logits[:, -1])


def _logprobs(logits: Tensor) -> Floats:
    precise = logits.float() if logits.device.type == "mps" else logits.double()  # MPS has no float64
    return precise.log_softmax(-1).cpu().numpy().astype(np.float64)

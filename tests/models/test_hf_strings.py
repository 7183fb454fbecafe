"""The probability of a string, against the sum over all its token sequences written out naively."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from models.tiny import ask, logprobs_of, open_hf, shapes_read, tiny_model
from present import present
from sealegs.errors import CapabilityError
from sealegs.models.hf import HuggingFace
from sealegs.models.local import strings
from sealegs.models.local.vocabulary import byte_letters
from sealegs.types import LogLikelihood, Response, StringLikelihood, StringProbability

MERGES = (
    *(b"sh", b"ip", b"ship", b"ships", b" s", b" sh", b" ship", b" ships", b"th", b" th", b" the"),
    *("м".encode(), "о".encode(), "р".encode(), b" \xd0", b" \xd0\xbc", "мо".encode(), "ор".encode()),
    *(" мо".encode(), " мор".encode(), b"12", b"123", b" 1", b"Pa", b"Par", b"is", b"Paris", b", "),
)
"""Tokens beside the single bytes, each after two that make it; ` \\xd0` ends within a letter."""
WIDTH = 2 + 256 + len(MERGES)
ENDS: dict[str, Any] = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 1}
PAIRS = (
    ("The captain sees the", " ships"),
    ("The captain sees the ship", "s"),
    ("The city of Par", "is"),
    ("Капитан видит", " море"),
    ("Капитан видит мор", "е"),
    ("One, two,", " 123"),
    ("T", "he"),
)


def byte_bpe(folder: Path, tokens: Sequence[bytes]) -> dict[int, bytes]:
    """A byte-level BPE tokenizer with these tokens beside the single bytes; what each of its ids spells."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    letters = {byte: letter for letter, byte in byte_letters().items()}
    alphabet = [bytes([byte]) for byte in range(256)]
    merges, known = [], set(alphabet)
    for token in tokens:
        split = next(end for end in range(1, len(token)) if {token[:end], token[end:]} <= known)
        merges.append((token[:split], token[split:]))
        known.add(token)
    spelled = ["<s>", "</s>", *("".join(letters[byte] for byte in token) for token in (*alphabet, *tokens))]
    pairs = [
        ("".join(letters[byte] for byte in left), "".join(letters[byte] for byte in right))
        for left, right in merges
    ]
    model = models.BPE(vocab={token: place for place, token in enumerate(spelled)}, merges=pairs)
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>")
    fast.save_pretrained(folder)
    return dict(enumerate((*alphabet, *tokens), 2))


@pytest.fixture(scope="module")
def spellings() -> dict[int, bytes]:
    return {}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory, spellings: dict[int, bytes]) -> Iterator[HuggingFace]:
    folder = tmp_path_factory.mktemp("strings")
    tiny_model(folder, vocab_size=WIDTH, **ENDS)
    spellings |= byte_bpe(folder, MERGES)
    opened = exact(folder)
    yield opened
    opened.close()


def exact(folder: Path, **args: Any) -> HuggingFace:
    """A model whose sums are not rounded to float32, in which every batch gives other digits."""
    opened = open_hf(folder, **args)
    opened.causal().model.double()
    return opened


@pytest.fixture
def everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """No sequence is left out."""
    monkeypatch.setattr(strings, "TOLERANCE", 1e-300)
    monkeypatch.setattr(strings, "MOST_SEQUENCES", 10**6)


# By hand: every sequence of tokens, one at a time


def covered(model: Any, spellings: Mapping[int, bytes], context: Sequence[int], text: bytes) -> float:
    """The probability that what follows begins with a text."""
    with torch.inference_mode():
        odds = model(torch.tensor([list(context)])).logits[0, -1].double().softmax(-1).tolist()
    begins = 0.0
    for token, spelled in spellings.items():
        if spelled.startswith(text):
            begins += odds[token]
        elif text.startswith(spelled):
            begins += odds[token] * covered(model, spellings, [*context, token], text[len(spelled) :])
    return begins


def by_hand(
    opened: HuggingFace, spellings: Mapping[int, bytes], prefix: str, target: str
) -> tuple[float, float | None]:
    """log P of the string, and of the string after the prefix as text."""
    causal = opened.causal()
    before = list(causal.tokenizer(prefix)["input_ids"])
    begins = covered(causal.model, spellings, before, target.encode())
    if len(before) < 2:
        return math.log(begins), None
    *context, last = before
    whole = covered(causal.model, spellings, context, spellings[last] + target.encode())
    given = covered(causal.model, spellings, context, spellings[last])
    return math.log(begins), math.log(whole / given)


def string_of(response: Response) -> StringProbability:
    assert response.status == "ok", response.reason
    return present(response.string)


def assert_sums_by_hand(
    opened: HuggingFace, spellings: Mapping[int, bytes], pairs: Sequence[tuple[str, str]], *, within: float
) -> None:
    for (prefix, target), response in zip(pairs, ask(opened, *requests(*pairs)), strict=True):
        begins, healed = by_hand(opened, spellings, prefix, target)
        string = string_of(response)
        assert (string.low, string.high) == pytest.approx((begins, begins), abs=within), prefix
        assert (string.healed_low, string.healed_high) == pytest.approx((healed, healed), abs=within), prefix


def requests(*pairs: tuple[str, str]) -> list[StringLikelihood]:
    return [StringLikelihood(prefix=prefix, continuation=target) for prefix, target in pairs]


@pytest.mark.usefixtures("everything")
def test_the_sum_is_that_of_every_sequence(model: HuggingFace, spellings: dict[int, bytes]) -> None:
    assert_sums_by_hand(model, spellings, PAIRS, within=1e-6)


def test_the_tokenizers_own_tokens_are_those_of_the_log_likelihood(model: HuggingFace) -> None:
    scored = [
        LogLikelihood(prefix=request.prefix, continuation=request.continuation)
        for request in requests(*PAIRS)
    ]
    answers = zip(ask(model, *requests(*PAIRS)), ask(model, *scored), strict=True)
    merged = []
    for string, logprobs in ((string_of(a), logprobs_of(b)) for a, b in answers):
        merged.append(logprobs.merged)
        if logprobs.merged:
            assert string.own is None
        else:
            assert string.own == pytest.approx(sum(logprobs.values), abs=1e-5)
            assert string.low >= present(string.own)
    assert merged.count(True) == 2


@pytest.mark.parametrize("most", [0, 4])
def test_bounds_contain_the_sum_and_the_budget_is_kept(
    most: int, model: HuggingFace, spellings: dict[int, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(strings, "TOLERANCE", 1e-300)
    monkeypatch.setattr(strings, "MOST_SEQUENCES", most)
    pairs = [PAIRS[0], PAIRS[3]]
    with shapes_read(model) as shapes:
        responses = ask(model, *requests(*pairs))
    assert sum(rows for rows, _ in shapes) <= len(pairs) * (1 + most)
    for (prefix, target), response in zip(pairs, responses, strict=True):
        begins, healed = by_hand(model, spellings, prefix, target)
        string = string_of(response)
        assert string.low - 1e-9 <= begins <= string.high + 1e-9
        assert present(string.healed_low) - 1e-9 <= present(healed) <= present(string.healed_high) + 1e-9
        assert string.low < string.high


@pytest.mark.usefixtures("everything")
@pytest.mark.parametrize(
    ("architecture", "settings"), [("MistralConfig", {"sliding_window": 4}), ("MambaConfig", {})]
)
def test_other_kinds_of_memory_give_the_same_sum(
    architecture: str, settings: dict[str, Any], tmp_path: Path
) -> None:
    """Sliding windows and recurrent states, from which nothing can be left out, are read from the start."""
    tiny_model(tmp_path, architecture, vocab_size=WIDTH, **ENDS, **settings)
    spellings = byte_bpe(tmp_path, MERGES)
    opened = open_hf(tmp_path)
    pairs = [("The captain sees the", " ship"), ("Капитан", " м"), ("One city is Par", "is")]
    assert_sums_by_hand(opened, spellings, pairs, within=1e-5)


def test_a_sequence_longer_than_the_context_is_left_as_a_bound(tmp_path: Path) -> None:
    tiny_model(tmp_path, vocab_size=WIDTH, max_position_embeddings=20, **ENDS)
    byte_bpe(tmp_path, MERGES)
    opened = open_hf(tmp_path)
    pairs = ("The captain sees", " the ships"), ("The captain sees the", " море и")
    fits, cut = ask(opened, *requests(*pairs))
    string = string_of(fits)
    assert present(string.own) <= string.low < string.high
    assert cut.status == "error"
    assert "context of 20" in cut.reason


# Other tokenizers


def save(folder: Path, tokenizer: Any, **special: str) -> HuggingFace:
    from transformers import PreTrainedTokenizerFast

    tiny_model(folder, vocab_size=tokenizer.get_vocab_size(), **ENDS)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(folder)
    return exact(folder)


@pytest.mark.usefixtures("everything")
def test_sentencepiece_with_byte_fallback(tmp_path: Path) -> None:
    """Spaces are `▁`, a letter that is not in the vocabulary is its bytes, `A` and `<0x41>` are both A."""
    from tokenizers import Tokenizer, decoders, models, normalizers, processors

    words = ["▁", "▁A", "A", "▁cat", "▁c", "at", "a", "t", "c", "s", "▁cats", "ж"]
    tokens = ["<s>", "</s>", "<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), *words]
    scored = [(token, -1.0 - len(tokens[:n]) / 1000) for n, token in enumerate(tokens)]
    tokenizer = Tokenizer(models.Unigram(scored, unk_id=2, byte_fallback=True))
    replace = normalizers.Replace(" ", "▁")
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), replace])
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    tokenizer.decoder = decoders.Sequence(steps)
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    opened = save(tmp_path, tokenizer, bos_token="<s>", eos_token="</s>", unk_token="<unk>")
    spellings = {3 + byte: bytes([byte]) for byte in range(256)}
    spellings |= {259 + n: word.replace("▁", " ").encode() for n, word in enumerate(words)}
    pairs = [("A", " cat"), ("A", " A"), ("A A", "ж"), ("A A", " é")]
    assert_sums_by_hand(opened, spellings, pairs, within=1e-6)


def test_a_special_token_in_the_target_is_no_text(model: HuggingFace) -> None:
    (response,) = ask(model, *requests(("The captain", "</s> sees")))
    assert response.status == "error"
    assert "special token" in response.reason


def test_what_cannot_be_spelled_is_refused_before_the_first_request(tmp_path: Path) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers

    tokenizer = Tokenizer(models.WordLevel({"<s>": 0, "</s>": 1, "<unk>": 2, "ship": 3}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    opened = save(tmp_path, tokenizer, bos_token="<s>", eos_token="</s>", unk_token="<unk>")
    opened.probe(frozenset({"loglikelihood"}))
    with pytest.raises(CapabilityError, match="the bytes of its tokenizer's tokens are not known"):
        opened.probe(frozenset({"stringlikelihood"}))
    (response,) = ask(opened, *requests(("ship", "ship")))
    assert response.status == "error"
    assert "are not known" in response.reason

"""Tokenizers that come without a model: JSON, SentencePiece, tiktoken; and what is none of them."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Sequence
from pathlib import Path

import pytest

from present import present
from sealegs.benchmarks.miron import tokenizers as comparison
from sealegs.errors import UsageError
from sealegs.models.embedded import embedded_folder, embedder_folder
from sealegs.models.registry import tokenizer
from sealegs.models.tokenizer_files import TextTokenizer

TEXTS = ("The captain sees 12 ships.", "Капитан видит море…", " two  spaces ", "", "漢字 🚢")


def opened(path: Path | str) -> TextTokenizer:
    loaded = tokenizer(str(path))
    assert isinstance(loaded, TextTokenizer)
    return loaded


def spelled(loaded: TextTokenizer, text: str) -> bytes:
    return present(loaded.vocabulary).spell(loaded(text))


# tokenizer.json


@pytest.fixture(scope="module")
def embedded() -> TextTokenizer:
    return opened("embedded")


@pytest.mark.parametrize("form", ["{0}/tokenizer.json", "hf:{0}"])
def test_a_tokenizer_alone_gives_the_tokens_of_its_model(
    form: str, embedded: TextTokenizer, tmp_path: Path
) -> None:
    (tmp_path / "tokenizer.json").write_bytes((embedded_folder() / "tokenizer.json").read_bytes())
    alone = opened(form.format(tmp_path))
    for text in TEXTS:
        assert alone.encode(text) == embedded.encode(text)
    assert spelled(alone, TEXTS[1]) == TEXTS[1].encode()


def test_added_tokens_spell_their_letters(tmp_path: Path) -> None:
    """`ü` stands for the byte 0xFC in the other tokens of a byte-level tokenizer."""
    from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    added = Tokenizer(models.BPE({letter: number for number, letter in enumerate(letters)}, []))
    added.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    added.add_tokens([AddedToken("für", normalized=False)])
    added.save(str(tmp_path / "added.json"))
    loaded = opened(tmp_path / "added.json")
    assert len(loaded("für")) == 1
    for text in ("One für two", "café über"):
        assert spelled(loaded, text) == text.encode()


def test_wordpiece_spells_a_space_before_each_word() -> None:
    loaded = opened(embedder_folder() / "tokenizer.json")
    assert spelled(loaded, "The unsinkable ship") == b" the unsinkable ship"


# SentencePiece


def field(number: int, value: bytes | int | float) -> bytes:
    """A field of protocol buffers."""
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def varint(value: int) -> bytes:
    low, rest = value & 0x7F, value >> 7
    return bytes([low | 0x80]) + varint(rest) if rest else bytes([low])


def sentencepiece(
    pieces: Sequence[tuple[str, float, int]],
    *,
    kind: int,
    fallback: bool = False,
    dummy: bool = True,
) -> bytes:
    content = b"".join(
        field(1, field(1, text.encode()) + field(2, score) + field(3, of)) for text, score, of in pieces
    )
    trainer = field(3, kind) + field(35, int(fallback))
    normaliser = field(1, b"identity") + field(3, int(dummy)) + field(4, 1)
    return content + field(2, trainer) + field(3, normaliser)


SPECIAL = [("<unk>", 0.0, 2), ("<s>", 0.0, 3), ("</s>", 0.0, 3)]
WORDS = [("▁the", -3.0, 1), ("▁ship", -4.0, 1), ("s", -3.5, 1), ("▁", -5.0, 1), ("▁s", -4.5, 1)]
LETTERS = [(letter, -9.0, 1) for letter in "theipмор1"]
BYTES = [(f"<0x{byte:02X}>", 0.0, 6) for byte in range(256)]


def tokens(loaded: TextTokenizer, text: str, pieces: Sequence[tuple[str, float, int]]) -> list[str]:
    return [pieces[token][0] for token in loaded(text)]


def test_a_unigram_model_of_sentencepiece_is_read(tmp_path: Path) -> None:
    pieces = [*SPECIAL, *WORDS, *LETTERS]
    (tmp_path / "tokenizer.model").write_bytes(sentencepiece(pieces, kind=1))
    loaded = opened(tmp_path)
    assert tokens(loaded, "the  ships", pieces) == ["▁the", "▁ship", "s"]
    assert tokens(loaded, "мор", pieces) == ["▁", "м", "о", "р"]
    assert tokens(loaded, "the ж", pieces) == ["▁the", "▁", "<unk>"]
    assert loaded.unknown == 0


def test_a_byte_pair_model_of_sentencepiece_is_read(tmp_path: Path) -> None:
    """Pairs are merged by the score of what they make: `▁s` before `sh`, so that `▁sh` is not reached."""
    merged = [("th", -1.0, 1), ("▁s", -2.0, 1), ("sh", -3.0, 1), ("he", -4.0, 1), ("▁th", -5.0, 1)]
    letters = [(letter, -9.0, 1) for letter in "▁thesipм"]
    pieces = [*SPECIAL, *BYTES, *merged, *letters]
    (tmp_path / "spiece.model").write_bytes(sentencepiece(pieces, kind=2, fallback=True))
    loaded = opened(tmp_path / "spiece.model")
    assert tokens(loaded, "the ship", pieces) == ["▁th", "e", "▁s", "h", "i", "p"]
    assert tokens(loaded, "ж", pieces) == ["▁", "<0xD0>", "<0xB6>"]
    assert spelled(loaded, "the ж") == " the ж".encode()
    (tmp_path / "bare.model").write_bytes(sentencepiece(pieces, kind=2, fallback=True, dummy=False))
    assert tokens(opened(tmp_path / "bare.model"), "the", pieces) == ["th", "e"]


def test_user_defined_pieces_are_found_in_the_normalised_text(tmp_path: Path) -> None:
    """The space in front is put before the whole text, not after each of them."""
    defined = [(text, 0.0, 4) for text in (".", "(", ")")]
    letters = [(letter, -9.0, 1) for letter in "▁theipUS314"]
    pieces = [*SPECIAL, *defined, ("▁the", -3.0, 1), ("▁ship", -4.0, 1), ("s", -9.0, 1), *letters]
    (tmp_path / "spiece.model").write_bytes(sentencepiece(pieces, kind=1))
    loaded = opened(tmp_path)
    assert tokens(loaded, "the U.S. ship", pieces) == ["▁the", "▁", "U", ".", "S", ".", "▁ship"]
    assert tokens(loaded, "3.14", pieces) == ["▁", "3", ".", "1", "4"]
    assert loaded.encode("the (ship").spans == [(0, 3), (3, 4), (4, 5), *((n, n + 1) for n in range(5, 9))]
    assert spelled(loaded, "the U.S.") == b" the U.S."


def test_a_models_folder_with_a_tokenizer_of_sentencepiece_alone_is_read(tmp_path: Path) -> None:
    pieces = [*SPECIAL, *WORDS, *LETTERS]
    (tmp_path / "tokenizer.model").write_bytes(sentencepiece(pieces, kind=1))
    (tmp_path / "config.json").write_text('{"model_type": "llama", "architectures": ["LlamaForCausalLM"]}')
    for spec in (str(tmp_path), f"hf:{tmp_path}"):
        assert tokens(opened(spec), "the ships", pieces) == ["▁the", "▁ship", "s"]


def test_a_space_before_the_text_is_no_part_of_its_first_word(tmp_path: Path) -> None:
    pieces = [*SPECIAL, ("▁", -1.0, 1), ("the", -2.0, 1), ("ship", -2.0, 1), *LETTERS]
    (tmp_path / "tokenizer.model").write_bytes(sentencepiece(pieces, kind=1))
    loaded = opened(tmp_path)
    assert tokens(loaded, "the ship", pieces) == ["▁", "the", "▁", "ship"]
    values = comparison.text_values("the ship", loaded.encode("the ship"), loaded)
    assert values["whole_words"] == 1


# tiktoken


def ranks(*merged: bytes) -> str:
    every = [*(bytes([byte]) for byte in range(256)), *merged]
    return "".join(f"{base64.b64encode(token).decode()} {rank}\n" for rank, token in enumerate(every))


def test_ranks_of_tiktoken_are_read(tmp_path: Path) -> None:
    merged = (b" s", b"hi", b"hip", b" sh", b"12", b"123", b"1234", "ж".encode())
    (tmp_path / "cl100k_base.tiktoken").write_text(ranks(*merged))
    loaded = opened(tmp_path / "cl100k_base.tiktoken")
    spellings = dict(enumerate([*(bytes([byte]) for byte in range(256)), *merged]))
    assert [spellings[token] for token in loaded(" ship 1234ж")] == [
        *(b" s", b"hip", b" ", b"123", b"4", "ж".encode())
    ]
    assert loaded.note == ""
    (tmp_path / "gpt2.tiktoken").write_text(ranks(*merged))
    assert [spellings[token] for token in opened(tmp_path / "gpt2.tiktoken")("1234")] == [b"1234"]
    (tmp_path / "mine.tiktoken").write_text(ranks(*merged))
    assert "does not say how a text is split" in opened(tmp_path / "mine.tiktoken").note


def test_mistrals_tekken_is_read(tmp_path: Path) -> None:
    """The special tokens have the first numbers; ranks beyond the vocabulary's size are not used."""
    merged = (b" s", b"hi", b"hip", b" sh", b"12", "ж".encode(), b"beyond")
    every = [*(bytes([byte]) for byte in range(256)), *merged]
    vocab = [
        {"rank": rank, "token_bytes": base64.b64encode(token).decode(), "token_str": None}
        for rank, token in enumerate(every)
    ]
    config = {
        "pattern": r"\p{N}| ?\p{L}+|\s+", "num_vocab_tokens": len(vocab),
        "default_vocab_size": len(vocab) - 1 + 10, "default_num_special_tokens": 10, "version": "v3",
    }  # fmt: skip
    (tmp_path / "tekken.json").write_text(json.dumps({"config": config, "vocab": vocab}))
    for spec in (f"hf:{tmp_path}", str(tmp_path / "tekken.json")):
        loaded = opened(spec)
        assert [every[token - 10] for token in loaded(" ship 12ж")] == [
            *(b" s", b"hip", b" ", b"1", b"2", "ж".encode())
        ]
        assert len(loaded("beyond")) == 6
        assert spelled(loaded, " ship ж") == " ship ж".encode()
        assert loaded.note == ""


# What is refused


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("tokenizer.json", b'{"model": ' + b"[" * 100_000, "its tokenizer cannot be used"),
        ("x.model", b"\x0a\xff\xff\xff\xff\x0fab", "nor a SentencePiece model"),
        ("x.model", b"version https://git-lfs.github.com/spec/v1\noid sha256:0", "pointer of Git LFS"),
        ("x.model", sentencepiece([*SPECIAL, *WORDS], kind=3), "unigram and BPE"),
        ("x.model", sentencepiece([*SPECIAL, ("a" * 600, 0.0, 1)], kind=2), "a token of 600 characters"),
        ("x.tiktoken", b"IQ== 0\nnot a line\n", "x.tiktoken, line 2"),
        ("x.tiktoken", b"IQ== 0\n", "has no token for the byte 0x00"),
    ],
)
def test_what_is_no_tokenizer_is_refused(name: str, content: bytes, problem: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError) as refused:
        tokenizer(str(tmp_path / name))
    assert problem in str(refused.value)
    assert str(tmp_path) in str(refused.value)


# Figures


def test_a_word_that_is_one_unknown_token_is_not_whole(tmp_path: Path) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = Tokenizer(models.WordLevel({"<unk>": 0, "the": 1, "ship": 2, "a": 3}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.save(str(tmp_path / "words.json"))
    loaded = opened(tmp_path / "words.json")
    values = comparison.text_values("the ship sank", loaded.encode("the ship sank"), loaded)
    assert values["whole_words"] == pytest.approx(2 / 3)
    assert "whole_words" not in comparison.text_values("1, 2", loaded.encode("1, 2"), loaded)

"""Tokenizers without a model: `tokenizer.json`, a SentencePiece model, or ranks of byte pairs
(tiktoken, tekken).

All become tokenizers of the package `tokenizers`, by transformers' own converters where it has them. A file
is known by its content, not by its name, and nothing in it is executed.
"""

from __future__ import annotations

import base64
import re
from codecs import BOM_UTF8
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from sealegs.errors import MissingExtra, UsageError
from sealegs.files.jsonfile import read_bytes
from sealegs.files.package_data import read_json
from sealegs.models.boundary import appended_tokens
from sealegs.models.local.vocabulary import SPACE, Vocabulary, read_vocabulary, unknown_token
from sealegs.models.local.weights import require_packages, tokenizer_errors

LARGEST_TOKENIZER_BYTES = 256 * 1024 * 1024
"""Bytes of a tokenizer's file, at most."""
LONGEST_TOKEN_CHARS = 512
"""Characters or bytes of a token, at most: to find its parts takes time with the square of its length."""
RANK = re.compile(rb"[A-Za-z0-9+/]+=* \d{1,9}\s*")
"""A line of tiktoken's files: a token in base64, and its rank."""
NAMES = ("tokenizer.json", "tekken.json", "tokenizer.model", "spiece.model", "*.model", "*.tiktoken")
"""The files of a folder that may hold a tokenizer, the first that is there."""
HEAD = 2**16
"""Bytes at the beginning of a JSON file that show whether it is Mistral's."""
UNIGRAM, BYTE_PAIRS = 1, 2
NORMAL, UNKNOWN, CONTROL, USER_DEFINED = 1, 2, 3, 4
"""Kinds of SentencePiece's models and of their tokens."""


class Encoded(NamedTuple):
    """The tokens of a text, and the characters that each of them covers; None where that is not known."""

    ids: list[int]
    spans: list[tuple[int, int]] | None


class TextTokenizer:
    """A tokenizer alone: called with a text, it gives the token ids as a model would read them.

    A token that it appends to every text is left out, as in a run.
    """

    def __init__(self, encode: Callable[[str], Encoded], *, backend: Any = None, note: str = "") -> None:
        self._encode, self._backend = encode, backend
        self._appended = appended_tokens(lambda text: encode(text).ids)
        self.note = note
        """What had to be assumed."""

    def __call__(self, text: str) -> list[int]:
        return self.encode(text).ids

    def encode(self, text: str) -> Encoded:
        ids, spans = self._encode(text)
        end = len(ids) - len(self._appended)
        if self._appended and tuple(ids[end:]) == self._appended:
            ids, spans = ids[:end], spans[:end] if spans is not None else None
        return Encoded(ids, spans)

    @cached_property
    def vocabulary(self) -> Vocabulary | None:
        """The bytes of its tokens; None where they are not known."""
        return read_vocabulary(self._backend) if self._backend is not None else None

    @cached_property
    def unknown(self) -> int | None:
        """The token for what it has no token for."""
        return unknown_token(self._backend) if self._backend is not None else None


def is_alone(path: Path) -> bool:
    """Whether a path holds a tokenizer and no model: a file, or a folder without a model's configuration."""
    if path.is_dir():
        return not (path / "config.json").is_file() and not any(path.glob("*.gguf"))
    return path.is_file() and path.suffix != ".gguf"


def needs_conversion(folder: Path) -> bool:
    """Whether a folder has a tokenizer, but not as `tokenizer.json`."""
    return not (folder / NAMES[0]).is_file() and any(file for name in NAMES for file in folder.glob(name))


def read_tokenizer(path: Path) -> TextTokenizer:
    """The tokenizer of a file, or of the first file of a folder that may hold one."""
    file = next((file for name in NAMES for file in sorted(path.glob(name))), None) if path.is_dir() else path
    if file is None:
        raise UsageError(f"{path} has no tokenizer. Expected in it: {', '.join(NAMES)}.")
    require_packages("tokenizers", what="a tokenizer", extra="hf")
    try:
        if file.stat().st_size > LARGEST_TOKENIZER_BYTES:
            raise UsageError(
                f"{file} has more than {LARGEST_TOKENIZER_BYTES:,} bytes: it is not a tokenizer."
            )
        content = read_bytes(file)
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}.") from None
    with tokenizer_errors(file):
        return _read(content.removeprefix(BOM_UTF8), file)


def _read(content: bytes, file: Path) -> TextTokenizer:
    from tokenizers import Tokenizer

    first_line = content.lstrip()[:4096].partition(b"\n")[0]
    if content.lstrip()[:1] == b"{":
        if b'"token_bytes"' in content[:HEAD]:
            return _from_tekken(content, file)
        return wrap(Tokenizer.from_str(content.decode()), file)
    if RANK.fullmatch(first_line):
        ranks = _read_ranks(content, file)
        return _from_ranks(ranks, file, *_pattern_of(file.name, len(ranks)))
    if first_line.startswith(b"version https://git-lfs"):
        raise UsageError(f"{file} is a pointer of Git LFS: `git lfs pull` replaces it by the file.")
    return wrap(_from_sentencepiece(content), file)


def wrap(backend: Any, file: Path, note: str = "") -> TextTokenizer:
    """A tokenizer of the package `tokenizers`, without limits on length that its file may have."""
    backend.no_truncation()
    backend.no_padding()

    def encode(text: str) -> Encoded:
        with tokenizer_errors(file):
            encoding = backend.encode(text)
        return Encoded(list(encoding.ids), list(encoding.offsets))

    return TextTokenizer(encode, backend=backend, note=note)


class _Patterns(Struct, frozen=True):
    patterns: dict[str, list[str]]
    """How texts are split before bytes are merged: alternatives of a regular expression."""
    names: dict[str, str]
    """Parts of a file's or an encoding's name, and the pattern that goes with them."""


def _read_ranks(content: bytes, file: Path) -> dict[bytes, int]:
    """Tokens with their ranks, of which the lower is merged first."""
    ranks: dict[bytes, int] = {}
    lines = [(number, line) for number, line in enumerate(content.splitlines(), 1) if line.strip()]
    for number, line in lines:
        if not RANK.fullmatch(line):
            raise UsageError(f"{file}, line {number}: expected a token in base64 and its rank.")
        encoded, rank = line.split()
        ranks[base64.b64decode(encoded, validate=True)] = int(rank)
    if len(set(ranks.values())) < len(lines):
        raise UsageError(f"{file}: a token or a rank appears twice.")
    return ranks


class _VocabularyToken(Struct):
    rank: int
    token_bytes: str


class _TekkenConfig(Struct):
    pattern: str
    default_vocab_size: int
    default_num_special_tokens: int


class _Tekken(Struct):
    config: _TekkenConfig
    vocab: list[_VocabularyToken]


def _from_tekken(content: bytes, file: Path) -> TextTokenizer:
    """Mistral's `tekken.json`. Special tokens have the first numbers; of the ranks, as many are used as the
    vocabulary then has room for."""
    tekken = msgspec.json.decode(content, type=_Tekken)
    special = tekken.config.default_num_special_tokens
    room = tekken.config.default_vocab_size - special
    tokens = [token for token in tekken.vocab if token.rank < room]
    ranks = {base64.b64decode(token.token_bytes, validate=True): token.rank + special for token in tokens}
    return _from_ranks(ranks, file, tekken.config.pattern)


def _pattern_of(name: str, count: int) -> tuple[str, str]:
    """How texts are split before bytes are merged, which no file of tiktoken's says: it goes by the name.
    Where that says nothing, a note tells what was assumed."""
    known = read_json(__package__, "tiktoken.json", type=_Patterns)
    pattern, note = next((of for part, of in known.names.items() if part in name.lower()), ""), ""
    if not pattern:
        pattern = "o200k" if count > 150_000 else "cl100k"
        note = (
            f"{name} does not say how a text is split before its bytes are merged: taken to be as in "
            f"{pattern}_base. Where it is another, name the file after it: {', '.join(known.names)}."
        )
    return "|".join(known.patterns[pattern]), note


def _from_ranks(ranks: Mapping[bytes, int], file: Path, pattern: str, note: str = "") -> TextTokenizer:
    """Byte pairs merged by rank, the lower first."""
    if longest := max((len(token) for token in ranks if len(token) > LONGEST_TOKEN_CHARS), default=0):
        raise UsageError(f"{file}: a token of {longest} bytes; at most {LONGEST_TOKEN_CHARS} are expected.")
    if missing := [byte for byte in range(256) if bytes([byte]) not in ranks]:
        raise UsageError(f"{file} has no token for the byte {missing[0]:#04x}: every byte must have one.")
    require_packages("transformers", what="a tokenizer of byte pairs", extra="hf")
    from transformers.convert_slow_tokenizer import TikTokenConverter

    converter = TikTokenConverter(ranks, pattern=pattern)
    converter.load_tiktoken_bpe = dict  # the ranks are read
    return wrap(converter.converted(), file, note)


def _from_sentencepiece(content: bytes) -> Any:
    """A tokenizer from a SentencePiece model: its tokens, the kind of model, how texts are normalised.

    transformers' converters need a model's class, which a file alone does not have; what they share is used.
    A user-defined token is cut out of the normalised text; before one that begins a text no space is put.
    """
    what = "a SentencePiece model"
    require_packages("transformers", what=what, extra="hf")
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
    from transformers.convert_slow_tokenizer import generate_merges, import_protobuf
    from transformers.utils import is_protobuf_available

    if not is_protobuf_available():
        raise MissingExtra(what, package="protobuf", install="pip install protobuf")
    proto = import_protobuf().ModelProto()
    try:
        proto.ParseFromString(content)
    except Exception:  # noqa: BLE001  # protobuf has a class of its own for it
        proto.Clear()
    trainer, normalizer = proto.trainer_spec, proto.normalizer_spec
    tokens = [(token.piece, token.score) for token in proto.pieces]
    if UNKNOWN not in {token.type for token in proto.pieces}:
        raise ValueError("it is neither JSON, nor ranks of tiktoken, nor a SentencePiece model")
    if trainer.model_type not in (UNIGRAM, BYTE_PAIRS) or trainer.treat_whitespace_as_suffix:
        raise ValueError("of SentencePiece's models, unigram and BPE with spaces before words can be read")
    if longest := max((len(text) for text, _ in tokens if len(text) > LONGEST_TOKEN_CHARS), default=0):
        raise ValueError(f"a token of {longest} characters")
    model: Any
    if trainer.model_type == UNIGRAM:
        model = models.Unigram(tokens, unk_id=trainer.unk_id, byte_fallback=trainer.byte_fallback)
    else:
        numbers = {text: number for number, (text, _) in enumerate(tokens)}
        scores = {token.piece: token.score for token in proto.pieces if token.type == NORMAL}
        model = models.BPE(
            vocab=numbers,
            merges=generate_merges(numbers, scores),
            unk_token=tokens[trainer.unk_id][0],
            fuse_unk=True,
            byte_fallback=trainer.byte_fallback,
        )
    backend = Tokenizer(model)
    table = normalizer.precompiled_charsmap
    steps: list[Any] = [normalizers.Precompiled(table)] if table else []
    if normalizer.remove_extra_whitespaces:
        steps += [normalizers.Replace(Regex("^ +| +$"), ""), normalizers.Replace(Regex(" {2,}"), " ")]
    backend.normalizer = normalizers.Sequence([*steps, normalizers.Replace(" ", SPACE)])
    scheme = "first" if normalizer.add_dummy_prefix else "never"
    backend.pre_tokenizer = pre_tokenizers.Metaspace(SPACE, prepend_scheme=scheme, split=False)
    backend.decoder = decoders.Sequence(
        [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    special = [token.piece for token in proto.pieces if token.type in (UNKNOWN, CONTROL)]
    backend.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in special])
    defined = [token.piece for token in proto.pieces if token.type == USER_DEFINED]
    backend.add_tokens([AddedToken(text, normalized=True) for text in defined])
    return backend

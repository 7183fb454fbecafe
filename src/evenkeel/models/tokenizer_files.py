"""Tokenizers without a model: `tokenizer.json`, a SentencePiece model, or tiktoken's ranks of byte pairs.

All become tokenizers of the package `tokenizers`. A file is known by its content, not by its name, and
nothing in it is executed.
"""

from __future__ import annotations

import base64
import binascii
import re
import struct
from codecs import BOM_UTF8
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct

from evenkeel.errors import MissingExtra, UsageError
from evenkeel.files.jsonfile import read_bytes
from evenkeel.files.package_data import read_json
from evenkeel.models.boundary import appended_tokens
from evenkeel.models.local.vocabulary import SPACE, Vocabulary, byte_letters, read_vocabulary, unknown_token

LARGEST = 256 * 1024 * 1024
"""Bytes of a tokenizer's file, at most."""
LONGEST = 512
"""Characters or bytes of a token, at most: to find its parts takes time with the square of its length."""
RANK = re.compile(rb"[A-Za-z0-9+/]+=* \d{1,9}\s*")
"""A line of tiktoken's files: a token in base64, and its rank."""
NAMES = ("tokenizer.json", "tokenizer.model", "spiece.model", "*.model", "*.tiktoken")
"""The files of a folder that may hold a tokenizer, the first that is there."""


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
    _require_tokenizers()
    try:
        if file.stat().st_size > LARGEST:
            raise UsageError(f"{file} has more than {LARGEST:,} bytes: it is not a tokenizer.")
        content = read_bytes(file)
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}.") from None
    try:
        return _read(content, file)
    except UsageError:
        raise
    except Exception as error:  # noqa: BLE001  # `tokenizers` raises plain exceptions
        reason = str(error).strip().partition("\n")[0].rstrip(".")
        raise UsageError(f"{file} is not a tokenizer that can be read: {reason}.") from None


def _read(content: bytes, file: Path) -> TextTokenizer:
    from tokenizers import Tokenizer

    content = content.removeprefix(BOM_UTF8)
    first_line = content.lstrip()[:4096].partition(b"\n")[0]
    if content.lstrip()[:1] == b"{":
        return wrap(Tokenizer.from_str(content.decode()))
    if RANK.fullmatch(first_line):
        ranks = _read_ranks(content, file)
        return from_ranks(ranks, file.name, folder=file.parent.resolve().name)
    if first_line.startswith(b"version https://git-lfs"):
        raise UsageError(f"{file} is a pointer of Git LFS: `git lfs pull` replaces it by the file.")
    return wrap(from_sentencepiece(content))


def wrap(backend: Any, note: str = "") -> TextTokenizer:
    """A tokenizer of the package `tokenizers`, without limits on length that its file may have."""
    backend.no_truncation()
    backend.no_padding()

    def encode(text: str) -> Encoded:
        encoding = backend.encode(text)
        return Encoded(list(encoding.ids), list(encoding.offsets))

    return TextTokenizer(encode, backend=backend, note=note)


def _require_tokenizers() -> None:
    import importlib.util

    if importlib.util.find_spec("tokenizers") is None:
        raise MissingExtra("a tokenizer", package="tokenizers", install='pip install "evenkeel-bench[hf]"')


# tiktoken: bytes with ranks, of which the lower is merged first


class _Patterns(Struct, frozen=True):
    patterns: dict[str, list[str]]
    """How texts are split before bytes are merged: alternatives of a regular expression."""
    names: dict[str, str]
    """Parts of a file's or an encoding's name, and the pattern that goes with them."""


def from_encoding(name: str) -> TextTokenizer:
    """`tiktoken:NAME`, from the package tiktoken, which fetches an encoding once and keeps it."""
    _require_tokenizers()
    try:
        import tiktoken  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise MissingExtra(f"tiktoken:{name}", package="tiktoken", install="pip install tiktoken") from None
    names = tiktoken.list_encoding_names()
    if name not in names:
        raise UsageError(f"tiktoken has no encoding '{name}'. Available: {', '.join(names)}.")
    try:
        encoding = tiktoken.get_encoding(name)
    except Exception as error:  # noqa: BLE001  # whatever its way of fetching raises
        raise UsageError(
            f"tiktoken:{name} is not on this machine and cannot be fetched ({type(error).__name__}): give "
            "the path of its .tiktoken file."
        ) from None
    return from_ranks(encoding._mergeable_ranks, name)


def _read_ranks(content: bytes, file: Path) -> dict[bytes, int]:
    ranks: dict[bytes, int] = {}
    taken: set[int] = set()
    for number, line in enumerate(content.splitlines(), 1):
        if not line.strip():
            continue
        try:
            if not RANK.fullmatch(line):
                raise ValueError
            encoded, rank = line.split()
            token = base64.b64decode(encoded, validate=True)
        except (ValueError, binascii.Error):
            raise UsageError(f"{file}, line {number}: expected a token in base64 and its rank.") from None
        problems = {
            f"a token of {len(token)} bytes": len(token) > LONGEST,
            "a token that appears twice": token in ranks,
            f"the rank {int(rank)} appears twice": int(rank) in taken,
        }
        if problem := next((text for text, applies in problems.items() if applies), ""):
            raise UsageError(f"{file}, line {number}: {problem}.")
        ranks[token] = int(rank)
        taken.add(int(rank))
    if missing := [byte for byte in range(256) if bytes([byte]) not in ranks]:
        raise UsageError(f"{file} has no token for the byte {missing[0]:#04x}: every byte must have one.")
    return ranks


def from_ranks(ranks: Mapping[bytes, int], name: str, *, folder: str = "") -> TextTokenizer:
    """Byte pairs merged by rank. How texts are split before that is in no such file: it goes by the name, and
    by the folder's where the name says nothing."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

    known = read_json(__package__, "tiktoken.json", type=_Patterns)
    pattern = next(
        (of for text in (name, folder) for part, of in known.names.items() if part in text.lower()), ""
    )
    note = ""
    if not pattern:
        pattern = "o200k" if len(ranks) > 150_000 else "cl100k"
        note = (
            f"{name} does not say how a text is split before its bytes are merged: taken to be as in "
            f"{pattern}_base. Where it is another, name the file after it: {', '.join(known.names)}."
        )
    letters = {byte: letter for letter, byte in byte_letters().items()}

    def spelled(token: bytes) -> str:
        return "".join(letters[byte] for byte in token)

    vocabulary = {spelled(token): rank for token, rank in ranks.items()}
    merges = _merges(sorted(vocabulary, key=vocabulary.__getitem__), vocabulary)
    backend = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, ignore_merges=True))
    split = pre_tokenizers.Split(Regex("|".join(known.patterns[pattern])), behavior="isolated")
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    backend.decoder = decoders.ByteLevel()
    return wrap(backend, note)


def _merges(tokens: Iterable[str], known: Container[str]) -> list[tuple[str, str]]:
    """Every pair of known tokens that makes another, in the order of what they make."""
    return [
        (token[:end], token[end:])
        for token in tokens
        for end in range(1, len(token))
        if token[:end] in known and token[end:] in known
    ]


# SentencePiece: a message of protocol buffers

UNIGRAM, BYTE_PAIRS = 1, 2
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, BYTE = 1, 2, 3, 4, 6


def from_sentencepiece(content: bytes) -> Any:
    """A tokenizer from the message `ModelProto` of SentencePiece's `.model` files.

    Read are its pieces (1: text, 2: score, 3: type), of the trainer's settings the kind of model (3) and byte
    fallback (35), and how texts are normalised (2: a compiled table, 3: a space in front, 4: spaces joined).

    User-defined pieces are found in the normalised text. In a unigram model they have a score that wins; in a
    BPE model they are cut out, the longest first, and nothing is merged with them. There, a stretch of text
    that is a piece as a whole is taken as it is (`ignore_merges`), which gives user-defined pieces their
    number; pieces that no merges make are therefore left out.
    """
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

    message = _message(content)
    trainer, normaliser = (_message(_last(message, field, b"")) for field in (2, 3))
    pieces = [_piece(piece) for piece in message.get(1, ()) if isinstance(piece, bytes)]
    kind, fallback = _last(trainer, 3, UNIGRAM), bool(_last(trainer, 35, 0))
    unknown = [number for number, piece in enumerate(pieces) if piece.type == UNKNOWN]
    defined = {piece.text for piece in pieces if piece.type == USER_DEFINED and piece.text}
    if not pieces or len(unknown) != 1:
        raise ValueError("it is neither JSON, nor ranks of tiktoken, nor a SentencePiece model")
    if kind not in (UNIGRAM, BYTE_PAIRS) or _last(trainer, 24, 0):
        raise ValueError("of SentencePiece's models, unigram and BPE with spaces before words can be read")
    model: Any
    if kind == UNIGRAM:
        highest = max((piece.score for piece in pieces if piece.type == NORMAL), default=0.0)
        scored = [(piece.text, _score(piece, highest)) for piece in pieces]
        model = models.Unigram(scored, unk_id=unknown[0], byte_fallback=fallback)
    else:
        numbers = {piece.text: number for number, piece in enumerate(pieces)}
        by_score = sorted((piece for piece in pieces if piece.type == NORMAL), key=lambda piece: -piece.score)
        merges = _merges((piece.text for piece in by_score), numbers)
        settings: dict[str, Any] = {
            "unk_token": pieces[unknown[0]].text,
            "fuse_unk": True,
            "byte_fallback": fallback,
        }
        model = models.BPE(vocab=numbers, merges=merges, **settings)
        if defined:
            for token in _unreachable(model, pieces):
                del numbers[token]
            merges = [pair for pair in merges if {*pair, "".join(pair)} <= numbers.keys()]
            model = models.BPE(vocab=numbers, merges=merges, ignore_merges=True, **settings)
    backend = Tokenizer(model)
    if defined and kind == BYTE_PAIRS:
        backend.pre_tokenizer = pre_tokenizers.Split(Regex(_any_of(defined)), behavior="isolated")
    table = _last(normaliser, 2, b"")
    steps: list[Any] = [normalizers.Precompiled(table)] if table else []
    if changed := [text for text in sorted(defined) for step in steps if step.normalize_str(text) != text]:
        raise ValueError(f"its normalisation changes its user-defined piece {changed[0]!r}")
    if _last(normaliser, 4, 1):
        steps += [normalizers.Replace(Regex(" {2,}"), " "), normalizers.Strip(left=True, right=True)]
    if _last(normaliser, 3, 1):
        steps.append(normalizers.Prepend(" "))
    backend.normalizer = normalizers.Sequence([*steps, normalizers.Replace(" ", SPACE)])
    backend.decoder = decoders.Sequence(
        [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    special = [piece.text for kind in (CONTROL, UNKNOWN) for piece in pieces if piece.type == kind]
    backend.add_special_tokens([AddedToken(text, special=True) for text in special])
    return backend


def _score(piece: _Piece, highest: float) -> float:
    """A piece's score in a unigram model: of a user-defined one nearly 0, so that it is taken."""
    if piece.type != USER_DEFINED:
        return piece.score
    return max(highest, 0.0) * len(piece.text.encode()) - 0.1


def _unreachable(model: Any, pieces: Iterable[_Piece]) -> list[str]:
    """The pieces of text that merging their own characters does not make: no text has them."""
    texts = (piece.text for piece in pieces if piece.type not in (UNKNOWN, CONTROL, USER_DEFINED, BYTE))
    return [text for text in texts if [token.value for token in model.tokenize(text)] != [text]]


def _any_of(texts: Iterable[str]) -> str:
    """A regular expression for the longest of some texts. There may be thousands: the first letter decides
    which are tried."""
    rests: defaultdict[str, list[str]] = defaultdict(list)
    for text in sorted(texts, key=len, reverse=True):
        first, *rest = (f"\\x{{{ord(character):x}}}" for character in text)
        rests[first].append("".join(rest))
    return "|".join(f"{first}(?:{'|'.join(following)})" for first, following in rests.items())


class _Piece(NamedTuple):
    text: str
    score: float
    type: int


def _piece(content: bytes) -> _Piece:
    fields = _message(content)
    text = _last(fields, 1, b"").decode()
    if len(text) > LONGEST:
        raise ValueError(f"a piece of {len(text)} characters")
    (score,) = struct.unpack("<f", _last(fields, 2, b"\0\0\0\0"))
    return _Piece(text, score, _last(fields, 3, NORMAL))


def _last(fields: Mapping[int, Sequence[Any]], number: int, default: Any) -> Any:
    """The value of a field, of which the last counts."""
    value = fields.get(number, (default,))[-1]
    if isinstance(value, bytes) != isinstance(default, bytes):
        raise ValueError(f"field {number} has another type than SentencePiece gives it")
    return value


def _message(content: bytes) -> dict[int, list[int | bytes]]:
    """The fields of a message: numbers as they are, everything else as bytes."""
    fields: dict[int, list[int | bytes]] = {}
    place = 0
    while place < len(content):
        key, place = _varint(content, place)
        value: int | bytes
        if key & 7 == 0:
            value, place = _varint(content, place)
        else:
            if key & 7 == 2:
                length, place = _varint(content, place)
            else:
                length = {1: 8, 5: 4}.get(key & 7, -1)
            value = content[place : place + length]
            if length < 0 or len(value) != length:
                raise ValueError("it is neither JSON, nor ranks of tiktoken, nor a SentencePiece model")
            place += length
        fields.setdefault(key >> 3, []).append(value)
    return fields


def _varint(content: bytes, place: int) -> tuple[int, int]:
    """A number of seven bits a byte, the lowest first, and where it ends."""
    value = 0
    for shift in range(0, 70, 7):
        if place >= len(content):
            break
        byte = content[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
    raise ValueError("it is neither JSON, nor ranks of tiktoken, nor a SentencePiece model")

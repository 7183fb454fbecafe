"""The user's cache folder: converted models, fetched data, and the hashes of large files."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path, PurePath

import msgspec

from sealegs.errors import StorageError

DRAFT = re.compile(r"\.(?P<name>.+)\.[0-9a-f]{12}\.draft")
"""The name of a file that is being written: only `replacing` gives such names."""

LONGEST_SUFFIX = 12
"""Bytes of the ending of a file's name, which is kept where the name is cut."""


def cache_dir() -> Path:
    """`SEALEGS_CACHE`, or the platform's folder for caches."""
    from platformdirs import user_cache_path

    return Path(os.environ.get("SEALEGS_CACHE") or user_cache_path("sealegs"))


def resolved(path: str | Path) -> Path:
    """A path without its links; links that lead in a circle, and what can be no path, stay as they are."""
    try:
        return Path(path).resolve()
    except (OSError, RuntimeError, ValueError):  # RuntimeError: a circle, before Python 3.13
        return Path(path)


def expanded(path: str | Path) -> Path:
    """A path with the home folder in place of `~`; that of a user whom nobody knows stays as it is."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def slug(name: str, *, longest: int = 80) -> str:
    """A name from elsewhere as a part of a file name: only letters, digits and ._-, no option, no hidden
    file, and at most so many bytes. Of a longer name a digest remains."""
    safe = "".join(c if c.isalnum() or c in "._-" else "_" for c in name).lstrip(".-").rstrip(".")
    if len(safe.encode()) > longest:
        ending = f"-{hashlib.sha256(name.encode(errors='surrogatepass')).hexdigest()[:8]}"
        ending += (
            suffix if len(suffix := PurePath(safe).suffix) <= LONGEST_SUFFIX and suffix.isascii() else ""
        )
        safe = safe.encode()[: longest - len(ending)].decode(errors="ignore") + ending
    return safe or "unnamed"


def distinct_slug(name: str, taken: set[str], *, longest: int = 80) -> str:
    """A slug that no other name has, also where case and the form of accents do not count; it is added to
    those that are taken."""
    number, safe = 1, slug(name, longest=longest)
    while (folded := unicodedata.normalize("NFKC", safe).casefold()) in taken:
        number += 1
        path = PurePath(slug(name, longest=longest - 8))
        safe = f"{path.stem}-{number}{path.suffix}"
    taken.add(folded)
    return safe


@contextlib.contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A temporary path beside `target` that replaces it when the block succeeds, and is removed if not."""
    draft = target.with_name(f".{target.name}.{os.urandom(6).hex()}.draft")
    with storage_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        draft.touch(exist_ok=False)
        try:
            yield draft
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)


def drafts_in(folder: Path) -> Iterator[tuple[Path, str]]:
    """What killed processes left of `replacing`, each with the name of the file that it was to become."""
    for path in folder.iterdir():
        if (match := DRAFT.fullmatch(path.name)) and path.is_file() and not path.is_symlink():
            yield path, match["name"]


@contextlib.contextmanager
def storage_errors(target: Path) -> Iterator[None]:
    """Raise StorageError where a file, its draft or its folder cannot be written. A full disk names no file;
    an error that names another is of one that is read meanwhile."""
    try:
        yield
    except OSError as error:
        path = Path(error.filename) if isinstance(error.filename, str) else target
        is_draft = path.parent == target.parent and path.name.startswith(f".{target.name}.")
        if error.errno is None or not (path == target or path in target.parents or is_draft):
            raise
        raise StorageError(
            f"{target}: cannot be written ({error.strerror}). What was stored before is safe: make room, fix "
            "the permissions, or choose another folder."
        ) from error


def write_whole(target: Path, content: str | bytes) -> None:
    """Write a file completely or not at all."""
    with replacing(target) as draft:
        draft.write_bytes(content.encode() if isinstance(content, str) else content)


def file_sha256(path: Path) -> str:
    """SHA-256 of a file; stored by path, size and time, since weights run to gigabytes."""
    state = path.stat()
    store = cache_dir() / "hashes.json"
    key = f"{path.resolve()}|{state.st_size}|{state.st_mtime_ns}"
    hashes: dict[str, str] = {}
    with contextlib.suppress(OSError, ValueError, RecursionError):
        hashes = msgspec.json.decode(store.read_bytes(), type=dict[str, str])
    if key not in hashes:
        with path.open("rb") as file:
            hashes[key] = hashlib.file_digest(file, "sha256").hexdigest()
        with contextlib.suppress(StorageError):
            write_whole(store, msgspec.json.encode(hashes))
    return hashes[key]

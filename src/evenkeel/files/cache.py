"""The user's cache folder: converted models, fetched data, and the hashes of large files."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import msgspec

DRAFT = ".draft"
"""The ending of the name of a file that is being written."""


def cache_dir() -> Path:
    """`EVENKEEL_CACHE`, or the platform's folder for caches."""
    from platformdirs import user_cache_path

    return Path(os.environ.get("EVENKEEL_CACHE") or user_cache_path("evenkeel"))


def slug(name: str, *, longest: int = 80) -> str:
    """A name from elsewhere as a part of a file name: only letters, digits and ._-, and not too long."""
    safe = "".join(c if c.isalnum() or c in "._-" else "_" for c in name).strip(".")
    return safe[:longest] or "unnamed"


@contextlib.contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A temporary path beside `target` that replaces it when the block succeeds, and is removed if not."""
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{target.name}.{secrets.token_hex(6)}{DRAFT}")
    # Created like any new file, so that the umask decides who may read it.
    os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    try:
        yield draft
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def write_whole(target: Path, content: str | bytes) -> None:
    """Write a file completely or not at all."""
    with replacing(target) as draft:
        draft.write_bytes(content.encode() if isinstance(content, str) else content)


def trim(folder: Path, *, files: int, size: int) -> None:
    """Remove the oldest files of a folder of the cache until it has at most so many, of so many bytes."""
    by_age = sorted(
        ((path, path.stat()) for path in folder.iterdir()), key=lambda each: each[1].st_mtime_ns, reverse=True
    )
    total = 0
    for number, (path, status) in enumerate(by_age, 1):
        total += status.st_size
        if number > files or total > size:
            path.unlink(missing_ok=True)


def file_sha256(path: Path) -> str:
    """SHA-256 of a file; stored by path, size and time, since weights run to gigabytes."""
    state = path.stat()
    store = cache_dir() / "hashes.json"
    key = f"{path.resolve()}|{state.st_size}|{state.st_mtime_ns}"
    hashes: dict[str, str] = {}
    with contextlib.suppress(OSError, msgspec.DecodeError):
        hashes = msgspec.json.decode(store.read_bytes(), type=dict[str, str])
    if key not in hashes:
        with path.open("rb") as file:
            hashes[key] = hashlib.file_digest(file, "sha256").hexdigest()
        with contextlib.suppress(OSError):
            write_whole(store, msgspec.json.encode(hashes))
    return hashes[key]

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
"""How the name of a file ends that is being written."""


def cache_dir() -> Path:
    """`EVENKEEL_CACHE`, or the platform's place for caches."""
    given = os.environ.get("EVENKEEL_CACHE")
    if given:
        return Path(given)
    from platformdirs import user_cache_path

    return user_cache_path("evenkeel")


def slug(name: str, *, longest: int = 80) -> str:
    """A name from elsewhere as a part of a file name: letters, digits and ._- alone, and not too long."""
    kept = "".join(c if c.isalnum() or c in "._-" else "_" for c in name).strip(".")
    return kept[:longest] or "unnamed"


@contextlib.contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A temporary path beside `target` that takes its place when the block ends well, and is gone if not."""
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{target.name}.{secrets.token_hex(6)}{DRAFT}")
    # Made as any new file is, so that the umask says who may read it.
    os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    try:
        yield draft
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def write_whole(target: Path, content: str | bytes) -> None:
    """A file that is there as a whole or not at all."""
    with replacing(target) as draft:
        draft.write_bytes(content.encode() if isinstance(content, str) else content)


def file_sha256(path: Path) -> str:
    """SHA-256 of a file; remembered by path, size and time, since weights run to gigabytes."""
    state = path.stat()
    memory = cache_dir() / "hashes.json"
    stamp = f"{path.resolve()}|{state.st_size}|{state.st_mtime_ns}"
    known: dict[str, str] = {}
    with contextlib.suppress(OSError, msgspec.DecodeError):
        known = msgspec.json.decode(memory.read_bytes(), type=dict[str, str])
    if stamp not in known:
        with path.open("rb") as file:
            known[stamp] = hashlib.file_digest(file, "sha256").hexdigest()
        with contextlib.suppress(OSError), replacing(memory) as draft:
            draft.write_bytes(msgspec.json.encode(known))
    return known[stamp]

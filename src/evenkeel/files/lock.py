"""One process at a time: locks on folders and files, which go with the process that holds them.

The system's own lock (`flock`) is used where there is one: it ends however the process ends. File systems
and platforms without it get a file that names its owner; one whose owner is dead is taken over.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from evenkeel.errors import RunConflict

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

OWNER = ".lock"
"""The file in a folder that names the process which writes there, where the system has no lock."""
LARGEST = 4096
"""Bytes that are read of it: more is no such file."""
READERS_SECONDS = 0.2
"""How long a writer waits for one who only looks."""
TURN_SECONDS = 0.005
"""Between two tries to hold a file that another holds for a moment, where the system has no lock."""
NONE = contextlib.nullcontext()
UNSUPPORTED = {
    errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL,
    errno.EBADF,  # NFS locks only what is open for writing, which a folder never is
}  # fmt: skip


class Owner(Struct, frozen=True):
    """Who holds a lock."""

    pid: int
    host: str


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Hold the folder `path` for this process alone, or say who does."""
    with _flock(path, shared=False) as state:
        if state == "taken":
            raise RunConflict(f"{path} is in use by another process. Wait for it, or choose another --out.")
        with _owned(path / OWNER, path) if state == "unsupported" else NONE:
            yield


@contextlib.contextmanager
def writing_file(path: Path) -> Iterator[None]:
    """The same for one file, which need not exist: the lock is a hidden file beside it, gone at the end."""
    beside = path.with_name(f".{path.name}.lock")
    while True:
        with _flock(beside, shared=False, create=True) as state:
            if state == "taken":
                raise RunConflict(
                    f"{path} is being written by another process. Wait for it, or choose another --out."
                )
            if state == "gone":
                continue
            try:
                with _owned(path.with_name(f".{path.name}.owner"), path) if state == "unsupported" else NONE:
                    yield
            finally:
                beside.unlink(missing_ok=True)
        return


@contextlib.contextmanager
def in_turn(path: Path) -> Iterator[None]:
    """Hold a file for a moment, after whoever holds it now. The lock is a hidden file beside it."""
    with contextlib.ExitStack() as stack:
        beside = path.with_name(f".{path.name}.lock")
        if fcntl is None or not stack.enter_context(_waited(beside)):
            owner = path.with_name(f".{path.name}.owner")
            while True:
                with contextlib.suppress(RunConflict):
                    stack.enter_context(_owned(owner, path))
                    break
                time.sleep(TURN_SECONDS)
        yield


@contextlib.contextmanager
def _waited(path: Path) -> Iterator[bool]:
    """The system's lock on a file, once it is free; False where there is none."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            held = True
        except OSError as error:
            if error.errno not in UNSUPPORTED:
                raise
            held = False
        yield held
    finally:
        os.close(handle)


@contextlib.contextmanager
def reading(path: Path) -> Iterator[bool]:
    """Keep writers away from the folder `path` while it is read; False where one is at work already."""
    with _flock(path, shared=True) as state:
        owner = _read(path / OWNER)
        yield state != "taken" and (owner is None or not _alive(owner))


@contextlib.contextmanager
def _flock(path: Path, *, shared: bool, create: bool = False) -> Iterator[str]:
    """`held`, `taken` by another process, `unsupported` here, or `gone`: to be tried again."""
    if fcntl is None:
        if create:
            path.touch()
        yield "unsupported"
        return
    handle = os.open(path, os.O_RDONLY | (os.O_CREAT if create else 0), 0o644)
    try:
        try:
            _take(handle, shared=shared)
            # Its last holder may have taken a file away between our opening it and our locking it.
            state = "gone" if create and not _is(path, handle) else "held"
        except BlockingIOError:
            state = "taken"
        except OSError as error:
            if error.errno not in UNSUPPORTED:
                raise
            state = "unsupported"
        yield state
    finally:
        os.close(handle)


def _take(handle: int, *, shared: bool) -> None:
    """Take the system's lock. A writer waits a moment for a reader that only looks who writes."""
    until = time.monotonic() + (0 if shared else READERS_SECONDS)
    while True:
        try:
            fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= until:
                raise
            time.sleep(READERS_SECONDS / 10)


def _is(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


@contextlib.contextmanager
def _owned(file: Path, path: Path) -> Iterator[None]:
    """Hold `path` by a file that names this process, made as a whole or not at all."""
    mine = Owner(os.getpid(), socket.gethostname())
    draft = file.with_name(f"{file.name}.{mine.pid}")
    draft.write_bytes(msgspec.json.encode(mine))
    try:
        if not _linked(draft, file):
            _take_over(file, path)
            if not _linked(draft, file):
                raise _conflict(file, path)
    finally:
        draft.unlink(missing_ok=True)
    try:
        yield
    finally:
        if _read(file) == mine:
            file.unlink(missing_ok=True)


def _linked(draft: Path, file: Path) -> bool:
    """Give the draft the lock's name, unless something has it: one process of many succeeds."""
    try:
        os.link(draft, file)
    except FileExistsError:
        return False
    except OSError:  # a file system without links: the name is taken first and written then
        try:
            handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        except FileExistsError:
            return False
        with os.fdopen(handle, "wb") as created:
            created.write(draft.read_bytes())
    return True


def _take_over(file: Path, path: Path) -> None:
    """Take away a lock whose owner is dead; any other is left, and refused."""
    owner = _read(file)
    if owner is None or _alive(owner):
        raise _conflict(file, path)
    aside = file.with_name(f"{file.name}.dead.{os.getpid()}")
    with contextlib.suppress(FileNotFoundError):  # another process was faster
        file.rename(aside)
        if _read(aside) != owner:  # what another process put there in the meantime is its own
            _linked(aside, file)
            aside.unlink()
            raise _conflict(file, path)
        aside.unlink()


def _conflict(file: Path, path: Path) -> RunConflict:
    owner = _read(file)
    who = f"process {owner.pid} on {owner.host}" if owner else "another process"
    return RunConflict(
        f"{path} is being written by {who}. Wait for it, or choose another --out; "
        f"if that process is gone, delete {file}."
    )


def _read(file: Path) -> Owner | None:
    """Who holds a lock; the folder may be a stranger's, and the file anything."""
    try:
        if file.is_symlink() or not file.is_file():
            return None
        with file.open("rb") as opened:
            return msgspec.json.decode(opened.read(LARGEST), type=Owner)
    except (OSError, msgspec.DecodeError, RecursionError):
        return None


def _alive(owner: Owner) -> bool:
    """Whether the owner may be at work: of another machine, or on Windows, that cannot be known."""
    if owner.host != socket.gethostname() or os.name == "nt" or owner.pid <= 0:
        return True
    try:
        os.kill(owner.pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # it is another person's
        return True
    return True

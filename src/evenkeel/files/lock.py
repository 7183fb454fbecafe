"""One process at a time: locks on folders and files, which go with the process that holds them.

Two locks are taken. The system's lock (`flock`) ends however the process ends; but some file systems have
none, and some grant it to every machine that asks. So a file names the owner as well: it says who is at work,
and keeps others away where the system's lock does not. One whose owner is dead is taken over.
"""

from __future__ import annotations

import contextlib
import errno
import glob
import os
import re
import secrets
import socket
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct

from evenkeel.errors import RunConflict, StorageError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

OWNER = ".lock"
"""The file in a folder that names the process which writes there. What a killed process left of it begins
with the same name."""
LARGEST = 4096
"""Bytes that are read of it: more is no such file."""
READERS_SECONDS = 0.2
"""How long a writer waits for one who only looks."""
TURN_SECONDS = 0.005
"""Between two tries to hold a file that another holds for a moment, where the system has no lock."""
ATTEMPTS = 5
"""To take a lock that others take and release at the same moment."""
UNSUPPORTED = {
    errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL,
    errno.EBADF,  # NFS locks only what is open for writing, which a folder never is
}  # fmt: skip
LOCAL = frozenset(
    ("bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "jfs", "overlay", "ramfs", "tmpfs", "xfs", "zfs")
)
"""File systems of one machine, whose locks hold for all that can write there."""
SHARED = {"ceph": "", "gpfs": "", "nfs": "local_lock=none", "nfs4": "local_lock=none", "lustre": "flock"}
"""File systems of several machines whose locks hold for all of them, if mounted with this option."""

State: TypeAlias = Literal["held", "taken", "unsupported", "gone"]

_HANDLES: set[int] = set()
"""The open files by which this process holds the system's locks."""


class Owner(Struct, frozen=True):
    """Who holds a lock."""

    pid: int
    host: str
    since: str = ""
    boot: str = ""
    """Which start of which machine, where the system has a name for it."""
    namespace: str = ""
    """In which the process has its number: a container has its own."""
    began: str = ""
    """When the process began: its number may be given to another later."""
    token: str = ""
    """Two locks of one process differ in it."""


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Hold the folder `path` for this process alone, or say who does."""
    while True:
        with _flock(path, shared=False) as state:
            if state == "gone":
                continue
            if state == "taken":
                raise _conflict(path / OWNER, path, certain=True)
            with _owned(path / OWNER, path, locked=state == "held", tidy=True):
                yield
        return


@contextlib.contextmanager
def writing_file(path: Path, *, wait: bool = False) -> Iterator[None]:
    """The same for one file, which need not exist: the locks are hidden files beside it, gone at the end.
    With `wait`, after whoever holds it now."""
    beside, owner = (path.with_name(f".{path.name}.{kind}") for kind in ("lock", "owner"))
    while True:
        with _flock(beside, shared=False, create=True, wait=wait) as state, contextlib.ExitStack() as stack:
            if state == "gone":
                continue
            if state == "taken":
                raise _conflict(owner, path, certain=True)
            try:
                stack.enter_context(_owned(owner, path, locked=state == "held", tidy=not wait))
            except RunConflict:
                if not wait:
                    raise
                time.sleep(TURN_SECONDS)
                continue
            stack.callback(beside.unlink, missing_ok=True)
            yield
        return


def in_turn(path: Path) -> contextlib.AbstractContextManager[None]:
    """Hold a file for a moment, after whoever holds it now."""
    return writing_file(path, wait=True)


@contextlib.contextmanager
def reading(path: Path) -> Iterator[bool]:
    """Keep writers away from the folder `path` while it is read; False where one is at work already."""
    with _flock(path, shared=True) as state:
        owner = _read(path / OWNER)
        yield state != "taken" and (owner is None or not _is_at_work(owner, path, locked=state == "held"))


@contextlib.contextmanager
def reading_alone(path: Path) -> Iterator[None]:
    """Keep writers away from the folder `path` while it is read, or say who is at work there."""
    with reading(path) as unwritten:
        if not unwritten:
            raise _conflict(path / OWNER, path)
        yield


@contextlib.contextmanager
def _flock(path: Path, *, shared: bool, create: bool = False, wait: bool = False) -> Iterator[State]:
    """The system's lock: `held`, `taken` by another process, `unsupported` here, or `gone`: to be tried
    again, since the path has become another file."""
    if fcntl is None:
        yield "unsupported"
        return
    _drop_locks_in_children()
    handle = os.open(path, (os.O_RDWR | os.O_CREAT) if create else os.O_RDONLY, 0o644)
    pid = os.getpid()
    _HANDLES.add(handle)
    try:
        try:
            _take(handle, shared=shared, wait=wait)
            # Its last holder may have taken it away between our opening it and our locking it.
            state: State = "held" if _is(path, handle) else "gone"
        except BlockingIOError:
            state = "taken"
        except OSError as error:
            if error.errno not in UNSUPPORTED:
                raise
            state = "unsupported"
        yield state
    finally:
        if os.getpid() == pid:  # a child of this process has closed it, and must not release it
            _HANDLES.discard(handle)
            with contextlib.suppress(OSError):
                fcntl.flock(handle, fcntl.LOCK_UN)  # also where a program in C has started a child
            os.close(handle)


def _take(handle: int, *, shared: bool, wait: bool) -> None:
    """Take the system's lock. A writer waits a moment for a reader that only looks who writes."""
    if wait:
        fcntl.flock(handle, fcntl.LOCK_EX)
        return
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


@cache
def _drop_locks_in_children() -> None:
    """Have a forked child close what it inherits: it would hold the locks for as long as it lives."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_close_handles)


def _close_handles() -> None:
    for handle in _HANDLES:
        with contextlib.suppress(OSError):
            os.close(handle)
    _HANDLES.clear()


@contextlib.contextmanager
def _owned(file: Path, path: Path, *, locked: bool, tidy: bool = False) -> Iterator[None]:
    """Hold `path` by a file that names this process, made as a whole or not at all. `locked`: the system's
    lock is held as well."""
    mine = _this_process()
    draft = file.with_name(f"{file.name}.{mine.token}")
    try:
        try:
            with draft.open("xb") as opened:
                opened.write(msgspec.json.encode(mine))
        except OSError as error:
            if not locked:
                raise StorageError(f"{path}: cannot be written ({error.strerror or error}).") from error
        else:
            _own(draft, file, path, locked=locked)
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
    try:
        if tidy:
            _remove_drafts(file, path, locked=locked)
        yield
    finally:
        if os.getpid() == mine.pid and _read(file) == mine:
            with contextlib.suppress(OSError):
                file.unlink(missing_ok=True)


def _own(draft: Path, file: Path, path: Path, *, locked: bool) -> None:
    """Give the draft the lock's name; one whose owner is dead is replaced, by one process of many."""
    for _ in range(ATTEMPTS):
        if _linked(draft, file):
            return
        owner = _read(file)
        if not os.path.lexists(file):  # released in the meantime
            continue
        if _is_at_work(owner, path, locked=locked):
            break
        with _owned(file.with_name(f"{file.name}.next"), path, locked=locked):
            if _read(file) == owner and os.path.lexists(file):
                with contextlib.suppress(IsADirectoryError, NotADirectoryError):
                    draft.replace(file)
                    return
    raise _conflict(file, path)


def _linked(draft: Path, file: Path) -> bool:
    """Give the draft the lock's name, unless something has it: one process of many succeeds."""
    try:
        os.link(draft, file)
    except (FileExistsError, FileNotFoundError):
        return False
    except OSError:  # a file system without links: the name is taken first and written then
        try:
            content = draft.read_bytes()
            handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        except (FileExistsError, FileNotFoundError):
            return False
        with os.fdopen(handle, "wb") as created:
            created.write(content)
    return True


def _remove_drafts(file: Path, path: Path, *, locked: bool) -> None:
    """Remove what killed processes left. Whoever still needs one is refused as it would be anyway."""
    for left in file.parent.glob(f"{glob.escape(file.name)}.*"):
        owner = _read(left)
        if owner is None or not _is_at_work(owner, path, locked=locked):
            with contextlib.suppress(OSError):
                left.unlink()


def _conflict(file: Path, path: Path, *, certain: bool = False) -> RunConflict:
    """`certain`: the system says that a process holds the lock."""
    owner = _read(file)
    who = "another process"
    if owner is not None and _is_alive(owner) is not False:
        who = "this process, in another thread," if _is_this(owner) else f"process {owner.pid}"
        who += f" on {owner.host}{f' since {owner.since}' if owner.since else ''}"
    advice = "Wait for it, or choose another --out"
    if not certain:
        advice += f"; if that process is gone, delete {file}"
    return RunConflict(f"{path} is in use by {who}. {advice}.")


def _read(file: Path) -> Owner | None:
    """Who holds a lock; the folder may be a stranger's, and the file anything."""
    try:
        if file.is_symlink() or not file.is_file():
            return None
        with file.open("rb") as opened:
            return msgspec.json.decode(opened.read(LARGEST), type=Owner)
    except (OSError, ValueError, RecursionError):
        return None


def _is_at_work(owner: Owner | None, path: Path, *, locked: bool) -> bool:
    """Whether an owner may be at work. Where that cannot be known, the system's lock decides, if it holds for
    all that can write there."""
    alive = None if owner is None else _is_alive(owner)
    return not (locked and _is_exclusive(path)) if alive is None else alive


def _is_alive(owner: Owner) -> bool | None:
    """Whether a process runs; None of one on another machine or in another container, and on Windows."""
    here = _this_process()
    same = owner.host == here.host
    if owner.boot and here.boot:
        same = (owner.boot, owner.namespace) == (here.boot, here.namespace)
    if not same or os.name == "nt" or owner.pid <= 0:
        return None
    if owner.began and here.began:
        return process_began(owner.pid) == owner.began
    try:
        os.kill(owner.pid, 0)  # sends nothing
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # it is another person's
        return True
    return True


def _is_this(owner: Owner) -> bool:
    here = _this_process()
    return (owner.pid, owner.host, owner.began) == (here.pid, here.host, here.began)


def _this_process() -> Owner:
    boot, namespace = _machine()
    return Owner(
        os.getpid(),
        socket.gethostname(),
        since=datetime.now(UTC).isoformat(timespec="seconds"),
        boot=boot,
        namespace=namespace,
        began=process_began(os.getpid()),
        token=secrets.token_hex(8),
    )


@cache
def _machine() -> tuple[str, str]:
    """The names of the machine's start and of the namespace of processes, from Linux's /proc."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()
        return boot.strip(), str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return "", ""


def process_began(pid: int) -> str:
    """When a process began, from Linux's /proc; empty elsewhere, and of one that has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return ""
    state, *fields = stat.rpartition(")")[2].split()  # the program's name, before it, may hold anything
    return "" if state in "ZX" else fields[18]


def _is_exclusive(path: Path) -> bool:
    """Whether the system's lock on a path holds for every machine and container that can write there."""
    try:
        lines = Path("/proc/self/mountinfo").read_text(errors="surrogateescape").splitlines()
        resolved = path.resolve()
    except OSError:
        return False
    kind, options, longest = "", "", -1
    for line in lines:
        place, _, about = line.partition(" - ")
        fields = about.split(" ")
        root = Path(re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), place.split(" ")[4]))
        if len(fields) > 2 and len(root.parts) >= longest and (root == resolved or root in resolved.parents):
            kind, options, longest = fields[0], fields[2], len(root.parts)
    return kind in LOCAL or (kind in SHARED and (not SHARED[kind] or SHARED[kind] in options.split(",")))

"""One process at a time, also where the system has no locks."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import msgspec
import pytest

from evenkeel.errors import RunConflict
from evenkeel.files import lock

HOLD = (
    "import sys; from pathlib import Path; from evenkeel.files import lock\n"
    "with getattr(lock, sys.argv[1])(Path(sys.argv[2])): print('held', flush=True); sys.stdin.read()"
)


def holder(kind: str, path: Path) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, kind, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    return process


Locking = Callable[[Path], AbstractContextManager[None]]


@pytest.mark.parametrize("kind", ["writing", "writing_file"])
def test_a_second_process_is_refused_until_the_first_is_gone(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "set"
    if kind == "writing":
        path.mkdir()
    locking: Locking = getattr(lock, kind)
    process = holder(kind, path)
    with pytest.raises(RunConflict, match="another process"), locking(path):
        pass
    process.kill()
    process.communicate()
    with locking(path):
        pass
    assert sorted(os.listdir(tmp_path)) == (["set"] if kind == "writing" else [])


@pytest.fixture(params=[errno.ENOLCK, errno.EBADF, None])
def without_flock(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system that has no locks, or a platform."""
    if request.param is None:
        monkeypatch.setattr(lock, "fcntl", None)
        return

    def refuse(*_: object) -> None:
        raise OSError(request.param, os.strerror(request.param))

    monkeypatch.setattr("evenkeel.files.lock.fcntl.flock", refuse)


@pytest.mark.usefixtures("without_flock")
@pytest.mark.parametrize("kind", ["writing", "writing_file"])
def test_without_the_systems_lock_a_file_names_the_owner(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "set"
    if kind == "writing":
        path.mkdir()
    locking: Locking = getattr(lock, kind)
    with locking(path):
        with (
            pytest.raises(RunConflict, match=f"written by process {os.getpid()} on .*delete ") as caught,
            locking(path),
        ):
            pass
        assert Path(str(caught.value).rpartition("delete ")[2].rstrip(".")).is_file()
    assert not list(path.iterdir() if path.is_dir() else tmp_path.iterdir())
    with locking(path):
        pass


def owner(path: Path, pid: int, host: str) -> None:
    (path / lock.OWNER).write_bytes(msgspec.json.encode(lock.Owner(pid, host)))


def dead() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.mark.usefixtures("without_flock")
def test_the_lock_of_a_dead_process_is_taken_over(tmp_path: Path) -> None:
    owner(tmp_path, dead(), socket.gethostname())
    with lock.reading(tmp_path) as quiet:
        assert quiet
    with lock.writing(tmp_path), lock.reading(tmp_path) as quiet:
        assert not quiet
    assert os.listdir(tmp_path) == []


@pytest.mark.usefixtures("without_flock")
def test_the_lock_of_another_machine_is_respected(tmp_path: Path) -> None:
    owner(tmp_path, dead(), "elsewhere")
    with pytest.raises(RunConflict, match="on elsewhere"), lock.writing(tmp_path):
        pass
    assert os.listdir(tmp_path) == [lock.OWNER]


@pytest.mark.usefixtures("without_flock")
def test_a_lock_that_cannot_be_read_is_respected(tmp_path: Path) -> None:
    (tmp_path / lock.OWNER).write_bytes(b"?")
    with pytest.raises(RunConflict, match=r"delete .*\.lock"), lock.writing(tmp_path):
        pass


@pytest.mark.parametrize("kind", ["link", "pipe", "large"])
def test_a_strangers_lock_that_is_no_lock_is_passed_over(tmp_path: Path, kind: str) -> None:
    owner = tmp_path / lock.OWNER
    if kind == "link":
        owner.symlink_to("/dev/zero")
    elif kind == "pipe":
        os.mkfifo(owner)
    else:
        owner.write_bytes(b" " * 10_000_000)
    with lock.reading(tmp_path) as unwritten:
        assert unwritten

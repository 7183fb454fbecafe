"""One process at a time, also where the system has no locks."""

from __future__ import annotations

import errno
import multiprocessing
import os
import re
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
    who = rf"set is in use by process {process.pid} on {re.escape(socket.gethostname())} since 20..-"
    with pytest.raises(RunConflict, match=who), locking(path):
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
            pytest.raises(
                RunConflict, match="in use by this process, in another thread, .*delete "
            ) as caught,
            locking(path),
        ):
            pass
        assert Path(str(caught.value).rpartition("delete ")[2].rstrip(".")).is_file()
    assert not list(path.iterdir() if path.is_dir() else tmp_path.iterdir())
    with locking(path):
        pass


def owner(path: Path, pid: int, host: str, **more: str) -> None:
    (path / lock.OWNER).write_bytes(msgspec.json.encode(lock.Owner(pid, host, **more)))


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
def test_a_number_that_another_process_has_now_is_not_the_owner(tmp_path: Path) -> None:
    boot, namespace = lock._machine()
    began = str(int(lock.process_began(os.getppid())) - 1)
    owner(tmp_path, os.getppid(), socket.gethostname(), boot=boot, namespace=namespace, began=began)
    with lock.writing(tmp_path):
        pass
    began = lock.process_began(os.getppid())
    owner(tmp_path, os.getppid(), socket.gethostname(), boot=boot, namespace=namespace, began=began)
    with pytest.raises(RunConflict, match=f"process {os.getppid()} on"), lock.writing(tmp_path):
        pass


@pytest.mark.usefixtures("without_flock")
def test_a_killed_process_that_nobody_waited_for_is_dead(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", HOLD, "writing", tmp_path], stdout=subprocess.PIPE)
    boot, namespace = lock._machine()
    began = lock.process_began(process.pid)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and keeps its number
    owner(tmp_path, process.pid, socket.gethostname(), boot=boot, namespace=namespace, began=began)
    with lock.writing(tmp_path):
        pass
    process.communicate()


@pytest.mark.usefixtures("without_flock")
def test_the_lock_of_another_machine_is_respected(tmp_path: Path) -> None:
    owner(tmp_path, dead(), "elsewhere", since="2026-01-02T03:04:05+00:00")
    with (
        pytest.raises(RunConflict, match="on elsewhere since 2026-01-02.*if that process is gone, delete"),
        lock.writing(tmp_path),
    ):
        pass
    assert os.listdir(tmp_path) == [lock.OWNER]


@pytest.mark.parametrize(
    ("kind", "options", "exclusive"),
    [
        ("ext4", "rw", True),
        ("nfs4", "rw,vers=4.2,local_lock=none", True),
        ("nfs", "rw,vers=3,nolock,local_lock=all", False),
        ("lustre", "rw,localflock", False),
        ("fuse.sshfs", "rw", False),
    ],
)
def test_a_lock_left_by_another_machine_is_taken_over_where_the_systems_lock_is_shared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, options: str, exclusive: bool
) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    mount = str(folder).replace(" ", "\\040")
    mounts = f"27 1 254:0 / / rw - ext4 /dev/vda rw\n28 27 0:9 / {mount} rw - {kind} server:/x {options}\n"
    read_text = Path.read_text
    monkeypatch.setattr(
        Path,
        "read_text",
        lambda self, **more: mounts if self.name == "mountinfo" else read_text(self, **more),
    )
    owner(folder, 7, "elsewhere")
    if exclusive:
        with lock.writing(folder):
            pass
    else:
        with pytest.raises(RunConflict, match="process 7 on elsewhere"), lock.writing(folder):
            pass


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
    with lock.writing(tmp_path):
        assert not owner.is_symlink()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("kind", ["writing", "writing_file"])
def test_a_lock_that_the_system_gives_to_everyone_is_not_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    path = tmp_path / "set"
    path.mkdir()
    process = holder(kind, path)
    monkeypatch.setattr("evenkeel.files.lock.fcntl.flock", lambda *_: None)
    with pytest.raises(RunConflict, match=f"process {process.pid} on"), getattr(lock, kind)(path):
        pass
    process.kill()
    process.communicate()
    with getattr(lock, kind)(path):
        pass


@pytest.mark.parametrize(("kind", "left"), [("writing", "set/.lock"), ("writing_file", ".set.lock")])
def test_a_lock_whose_file_is_deleted_meanwhile_still_holds(tmp_path: Path, kind: str, left: str) -> None:
    path = tmp_path / "set"
    path.mkdir()
    process = holder(kind, path)
    (tmp_path / left).unlink()
    with pytest.raises(RunConflict, match="in use by"), getattr(lock, kind)(path):
        pass
    process.kill()
    process.communicate()


def test_a_forked_child_neither_holds_nor_releases_the_lock(tmp_path: Path) -> None:
    start, stop = multiprocessing.get_context("fork"), multiprocessing.get_context("fork").Event()
    with lock.writing(tmp_path):
        ended = start.Process(target=sys.exit)  # it leaves the block as well, by an exception
        ended.start()
        ended.join()
        waiting = start.Process(target=stop.wait, daemon=True)
        waiting.start()
        with pytest.raises(RunConflict, match="this process"), lock.writing(tmp_path):
            pass
    with lock.writing(tmp_path):  # although the child that was forked while it was held lives
        assert waiting.is_alive()
    stop.set()
    waiting.join()


RACE = """
import fcntl, multiprocessing, sys
from pathlib import Path
from evenkeel.errors import RunConflict
from evenkeel.files import lock

def contend():
    begin.wait()
    try:
        with lock.writing(Path(sys.argv[1])):
            outcomes.put("held")
            end.wait()
    except RunConflict:
        outcomes.put("refused")

def refuse(*_): raise OSError(38, "no locks")

if sys.argv[2] == "refused": fcntl.flock = refuse
if sys.argv[2] == "granted": fcntl.flock = lambda *_: None
context = multiprocessing.get_context("fork")
begin, end, outcomes = context.Barrier(20), context.Event(), context.Queue()
processes = [context.Process(target=contend) for _ in range(20)]
for process in processes: process.start()
print(*sorted(outcomes.get() for _ in processes))
end.set()
for process in processes: process.join()
"""


@pytest.mark.parametrize("flock", ["as it is", "refused", "granted"])
def test_of_twenty_processes_at_once_exactly_one_holds_a_stale_lock(tmp_path: Path, flock: str) -> None:
    boot, namespace = lock._machine()
    owner(tmp_path, dead(), socket.gethostname(), boot=boot, namespace=namespace, began="1", token="x")
    (tmp_path / f"{lock.OWNER}.0123").write_bytes(b"{")  # what a killed process was writing
    line = [sys.executable, "-c", RACE, str(tmp_path), flock]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["held", *["refused"] * 19]
    assert os.listdir(tmp_path) == []


def test_a_stopped_takeover_does_not_lock_the_folder_for_ever(tmp_path: Path) -> None:
    owner(tmp_path, dead(), socket.gethostname())
    (tmp_path / lock.OWNER).rename(tmp_path / f"{lock.OWNER}.next")
    owner(tmp_path, dead(), socket.gethostname())
    with lock.writing(tmp_path):
        assert os.listdir(tmp_path) == [lock.OWNER]

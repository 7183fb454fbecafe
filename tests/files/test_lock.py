"""One process at a time."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from sealegs.errors import RunConflict
from sealegs.files import lock

pytestmark = pytest.mark.slow

HOLD = (
    "import sys; from pathlib import Path; from sealegs.files import lock\n"
    "with getattr(lock, sys.argv[1])(Path(sys.argv[2])): print('held', flush=True); sys.stdin.read()"
)
Locking = Callable[[Path], AbstractContextManager[None]]


def holder(kind: str, path: Path) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, kind, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    return process


@pytest.mark.parametrize("kind", ["writing", "writing_file"])
def test_a_second_process_is_refused_until_the_first_is_gone(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "set"
    path.mkdir()
    locking: Locking = getattr(lock, kind)
    process = holder(kind, path)
    with pytest.raises(RunConflict, match="in use by another process"), locking(path):
        pass
    assert lock.is_written(path) == (kind == "writing")
    process.kill()
    process.communicate()
    assert not lock.is_written(path)
    assert os.listdir(path) == [], "who looks leaves nothing behind, so that a folder can be removed"
    with locking(path):
        pass
    assert (os.listdir(tmp_path), os.listdir(path)) == (["set"], [])


@pytest.mark.parametrize("name", [".lock", lock.LOCK])
def test_a_strangers_file_neither_locks_a_folder_nor_is_changed(tmp_path: Path, name: str) -> None:
    content = b'{"pid": 1, "host": "here"}'
    (tmp_path / name).write_bytes(content)
    assert not lock.is_written(tmp_path)
    with lock.writing(tmp_path):
        assert lock.is_written(tmp_path)
    assert (tmp_path / name).read_bytes() == content

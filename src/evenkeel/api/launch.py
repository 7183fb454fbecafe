"""Runs and builds as processes of their own, which keep running when whoever started them ends.

What is known of a process lies below the runs folder: `.started/NAME/started.json`, from which the process
reads its settings, and `.started/NAME/log`; its run or data are where `Started.path` says. No process is
signalled: `evenkeel.stop` asks it to end.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from evenkeel.api.build import build
from evenkeel.api.run import merged_options, new_folder
from evenkeel.api.setup import parse_data
from evenkeel.errors import DataError, StorageError, UsageError
from evenkeel.files.cache import cache_dir, slug, write_whole
from evenkeel.files.jsonfile import read_json
from evenkeel.files.lock import process_began
from evenkeel.files.remote.sources import is_elsewhere, parse_columns, without_secrets
from evenkeel.harness.control import VARIABLE, clear_control
from evenkeel.harness.folder import CONTROL, STOP, STOPPED, member
from evenkeel.harness.limits import Limits
from evenkeel.harness.registry import RUN_ARGUMENTS, benchmark_name, chosen_class, load_benchmark
from evenkeel.models.registry import check_spec, split_spec, with_args
from evenkeel.options import parse
from evenkeel.page.format import FLOOR, visible

Kind: TypeAlias = Literal["run", "build"]
State: TypeAlias = Literal["starting", "running", "stopping", "finished", "failed", "stopped"]

FOLDER = ".started"
DATA = "data"
"""Below the runs folder: what is known of processes, and what builds have made."""
STORED = "started.json"
TAIL = 2**16
"""Bytes at the end of a log that are read."""

_PROCESSES: list[subprocess.Popen[bytes]] = []
"""Processes that this one began. They are asked for their state, so that those that have ended can go."""


class Task(Struct, frozen=True, kw_only=True):
    """What a process does: the settings of `evenkeel.run` or `evenkeel.build`."""

    kind: Kind
    benchmark: str
    settings: dict[str, Any]
    out: str
    min_coverage: float = FLOOR
    identity: str = ""
    """A digest of what a suite's run asks; empty for any other."""


class _Process(Struct, frozen=True, kw_only=True):
    """What is stored of a process; its place on disk says its name."""

    task: Task
    created: str
    pid: int = 0
    began: str = ""
    """When it began, in the system's own count: another process may have its number later."""


class Started(Struct, frozen=True, kw_only=True):
    """A run or a build that was begun as a process of its own."""

    name: str
    path: str
    """The run's folder, or the folder of what is built."""
    task: Task
    created: str
    state: State
    """`stopping`: it was asked to stop and has not ended yet."""
    log: str
    """The file with what it printed."""

    @property
    def kind(self) -> Kind:
        return self.task.kind

    @property
    def command(self) -> list[str]:
        """What resumes it at a terminal."""
        return ["evenkeel", "started", str(Path(self.log).with_name(STORED))]

    @property
    def active(self) -> bool:
        """Whether its process has not ended."""
        return self.state in ("starting", "running", "stopping")

    def log_tail(self, lines: int = 40) -> str:
        """The last lines that it printed, with control characters made visible."""
        try:
            path = member(Path(self.log).parent, "log")
            if path is None:
                return ""
            with path.open("rb") as file:
                file.seek(max(0, path.stat().st_size - TAIL))
                text = file.read(TAIL).decode(errors="replace")
        except (OSError, DataError):
            return ""
        return visible("\n".join(text.splitlines()[-lines:]))


def start(
    runs_folder: str | Path, benchmark: str | Path, model: str | None = None, **settings: Any
) -> Started:
    """Begin a run as a process of its own: `ek.start("runs", "mirae", "embedded", limit=4)`.

    The settings are those of `ek.run`, which are checked first; the run's folder is a new one below
    `runs_folder`. The process has this one's environment. `ek.started` tells how it goes.
    """
    checked = checked_settings(benchmark, model, settings)
    model_name = split_spec(model)[0].rpartition("/")[2] if model else ""
    root = Path(runs_folder)
    target = new_folder(root, benchmark_name(benchmark), model_name)
    task = Task(kind="run", benchmark=str(benchmark), settings=checked, out=str(target.resolve()))
    return launch(root, target.name, task)[0]


def start_build(runs_folder: str | Path, benchmark: str | Path, **settings: Any) -> Started:
    """Begin a build as a process of its own: `ek.start_build("runs", "mirae", seed=7)`.

    The settings are those of `ek.build`; the files are made in a new folder, `runs_folder`/data/NAME.
    """
    cls = chosen_class(benchmark).builder()
    _refuse(settings, "out", "progress")
    options = {
        name: value for name, value in settings.items() if name not in inspect.signature(build).parameters
    }
    parse_columns(settings.get("column", ()))
    _refuse_keys([value for value in options.values() if isinstance(value, str)], settings)
    cls(parse(cls.Options, options, of=f"building for '{benchmark}'"))
    root, name = Path(runs_folder), benchmark_name(benchmark)
    target = new_folder(root / DATA, name)
    out = target.resolve() if cls.folder else target.resolve() / f"{slug(name)}.json"
    task = Task(kind="build", benchmark=str(benchmark), settings=settings, out=str(out))
    return launch(root, target.name, task)[0]


def started(runs_folder: str | Path) -> list[Started]:
    """Runs and builds that were begun for a runs folder, newest first:
    `[each.state for each in ek.started("runs")]`."""
    _PROCESSES[:] = [process for process in _PROCESSES if process.poll() is None]
    root = Path(runs_folder)
    linked = (root / FOLDER).is_symlink()
    folders = (root / FOLDER).iterdir() if (root / FOLDER).is_dir() and not linked else ()
    processes = [process for folder in folders if (process := _read(folder)) is not None]
    return sorted(processes, key=lambda process: (process.created, process.name), reverse=True)


def start_again(process: Started) -> Started:
    """Resume a run or a build that stopped or failed: the same settings, into the same folder.

    What was answered is not asked again: `ek.start_again(ek.started("runs")[0])`.
    """
    name, folder, target = process.name, Path(process.log).parent, Path(process.path)
    stored = _read(folder)
    # The file may be a stranger's: nothing is started from it, and no key sent, that was not started here.
    if (
        stored is None
        or stored.task != process.task
        or target.resolve() not in (Path(stored.task.out), Path(stored.task.out).parent)
        or not _mark_of(stored.task).exists()
    ):
        raise UsageError(
            f"'{name}' was not started from here: what it runs, and where a key goes, comes from its "
            "folder alone. Start a new one."
        )
    if stored.state not in ("stopped", "failed"):
        raise UsageError(f"'{name}' is {stored.state}: only what stopped or failed can be resumed.")
    return launch(folder.parent.parent, name, stored.task)[0]


def dismiss(process: Started) -> None:
    """List a run or a build that has ended no longer: `ek.dismiss(ek.started("runs")[0])`. What it wrote
    stays."""
    folder, target = Path(process.log).parent, Path(process.path)
    if process.active:
        raise UsageError(f"'{process.name}' is {process.state}: stop it first.")
    for name in (STORED, "log"):
        (folder / name).unlink(missing_ok=True)
    clear_control(target)
    for emptied in (folder, target):
        with contextlib.suppress(OSError):  # it holds what was answered, or what is not ours
            emptied.rmdir()


def read_task(path: Path) -> Task:
    """What a process that was started is to do."""
    process: _Process = read_json(path, _Process)
    return process.task


def checked_settings(benchmark: str | Path, model: str | None, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of `evenkeel.run`, checked before a process is started with them."""
    _refuse(settings, "out", "fresh", "progress", "wait")
    shared = {name: value for name, value in settings.items() if name in RUN_ARGUMENTS}
    by_name = {name: value for name, value in settings.items() if name not in shared}
    options = merged_options(shared.pop("options", None), by_name)
    loaded = load_benchmark(benchmark, options)
    parse_columns(shared.get("column", ()))
    data = parse_data(shared["data"]) if shared.get("data") is not None else []
    _refuse_keys([*data, *([model] if model else [])], shared)
    if model:
        check_spec(model, shared.get("model_args") or {})
    elif "model" in loaded.roles:
        raise UsageError(f"{benchmark} needs a model to ask: give model=SPEC.")
    Limits.of(*(shared.get(name) for name in Limits.__struct_fields__))
    by_name = dict(options) if isinstance(options, Mapping) else msgspec.structs.asdict(options)
    return {"model": model, **shared, **by_name}


def _refuse(settings: Mapping[str, Any], *names: str) -> None:
    for name in names:
        if name in settings:
            raise UsageError(f"'{name}' cannot be set for a process of its own.")


def _refuse_keys(texts: Iterable[str], settings: Mapping[str, Any]) -> None:
    """The settings are stored: neither a spec nor an address of data may hold a key."""
    for text in texts:
        if is_elsewhere(text) and not text.startswith("hf:") and without_secrets(text) != text:
            raise UsageError(
                f"{without_secrets(text)}: an address with a login or a query cannot be given here, because "
                "the settings are stored. Download the file, and give its path."
            )
        split_spec(text)
    args = {key: str(value) for key, value in (settings.get("model_args") or {}).items()}
    if settings.get("base_url"):
        args.setdefault("base_url", str(settings["base_url"]))
    split_spec(with_args("openai:model", args))


def _encoded(value: Any) -> bytes:
    return msgspec.json.encode(value, enc_hook=str, order="deterministic")


def _mark_of(task: Task) -> Path:
    """An empty file of the person's own that says that they started this: a folder with runs may come from
    elsewhere."""
    return cache_dir() / "started" / hashlib.sha256(_encoded(task)).hexdigest()


def launch(
    root: Path, name: str, task: Task, environment: Mapping[str, str] | None = None
) -> tuple[Started, subprocess.Popen[bytes]]:
    """Begin a process, whose run may be there in part, and give it too; its log begins anew."""
    folder, target = root / FOLDER / name, _target(root, task.kind, name)
    for each in (root / FOLDER, folder, target):
        if each.is_symlink():
            raise UsageError(f"{each} is a link: remove it.")
        each.mkdir(parents=True, exist_ok=True)
    clear_control(target)
    process = _Process(task=task, created=datetime.now(UTC).isoformat(timespec="milliseconds"))
    write_whole(folder / STORED, _encoded(process))
    with contextlib.suppress(StorageError):  # where nothing can be remembered, it can only be started anew
        write_whole(_mark_of(task), b"")
    # -P: whatever lies in the working directory is not imported.
    command = [sys.executable, "-P", "-m", "evenkeel", "started", str((folder / STORED).resolve())]
    (folder / "log").unlink(missing_ok=True)  # never written through a link
    with (folder / "log").open("xb") as log:
        try:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a signal to this process's group, or its end, does not reach it
                env={
                    **os.environ,
                    VARIABLE: str(target.resolve()),
                    "PYTHONUNBUFFERED": "1",
                    **(environment or {}),
                },
            )
        except (OSError, ValueError) as error:
            raise UsageError(f"the process cannot be started: {error}.") from None
    _PROCESSES.append(child)
    process = msgspec.structs.replace(process, pid=child.pid, began=process_began(child.pid))
    write_whole(folder / STORED, _encoded(process))
    return _as_started(folder, process), child


def _target(root: Path, kind: Kind, name: str) -> Path:
    return root / name if kind == "run" else root / DATA / name


def _read(folder: Path) -> Started | None:
    """What is stored of a process; None where the file is not ours."""
    try:
        file = None if folder.is_symlink() or not folder.name.isprintable() else member(folder, STORED)
        return _as_started(folder, read_json(file, _Process)) if file is not None else None
    except (OSError, DataError):
        return None


def _as_started(folder: Path, process: _Process) -> Started:
    target = _target(folder.parent.parent, process.task.kind, folder.name)
    return Started(
        name=folder.name,
        path=str(target),
        task=process.task,
        created=process.created,
        state=_state(process, target),
        log=str(folder / "log"),
    )


def _state(process: _Process, target: Path) -> State:
    if _alive(process):
        if any((target / name).is_file() for name in (STOP, STOPPED)):
            return "stopping"
        begun = "spec.json" if process.task.kind == "run" else "progress.json"
        return "running" if (target / begun).exists() else "starting"
    if process.task.kind == "run":
        finished = (target / "summary.json").is_file()
    else:
        finished = target.is_dir() and any(_is_data(path) for path in target.iterdir())
    if finished:
        return "finished"
    return "stopped" if (target / STOPPED).is_file() else "failed"


def _is_data(path: Path) -> bool:
    """Whether a file of a build is what was built, and not what it writes on the way."""
    return path.is_file() and not (
        path.name.startswith(".") or path.name in CONTROL or "journal.sqlite" in path.name
    )


def _alive(process: _Process) -> bool:
    """Whether it runs. Its number alone does not say so: the system may have given it to another."""
    if process.began or process.pid <= 0:
        return process.pid > 0 and process_began(process.pid) == process.began
    with contextlib.suppress(OSError, OverflowError):
        os.kill(process.pid, 0)  # sends nothing
        return True
    return False

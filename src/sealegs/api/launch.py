"""Runs and builds as processes of their own, which keep running when whoever started them ends, and how one
that stopped is resumed.

The folder of a run, or of a data set, holds `started.json`, the settings of the process that writes it, and
`log`, what a process without a terminal printed. A folder may come from anyone: nothing is started from one
unless a mark outside of it says that this person began it here. No process is signalled: `stop` asks
it to end.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import os
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from sealegs.api.build import build
from sealegs.api.run import RUN_ARGUMENTS, new_folder
from sealegs.errors import DataError, StorageError, UsageError
from sealegs.files import lock
from sealegs.files.cache import cache_dir, write_whole
from sealegs.files.jsonfile import read_json, strings_in
from sealegs.files.lock import process_began
from sealegs.files.remote.sources import is_elsewhere, parse_columns, without_secrets
from sealegs.harness.benchmark import builder_class, helper_specs
from sealegs.harness.control import PARENT_VARIABLE, VARIABLE, clear_control, is_assigned
from sealegs.harness.folder.layout import CONTROL, LOG, STARTED, STOP, STOPPED, run_file
from sealegs.harness.limits import Limits
from sealegs.harness.registry import (
    benchmark_name,
    chosen_class,
    current_names,
    load_benchmark,
)
from sealegs.models.registry import check_spec, split_spec, with_args
from sealegs.options import parse
from sealegs.page.format import FLOOR, escape_controls

Kind: TypeAlias = Literal["run", "build"]
State: TypeAlias = Literal["running", "stopping", "finished", "failed", "stopped"]

DATA = "data"
"""Below the runs folder: what builds have made."""
TAIL = 2**16
"""Bytes at the end of a log that are read."""

_PROCESSES: list[subprocess.Popen[bytes]] = []
"""Processes that this one began. They are asked for their state, so that those that have ended can go."""


class ProcessTask(Struct, frozen=True, kw_only=True):
    """What a process does: the settings of `sealegs.run` or `sealegs.build`."""

    kind: Kind
    benchmark: str
    settings: dict[str, Any]
    directory: str = msgspec.field(default_factory=os.getcwd)
    """What paths in the settings are relative to."""
    min_coverage: float = FLOOR
    identity: str = ""
    """A digest of what a suite's run asks; empty for any other."""

    @property
    def subject(self) -> str:
        """The model that is asked; empty where none is named."""
        return str(self.settings.get("model") or "").partition("?")[0]


class Started(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A run or a build whose process can be watched, stopped and resumed: what `started.json` holds."""

    task: ProcessTask
    created: str
    pid: int = 0
    began: str = ""
    """When its process began, in the system's own count: another may have its number later."""
    path: str = ""
    """The run's folder, or the folder of what is built. It is not stored: a folder can be moved."""

    @property
    def name(self) -> str:
        return Path(self.path).name

    @property
    def kind(self) -> Kind:
        return self.task.kind

    @property
    def command(self) -> list[str]:
        """What resumes it at a terminal."""
        return ["sealegs", "resume", str(Path(self.path).resolve())]

    @property
    def active(self) -> bool:
        """Whether its process runs now."""
        if self.began and not self.task.identity:
            return self.pid > 0 and process_began(self.pid) == self.began
        # A process that has many runs, or a system without /proc.
        return lock.is_written(Path(self.path))

    @property
    def state(self) -> State:
        """How it is now. `stopping`: it was asked to stop and has not ended yet."""
        folder = Path(self.path)
        if self.active:
            asked = any((folder / name).is_file() for name in (STOP, STOPPED))
            return "stopping" if asked else "running"
        if self.kind == "run":
            finished = (folder / "summary.json").is_file()
        else:
            finished = folder.is_dir() and any(is_built(path) for path in folder.iterdir())
        if finished:
            return "finished"
        return "stopped" if (folder / STOPPED).is_file() else "failed"

    def log_tail(self, lines: int = 40) -> str:
        """The last lines that it printed, with control characters made visible; empty of a process at a
        terminal."""
        try:
            path = run_file(Path(self.path), LOG)
            if path is None:
                return ""
            with path.open("rb") as file:
                file.seek(max(0, path.stat().st_size - TAIL))
                text = file.read(TAIL).decode(errors="replace")
        except (OSError, DataError):
            return ""
        return escape_controls("\n".join(text.splitlines()[-lines:]))


def start(
    runs_folder: str | Path, benchmark: str | Path, model: str | None = None, **settings: Any
) -> Started:
    """Begin a run as a process of its own: `start("runs", "mirae", "embedded", limit=4)`.

    The settings are those of `sl.run`, which are checked first; the run's folder is a new one below
    `runs_folder`. The process has this one's environment. `started` tells how it goes.
    """
    _refuse_arguments(settings)
    options = {name: value for name, value in settings.items() if name not in RUN_ARGUMENTS}
    loaded = load_benchmark(benchmark, options, also=RUN_ARGUMENTS)
    if model:
        check_spec(model, settings.get("model_args") or {})
    elif "model" in loaded.roles:
        raise UsageError(f"{benchmark} needs a model to ask: give model=SPEC.")
    for spec in helper_specs(loaded).values():
        check_spec(spec, {})
    parse_columns(settings.get("column", ()))
    Limits.of(*(settings.get(name) for name in Limits.__struct_fields__))
    settings["model"] = model
    refuse_keys(settings)
    model_name = split_spec(model)[0].rpartition("/")[2] if model else ""
    folder = new_folder(Path(runs_folder), benchmark_name(benchmark), model_name)
    return launch(folder, ProcessTask(kind="run", benchmark=str(benchmark), settings=settings))[0]


def start_build(runs_folder: str | Path, benchmark: str | Path, **settings: Any) -> Started:
    """Begin a build as a process of its own: `start_build("runs", "mirae", seed=7)`.

    The settings are those of `sl.build`; the files are made in a new folder, `runs_folder`/data/NAME.
    """
    cls = builder_class(chosen_class(benchmark))
    _refuse_arguments(settings)
    options = {
        name: value for name, value in settings.items() if name not in inspect.signature(build).parameters
    }
    refuse_keys(settings)
    for spec in cls(parse(cls.Options, options, of=f"building for '{benchmark}'")).helpers.values():
        check_spec(spec, {})
    folder = new_folder(Path(runs_folder) / DATA, benchmark_name(benchmark))
    return launch(folder, ProcessTask(kind="build", benchmark=str(benchmark), settings=settings))[0]


def started(runs_folder: str | Path) -> list[Started]:
    """Runs and builds below a runs folder that were begun by `start`, `start_build` or at a terminal,
    newest first: `[each.state for each in started("runs")]`."""
    _PROCESSES[:] = [process for process in _PROCESSES if process.poll() is None]
    roots = (Path(runs_folder), Path(runs_folder) / DATA)
    folders = [folder for root in roots if root.is_dir() for folder in root.iterdir()]
    processes = [
        process
        for folder in folders
        if folder.name.isprintable() and not folder.is_symlink() and (process := stored(folder)) is not None
    ]
    return sorted(processes, key=lambda process: (process.created, process.name), reverse=True)


def start_again(process: Started) -> Started:
    """Resume a run or a build that stopped or failed: the same settings, into the same folder.

    What was answered is not asked again.
    """
    folder = Path(process.path)
    current = resumable(folder)
    if current.state not in ("stopped", "failed"):
        raise UsageError(f"'{current.name}' is {current.state}: only what stopped or failed can be resumed.")
    return launch(folder, current.task)[0]


def resumable(folder: Path) -> Started:
    """What is stored of the process of a folder, if this person began it here; everything that is started
    again from a folder is checked here."""
    process = own_process(folder)
    if process is None:
        raise UsageError(
            f"{folder}: nothing shows that you began this here, and a folder may come from anyone, so its "
            f"settings are not used. Run the original command again, with --out {folder}."
        )
    if process.task.identity and PARENT_VARIABLE not in os.environ:
        raise UsageError(f"{folder} is a run of a suite: `sealegs suite FILE` resumes it, in its budget.")
    return process


def own_process(folder: Path) -> Started | None:
    """What is stored of the process of a folder, if this person began it here; None of a folder that may come
    from anyone."""
    process = stored(folder)
    if process is None or not (is_assigned(folder) or _mark_of(folder, process.task).exists()):
        return None
    return process


def dismiss(process: Started) -> None:
    """List a run or a build that has ended no longer. What it wrote stays."""
    folder = Path(process.path)
    if process.active:
        raise UsageError(f"'{process.name}' is {process.state}: stop it first.")
    for name in (STARTED, LOG):
        (folder / name).unlink(missing_ok=True)
    clear_control(folder)
    with contextlib.suppress(OSError):  # it holds what was answered, or what is not ours
        folder.rmdir()


def _refuse_arguments(settings: Mapping[str, Any]) -> None:
    if unfit := [name for name in ("out", "fresh", "progress", "wait") if name in settings]:
        raise UsageError(f"'{unfit[0]}' cannot be set for a process of its own.")


def refuse_keys(settings: Mapping[str, Any]) -> None:
    """The settings are stored: no address may hold a key. Specs with one are refused where they are read."""
    args = {"base_url": settings.get("base_url") or "", **(settings.get("model_args") or {})}
    split_spec(with_args("openai:model", args))
    for text in strings_in(msgspec.to_builtins(settings, enc_hook=str)):
        if is_elsewhere(text) and not text.startswith("hf:") and without_secrets(text) != text:
            raise UsageError(
                f"{without_secrets(text)}: an address with a login or a query cannot be given here, because "
                "the settings are stored. Download the file, and give its path."
            )


def _encoded(value: Any) -> bytes:
    try:
        return msgspec.json.encode(value, enc_hook=str, order="deterministic")
    except UnicodeEncodeError:
        raise UsageError("a setting or the name of a folder is not UTF-8: it cannot be stored.") from None


def _mark_of(folder: Path, task: ProcessTask) -> Path:
    """An empty file of the person's own that says that they began this task in this folder."""
    content = _encoded([str(folder.resolve()), task])
    return cache_dir() / "started" / hashlib.sha256(content).hexdigest()


def record(folder: Path, task: ProcessTask, pid: int) -> Started:
    """Store which process writes a folder, and that this person began its task there."""
    refuse_keys(task.settings)
    process = Started(
        task=task,
        created=datetime.now(UTC).isoformat(timespec="milliseconds"),
        pid=pid,
        began=process_began(pid) if pid else "",
    )
    with contextlib.suppress(StorageError):  # where nothing can be remembered, it is started anew instead
        write_whole(_mark_of(folder, task), b"")
    write_whole(folder / STARTED, _encoded(process))
    return msgspec.structs.replace(process, path=str(folder))


def launch(
    folder: Path, task: ProcessTask, environment: Mapping[str, str] | None = None
) -> tuple[Started, subprocess.Popen[bytes]]:
    """Begin a process, whose run may be there in part, and give it too; its log begins anew."""
    if folder.is_symlink():
        raise UsageError(f"{folder} is a link: remove it.")
    folder.mkdir(parents=True, exist_ok=True)
    clear_control(folder)
    record(folder, task, 0)
    # -P: whatever lies in the working directory is not imported.
    command = [sys.executable, "-P", "-m", "sealegs", "resume", str(folder.resolve())]
    (folder / LOG).unlink(missing_ok=True)  # never written through a link
    with (folder / LOG).open("xb") as log:
        try:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a signal to this process's group, or its end, does not reach it
                env={
                    **os.environ,
                    VARIABLE: str(folder.resolve()),
                    "PYTHONUNBUFFERED": "1",
                    **(environment or {}),
                },
            )
        except (OSError, ValueError) as error:
            raise UsageError(f"the process cannot be started: {error}.") from None
    _PROCESSES.append(child)
    return record(folder, task, child.pid), child


def stored(folder: Path) -> Started | None:
    """What is stored of the process of a folder; None where it has none that can be read."""
    with contextlib.suppress(OSError, DataError):
        if (file := run_file(folder, STARTED)) is not None:
            process: Started = read_json(file, Started)
            settings = current_names(process.task.benchmark, process.task.settings)
            task = msgspec.structs.replace(process.task, settings=settings)
            return msgspec.structs.replace(process, task=task, path=str(folder))
    return None


def is_built(path: Path) -> bool:
    """Whether a file of a build is what was built, and not what it writes on the way."""
    return path.is_file() and not (
        path.name.startswith(".") or path.name in (*CONTROL, STARTED, LOG) or "journal.sqlite" in path.name
    )

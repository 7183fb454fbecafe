"""Runs and builds as processes of their own, which go on when whoever began them ends.

A process is `python -m evenkeel run …`, with the options of `evenkeel.run` as arguments. What is known of it
lies below the runs folder: `.started/NAME/started.json` and `.started/NAME/log`; its run or data are where
`Started.path` says. No process is signalled: `evenkeel.stop` asks it to end.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_origin

import msgspec
from msgspec import Struct

from evenkeel.api.run import merged_options, parse_data, parse_langs
from evenkeel.api.setup import model_refs
from evenkeel.errors import DataError, UsageError
from evenkeel.files.cache import cache_dir, slug, trim, write_whole
from evenkeel.files.lock import process_began
from evenkeel.files.remote.sources import is_elsewhere, parse_columns, without_secrets
from evenkeel.harness.benchmark import Benchmark
from evenkeel.harness.budget import Limits
from evenkeel.harness.control import VARIABLE
from evenkeel.harness.folder import CONTROL, STOP, STOPPED, member
from evenkeel.harness.registry import benchmark_name, chosen_class, load_benchmark
from evenkeel.make.builder import Builder
from evenkeel.models.engines.engine import EngineOptions
from evenkeel.models.prices import prices_by_role, require_prices
from evenkeel.models.registry import check_spec, split_spec, with_args
from evenkeel.options import describe, parse
from evenkeel.page.format import visible
from evenkeel.types import ModelRef

Kind: TypeAlias = Literal["run", "build"]
State: TypeAlias = Literal["starting", "running", "stopping", "finished", "failed", "stopped"]

MARKS = 10_000
"""Commands that are remembered as started by this person."""

FOLDER = ".started"
DATA = "data"
"""Below the runs folder: what is known of processes, and what builds have made."""
TAIL = 2**16
"""Bytes at the end of a log that are read."""
LARGEST = 2**20
"""Bytes of a started.json that is read."""

_PROCESSES: list[subprocess.Popen[bytes]] = []
"""Processes that this one began. They are asked for their state, so that those that have ended can go."""
_REAPING = threading.Lock()


class _Process(Struct, frozen=True):
    """What is stored of a process; its place on disk says its name."""

    kind: Kind
    command: list[str]
    created: str
    pid: int = 0
    began: str = ""
    """When it began, in the system's own count: another process may have its number later."""


class Started(Struct, frozen=True, kw_only=True):
    """A run or a build that was begun as a process of its own."""

    name: str
    path: str
    """The run's folder, or the folder of what is built."""
    kind: Kind
    command: list[str]
    created: str
    state: State
    """`stopping`: it was asked to stop and has not ended yet."""
    log: str
    """The file with what it printed."""

    @property
    def active(self) -> bool:
        """Whether its process has not ended."""
        return self.state in ("starting", "running", "stopping")

    def log_tail(self, lines: int = 40) -> str:
        """The last lines that it printed, with control characters made visible."""
        path = Path(self.log)
        try:
            if any(folder.is_symlink() for folder in (path.parent, path.parent.parent)):
                return ""  # what lies in the runs folder may be a stranger's: a link may lead anywhere
            with open(path, "rb", opener=_open_plain) as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    return ""
                file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL))
                text = file.read(TAIL).decode(errors="replace")
        except OSError:
            return ""
        return visible("\n".join(text.splitlines()[-lines:]))


def _open_plain(path: str, flags: int) -> int:
    """Open a file that is no link, without waiting for the other end of a pipe."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))


def start(
    runs_folder: str | Path, benchmark: str | Path, model: str | None = None, **settings: Any
) -> Started:
    """Begin a run as a process of its own: `ek.start("runs", "mirae", "embedded", limit=4)`.

    The settings are those of `ek.run`, which are checked first; the run's folder is a new one below
    `runs_folder`. The process has this one's environment. `ek.started` tells how it goes.
    """
    arguments = run_arguments(benchmark, model, dict(settings))
    name = split_spec(model)[0] if model else "-".join(_methods(benchmark, settings))
    title = f"{benchmark_name(benchmark)}-{slug(_short(name))}" if name else benchmark_name(benchmark)
    return _begin(Path(runs_folder), "run", title, str(benchmark), arguments, out="")


def start_build(runs_folder: str | Path, benchmark: str | Path, **options: Any) -> Started:
    """Begin a build as a process of its own: `ek.start_build("runs", "mirae", seed=7)`.

    The options are those of `ek.build`; the files are made in a new folder, `runs_folder`/data/NAME.
    """
    cls = chosen_class(benchmark).builder()
    shared = {name: options.pop(name, None) for name in ("model_args", "base_url", "concurrency")}
    limits = {name: options.pop(name) for name in Limits.__struct_fields__ if name in options}
    columns = parse_columns(options.pop("column", ()))
    _refuse(options, "out", "progress")
    _refuse_logins([value for value in options.values() if isinstance(value, str)])
    builder = cls(parse(cls.Options, options, of=f"building for '{benchmark}'"))
    spec = builder.helpers.get("model")
    _check_prices(builder, benchmark, spec, shared, limits)
    arguments = [
        *_arguments(cls.Options, options),
        *(f"--column={field}={name}" for field, name in columns.items()),
        *_shared_arguments(shared, limits),
    ]
    _refuse_secrets([value for value in options.values() if isinstance(value, str)], shared)
    out = "" if cls.folder else f"{slug(benchmark_name(benchmark))}.json"
    return _begin(Path(runs_folder), "build", benchmark_name(benchmark), str(benchmark), arguments, out=out)


def started(runs_folder: str | Path) -> list[Started]:
    """Runs and builds that were begun for a runs folder, newest first:
    `[each.state for each in ek.started("runs")]`."""
    with _REAPING:
        _PROCESSES[:] = [process for process in _PROCESSES if process.poll() is None]
    root = Path(runs_folder)
    linked = (root / FOLDER).is_symlink()
    folders = (root / FOLDER).iterdir() if (root / FOLDER).is_dir() and not linked else ()
    processes = [process for folder in folders if (process := _read(root, folder)) is not None]
    return sorted(processes, key=lambda process: (process.created, process.name), reverse=True)


def start_again(process: Started) -> Started:
    """Go on with a run or a build that stopped or failed: the same command, into the same folder.

    What was answered is not asked again: `ek.start_again(ek.started("runs")[0])`.
    """
    name, about = process.name, Path(process.log).parent
    stored = _read(about.parent.parent, about)
    if stored is None or stored.command != process.command:
        raise UsageError(f"'{name}' is not what was started there. Start a new one.")
    if stored.state not in ("stopped", "failed"):
        raise UsageError(f"'{name}' is {stored.state}: only what stopped or failed can go on.")
    target = Path(process.path).resolve()
    head, last = process.command[1:5], process.command[-1]
    folder = Path(last.removeprefix("--out="))
    # The file may be a stranger's: no other program is started from it, and nothing is written elsewhere.
    if head != ["-P", "-m", "evenkeel", process.kind] or not (
        last.startswith("--out=")
        and (folder == target or (process.kind == "build" and folder.parent == target))
    ):
        raise UsageError(f"'{name}': its command is not one that Evenkeel stored. Start a new one.")
    if Path(process.path).is_symlink():
        raise UsageError(f"{process.path} is a link. Start a new one.")
    if not _mark_of(process.command).exists():
        raise UsageError(
            f"'{name}' was not started from here: what it runs, and where a key goes, comes from its "
            "folder alone. Start a new one."
        )
    for each in CONTROL:
        (target / each).unlink(missing_ok=True)
    command = [sys.executable, *process.command[1:]]
    return _launch(about.parent.parent, about, target, process.kind, command)[0]


def _refuse_logins(values: Sequence[str]) -> None:
    """The command is stored: an address of data in it must not hold a key."""
    for value in values:
        if is_elsewhere(value) and not value.startswith("hf:") and without_secrets(value) != value:
            raise UsageError(
                f"{without_secrets(value)}: an address with a login or a query cannot be given here, because "
                "the command is stored. Download the file, and give its path."
            )


def run_arguments(benchmark: str | Path, model: str | None, settings: dict[str, Any]) -> list[str]:
    """The settings of `evenkeel.run`, checked, as arguments of the command line."""
    _refuse(settings, "out", "fresh", "progress", "wait")
    shared = {name: settings.pop(name, None) for name in ("model_args", "base_url", "concurrency")}
    limits = {name: settings.pop(name) for name in Limits.__struct_fields__ if name in settings}
    data = settings.pop("data", None)
    columns = parse_columns(settings.pop("column", ()))
    langs = parse_langs(settings.pop("lang", None))
    batch = bool(settings.pop("batch", False))
    general = {
        name: settings.pop(name, None)
        for name in ("limit", "seed", "top_p", "top_k", "reuse", *EngineOptions.__struct_fields__)
    }
    options = merged_options(settings.pop("options", None), settings)
    loaded = load_benchmark(benchmark, options)
    by_name = dict(options) if isinstance(options, Mapping) else msgspec.structs.asdict(options)
    _refuse_secrets([model] if model else [], shared)
    _refuse_logins(parse_data(data) if data is not None else [])
    if model:
        check_spec(model, shared["model_args"] or {})
    elif "model" in loaded.roles:
        raise UsageError(f"{benchmark} needs the model to ask: give model=SPEC.")
    _check_prices(loaded, benchmark, model, shared, limits)
    return [
        *([f"--model={model}"] if model else []),
        *(f"--data={path}" for path in (parse_data(data) if data is not None else [])),
        *(f"--column={field}={name}" for field, name in columns.items()),
        *([f"--lang={','.join(langs)}"] if langs else []),
        *(["--batch"] if batch else []),
        *(f"{_flag(name)}={value}" for name, value in general.items() if value is not None),
        *_shared_arguments(shared, limits),
        *_arguments(type(loaded).Options, by_name),
    ]


def _check_prices(
    benchmark: Benchmark | Builder,
    name: str | Path,
    model: str | None,
    shared: Mapping[str, Any],
    limits: Mapping[str, Any],
) -> None:
    """Refuse a limit in dollars that the process could not keep."""
    checked = Limits.of(*(limits.get(name) for name in Limits.__struct_fields__))
    if checked.max_usd is None:
        return
    ref = ModelRef(model, dict(shared["model_args"] or {})) if model else None
    refs = model_refs(benchmark, benchmark_name(name), ref, shared["base_url"])
    require_prices(checked, prices_by_role(checked, refs, benchmark.roles)[1])


def _shared_arguments(shared: Mapping[str, Any], limits: Mapping[str, Any]) -> list[str]:
    """Those that a run and a build have in common."""
    given = {"base_url": shared["base_url"], "concurrency": shared["concurrency"], **limits}
    return [
        *(f"--model-arg={key}={value}" for key, value in (shared["model_args"] or {}).items()),
        *(f"{_flag(name)}={value}" for name, value in given.items() if value is not None),
    ]


def _arguments(options: type[Struct], values: Mapping[str, Any]) -> list[str]:
    """Options by name as the command line takes them, as `cli/options.py` makes it from their class."""
    described = {option.name: option for option in describe(options)}
    arguments = []
    for name, value in values.items():
        option = described[name]
        several = get_origin(option.type) is tuple
        if value is None or (not several and value == option.default):
            continue
        if several:
            parts = [value] if isinstance(value, str) else list(value)
            if not parts and option.default:
                raise UsageError(f"{name}: give at least one; the command line has no word for none.")
            arguments += [f"{_flag(name)}={part}" for part in parts]
        elif isinstance(value, bool):
            if not value:
                raise UsageError(f"{name}: the command line has no word for turning this off.")
            arguments.append(_flag(name))
        else:
            arguments.append(f"{_flag(name)}={value}")
    return arguments


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _refuse(settings: Mapping[str, Any], *names: str) -> None:
    for name in names:
        if name in settings:
            raise UsageError(f"'{name}' cannot be chosen for a process of its own.")


def _refuse_secrets(specs: Sequence[str], shared: Mapping[str, Any]) -> None:
    """A command is stored, and any person on this machine can see it: a key has no place in one."""
    args = {key: str(value) for key, value in (shared["model_args"] or {}).items()}
    if shared["base_url"]:
        args.setdefault("base_url", str(shared["base_url"]))
    for spec in specs:
        split_spec(spec)
    split_spec(with_args("openai:model", args))


def _methods(benchmark: str | Path, settings: Mapping[str, Any]) -> list[str]:
    """What is under test where no model is."""
    subject = chosen_class(benchmark).subject
    values = settings.get(subject, ())
    return [values] if isinstance(values, str) else [str(value) for value in values]


def _short(name: str) -> str:
    """`gpt-4o` of `openai:gpt-4o`, the last folder of a path."""
    return name.rpartition(":")[2].rstrip("/").rpartition("/")[2] if name.count(":") == 1 else name


def _begin(root: Path, kind: Kind, title: str, benchmark: str, arguments: list[str], *, out: str) -> Started:
    folder, target = _new_folders(root, kind, title)
    destination = target.resolve() / out if out else target.resolve()
    return _launch(root, folder, target, kind, _command(kind, benchmark, arguments, destination))[0]


def start_named(
    root: Path, name: str, benchmark: str, arguments: Sequence[str], environment: Mapping[str, str]
) -> tuple[Started, subprocess.Popen[bytes]]:
    """Begin a run in the folder `root`/`name`, which may hold a part of it, and give its process too."""
    folder, target = root / FOLDER / name, _target(root, "run", name)
    for each in (root / FOLDER, folder, target):
        if each.is_symlink():
            raise UsageError(f"{each} is a link: remove it.")
        each.mkdir(parents=True, exist_ok=True)
    for control in CONTROL:
        (target / control).unlink(missing_ok=True)
    command = _command("run", benchmark, arguments, target.resolve())
    return _launch(root, folder, target, "run", command, environment)


def _command(kind: Kind, benchmark: str, arguments: Sequence[str], out: Path) -> list[str]:
    # -P: whatever lies in the working directory is not imported.
    return [sys.executable, "-P", "-m", "evenkeel", kind, benchmark, *arguments, f"--out={out}"]


def _mark_of(command: Sequence[str]) -> Path:
    """An empty file of the person's own that says that a command was started by them: a folder with runs may
    come from elsewhere. The Python that runs it may be another after an update."""
    content = msgspec.json.encode(list(command[1:]))
    return cache_dir() / "started" / hashlib.sha256(content).hexdigest()


def _launch(
    root: Path,
    folder: Path,
    target: Path,
    kind: Kind,
    command: list[str],
    environment: Mapping[str, str] | None = None,
) -> tuple[Started, subprocess.Popen[bytes]]:
    """Begin a process whose folders are there; its log begins anew."""
    process = _Process(kind, command, datetime.now(UTC).isoformat(timespec="milliseconds"))
    write_whole(folder / "started.json", msgspec.json.encode(process))
    with contextlib.suppress(OSError):  # where nothing can be remembered, it can only be started anew
        write_whole(_mark_of(command), b"")
        trim(_mark_of(command).parent, files=MARKS, size=MARKS)
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
    with _REAPING:
        _PROCESSES.append(child)
    process = msgspec.structs.replace(process, pid=child.pid, began=process_began(child.pid))
    write_whole(folder / "started.json", msgspec.json.encode(process))
    return _as_started(root, folder, process), child


def _new_folders(root: Path, kind: Kind, title: str) -> tuple[Path, Path]:
    """A new folder for what is known of a process and one for what it makes, of the same name."""
    if (root / FOLDER).is_symlink():
        raise UsageError(f"{root / FOLDER} is a link: remove it.")
    base = slug(f"{datetime.now():%Y%m%d-%H%M%S}-{title}", longest=120)
    for number in count(1):
        name = base if number == 1 else f"{base}-{number}"
        target = _target(root, kind, name)
        with contextlib.suppress(FileExistsError):
            (root / FOLDER / name).mkdir(parents=True)
            target.mkdir(parents=True)
            return root / FOLDER / name, target
    raise AssertionError("unreachable")


def _target(root: Path, kind: Kind, name: str) -> Path:
    return root / name if kind == "run" else root / DATA / name


def _read(root: Path, folder: Path) -> Started | None:
    """What is stored of a process; None where the file is not ours."""
    try:
        if (
            not folder.name.isprintable()
            or folder.is_symlink()
            or (file := member(folder, "started.json")) is None
        ):
            return None
        with file.open("rb") as opened:
            process = msgspec.json.decode(opened.read(LARGEST), type=_Process)
    except (OSError, DataError, ValueError, RecursionError):
        return None
    return _as_started(root, folder, process)


def _as_started(root: Path, folder: Path, process: _Process) -> Started:
    target = _target(root, process.kind, folder.name)
    return Started(
        name=folder.name,
        path=str(target),
        kind=process.kind,
        command=process.command,
        created=process.created,
        state=_state(process, target),
        log=str(folder / "log"),
    )


def _state(process: _Process, target: Path) -> State:
    if _alive(process):
        if any((target / name).is_file() for name in (STOP, STOPPED)):
            return "stopping"
        begun = "spec.json" if process.kind == "run" else "progress.json"
        return "running" if (target / begun).exists() else "starting"
    if process.kind == "run":
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
    if process.pid <= 0:
        return False
    if process.began:
        return process_began(process.pid) == process.began
    try:
        os.kill(process.pid, 0)  # sends nothing
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True

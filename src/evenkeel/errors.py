"""Every error that Evenkeel raises on purpose, in one small tree.

    EvenkeelError                 exit code
    ├── UsageError                2   the request itself cannot be carried out
    │   ├── DataError             2   a data file is missing or does not parse; names file and place
    │   ├── OptionError           2   an option has a value that it cannot have
    │   ├── MissingExtra          2   an optional package is not installed; names the line that mends it
    │   ├── CapabilityError       2   the model cannot do what the benchmark needs
    │   └── RunConflict           2   the run's folder belongs to another spec, version or process
    ├── ModelUnreachable          3   the model could not be reached, or refuses every call
    ├── DataUnreachable           3   a published data set could not be fetched
    ├── StorageError              1   the disk is full or the run's folder cannot be written
    └── BudgetReached             1   a limit on requests, tokens or money was met; answers are kept

The message is for a person: what was wrong, where, and what to do next. The command line prints it
without a traceback and leaves with `exit_code`.
"""

from __future__ import annotations

import sysconfig
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from evenkeel.types import Capability


class EvenkeelError(Exception):
    """The root of the tree: catch this to catch everything Evenkeel raises on purpose."""

    exit_code: ClassVar[int] = 1


class UsageError(EvenkeelError):
    """The request itself is wrong: an unknown name, a bad value, options that do not fit together."""

    exit_code = 2


class DataError(UsageError):
    """A data file is missing or is not what was expected."""

    def __init__(self, file: str | Path, problem: str, *, line: int | None = None, where: str = "") -> None:
        place = f"{file}, line {line}" if line is not None else str(file)
        super().__init__(f"{place}{f', {where}' if where else ''}: {problem}")


class OptionError(UsageError):
    """An option has a value that it cannot have."""

    def __init__(self, name: str, value: str, problem: str, *, of: str, flag: str = "") -> None:
        super().__init__(f"{name}={value}: {problem} ({of}).")
        flag = flag or f"--{name.replace('_', '-')} "
        self.on_command_line = f"{flag}{value}: {problem}."


class MissingExtra(UsageError):
    """An optional dependency is not installed."""

    def __init__(self, what: str, *, package: str, install: str) -> None:
        super().__init__(f"{what} needs the package '{package}', which is not installed. Run: {install}")


class CapabilityError(UsageError):
    """The model cannot do what the benchmark needs, or not soundly."""

    def __init__(self, message: str, *, lacking: frozenset[Capability]) -> None:
        super().__init__(message)
        self.lacking = lacking


class RunConflict(UsageError):
    """The run's folder cannot be used: another spec, another journal version, another process."""


class ModelUnreachable(EvenkeelError):
    """The model could not be reached, or refuses every call."""

    exit_code = 3


class DataUnreachable(EvenkeelError):
    """A published data set could not be fetched; its notes say which files to place by hand, and where."""

    exit_code = 3


class StorageError(EvenkeelError):
    """The disk is full or the run's folder cannot be written; what was stored before is kept."""


class BudgetReached(EvenkeelError):
    """A limit on requests, tokens or money was met before the run was done; the answers are kept."""


def place_of(error: BaseException) -> str:
    """`KeyError in rgb/lenient.py:88`: the last line on the way to an error that is not a library's."""
    frames = traceback.extract_tb(error.__traceback__)
    package = str(Path(__file__).parent)
    libraries = (sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"), "<")
    own = [f for f in frames if f.filename.startswith(package) or not f.filename.startswith(libraries)]
    frame = (own or frames)[-1]
    file = "/".join(Path(frame.filename).parts[-2:])
    return f"{type(error).__name__} in {file}:{frame.lineno}"

"""Every error that Sealegs raises on purpose, in one small tree.

    SealegsError                 exit code
    ├── UsageError                2   the request itself cannot be carried out
    │   ├── DataError             2   a data file is missing or does not parse; names file and place
    │   ├── OptionError           2   an option has a value that it cannot have
    │   ├── MissingExtra          2   an optional package is not installed; names the line that installs it
    │   ├── CapabilityError       2   the model cannot do what the benchmark needs
    │   └── RunConflict           2   the run's folder belongs to another spec, version or process
    ├── ModelUnreachable          3   the model could not be reached, or refuses every call
    ├── DataUnreachable           3   a published data set could not be fetched
    ├── BatchesPending            0   batches were submitted and are not waited for; nothing is scored yet
    ├── StorageError              1   the disk is full or the run's folder cannot be written
    └── BudgetReached             1   a limit on requests or money was met; answers are saved

The message is for a person: what was wrong, where, and what to do next, as it was written where it was
raised; options are named as at the command line (`--max-usd` is `max_usd` in Python). The command line prints
it without a traceback and leaves with `exit_code`. Every error can be pickled.
"""

from __future__ import annotations

import re
import sysconfig
import traceback
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import msgspec

if TYPE_CHECKING:
    from sealegs.types import Capability

KINDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "nothing",
}
LIMITS = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than"}
LONGEST_VALUE_CHARS = 60
"""Characters of a value that a message repeats."""
LONGEST_TEXT = 1200
"""Characters of a message that a file may decide."""
MOST_NAMES = 40
"""Names of fields or columns that a message lists."""


class SealegsError(Exception):
    """The root of the tree: catch this to catch everything Sealegs raises on purpose."""

    exit_code: ClassVar[int] = 1

    @property
    def on_command_line(self) -> str:
        """The message as the command line prints it."""
        return str(self)

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions are rebuilt from `args`, which here is the message, and not what a subclass is made from.
        return _rebuilt, (type(self), self.args, self.__dict__)


def _rebuilt(cls: type[SealegsError], args: tuple[Any, ...], state: dict[str, Any]) -> SealegsError:
    error = cls.__new__(cls, *args)
    error.__dict__.update(state)
    return error


class UsageError(SealegsError):
    """The request itself is wrong: an unknown name, a bad value, options that do not fit together."""

    exit_code = 2


class DataError(UsageError):
    """A data file is missing or is not what was expected."""

    def __init__(self, file: str | Path, problem: str, *, line: int | None = None, where: str = "") -> None:
        location = f"{file}, line {line}" if line is not None else str(file)
        super().__init__(f"{location}{f', {bounded(where)}' if where else ''}: {bounded(problem)}")


class OptionError(UsageError):
    """An option has a value that it cannot have."""

    def __init__(self, name: str, value: str, problem: str, *, of: str, flag: str = "") -> None:
        super().__init__(f"{name}={value}: {problem} ({of}).")
        flag = flag or f"--{name.replace('_', '-')} "
        self._typed = f"{flag}{value}: {problem}."

    @property
    def on_command_line(self) -> str:
        return self._typed


class MissingExtra(UsageError):
    """An optional dependency is not installed."""

    def __init__(self, what: str, *, package: str, install: str) -> None:
        super().__init__(f"{what} needs the package '{package}', which is not installed. Run: {install}")


class CapabilityError(UsageError):
    """The model cannot do what the benchmark needs, or not reliably."""

    def __init__(self, message: str, *, lacking: frozenset[Capability]) -> None:
        super().__init__(message)
        self.lacking = lacking


class RunConflict(UsageError):
    """The run's folder cannot be used: another spec, another journal version, another process."""


class ModelUnreachable(SealegsError):
    """The model could not be reached, or refuses every call."""

    exit_code = 3


class DataUnreachable(SealegsError):
    """A published data set could not be fetched; its notes say which files to place by hand, and where."""

    exit_code = 3


class BatchesPending(SealegsError):
    """Batches were submitted and are not waited for, as was asked; the same call fetches their answers."""

    exit_code = 0


class StorageError(SealegsError):
    """The disk is full or the run's folder cannot be written; what was stored before stays."""


class BudgetReached(SealegsError):
    """A limit on requests or money was met before the run was done; the answers are saved."""


def place_of(error: BaseException) -> str:
    """`KeyError in rgb/lenient.py:88`: the last line on the way to an error that is not a library's."""
    frames = traceback.extract_tb(error.__traceback__)
    package = str(Path(__file__).parent)
    libraries = (sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"), "<")
    relevant = [f for f in frames if f.filename.startswith(package) or not f.filename.startswith(libraries)]
    frame = (relevant or frames)[-1]
    file = "/".join(Path(frame.filename).parts[-2:])
    return f"{type(error).__name__} in {file}:{frame.lineno}"


# The words of a message


def suggestion(name: str, known: Iterable[str], *, behind: str = "") -> str:
    """` Did you mean 'mirae'?`, to put behind a message, with what stood behind the name; nothing where no
    known name is close."""
    by_case = {one.casefold(): one for one in known}
    close = get_close_matches(name.casefold(), by_case, n=1)
    return f" Did you mean '{by_case[close[0]]}{behind}'?" if close else ""


def listed(names: Iterable[str]) -> str:
    """`a, b, c`, or the first of very many names and how many there are."""
    known = list(names)
    shown_names = ", ".join(known[:MOST_NAMES]) or "none"
    return bounded(shown_names if len(known) <= MOST_NAMES else f"{shown_names}, … ({len(known):,} in all)")


def bounded(text: str) -> str:
    """A text that quotes a file, without the middle of what is too long to be read."""
    return (
        text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT // 2]} … {text[-LONGEST_TEXT // 4 :]}"
    )


def first_line(text: object) -> str:
    """The first line of a message; empty where there is none."""
    return next(iter(str(text).strip().splitlines()), "")


def sentence(text: str) -> str:
    """A text with a full stop, where nothing else ends it."""
    return text if text.endswith((".", "?", "!")) else f"{text}."


class Fault(NamedTuple):
    """What is wrong with a value, and where that value is."""

    problem: str
    path: tuple[str | int, ...]
    """From the outermost value inwards; `...` stands for a key that is not known."""

    @property
    def field(self) -> str:
        """`field 'questions[3].domain'`; nothing for the outermost value."""
        steps = "".join(f"[{s}]" if isinstance(s, int) or s == "..." else f".{s}" for s in self.path)
        return f"field '{steps.lstrip('.')}'" if steps else ""


def explain(error: msgspec.ValidationError, raw: Any) -> Fault:
    """The first thing that is wrong with a decoded value, from msgspec's error about it."""
    message, _, where = str(error).partition(" - at ")
    steps = re.findall(r"\[(\d+|\.\.\.)\]|\.([^.\[\]`]+)", where)
    path = tuple((int(index) if index.isdigit() else index) if index else name for index, name in steps)
    return Fault(_problem(message, _at(raw, path)), path)


_NOTHING = object()
FORM = "not of the right form"
"""What is said of a text that does not match a pattern."""
_PROBLEMS = (
    (r"Expected `(?P<kind>[^`]+)`, got `(?P<got>[^`]+)`.*", "expected {kind}, got {value}"),
    (r"Expected `(?:int|float)` (?P<limit>[<>]=?) (?P<bound>\S+)", "must be {limit} {bound}"),
    (
        r"Expected `array` of (?:at (?:least|most) )?length (?P<limit>[<>]=?) (?P<bound>\d+)",
        "must have {limit} {bound} entries",
    ),
    (r"Expected `str` of length (?P<limit>[<>]=?) (?P<bound>\d+)", "must have {limit} {bound} characters"),
    (r"Expected `str` matching regex .*", FORM),
    (r"Object missing required field `(?P<name>[^`]+)`", "the field '{name}' is missing"),
    (r"Object contains unknown field `(?P<name>[^`]+)`", "the field '{name}' is not known"),
    (r"Invalid enum value .*", "{value} is not one of the values that are allowed"),
    (r"(?:Number|Integer value) out of range", "the number is too large"),
)


def _problem(message: str, value: Any) -> str:
    for pattern, wording in _PROBLEMS:
        if match := re.fullmatch(pattern, message, re.DOTALL):
            parts = match.groupdict()
            kind = " or ".join(KINDS.get(part, part) for part in parts.get("kind", "").split(" | "))
            got = parts.get("got", "")
            named = KINDS.get(got, got or "this") if value is _NOTHING else shown(value)
            bound = parts.get("bound", "").removesuffix(".0")
            limit = LIMITS.get(parts.get("limit", ""), "")
            return wording.format(**{**parts, "kind": kind, "value": named, "limit": limit, "bound": bound})
    return message  # of our own making: a struct's own check


def shown(value: Any) -> str:
    """A value in a message: short, and in one line."""
    if value is None:
        return "nothing"
    if isinstance(value, dict | list | tuple):
        return "an object" if isinstance(value, dict) else "a list"
    text = repr(value) if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else ""
    try:
        text = text or str(value)
    except ValueError:  # an int of thousands of digits
        return "a number that is too large"
    return text if len(text) <= LONGEST_VALUE_CHARS else f"{text[: LONGEST_VALUE_CHARS - 3]}..."


def _at(raw: Any, path: Iterable[str | int]) -> Any:
    """The value at a path; `_NOTHING` where it cannot be followed."""
    for step in path:
        try:
            raw = raw[step]
        except (KeyError, IndexError, TypeError):
            return _NOTHING
    return raw

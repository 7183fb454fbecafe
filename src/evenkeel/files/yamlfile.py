"""YAML files: mappings and lists of texts and numbers, and nothing else that YAML can do.

Anchors, aliases, merge keys and tags are refused: a few lines of them can stand for gigabytes, or for
objects of a program. A date is a text as it is written, and so is a key (`no:`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from evenkeel.errors import DataError

LARGEST = 1 << 18
"""Characters of a file, which take PyYAML some seconds."""
DEEPEST = 20


class Entry(NamedTuple):
    """One entry of the outermost mapping (with its key) or list (without)."""

    line: int
    key: str
    value: Any


class Document(NamedTuple):
    """A whole file, and the line of each value in it."""

    entries: list[Entry] | None
    """None where there is neither a mapping nor a list."""
    lines: dict[tuple[str | int, ...], int]
    """By the keys and positions that lead to a value, `("models", 0, "name")`: where it begins."""

    def line(self, path: Iterable[str | int]) -> int:
        """The line of a value; of one that is not there, that of the value around it."""
        steps = tuple(path)
        while steps and steps not in self.lines:
            steps = steps[:-1]
        return self.lines.get(steps, 1)


def read_entries(path: Path | str, content: str) -> list[Entry] | None:
    """The entries of the outermost mapping or list, in order; None where there is neither."""
    return read_document(path, content).entries


def read_document(path: Path | str, content: str) -> Document:
    """The same, with the lines of all values."""
    import yaml

    try:
        if len(content) > LARGEST:
            raise DataError(path, f"the file is too large: at most {LARGEST:,} characters are read.")
        reader = _Reader(path, content)
        return Document(reader.document(), reader.lines)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise DataError(path, f"this is not YAML: {error.problem}.", line=line) from None
    except yaml.reader.ReaderError as error:
        line = content[: error.position].count("\n") + 1
        raise DataError(path, "this is not YAML: it has a control character.", line=line) from None
    except (ValueError, OverflowError):  # an escape beyond Unicode, a version of thousands of digits
        raise DataError(path, "this is not YAML: a character or number in it is out of range.") from None


class _Reader:
    """The events of one document as plain values."""

    def __init__(self, path: Path | str, content: str) -> None:
        import yaml

        self.lines: dict[tuple[str | int, ...], int] = {}
        self._path = path
        self._steps: list[str | int] = []
        """From the outermost value to the one that is read."""
        self._yaml = yaml
        self._resolve: Any = yaml.SafeLoader("").resolve
        self._events: Iterator[Any] = yaml.parse(content, Loader=yaml.SafeLoader)

    def document(self) -> list[Entry] | None:
        yaml = self._yaml
        next(self._events)  # the stream begins
        if isinstance(next(self._events), yaml.StreamEndEvent):
            return None
        first = next(self._events)
        entries: list[Entry] | None = None
        if isinstance(first, yaml.MappingStartEvent):
            self._check(first, 0)
            entries = list(self._pairs(1))
        elif isinstance(first, yaml.SequenceStartEvent):
            self._check(first, 0)
            entries = [Entry(at, "", value) for at, value in self._items(1)]
        else:
            self._value(first, 0)
        next(self._events)  # the document ends
        if isinstance(more := next(self._events), yaml.DocumentStartEvent):
            raise self._error(more, "the file holds a second document: one is expected")
        return entries

    def _value(self, event: Any, depth: int) -> Any:
        yaml = self._yaml
        self._check(event, depth)
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event)
        if isinstance(event, yaml.SequenceStartEvent):
            return [value for _, value in self._items(depth + 1)]
        return {key: value for _, key, value in self._pairs(depth + 1)}

    def _scalar(self, event: Any) -> Any:
        if event.style is not None or event.tag is not None:
            return _text(event)
        kind = self._resolve(self._yaml.ScalarNode, event.value, (True, False)).rpartition(":")[2]
        try:
            match kind:
                case "null":
                    return None
                case "bool":
                    return event.value.lower() in ("yes", "true", "on")
                case "int":
                    return int(event.value)
                case "float" if math.isfinite(number := float(event.value)):
                    return number
        except ValueError:  # 12:30:00 is a number to YAML, and thousands of digits are one
            pass
        return _text(event)

    def _items(self, depth: int) -> Iterator[tuple[int, Any]]:
        position = 0
        while not isinstance(event := next(self._events), self._yaml.SequenceEndEvent):
            line = event.start_mark.line + 1
            yield line, self._at(position, line, event, depth)
            position += 1

    def _pairs(self, depth: int) -> Iterator[Entry]:
        seen: dict[str, int] = {}
        while not isinstance(event := next(self._events), self._yaml.MappingEndEvent):
            self._check(event, depth)
            line = event.start_mark.line + 1
            if not isinstance(event, self._yaml.ScalarEvent):
                raise self._error(event, "a key must be a text")
            key = _text(event)
            if key == "<<" and event.style is None:
                raise self._error(event, "merge keys (<<) are not read: write the fields out")
            if key in seen and depth > 1:
                raise self._error(event, f"the key '{key}' duplicates line {seen[key]}")
            seen[key] = line
            yield Entry(line, key, self._at(key, line, next(self._events), depth))

    def _at(self, step: str | int, line: int, event: Any, depth: int) -> Any:
        """The value of a key or at a position of a list."""
        self._steps.append(step)
        self.lines[tuple(self._steps)] = line
        value = self._value(event, depth)
        self._steps.pop()
        return value

    def _check(self, event: Any, depth: int) -> None:
        yaml = self._yaml
        if depth > DEEPEST:
            raise self._error(event, f"this is nested more than {DEEPEST} levels deep")
        if isinstance(event, yaml.AliasEvent) or event.anchor:
            raise self._error(
                event, "anchors (&) and aliases (*) are not read: write the text out, or quote it"
            )
        if event.tag is not None and event.tag not in ("!", "tag:yaml.org,2002:str"):
            raise self._error(event, "tags (!) are not read: leave the tag out, or quote the text")

    def _error(self, event: Any, problem: str) -> DataError:
        return DataError(self._path, f"{problem}.", line=event.start_mark.line + 1)


def _text(event: Any) -> str:
    """A scalar as text; half a surrogate pair, which YAML can escape, becomes U+FFFD."""
    text: str = event.value
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

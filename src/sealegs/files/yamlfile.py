"""YAML files: mappings and lists of texts and numbers, and nothing else that YAML can do.

Aliases, merge keys and tags are refused: a few lines of them can stand for gigabytes, or for objects of a
program. A date is a text as it is written, and so is a key (`no:`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from sealegs.errors import DataError

LARGEST_YAML_BYTES = 1 << 18
"""Characters of a file, which take PyYAML some seconds."""
DEEPEST_YAML_LEVELS = 20
STANDARD = "tag:yaml.org,2002:"
PLAIN = ("bool", "float", "int", "map", "merge", "null", "seq", "str", "timestamp", "value")


class YamlEntry(NamedTuple):
    """One entry of the outermost mapping (with its key) or list (without)."""

    line: int
    key: str
    value: Any


class YamlDocument(NamedTuple):
    """A whole file, and the line of each value in it."""

    entries: list[YamlEntry] | None
    """None where there is neither a mapping nor a list."""
    lines: dict[tuple[str | int, ...], int]
    """By the keys and positions that lead to a value, `("models", 0, "name")`: where it begins."""

    def line(self, path: Iterable[str | int]) -> int:
        """The line of a value; of one that is not there, that of the value around it."""
        steps = tuple(path)
        while steps and steps not in self.lines:
            steps = steps[:-1]
        return self.lines.get(steps, 1)


def read_entries(path: Path | str, content: str) -> list[YamlEntry] | None:
    """The entries of the outermost mapping or list, in order; None where there is neither."""
    return read_document(path, content).entries


def read_document(path: Path | str, content: str) -> YamlDocument:
    """The same, with the lines of all values."""
    import yaml

    if len(content) > LARGEST_YAML_BYTES:
        raise DataError(path, f"the file is too large: at most {LARGEST_YAML_BYTES:,} characters are read.")
    try:
        root = yaml.compose(content, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise DataError(path, f"this is not YAML: {error.problem}.", line=line) from None
    except yaml.reader.ReaderError as error:
        line = content[: error.position].count("\n") + 1
        raise DataError(path, "this is not YAML: it has a control character.", line=line) from None
    except (ValueError, OverflowError):  # an escape beyond Unicode, a version of thousands of digits
        raise DataError(path, "this is not YAML: a character or number in it is out of range.") from None
    except RecursionError:
        raise DataError(path, f"this is nested more than {DEEPEST_YAML_LEVELS} levels deep.") from None
    reader = _Reader(path)
    entries: list[YamlEntry] | None = None
    if isinstance(root, yaml.MappingNode | yaml.SequenceNode):
        entries = [YamlEntry(*entry) for entry in reader.children(root, ())]
    elif root is not None:
        reader.value(root, ())
    return YamlDocument(entries, reader.lines)


class _Reader:
    """The nodes of one document as plain values."""

    def __init__(self, path: Path | str) -> None:
        self.lines: dict[tuple[str | int, ...], int] = {}
        self._path = path
        self._seen: set[int] = set()

    def value(self, node: Any, steps: tuple[str | int, ...]) -> Any:
        """The value of a node, which the steps lead to from the outermost one."""
        if node.id == "scalar":
            self._check(node, steps)
            return _scalar(node)
        parts = list(self.children(node, steps))
        if node.id == "sequence":
            return [value for _, _, value in parts]
        return {key: value for _, key, value in parts}

    def children(self, node: Any, steps: tuple[str | int, ...]) -> Iterator[tuple[int, str, Any]]:
        """The line, the key (of a mapping) and the value of each part of a node."""
        self._check(node, steps)
        for position, child in enumerate(node.value):
            key, value = child if node.id == "mapping" else (None, child)
            line = (key or value).start_mark.line + 1
            name = "" if key is None else self._key(key, steps)
            path = (*steps, position if key is None else name)
            if path in self.lines:
                raise DataError(self._path, f"the key '{name}' appears twice.", line=line)
            self.lines[path] = line
            yield line, name, self.value(value, path)

    def _key(self, node: Any, steps: tuple[str | int, ...]) -> str:
        self._check(node, steps)
        if node.id != "scalar":
            raise self._error(node, "a key must be a text")
        if node.tag == f"{STANDARD}merge":
            raise self._error(node, "merge keys (<<) are not read: write the fields out")
        return _text(node)

    def _check(self, node: Any, steps: tuple[str | int, ...]) -> None:
        if len(steps) > DEEPEST_YAML_LEVELS:
            raise self._error(node, f"this is nested more than {DEEPEST_YAML_LEVELS} levels deep")
        if id(node) in self._seen:
            raise self._error(node, "aliases (*) are not read: write the text out, or quote it")
        self._seen.add(id(node))
        if node.tag.removeprefix(STANDARD) not in PLAIN:
            raise self._error(node, "tags (!) are not read: leave the tag out, or quote the text")

    def _error(self, node: Any, problem: str) -> DataError:
        return DataError(self._path, f"{problem}.", line=node.start_mark.line + 1)


def _scalar(node: Any) -> Any:
    try:
        match node.tag.removeprefix(STANDARD):
            case "null":
                return None
            case "bool":
                return node.value.lower() in ("yes", "true", "on")
            case "int":
                return int(node.value)
            case "float" if math.isfinite(number := float(node.value)):
                return number
    except ValueError:  # 12:30:00 is a number to YAML, and thousands of digits are one
        pass
    return _text(node)


def _text(node: Any) -> str:
    """A scalar as text; half a surrogate pair, which YAML can escape, becomes U+FFFD."""
    text: str = node.value
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

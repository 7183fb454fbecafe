"""Which prompts are about the same question: errors are taken over questions, not over rows of files.

In a set that was built from documents, a counterfactual row repeats the question of a plain one, and an
integration row joins two of them.
"""

from __future__ import annotations

from collections.abc import Iterable


class Questions:
    """Questions by their text, each under the name of the first row that asks it."""

    def __init__(self, rows: Iterable[tuple[str, str, bool]]) -> None:
        """Of each row its name, its text, and whether it may be a part of others."""
        self._names: dict[str, str] = {}
        self._parts: dict[str, str] = {}
        for name, query, is_part in rows:
            text = _plain(query)
            self._names.setdefault(text, name)
            if is_part:
                self._parts.setdefault(text, self._names[text])

    def group(self, query: str) -> str:
        return self._names[_plain(query)]

    def joined(self, query: str) -> tuple[str, ...]:
        """The two questions that it begins and ends with, where it was made by joining two."""
        text = _plain(query)
        first = next((end for end in range(len(text) - 1, 0, -1) if text[:end] in self._parts), len(text))
        second = next((start for start in range(first, len(text)) if text[start:] in self._parts), len(text))
        return (self._parts[text[:first]], self._parts[text[second:]]) if second < len(text) else ()


def _plain(query: str) -> str:
    """In any case, with any spaces, without the question mark."""
    return " ".join(query.split()).casefold().rstrip("?？ ")

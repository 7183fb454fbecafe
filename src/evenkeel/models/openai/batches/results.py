"""The results of a batch, line by line: answers, failures, and what is wrong with the file itself.

Lines come in any order; some may be missing, come twice, be broken, or belong to no request of the batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from evenkeel.files.jsonfile import shallow
from evenkeel.models.openai.batches.protocols import BatchProtocol, Result
from evenkeel.models.openai.protocol import read_chat
from evenkeel.models.openai.transport import Reply, RequestError, repaired
from evenkeel.types import Response

NAMED = 5
"""Lines that a message names."""
EXTRA_LINES = 1000
"""Lines of a file beyond two for each request."""


class Failure(NamedTuple):
    """Why a request of a batch has no answer."""

    error: RequestError
    cancelled: bool = False


class Reading:
    """One pass over one file of results."""

    def __init__(self, protocol: BatchProtocol, expected: set[str]) -> None:
        self._protocol = protocol
        self._expected = expected
        self._seen: set[str] = set()
        self._broken: list[int] = []
        self._broken_count = self._unknown = self._duplicates = 0
        self._lines = 0
        self.gone = False
        """Whether the server has the file no more."""

    @property
    def known(self) -> bool:
        """Whether any line was of this batch."""
        return bool(self._seen)

    @property
    def too_many(self) -> bool:
        """Whether there are more lines than any honest file has."""
        return self._lines > 2 * len(self._expected) + EXTRA_LINES

    def take(self, line: bytes | None) -> tuple[str, Response | Failure] | None:
        """What a line says of which request; None where it says nothing that counts. None is also a line
        that was too long to be read."""
        self._lines += 1
        if line is not None and not line.strip():
            return None
        try:
            result = self._parsed(line)
        except (msgspec.DecodeError, ValueError, RecursionError):
            self._broken_count += 1
            if len(self._broken) < NAMED:
                self._broken.append(self._lines)
            return None
        name = result.custom_id
        if name not in self._expected:
            self._unknown += 1
            return None
        self._duplicates += name in self._seen
        self._seen.add(name)
        if result.error is not None:
            return name, Failure(result.error, result.cancelled)
        try:
            return name, Reply(200, "application/json", result.body, None, "").parse(read_chat)
        except RequestError as broken:
            return name, Failure(broken)

    def _parsed(self, line: bytes | None) -> Result:
        if line is None:
            raise ValueError("the line is too long")
        try:
            return self._protocol.result(shallow(line))
        except msgspec.DecodeError:
            return self._protocol.result(repaired(line))  # half a character is no reason to lose the rest

    def problems(self) -> Iterator[str]:
        """What is wrong with the file, in words."""
        if self._broken:
            more = self._broken_count - len(self._broken)
            named = ", ".join(map(str, self._broken)) + (f" and {more:,} more" if more else "")
            yield f"results that cannot be read, in line {named}"
        if self._unknown:
            yield f"results with a custom_id that is not of this batch: {self._unknown:,}; they are ignored"
        if self._duplicates:
            yield f"results that came twice: {self._duplicates:,}; the first answer counts"
        if self.too_many:
            yield "far more lines than requests; the rest is not read"

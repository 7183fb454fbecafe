"""Requests as the files that are sent: each of at most what a batch may hold."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Generator, Iterable
from typing import IO, NamedTuple

from evenkeel.models.openai.batches.protocols import BatchProtocol

BOUNDARY = "evenkeel-9f2c41d07ab84e63"
"""Between the parts of an upload. A line of JSON holds no line break, so that no text can end a part."""


class Portion(NamedTuple):
    """The requests of one batch, as they are sent."""

    ids: list[str]
    file: IO[bytes]


def portions(protocol: BatchProtocol, lines: Iterable[tuple[str, bytes]]) -> Generator[Portion, None, None]:
    """Lines with their names in as many files as the limits ask for."""
    head, tail = _frame(protocol)
    ids: list[str] = []
    file = _temporary()
    for name, line in lines:
        size = file.tell() + len(protocol.separator) + len(line) + len(tail)
        if ids and (size > protocol.most_bytes or len(ids) >= protocol.most_requests):
            file.write(tail)
            yield Portion(ids, file)
            ids, file = [], _temporary()
        file.write(protocol.separator if ids else head)
        file.write(line)
        ids.append(name)
    if ids:
        file.write(tail)
        yield Portion(ids, file)
    file.close()


def _frame(protocol: BatchProtocol) -> tuple[bytes, bytes]:
    """What surrounds the requests of a portion in what is sent."""
    if not protocol.uploads:
        return protocol.head, protocol.tail
    part = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="'
    file = f'{part}file"; filename="evenkeel.jsonl"\r\nContent-Type: application/jsonl\r\n\r\n'
    form = f'{part}purpose"\r\n\r\nbatch\r\n{file}'
    return form.encode() + protocol.head, protocol.tail + f"\r\n--{BOUNDARY}--\r\n".encode()


def _temporary() -> IO[bytes]:
    return tempfile.TemporaryFile(prefix="evenkeel-")


async def chunks(file: IO[bytes]) -> AsyncIterator[bytes]:
    while chunk := file.read(2**18):
        yield chunk

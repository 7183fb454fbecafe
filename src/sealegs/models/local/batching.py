"""Batches for models that run on this machine: cut by rows and padded tokens, halved when memory runs out or
a row cannot be computed."""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count, islice
from queue import SimpleQueue
from threading import Event, local
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from sealegs.errors import place_of
from sealegs.types import Request, Response

log = logging.getLogger(__name__)

T = TypeVar("T")
R = TypeVar("R")

WORKERS = 16
"""Batches at once on a CPU, at most: beyond that Python's own lock is the limit."""

ROW_ERRORS = (ArithmeticError, LookupError, RuntimeError, ValueError)
"""What libraries raise of a row that they cannot compute. Anything else is a mistake of the program."""

BROKEN = ("CUDA error", "device-side assert", "HIP error")
"""In the message of an error: after it, nothing works any more in this process."""

_WORKER = local()


Emit: TypeAlias = Callable[[int, R], None]
"""Takes the result of an item of a batch by its index, before the batch has ended."""


class Batch(NamedTuple, Generic[T]):
    """Items that are computed together, and those whose results were emitted."""

    items: list[T]
    emitted: set[int]


@dataclass
class Budget:
    """The most that one batch may hold. `tokens` shrinks for good where it proved to be too much."""

    rows: int
    tokens: int


def windows(stream: Iterable[T], size: int) -> Iterator[list[T]]:
    """A stream in lists of `size`, each read only when the one before is done."""
    stream = iter(stream)
    while window := list(islice(stream, size)):
        yield window


class Stopped(Exception):
    """Nobody waits for the results any more."""


def cpu_workers() -> int:
    """How many batches run side by side on the cores that torch may use."""
    import torch

    return min(torch.get_num_threads(), WORKERS)


@contextmanager
def cpu_pool(workers: int) -> Iterator[Executor]:
    """Threads that each compute a batch on one core: so no sum is shared out between cores, whose number
    would change its last digits. On leaving, what they still compute is given up at the next `check_stopped`.
    """
    import torch

    stopped = Event()

    def begin() -> None:
        torch.set_num_threads(1)  # for this thread alone; the rest of the process keeps its number
        _WORKER.stopped = stopped

    pool = ThreadPoolExecutor(workers, initializer=begin)
    try:
        yield pool
    finally:
        stopped.set()
        pool.shutdown(cancel_futures=True)


def check_stopped() -> None:
    """Raise `Stopped` in a worker whose pool is being closed."""
    stopped = getattr(_WORKER, "stopped", None)
    if stopped is not None and stopped.is_set():
        raise Stopped


def run(
    parts: Iterable[Iterable[list[T]]],
    size: Callable[[T], int],
    budget: Budget,
    work: Callable[[list[T], Emit[R]], Sequence[R]],
    *,
    pool: Executor | None = None,
    ahead: int = 1,
    kind: Callable[[T], Hashable] | None = None,
) -> Iterator[tuple[T, R | None]]:
    """Do `work` on every item, in batches; yield each item with its result, or None where it does not fit.

    `work` gives the results of a batch, and may emit some of them before: with a `pool` those are yielded at
    once.

    Longest first in each part, so that a batch pads little and memory runs out at the start of a run or
    never. Items of one group (of one size) share work, and stay in one batch where it can hold them; items
    of another `kind` are never in it. With a `pool`, `ahead` batches run at a time, and the next part is
    asked for while they do.
    """
    parts = iter(parts)
    pending: deque[list[T]] = deque()
    running: dict[int, Batch[T]] = {}
    events: SimpleQueue[tuple[int, int | None, Any]] = SimpleQueue()
    """The number of a batch, and a result with its index; or none, and how the batch ended."""
    numbers = count()
    while True:
        while len(running) < ahead:
            while not pending and (part := next(parts, None)) is not None:
                pending.extend(_ordered(part, size, kind))
            if not pending:
                break
            number = next(numbers)
            running[number] = Batch(_next_batch(pending, size, budget, kind), set())
            task = partial(_attempt, work, running[number].items, number, events)
            pool.submit(task) if pool else task()
        if not running:
            return
        number, index, value = events.get()
        items, emitted = running[number]
        if index is not None:
            emitted.add(index)
            yield items[index], value
            continue
        del running[number]
        if isinstance(value, BaseException):
            raise value
        rest = [at for at in range(len(items)) if at not in emitted]
        if value is not None:
            yield from ((items[at], value[at]) for at in rest)
        elif len(items) == 1:
            yield items[0], None
        else:
            budget.tokens = min(budget.tokens, len(items) * size(items[0]) // 2)
            log.info("The memory ran out: batches of at most %s tokens from here on.", f"{budget.tokens:,}")
            pending.extendleft([items[at]] for at in reversed(rest))


def _ordered(
    groups: Iterable[list[T]], size: Callable[[T], int], kind: Callable[[T], Hashable] | None
) -> list[list[T]]:
    """The longest first, those of one kind together."""
    groups = sorted(groups, key=lambda group: -size(group[0]))
    if kind is None:
        return groups
    kinds: dict[Hashable, list[list[T]]] = {}
    for group in groups:
        kinds.setdefault(kind(group[0]), []).append(group)
    return [group for several in kinds.values() for group in several]


def _next_batch(
    pending: deque[list[T]],
    size: Callable[[T], int],
    budget: Budget,
    kind: Callable[[T], Hashable] | None,
) -> list[T]:
    """Take whole groups while they fit; one that would fit no batch at all is split."""
    batch: list[T] = []
    while pending:
        group = pending[0]
        if kind is not None and batch and kind(group[0]) != kind(batch[0]):
            break
        longest = size(batch[0] if batch else group[0])
        room = max(1, min(budget.rows, budget.tokens // max(1, longest))) - len(batch)
        if room < len(group) and batch:
            break
        batch += group[:room]
        if room < len(group):
            pending[0] = group[room:]
            break
        pending.popleft()
    return batch


def _attempt(
    work: Callable[[list[T], Emit[R]], Sequence[R]],
    batch: list[T],
    number: int,
    events: SimpleQueue[tuple[int, int | None, Any]],
) -> None:
    """Do the work, and put how it ended: its results, None where memory ran out, or an error.

    The memory is given back only after the error is gone: its traceback holds on to every tensor.
    """
    try:
        results = work(batch, lambda index, result: events.put((number, index, result)))
        events.put((number, None, results))
        return
    except BaseException as error:  # noqa: BLE001  # raised where the results are waited for
        if not _is_out_of_memory(error):
            events.put((number, None, error))
            return
    free_memory()
    events.put((number, None, None))


def failing_alone(
    answer: Callable[[Sequence[Request]], Iterator[tuple[Request, Response]]], requests: Sequence[Request]
) -> Iterator[tuple[Request, Response]]:
    """The answers to some requests. Where computing fails, what has no answer yet is computed in halves,
    until the requests that cannot be computed are alone: each of those fails, and no other."""
    answered: Counter[int] = Counter()
    try:
        for request, response in answer(requests):
            answered[id(request)] += 1
            yield request, response
        return
    except ROW_ERRORS as error:
        if _is_out_of_memory(error) or any(sign in str(error) for sign in BROKEN):
            raise
        problem = f"the model failed: {place_of(error)}: {error}"[:300]
        rest = _unanswered(requests, answered)
        if not rest:
            raise
    # Outside of the except clause, whose traceback holds on to every tensor.
    if len(requests) == 1:
        yield from ((request, Response(status="error", reason=problem)) for request in rest)
        return
    half = len(rest) // 2
    for part in (rest[:half], rest[half:]):
        if part:
            yield from failing_alone(answer, part)


def _unanswered(requests: Sequence[Request], answered: Counter[int]) -> list[Request]:
    """The requests without those that were answered; one object may be there several times."""
    rest = []
    for request in requests:
        if answered[id(request)]:
            answered[id(request)] -= 1
        else:
            rest.append(request)
    return rest


def _is_out_of_memory(error: BaseException) -> bool:
    """CUDA and MPS have a class of their own; the CPU's allocator raises a plain RuntimeError."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    return "out of memory" in str(error).lower() or "DefaultCPUAllocator" in str(error)


def free_memory() -> None:
    import gc

    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()

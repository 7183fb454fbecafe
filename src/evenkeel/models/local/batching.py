"""Batches for models that run on this machine: cut by rows and padded tokens, halved when memory runs out."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


@dataclass
class Budget:
    """The most that one batch may hold. `tokens` shrinks for good where it proved to be too much."""

    rows: int
    tokens: int


def windows(stream: Iterable[T], size: int) -> Iterator[list[T]]:
    """A stream in pieces of `size`, each read only when the one before is done."""
    stream = iter(stream)
    while window := list(islice(stream, size)):
        yield window


def run(
    groups: Iterable[list[T]],
    size: Callable[[T], int],
    budget: Budget,
    work: Callable[[list[T]], Sequence[R]],
    *,
    pool: Executor | None = None,
    ahead: int = 1,
) -> Iterator[tuple[T, R | None]]:
    """Do `work` on every item, in batches; yield each item with its result, or None where it does not fit.

    Longest first, so that a batch pads little and memory runs out at the start of a run or never. Items of
    one group (of one size) share work, and stay in one batch where it can hold them. With a `pool`,
    `ahead` batches are under way at a time.
    """
    pending = deque(sorted(groups, key=lambda group: -size(group[0])))
    under_way: deque[tuple[list[T], Callable[[], Sequence[R] | None]]] = deque()
    while pending or under_way:
        while pending and len(under_way) < ahead:
            batch = next_batch(pending, size, budget)
            under_way.append((batch, begin(pool, partial(attempt, work, batch))))
        batch, results_of = under_way.popleft()
        results = results_of()
        if results is not None:
            yield from zip(batch, results, strict=True)
        elif len(batch) == 1:
            yield batch[0], None
        else:
            budget.tokens = min(budget.tokens, len(batch) * size(batch[0]) // 2)
            pending.extendleft([item] for item in reversed(batch))


def begin(pool: Executor | None, work: Callable[[], R]) -> Callable[[], R]:
    """Start work in the pool; without one, it is done when its result is asked for."""
    if pool is None:
        return work
    future = pool.submit(work)
    return lambda: future.result()


def next_batch(pending: deque[list[T]], size: Callable[[T], int], budget: Budget) -> list[T]:
    """Take whole groups while they fit; one that would fit no batch at all is split."""
    batch: list[T] = []
    while pending:
        group = pending[0]
        holds = max(1, min(budget.rows, budget.tokens // max(1, size(batch[0] if batch else group[0]))))
        room = holds - len(batch)
        if room < len(group) and batch:
            break
        batch += group[:room]
        if room < len(group):
            pending[0] = group[room:]
            break
        pending.popleft()
    return batch


def attempt(work: Callable[[list[T]], Sequence[R]], batch: list[T]) -> Sequence[R] | None:
    """The work's results, or None where memory ran out.

    The memory is given back only after the error is gone: its traceback holds on to every tensor.
    """
    try:
        return work(batch)
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
    free_memory()
    return None


def is_out_of_memory(error: BaseException) -> bool:
    """CUDA and MPS have a class of their own; the CPU's allocator raises a plain RuntimeError."""
    said = str(error)
    return (
        isinstance(error, MemoryError)
        or type(error).__name__ == "OutOfMemoryError"
        or "out of memory" in said.lower()
        or "DefaultCPUAllocator" in said
    )


def free_memory() -> None:
    import gc

    import torch

    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()

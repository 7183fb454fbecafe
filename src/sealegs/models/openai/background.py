"""An asynchronous producer, read from ordinary code as an iterator.

The producer runs in a thread with an event loop of its own, so that it also works inside a notebook,
whose loop is already running.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from sealegs.errors import SealegsError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator, Iterator

    from sealegs.harness.progress import Progress

T = TypeVar("T")

FULL = 32
"""Finished items that are handed over at once; fewer when the loop has dealt with all that had come: a switch
of threads for each would cost more than the item."""
RETRYING_S = 0.1
"""How long a change in the number of waiting retries may go unreported."""
PAUSE_S = 0.01
"""Between two looks whether the reader has caught up."""
UNREAD_BATCHES = 32
"""A reader who is this far behind holds the producer up, so that answers do not pile up in memory."""


class _Ended(NamedTuple):
    error: BaseException | None


class Outbox(Generic[T]):
    """Where the producer puts what is finished. It belongs to the producer's event loop."""

    def __init__(self, queue: SimpleQueue[list[T] | Callable[[], object] | _Ended]) -> None:
        self._queue = queue
        self._batch: list[T] = []
        self._loop = asyncio.get_running_loop()

    def put(self, item: T) -> None:
        if not self._batch:
            self._loop.call_soon(self.flush)
        self._batch.append(item)
        if len(self._batch) >= FULL:
            self.flush()

    def flush(self) -> None:
        if self._batch:
            self._queue.put(self._batch)
            self._batch = []

    def call(self, function: Callable[[], object]) -> None:
        """Have the reader's thread call something while it waits for more."""
        self._queue.put(function)

    async def room(self) -> None:
        """Wait until the reader has caught up."""
        while self._queue.qsize() >= UNREAD_BATCHES:
            await asyncio.sleep(PAUSE_S)

    async def taken(self) -> None:
        """Wait until the reader has dealt with all that was put."""
        self.flush()
        taken = asyncio.Event()

        def tell() -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
                self._loop.call_soon_threadsafe(taken.set)

        self.call(tell)
        await taken.wait()


class Relay:
    """Reports to a watcher, in the reader's thread, what its producer is waiting for."""

    def __init__(self, outbox: Outbox[Any], progress: Progress) -> None:
        self._outbox = outbox
        self._progress = progress
        self._retrying = 0
        self._scheduled = False
        self._loop = asyncio.get_running_loop()

    def note(self, text: str) -> None:
        self._outbox.call(lambda: self._progress.note(text))

    def waiting(self, text: str) -> None:
        self._outbox.call(lambda: self._progress.waiting(text))

    def retrying(self, change: int) -> None:
        """So many requests more, or fewer, wait to be tried again."""
        self._retrying += change
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_later(RETRYING_S, self._report)

    def _report(self) -> None:
        self._scheduled = False
        count = self._retrying
        self._outbox.call(lambda: self._progress.retrying(count))


def iterate(produce: Callable[[Outbox[T]], Coroutine[Any, Any, None]]) -> Generator[T, None, None]:
    """Yield what `produce` puts into its outbox; then raise what it raised, if anything.

    Leaving early cancels the producer and waits for its thread to end. After Ctrl-C, and whatever else is
    thrown in, what was finished by then is yielded first.
    """
    queue: SimpleQueue[list[T] | Callable[[], object] | _Ended] = SimpleQueue()
    thread = _Producer(produce, queue)
    thread.start()
    finished: Iterator[T] = iter(())
    try:
        while not isinstance(batch := _next(queue), _Ended):
            if isinstance(batch, list):
                finished = iter(batch)
                yield from finished
            else:
                batch()
        if batch.error is not None:
            raise batch.error
    except GeneratorExit:
        raise
    except BaseException:
        thread.stop()
        yield from finished
        while not queue.empty():
            if isinstance(batch := queue.get(), list):
                yield from batch
        raise
    finally:
        thread.stop()


class _Producer(threading.Thread, Generic[T]):
    """Runs a producer in an event loop of its own."""

    def __init__(
        self,
        produce: Callable[[Outbox[T]], Coroutine[Any, Any, None]],
        queue: SimpleQueue[list[T] | Callable[[], object] | _Ended],
    ) -> None:
        super().__init__(name="sealegs-requests", daemon=True)
        self._produce = produce
        self._queue = queue
        self._ready = threading.Event()
        self._cancel: Callable[[], object] = object

    def run(self) -> None:
        error: BaseException | None = None
        try:
            asyncio.run(self._main())
        except BaseException as raised:  # noqa: BLE001  # it is raised again in the reader's thread
            error = _without_frames(raised)
        finally:
            self._ready.set()
            self._queue.put(_Ended(error))

    async def _main(self) -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        self._cancel = lambda: loop.call_soon_threadsafe(task.cancel)
        self._ready.set()
        outbox = Outbox(self._queue)
        try:
            await self._produce(outbox)
        finally:
            outbox.flush()

    def stop(self) -> None:
        """End it, if it has not ended."""
        self._ready.wait()
        with contextlib.suppress(RuntimeError):  # the loop is closed: it has ended by itself
            self._cancel()
        self.join()


def _without_frames(error: BaseException) -> BaseException:
    """An error that is raised on purpose, and what caused it, without the frames they came through: the
    variables there hold addresses and headers, which a debugger or a logger may show."""
    if isinstance(error, SealegsError):
        for each in (error, error.__cause__):
            if each is not None:
                each.__traceback__ = each.__context__ = None
    return error


def _next(queue: SimpleQueue[T]) -> T:
    while True:
        # A wait without end cannot be interrupted by Ctrl-C on Windows.
        with contextlib.suppress(Empty):
            return queue.get(timeout=0.5)

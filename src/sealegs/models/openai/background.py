"""An asynchronous producer, read from ordinary code as an iterator.

The producer runs in a thread with an event loop of its own, so that it also works inside a notebook,
whose loop is already running.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
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
START_S = 5.0
"""A thread that is begun runs by then, or does nothing when it does."""
UNREAD_BATCHES = 32
"""A reader who is this far behind holds the producer up, so that answers do not pile up in memory."""


class _Ended(NamedTuple):
    error: BaseException | None


class _Handover(Generic[T]):
    """What goes from the producer's thread to the reader's. A batch stays in it until it has been read, as
    an iterator that gives no item twice: a reader who is interrupted anywhere finds all the others here."""

    def __init__(self) -> None:
        self._entries: deque[Iterator[T] | Callable[[], object] | _Ended] = deque()
        self._arrivals: SimpleQueue[None] = SimpleQueue()

    def __len__(self) -> int:
        return len(self._entries)

    def put(self, entry: Iterator[T] | Callable[[], object] | _Ended) -> None:
        self._entries.append(entry)
        self._arrivals.put(None)

    def items(self) -> Generator[T, None, _Ended]:
        """The items as they come, until the producer has ended."""
        while True:
            self._wait()
            entry = self._entries[0]
            if isinstance(entry, _Ended):
                return entry
            if callable(entry):
                entry()
            else:
                yield from entry
            self._entries.popleft()

    def left(self) -> Iterator[T]:
        """The items that have not been read, of a producer that has ended."""
        for entry in self._entries:
            if not isinstance(entry, _Ended) and not callable(entry):
                yield from entry

    def _wait(self) -> None:
        while True:
            # A wait without end cannot be interrupted by Ctrl-C on Windows.
            with contextlib.suppress(Empty):
                return self._arrivals.get(timeout=0.5)


class Outbox(Generic[T]):
    """Where the producer puts what is finished. It belongs to the producer's event loop."""

    def __init__(self, queue: _Handover[T]) -> None:
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
            self._queue.put(iter(self._batch))
            self._batch = []

    def call(self, function: Callable[[], object]) -> None:
        """Have the reader's thread call something while it waits for more."""
        self._queue.put(function)

    async def room(self) -> None:
        """Wait until the reader has caught up."""
        while len(self._queue) >= UNREAD_BATCHES:
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
    queue: _Handover[T] = _Handover()
    thread = _Producer(produce, queue)
    try:
        thread.start()  # which waits for it, and may be interrupted when it has received answers already
        ended = yield from queue.items()
        if ended.error is not None:
            raise ended.error
    except GeneratorExit:
        raise
    except BaseException:
        thread.stop()
        yield from queue.left()
        raise
    finally:
        thread.stop()


class _Producer(threading.Thread, Generic[T]):
    """Runs a producer in an event loop of its own."""

    def __init__(
        self,
        produce: Callable[[Outbox[T]], Coroutine[Any, Any, None]],
        queue: _Handover[T],
    ) -> None:
        super().__init__(name="sealegs-requests", daemon=True)
        self._produce = produce
        self._queue = queue
        self._ready = threading.Event()
        self._stopped = False
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
            if not self._stopped:
                await self._produce(outbox)
        finally:
            outbox.flush()

    def stop(self) -> None:
        """End it, if it has not ended. One that Ctrl-C kept from starting is never ready."""
        self._stopped = True
        if not self._ready.wait(START_S):
            return
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

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
PAUSE_S = 0.01
"""Between two looks whether the reader has caught up."""
START_S = 5.0
"""A thread that is begun runs by then, or does nothing when it does."""
UNREAD = 256
"""Items by which a reader is behind who holds the producer up, so that answers do not pile up in memory."""


class _Ended(NamedTuple):
    error: BaseException | None


END_OF_BATCH: Any = object()


class Outbox(Generic[T]):
    """What goes from a producer, in its event loop, to the thread of its reader. An item stays in it until it
    is read: a reader who is interrupted anywhere finds all the others here."""

    def __init__(self) -> None:
        self._items: deque[T] = deque()
        """With END_OF_BATCH after those that are handed over together."""
        self._waiting = 0
        """Items that are not handed over yet."""
        self._entries: SimpleQueue[Callable[[], object] | _Ended | None] = SimpleQueue()
        """For the reader: None for a batch, what is to be called, and the end."""

    # Of the producer

    def put(self, item: T) -> None:
        self._items.append(item)
        self._waiting += 1
        if self._waiting == 1:
            asyncio.get_running_loop().call_soon(self.flush)
        elif self._waiting >= FULL:
            self.flush()

    def flush(self) -> None:
        if self._waiting:
            self._waiting = 0
            self._items.append(END_OF_BATCH)
            self._entries.put(None)

    def call(self, function: Callable[[], object]) -> None:
        """Have the reader's thread call something while it waits for more."""
        self._entries.put(function)

    def end(self, error: BaseException | None) -> None:
        self._entries.put(_Ended(error))

    async def room(self) -> None:
        """Wait until the reader has caught up."""
        while len(self._items) >= UNREAD:
            await asyncio.sleep(PAUSE_S)

    async def taken(self) -> None:
        """Wait until the reader has dealt with all that was put. Who is cancelled here goes on until the next
        wait: what was received is handed over all the same."""
        self.flush()
        try:
            while self._items:
                await asyncio.sleep(PAUSE_S)
        except asyncio.CancelledError:
            if (task := asyncio.current_task()) is not None:
                task.cancel()

    # Of the reader

    def items(self) -> Generator[T, None, _Ended]:
        """The items as they come, until the producer has ended."""
        while True:
            entry = self._wait()
            if isinstance(entry, _Ended):
                return entry
            if entry is not None:
                entry()
            else:  # an iterator that takes each out as it gives it, which nothing can interrupt in between
                yield from iter(self._items.popleft, END_OF_BATCH)

    def left(self) -> Iterator[T]:
        """The items that have not been read, of a producer that has ended."""
        return (item for item in self._items if item is not END_OF_BATCH)

    def _wait(self) -> Callable[[], object] | _Ended | None:
        while True:
            # A wait without end cannot be interrupted by Ctrl-C on Windows.
            with contextlib.suppress(Empty):
                return self._entries.get(timeout=0.5)


class Relay:
    """Reports to a watcher, in the reader's thread, what its producer is waiting for."""

    def __init__(self, outbox: Outbox[Any], progress: Progress) -> None:
        self._outbox = outbox
        self._progress = progress
        self._retrying = 0
        self.taken = outbox.taken

    def note(self, text: str) -> None:
        self._outbox.call(lambda: self._progress.note(text))

    def waiting(self, text: str) -> None:
        self._outbox.call(lambda: self._progress.waiting(text))

    def retrying(self, change: int) -> None:
        """So many requests more, or fewer, wait to be tried again."""
        self._retrying += change
        count = self._retrying
        self._outbox.call(lambda: self._progress.retrying(count))


def iterate(produce: Callable[[Outbox[T]], Coroutine[Any, Any, None]]) -> Generator[T, None, None]:
    """Yield what `produce` puts into its outbox; then raise what it raised, if anything.

    Closing it cancels the producer and waits for its thread to end. So does what is thrown in (by
    `dispatcher._left_over`, where Ctrl-C came in the reader) or raised here by Ctrl-C; then what was finished
    by then is yielded, and the exception raised again.
    """
    outbox: Outbox[T] = Outbox()
    thread = _Producer(produce, outbox)
    try:
        thread.start()  # which waits for it, and may be interrupted when it has received answers already
        ended = yield from outbox.items()
        if ended.error is not None:
            raise ended.error
    except GeneratorExit:
        raise
    except BaseException:
        thread.stop()
        yield from outbox.left()
        raise
    finally:
        thread.stop()


class _Producer(threading.Thread, Generic[T]):
    """Runs a producer in an event loop of its own."""

    def __init__(self, produce: Callable[[Outbox[T]], Coroutine[Any, Any, None]], outbox: Outbox[T]) -> None:
        super().__init__(name="sealegs-requests", daemon=True)
        self._produce = produce
        self._outbox = outbox
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
            self._outbox.end(error)

    async def _main(self) -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        self._cancel = lambda: loop.call_soon_threadsafe(task.cancel)
        self._ready.set()
        try:
            if not self._stopped:
                await self._produce(self._outbox)
        finally:
            self._outbox.flush()

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

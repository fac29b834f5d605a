"""asyncio's `StreamReader` and `StreamWriter` on the halves of a stream, for code that is written for these.

A reader is filled by a task, which ends when the stream does or when the program has dropped the reader.
What a writer cannot hand over at once is handed over by a task, which has ended when nothing waits. The one
invariant: bytes keep their order. Errors are those of the stream.
"""

from __future__ import annotations

import asyncio
import weakref
from collections import deque
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from wayferry.quic.errors import QuicError, StreamStopped

if TYPE_CHECKING:
    from wayferry.quic.connection import Connection
    from wayferry.quic.receive import ReceiveStream
    from wayferry.quic.send import SendStream

__all__ = ["StreamReader", "StreamWriter"]

HIGH_WATER = 64 * 1024
"""Bytes that may wait here before `drain()` waits, as in asyncio's own writers."""

PART = 64 * 1024
"""Bytes that are handed over at once."""


class StreamReader(asyncio.StreamReader):
    """`asyncio.StreamReader` that gives what came before an error first, and lives while a task waits for it.

    asyncio's own raises an error at once, and is held by nothing but its task. What is changed there has
    private names, which the checker of types does not know.
    """

    def __init__(self, stream: ReceiveStream, limit: int) -> None:
        loop = asyncio.get_running_loop()
        super().__init__(limit, loop)
        self._reactor = stream._reactor
        self._failure: Exception | None = None
        inlet = Inlet(stream._connection)
        self.set_transport(inlet)
        made = weakref.ref(self)
        task = loop.create_task(_fill(made, stream, inlet))
        task.add_done_callback(partial(_filled, made))
        # Holds the task, too, until the reader is gone: then the stream is dropped, and so stopped.
        weakref.finalize(self, _cancel, task).atexit = False

    def exception(self) -> Exception | None:
        """The error that ends it, which may have data before it."""
        return self._failure

    def fail(self, failure: Exception) -> None:
        """No more data come."""
        self._failure = failure
        self._wakeup_waiter()  # type: ignore[attr-defined]

    async def _wait_for_data(self, func_name: str) -> None:
        """What every read calls that finds too little."""
        if self._failure is None:
            before = len(self._buffer)  # type: ignore[attr-defined]
            with self._reactor.holding(self):
                await super()._wait_for_data(func_name)  # type: ignore[misc]
            if self._failure is None or len(self._buffer) > before:
                return
        raise self._failure.with_traceback(None)


async def _fill(made: weakref.ref[StreamReader], stream: ReceiveStream, inlet: Inlet) -> None:
    try:
        while data := await stream.read():
            if (into := made()) is None:
                return
            into.feed_data(data)
            del into
            await inlet.open.wait()
    except (QuicError, ValueError) as error:
        if (into := made()) is not None:
            # Its traceback would hold this frame, and so the reader and the stream.
            into.fail(error.with_traceback(None))
    else:
        if (into := made()) is not None:
            into.feed_eof()


def _filled(made: weakref.ref[StreamReader], task: asyncio.Task[None]) -> None:
    """A loop that ends cancels its tasks: who still reads must not wait forever."""
    if task.cancelled() and (into := made()) is not None:
        into.fail(ConnectionAbortedError("the task that fills this reader was cancelled"))


def _cancel(task: asyncio.Task[None]) -> None:
    loop = task.get_loop()
    with suppress(RuntimeError):  # it is closed
        loop.call_soon_threadsafe(task.cancel)


class Inlet(asyncio.ReadTransport):
    """What a reader needs of the stream that it is filled from."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(_names(connection))
        self.open = asyncio.Event()
        self.open.set()

    def pause_reading(self) -> None:
        self.open.clear()

    def resume_reading(self) -> None:
        self.open.set()


class Outlet(asyncio.WriteTransport):
    """What a writer needs of the stream that it writes to."""

    def __init__(self, stream: SendStream) -> None:
        super().__init__(_names(stream._connection))
        self.stream = stream
        self.failure: Exception | None = None
        self.size = 0
        self._parts: deque[bytes | memoryview] = deque()
        self._ended = False
        self._finished = False
        self._task: asyncio.Task[None] | None = None
        self._works = False
        """There is a task, which may be about to end."""
        self._changed = asyncio.Event()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """As asyncio's own, takes all of it, so that `drain()` is what bounds it, and has what comes after
        the end or after an error go nowhere."""
        if self.is_closing():
            return
        rest = memoryview(data).cast("B")
        if not self._parts:
            try:
                rest = rest[self.stream.write_nowait(rest) :]
            except (QuicError, ValueError) as error:
                self._fail(error)
                return
        if len(rest):
            kept = memoryview(bytes(rest))
            self._parts.extend(kept[start : start + PART] for start in range(0, len(kept), PART))
            self.size += len(kept)
            self._move()

    def write_eof(self) -> None:
        if not self._ended:
            self._ended = True
            self._move()

    def can_write_eof(self) -> bool:
        return True

    def close(self) -> None:
        self.write_eof()

    def abort(self) -> None:
        self._ended = True
        self._fail(ConnectionAbortedError("the stream was aborted"))
        with suppress(QuicError, ValueError):  # it is over
            self.stream.reset()

    def drop(self) -> None:
        """`abort()` from any thread, if it has not ended."""
        if not self.is_closing():
            with suppress(RuntimeError):  # the loop is closed
                self.stream._reactor.loop.call_soon_threadsafe(self.abort)

    def is_closing(self) -> bool:
        return self._ended or self.failure is not None

    def get_write_buffer_size(self) -> int:
        return self.size

    async def until(self, most: int, ended: bool = False) -> None:
        """Waits until at most `most` bytes wait here and, where asked, until the end was handed over."""
        while self.failure is None and (self.size > most or (ended and not self._finished)):
            self._changed.clear()
            with self.stream._reactor.holding(self):
                await self._changed.wait()
        if self.failure is not None:
            raise self.failure.with_traceback(None)

    def _move(self) -> None:
        if not self._works:
            # Before the task is there: a loop may run its first step at once.
            self._works = True
            self._task = asyncio.get_running_loop().create_task(self._work())
            self._task.add_done_callback(self._worked)

    async def _work(self) -> None:
        try:
            while self._parts:
                await self.stream.write(self._parts[0])
                self.size -= len(self._parts.popleft())
                self._changed.set()
            if self._ended:
                await self.stream.finish()
                self._finished = True
                self._changed.set()
        except (QuicError, ValueError) as error:
            self._fail(error)

    def _worked(self, task: asyncio.Task[None]) -> None:
        self._works, self._task = False, None
        if task.cancelled():  # as a loop that ends does with all
            self._fail(ConnectionAbortedError("the task that writes was cancelled"))
        elif self.failure is None and (self._parts or (self._ended and not self._finished)):
            self._move()

    def _fail(self, failure: Exception) -> None:
        self.failure = self.failure or failure
        self._parts.clear()
        self.size = 0
        self._changed.set()


class StreamWriter(asyncio.StreamWriter):
    """`asyncio.StreamWriter` whose `drain()` waits for room, and whose `wait_closed()` for the peer."""

    def __init__(self, stream: SendStream) -> None:
        self._outlet = Outlet(stream)
        loop = asyncio.get_running_loop()
        super().__init__(self._outlet, asyncio.Protocol(), None, loop)

    def __del__(self) -> None:
        """asyncio's own would end the stream as if all had been written."""
        if (outlet := getattr(self, "_outlet", None)) is not None:
            outlet.drop()

    async def drain(self) -> None:
        """Waits while more than 64 KiB wait here, beyond what QUIC has taken. Cancel-safe: it only waits."""
        reactor = self._outlet.stream._reactor
        reactor.budget -= 1
        if reactor.budget < 0:
            await reactor.breathe()
        await self._outlet.until(HIGH_WATER)

    async def wait_closed(self) -> None:
        """Waits until the peer has acknowledged everything and the end. Cancel-safe: it only waits."""
        await self._outlet.until(0, ended=True)
        if (code := await self._outlet.stream.stopped()) is not None:
            raise StreamStopped(code)


def _names(connection: Connection) -> dict[str, Any]:
    return {"peername": connection.remote_addr, "sockname": connection.local_addr}

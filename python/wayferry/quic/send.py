"""The sending half of a stream."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from wayferry.quic._asyncio import StreamWriter
from wayferry.quic._waiting import Line
from wayferry.quic.errors import QuicError, StreamStopped

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from wayferry.quic import _native
    from wayferry.quic.connection import Connection

__all__ = ["SendStream"]


class SendStream:
    """A stream to send on. It comes from `Connection.open_uni` and, as half of a `BiStream`, from `open_bi`.

    What is written is sent in order; small writes of one turn of the event loop leave together. A stream that
    is dropped before `finish()` is reset with code 0.

    Errors of every operation: `ConnectionClosed` once the connection is over, `StreamStopped` once the peer
        reads no
    more, `EarlyDataRejected` when the stream was made of early data that the server did not take, and
    `ValueError` after `finish()` or `reset()`.
    """

    __slots__ = ("_connection", "_native", "_reactor", "_stopping", "_waits")

    def __init__(self, native: _native.SendStream, connection: Connection) -> None:
        self._connection = connection
        self._native = native
        self._reactor = connection._reactor
        self._waits: Line | None = None
        """There once a write has waited."""
        self._stopping: Line | None = None

    def __repr__(self) -> str:
        return f"<SendStream {self.id}>"

    @property
    def id(self) -> int:
        """QUIC's number of the stream (RFC 9000 §2.1)."""
        return self._native.id

    @property
    def priority(self) -> int:
        """See `set_priority`."""
        return self._native.priority

    async def write(self, data: Buffer) -> None:
        """Sends `data`, all of it. Waits while 64 KiB or more wait here for the peer's or the network's
        permission.

        Returning means taken, not arrived; see `acked()`. `data` may be changed afterwards.

        Cancel-safe: a cancelled write has sent nothing.
        """
        reactor, waits = self._reactor, self._waits
        reactor.budget -= 1
        if reactor.budget < 0:
            await reactor.breathe()
        pending = False
        if waits is None or not waits.callers:
            taken = self._native.write(data)
            if taken == 1:
                return
            if taken == 2:
                reactor.owe(self)
                return
            pending = True
        await self._line.queue(partial(self._take, self._native.write, data), pending=pending)

    def write_nowait(self, data: Buffer) -> int:
        """Sends as much of the start of `data` as there is room for now. The number of bytes that were
        taken."""
        if self._waits is not None and self._waits.callers:
            return 0
        taken = self._native.write_nowait(data)
        if self._native.buffered:
            self._reactor.owe(self)
        return taken

    async def finish(self) -> None:
        """Ends the stream, after everything that was written. Does not wait until that has arrived: `acked()`
        does.

        Cancel-safe: a cancelled finish has done nothing.
        """
        waits = self._waits
        if waits is not None and waits.callers:
            await waits.queue(self._finish, pending=False)
        else:
            self._finish()

    async def acked(self) -> None:
        """Waits until the peer has acknowledged all data and the end of the stream; so it is for after
        `finish()`.

        Raises:
            StreamStopped: the peer did not want all of it.

        Cancel-safe: it only waits.
        """
        code = await self.stopped()
        if code is not None:
            raise StreamStopped(code)

    async def stopped(self) -> int | None:
        """Waits until the peer stops reading and gives its code, or None when it has acknowledged everything
        first.

        Cancel-safe: it only waits.
        """
        line = self._stopping
        if line is None:
            line = self._stopping = Line(self._reactor, self._native.t_stopped)
        outcome = await line.run(self._native.stopped)
        return outcome[0] if outcome else None

    def reset(self, code: int = 0) -> None:
        """Gives the stream up: the peer learns `code` and may never see what was written (RFC 9000 §3.1).

        Args:
            code: the application's error code, 0 to 2⁶² − 1 (WebTransport: to 2³² − 1), else ValueError.
        """
        self._native.reset(code)
        token = self._native.t_write
        self._reactor.watchers.pop(token, None)
        self._connection._flushed(self)
        self._reactor.wake(token)
        if self._stopping is not None:
            self._stopping.wake()

    def set_priority(self, priority: int) -> None:
        """Sends this stream's data before that of streams with a lower priority. New streams have 0.

        Args:
            priority: −2³¹ to 2³¹ − 1, else ValueError.
        """
        self._native.set_priority(priority)

    def writer(self) -> StreamWriter:
        """An `asyncio.StreamWriter` on this stream, for code that is written for one.

        Its `drain()` waits while more than 64 KiB wait here, `close()` and `write_eof()` are `finish()`,
        `wait_closed()` is `acked()`; both raise this stream's errors, and ConnectionAbortedError after
        `transport.abort()`. A writer that is dropped before its end resets the stream. Write by the writer
        alone.
        """
        return StreamWriter(self)

    async def _write_frame(self, kind: int, data: Buffer) -> None:
        """`write` for a frame of HTTP/3 around `data`."""
        await self._put(partial(self._native.write_frame, kind), data)

    async def _write_last(self, data: Buffer) -> None:
        """`write` and `finish` in one: the end leaves with the last bytes, which there have to be."""
        await self._put(self._native.write_last, data)

    async def _put(self, write: Callable[[Buffer], int], data: Buffer) -> None:
        reactor, line = self._reactor, self._line
        reactor.budget -= 1
        if reactor.budget < 0:
            await reactor.breathe()
        if line.callers or not self._take(write, data):
            await line.queue(partial(self._take, write, data), pending=not line.callers)

    @property
    def _line(self) -> Line:
        line = self._waits
        if line is None:
            line = self._waits = Line(self._reactor, self._native.t_write)
        return line

    def _take(self, write: Callable[[Buffer], int], data: Buffer) -> bool | None:
        taken = write(data)
        if taken == 2:
            self._reactor.owe(self)
        return True if taken else None

    def _finish(self) -> bool:
        self._native.finish()
        if self._native.buffered:
            self._flush()
        return True

    def _flush(self) -> None:
        """Hands over what was collected, as far as there is room, and the rest as soon as there is."""
        try:
            over = self._native.flush()
        except (QuicError, ValueError):
            over = True  # the next operation says why
        if over:
            self._connection._flushed(self)
        else:
            self._reactor.watchers[self._native.t_write] = self._flush
            self._connection._unflushed.add(self)

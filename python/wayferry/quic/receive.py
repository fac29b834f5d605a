"""The receiving half of a stream."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from wayferry.quic._asyncio import StreamReader
from wayferry.quic._waiting import Line
from wayferry.quic.errors import TooLarge

if TYPE_CHECKING:
    from wayferry.quic import _native
    from wayferry.quic.connection import Connection

__all__ = ["ReceiveStream", "Unordered"]

CHUNK = 64 * 1024
"""Bytes that are read at once when the caller does not say."""


class ReceiveStream:
    """A stream to read from. It comes from `Connection.accept_uni` and, as half of a `BiStream`, from
    `accept_bi`.

    Iterating gives the data in pieces as they come, in order. Not reading holds the peer back. A stream that
    is dropped before its end is stopped with code 0.

    Errors of every operation: `StreamReset` once the peer has reset the stream, `ConnectionClosed` once the
    connection is over (a WebTransport session's data that came before are still given), `EarlyDataRejected`
    when the stream was made of early data that the server did not take, and `ValueError` after `stop()`.
    """

    __slots__ = ("_connection", "_held", "_native", "_reactor", "_waits")

    def __init__(self, native: _native.ReceiveStream, connection: Connection) -> None:
        self._connection = connection
        self._native = native
        self._reactor = connection._reactor
        self._waits: Line | None = None
        """There once a read has waited."""
        self._held: bytearray | None = None
        """What `read_exactly` or `read_to_end` collected and has not given."""

    def __repr__(self) -> str:
        return f"<ReceiveStream {self.id}>"

    @property
    def id(self) -> int:
        """QUIC's number of the stream (RFC 9000 §2.1)."""
        return self._native.id

    @property
    def is_early(self) -> bool:
        """Whether the stream came in early data (0-RTT): an attacker may have sent the same before (RFC 8446
        §8)."""
        return self._native.is_early

    async def read(self, n: int = CHUNK) -> bytes:
        """Up to `n` bytes, as soon as there are any; `b""` at the end of the stream.

        Args:
            n: 1 or more, else ValueError.

        Cancel-safe: a cancelled read has taken nothing.
        """
        reactor, waits = self._reactor, self._waits
        reactor.budget -= 1
        if reactor.budget < 0:
            await reactor.breathe()
        pending = False
        if not self._held and (waits is None or not waits.callers):
            data = self._native.read(n)
            if data is not None:
                return data
            pending = True
        return await self._line.queue(partial(self._take, n), pending=pending)

    async def read_exactly(self, n: int) -> bytes:
        """The next `n` bytes, no fewer. They are in memory twice for a moment.

        Raises:
            asyncio.IncompleteReadError: the stream ended before; `partial` has what there was.

        Cancel-safe: what had come already is kept for the next read of any kind.
        """
        if n < 0:
            raise ValueError("read_exactly takes 0 or more bytes")
        await self._line.enter()
        try:
            held = self._collection()
            if len(held) >= n:
                await self._breathe()
            while len(held) < n:
                data = await self._next(n - len(held))
                if not data:
                    partial_data = bytes(held)
                    held.clear()
                    raise asyncio.IncompleteReadError(partial_data, n)
                if len(data) == n and not held:
                    return data
                held += data
            return self._cut(n)
        finally:
            self._line.leave()

    async def read_to_end(self, limit: int) -> bytes:
        """Everything up to the end of the stream, of at most `limit` bytes.

        Raises:
            TooLarge: there is more. Nothing is lost: the next reads give it.

        Cancel-safe: what had come already is kept for the next read of any kind.
        """
        if limit < 0:
            raise ValueError("limit is 0 or more")
        await self._line.enter()
        try:
            held = self._collection()
            if len(held) > limit:
                await self._breathe()
            while len(held) <= limit:
                data = await self._next(min(limit + 1 - len(held), STEP))
                if not data:
                    return self._cut(len(held))
                held += data
            raise TooLarge(len(held), limit)
        finally:
            self._line.leave()

    def reader(self, limit: int = CHUNK) -> StreamReader:
        """An `asyncio.StreamReader` on this stream, for code that is written for one.

        It takes what comes until it holds twice `limit` bytes, then holds the peer back. Its reads raise this
        stream's errors, after what came before. A reader that is dropped stops the stream. Read by the reader
        alone, and from one of them.

        Args:
            limit: what asyncio's readers have it for: bytes of a line, at most.
        """
        return StreamReader(self, limit)

    def unordered(self) -> Unordered:
        """The data as they come, each piece with its offset, even if some are missing before it. For once
        and for all: afterwards the other reads raise ValueError.

        A task that pauses should have a `stream_window` of at most 2048 of the peer's messages, if these go
        in packets of their own: of more pieces that wait, the connection ends.

        Raises:
            ValueError: a read that was cancelled or failed has kept data; `read()` them first.
        """
        if self._held:
            raise ValueError("there are data that were collected in order; read them first")
        return Unordered(self)

    def stop(self, code: int = 0) -> None:
        """Tells the peer that no task reads on, and forgets what has come (STOP_SENDING, RFC 9000 §3.5).

        Args:
            code: the application's error code, 0 to 2⁶² − 1 (WebTransport: to 2³² − 1), else ValueError.
        """
        self._native.stop(code)
        self._held = None
        self._reactor.wake(self._native.t_read)

    def __aiter__(self) -> ReceiveStream:
        return self

    async def __anext__(self) -> bytes:
        # `read` once more, as a coroutine inside a coroutine would cost more for each piece.
        reactor, waits = self._reactor, self._waits
        reactor.budget -= 1
        if reactor.budget < 0:
            await reactor.breathe()
        data = None
        pending = not self._held and (waits is None or not waits.callers)
        if pending:
            data = self._native.read(CHUNK)
        if data is None:
            data = await self._line.queue(partial(self._take, CHUNK), pending=pending)
        if not data:
            raise StopAsyncIteration
        return data

    @property
    def _line(self) -> Line:
        line = self._waits
        if line is None:
            line = self._waits = Line(self._reactor, self._native.t_read)
        return line

    def _take(self, n: int) -> bytes | None:
        """One poll of `read`."""
        held = self._held
        if not held:
            return self._native.read(n)
        if n < 1:
            raise ValueError("read takes 1 byte or more")
        return self._cut(min(n, len(held)))

    async def _next(self, n: int) -> bytes:
        """The next piece for the one whose turn it is."""
        reactor = self._reactor
        reactor.budget -= 1
        if reactor.budget < 0:
            await reactor.breathe()
        return await reactor.until(self._line.token, partial(self._native.read, n))

    async def _breathe(self) -> None:
        """Counts an operation that what was collected is enough for; the others count in `_next`."""
        reactor = self._reactor
        reactor.budget -= 1
        if reactor.budget < 0:
            await reactor.breathe()

    def _collection(self) -> bytearray:
        if self._held is None:
            self._held = bytearray()
        return self._held

    def _cut(self, n: int) -> bytes:
        """The first `n` collected bytes, which are given now."""
        held = self._collection()
        data = bytes(held[:n] if n < len(held) else held)
        del held[:n]
        return data


class Unordered:
    """The pieces of a stream, `(offset, data)`, in the order in which they come.

    Cancel-safe: a cancelled step has taken nothing; iterate on.
    """

    __slots__ = ("_stream",)

    def __init__(self, stream: ReceiveStream) -> None:
        self._stream = stream

    def __aiter__(self) -> Unordered:
        return self

    async def __anext__(self) -> tuple[int, bytes]:
        stream = self._stream
        piece = await stream._line.run(self._poll)
        if piece is END:
            raise StopAsyncIteration
        return piece

    def _poll(self) -> tuple[int, bytes] | None:
        piece = self._stream._native.unordered(CHUNK)
        if piece is None:
            return None
        return piece or END


STEP = 1 << 20
"""Bytes that `read_to_end` asks for at once."""
END = (-1, b"")
"""What a poll gives at the end of the pieces."""

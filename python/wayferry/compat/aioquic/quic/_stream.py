"""The two halves of a stream whose number the program chose before the stream was opened.

`Outgoing` holds what was written until there is a stream and QUIC takes it. `Incoming` hands on what comes,
unless its reader asked for a pause. The one invariant: bytes keep their order.
"""

import asyncio
from collections import deque
from contextlib import suppress

from wayferry import quic

__all__ = ["Backlog", "Incoming", "Outgoing"]

# A writer that waits in `drain()` goes on below this, in bytes.
HIGH_WATER = 256 * 1024
# What is handed to QUIC, or taken from it, at once.
CHUNK = 256 * 1024


class Backlog:
    """What a connection's streams hold together that QUIC has not taken; refused beyond `limit` bytes."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.size = 0

    def add(self, size: int) -> None:
        # One write may pass the limit: the program holds its bytes anyway.
        if size and self.size >= self.limit:
            raise BufferError(
                f"{self.size} bytes wait to be sent on this connection; wait for drain() between writes"
            )
        self.size += size


class Outgoing:
    """The sending half."""

    def __init__(self, stream_id: int, backlog: Backlog) -> None:
        self.id = stream_id
        self.stream: quic.SendStream | None = None
        self.ended = False
        self.size = 0
        self._backlog = backlog
        self._chunks: deque[bytes] = deque()
        self._code: int | None = None
        self._room = asyncio.Event()
        self._over = asyncio.Event()
        self._room.set()

    def write(self, data: bytes, end_stream: bool) -> None:
        if self._code is not None:
            raise RuntimeError(f"stream {self.id} was reset")
        if self.ended:
            raise RuntimeError(f"stream {self.id} has ended")
        self._backlog.add(len(data))
        self.size += len(data)
        if data:
            self._chunks.append(data)
        self.ended = end_stream
        if self.size > HIGH_WATER:
            self._room.clear()

    async def pump(self) -> None:
        """Hands over what is queued, and the end if that was written. Raises what a `SendStream` does."""
        assert self.stream is not None
        if self._code is not None:
            self.stream.reset(self._code)
        while self._chunks:
            chunk = memoryview(self._chunks.popleft())
            for start in range(0, len(chunk), CHUNK):
                part = chunk[start : start + CHUNK]
                await self.stream.write(part)
                if self._code is not None:
                    return
                self._taken(len(part))
        if self.ended:
            await self.stream.finish()

    def reset(self, code: int) -> None:
        if self._code is None:
            self._code = code
            self._forget()
            if self.stream is not None:
                with suppress(quic.ConnectionClosed):
                    self.stream.reset(code)

    def end(self) -> None:
        """Nothing will be sent any more: a task that waits goes on."""
        self._forget()
        self._over.set()

    async def room(self) -> None:
        await self._room.wait()

    async def over(self) -> None:
        await self._over.wait()

    def _forget(self) -> None:
        self._chunks.clear()
        self._taken(self.size)

    def _taken(self, size: int) -> None:
        self.size -= size
        self._backlog.size -= size
        if self.size <= HIGH_WATER:
            self._room.set()


class Incoming:
    """The receiving half."""

    def __init__(self) -> None:
        self.stream: quic.ReceiveStream | None = None
        self._code: int | None = None
        self._ahead = b""
        self._failure: Exception | None = None
        self._pauses_ended = False
        self._flowing = asyncio.Event()
        self._flowing.set()

    def attach(self, stream: quic.ReceiveStream) -> None:
        self.stream = stream
        if self._code is not None:
            stream.stop(self._code)

    async def next(self) -> tuple[bytes, bool]:
        """The next bytes, and whether they are the last. Raises what `ReceiveStream.read()` does."""
        assert self.stream is not None
        await self._flowing.wait()
        data, self._ahead = self._ahead, b""
        if not data:
            data = await self.stream.read(CHUNK)
        # Small programs expect the end together with the last bytes, as it comes in aioquic when both were in
        # one packet. So look whether it is there.
        if data and self._failure is None:
            try:
                ahead = self.stream._native.read(CHUNK)
            except (quic.QuicError, ValueError) as failure:
                self._failure = failure
                return data, False
            self._ahead = ahead or b""
            return data, ahead == b""
        return data, not data

    def stop(self, code: int) -> None:
        self._code = code
        self.end_pauses()
        if self.stream is not None:
            with suppress(quic.ConnectionClosed):
                self.stream.stop(code)

    def pause(self) -> None:
        if not self._pauses_ended:
            self._flowing.clear()

    def resume(self) -> None:
        self._flowing.set()

    def end_pauses(self) -> None:
        """From now on there are none."""
        self._pauses_ended = True
        self._flowing.set()

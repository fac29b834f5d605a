"""A stream for asyncio: `drain()` waits while much is unsent, `wait_closed()` for the peer."""

import asyncio
from typing import Any

from ..quic.connection import QuicConnection

__all__ = ["StreamTransport", "StreamWriter"]


class StreamTransport(asyncio.Transport):
    """What asyncio's reader and writer need of a stream."""

    def __init__(self, quic: QuicConnection, stream_id: int) -> None:
        super().__init__()
        self.stream_id = stream_id
        self._quic = quic
        self._closing = not self.can_write_eof()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self.stream_id if name == "stream_id" else default

    def can_write_eof(self) -> bool:
        return self._quic.streams.can_send(self.stream_id)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._quic.send_stream_data(self.stream_id, bytes(data))

    def write_eof(self) -> None:
        if not self._closing:
            self._closing = True
            self._quic.send_stream_data(self.stream_id, b"", end_stream=True)

    def close(self) -> None:
        self.write_eof()

    def is_closing(self) -> bool:
        return self._closing or self.is_lost()

    def is_lost(self) -> bool:
        """Whether what is written goes nowhere, as the connection is over."""
        return self._quic.is_over()

    def abort(self) -> None:
        self._closing = True
        if self.can_write_eof():
            self._quic.reset_stream(self.stream_id, 0)

    def pause_reading(self) -> None:
        self._quic.streams.pause(self.stream_id)

    def resume_reading(self) -> None:
        self._quic.streams.resume(self.stream_id)

    async def room(self) -> None:
        """Waits until little enough is unsent, or the stream or the connection is over."""
        await self._quic.streams.room(self.stream_id)

    async def over(self) -> None:
        """Waits until the peer has acknowledged everything, or the stream or the connection is over."""
        await self._quic.streams.over(self.stream_id)


class StreamWriter(asyncio.StreamWriter):
    """`asyncio.StreamWriter` for a stream of QUIC."""

    def __init__(
        self, transport: StreamTransport, reader: asyncio.StreamReader, loop: asyncio.AbstractEventLoop
    ) -> None:
        super().__init__(transport, asyncio.Protocol(), reader, loop)
        self._stream = transport

    async def drain(self) -> None:
        await self._stream.room()
        if self._stream.is_lost():
            # A loop that writes on and on must let others run, and must end.
            await asyncio.sleep(0)
            raise ConnectionResetError("the connection is over")

    async def wait_closed(self) -> None:
        await self._stream.over()

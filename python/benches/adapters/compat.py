"""Ours, by the interface of aioquic: a program that knows its stream writers, with the import changed."""

from __future__ import annotations

from collections import deque
from contextlib import AbstractAsyncContextManager
from typing import Any, ClassVar

from link import ChunkQueue, Reader, Service, Setup, Writer

from adapters.events import EventAdapter, EventLink, Hearing
from wayferry.compat.aioquic.asyncio.client import connect
from wayferry.compat.aioquic.asyncio.protocol import QuicConnectionProtocol
from wayferry.compat.aioquic.asyncio.server import serve
from wayferry.compat.aioquic.quic import events
from wayferry.compat.aioquic.quic.configuration import QuicConfiguration


class Protocol(Hearing, QuicConnectionProtocol):
    """Hands events to the link."""

    kinds: ClassVar[Any] = events


class CompatLink(EventLink):
    """One connection."""

    def __init__(self, protocol: Any, service: Service, setup: Setup) -> None:
        super().__init__(service)
        self.protocol = protocol
        self.quic: Any = protocol._quic
        self.context: AbstractAsyncContextManager[Any] | None = None
        self.opened: deque[Any] = deque()

    async def open_uni(self) -> Writer:
        if len(self.opened) == OPEN:
            await self.opened.popleft().wait_closed()
        _, writer = await self.protocol.create_stream(is_unidirectional=True)
        self.opened.append(writer)
        return DrainedWriter(writer)

    async def open_bi(self) -> tuple[Writer, Reader]:
        _, writer = await self.protocol.create_stream()
        queue = self.queues[writer.get_extra_info("stream_id")] = ChunkQueue()
        return DrainedWriter(writer), queue

    def next_id(self, uni: bool) -> int:
        return int(self.quic.get_next_available_stream_id(is_unidirectional=uni))

    def send(self, stream: int, data: bytes, fin: bool) -> None:
        self.quic.send_stream_data(stream, data, fin)

    async def write(self, stream: int, data: bytes, fin: bool) -> None:
        self.send(stream, data, fin)

    async def send_datagram(self, data: bytes) -> None:
        self.quic.send_datagram_frame(data)

    async def close(self) -> None:
        if self.context is not None:
            await self.context.__aexit__(None, None, None)


class DrainedWriter:
    """A stream writer that is waited for after each write."""

    __slots__ = ("writer",)

    def __init__(self, writer: Any) -> None:
        self.writer = writer

    async def write(self, data: bytes, /) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def finish(self) -> None:
        self.writer.write_eof()


class RawAdapter(EventAdapter):
    """Raw QUIC."""

    connecting = staticmethod(connect)
    serving = staticmethod(serve)
    configuration = QuicConfiguration
    protocol = Protocol
    link = CompatLink


# Streams that a program has open at the same time.
OPEN = 100

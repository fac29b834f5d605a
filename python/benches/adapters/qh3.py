"""qh3. It shows its queue's length, but does not say when it shrinks: that is looked at after each packet."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

from link import Service, Setup
from qh3.asyncio.client import connect
from qh3.asyncio.protocol import QuicConnectionProtocol
from qh3.asyncio.server import serve
from qh3.quic import events
from qh3.quic.configuration import QuicConfiguration

from adapters.events import EventAdapter, Looking, PolledLink


class Protocol(Looking, QuicConnectionProtocol):
    """Hands events to the link."""

    kinds: ClassVar[Any] = events


class Qh3Link(PolledLink):
    """One connection."""

    def __init__(self, protocol: Any, service: Service, setup: Setup) -> None:
        super().__init__(protocol, service, setup)
        self.since_yield = 0

    def next_id(self, uni: bool) -> int:
        stream: int = self.quic._open_stream(is_unidirectional=uni)  # what its create_stream() calls
        return stream

    async def may_open(self, uni: bool) -> None:
        await self.room.until(lambda: self.quic.open_outbound_streams < OPEN)

    async def write(self, stream: int, data: bytes, fin: bool) -> None:
        self.quic.send_stream_data(stream, data, fin)
        self.protocol._transmit_soon()
        if not self.careful:
            return
        self.since_yield += len(data)
        if self.since_yield >= LOOK:
            self.since_yield = 0
            if self.quic.get_send_buffer_size(stream) > HIGH:
                await self.room.until(lambda: self.quic.get_send_buffer_size(stream) < LOW)

    async def send_datagram(self, data: bytes) -> None:
        self.quic.send_datagram_frame(data)
        self.protocol._transmit_soon()
        self.since_yield += 1
        if self.since_yield >= PENDING:
            self.since_yield = 0
            await asyncio.sleep(0)  # it says nothing about its datagrams


class RawAdapter(EventAdapter):
    """Raw QUIC."""

    connecting = staticmethod(connect)
    serving = staticmethod(serve)
    configuration = QuicConfiguration
    protocol = Protocol
    link = Qh3Link


# Streams below its peer's limit; bytes of one stream, and how often they are looked at; datagrams.
OPEN = 100
HIGH = 1 << 20
LOW = 1 << 19
LOOK = 64 * 1024
PENDING = 32

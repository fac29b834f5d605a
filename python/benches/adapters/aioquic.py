"""aioquic. It has no back-pressure: a careful program looks at its private queues, and so does this one."""

from __future__ import annotations

from typing import Any, ClassVar

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.asyncio.server import serve
from aioquic.quic import events
from aioquic.quic.configuration import QuicConfiguration
from link import Service, Setup

from adapters.events import EventAdapter, Looking, PolledLink


class Protocol(Looking, QuicConnectionProtocol):
    """Hands events to the link."""

    kinds: ClassVar[Any] = events


class AioquicLink(PolledLink):
    """One connection."""

    def __init__(self, protocol: Any, service: Service, setup: Setup) -> None:
        super().__init__(protocol, service, setup)
        self.next: dict[bool, int] = {}

    def next_id(self, uni: bool) -> int:
        # Its own counter moves on only with the first bytes.
        stream = self.next.get(uni) or int(self.quic.get_next_available_stream_id(is_unidirectional=uni))
        self.next[uni] = stream + 4
        return stream

    async def may_open(self, uni: bool) -> None:
        await self.room.until(lambda: len(self.quic._streams) < OPEN)

    async def write(self, stream: int, data: bytes, fin: bool) -> None:
        self.quic.send_stream_data(stream, data, fin)
        self.protocol._transmit_soon()
        if self.careful and self.unacked(stream) > HIGH:
            await self.room.until(lambda: self.unacked(stream) < LOW)

    def unacked(self, stream: int) -> int:
        found = self.quic._streams.get(stream)
        return 0 if found is None else len(found.sender._buffer)

    async def send_datagram(self, data: bytes) -> None:
        self.quic.send_datagram_frame(data)
        self.protocol._transmit_soon()
        if len(self.quic._datagrams_pending) >= PENDING:
            await self.room.until(lambda: len(self.quic._datagrams_pending) < PENDING)


class RawAdapter(EventAdapter):
    """Raw QUIC."""

    connecting = staticmethod(connect)
    serving = staticmethod(serve)
    configuration = QuicConfiguration
    protocol = Protocol
    link = AioquicLink


# Below its peer's limit of 128 streams; bytes of one stream; datagrams.
OPEN = 100
HIGH = 1 << 20
LOW = 1 << 19
PENDING = 64

"""aioquic. It has no back-pressure: a careful program looks at its private queues, and so does this one."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.asyncio.server import serve
from aioquic.quic import events
from aioquic.quic.configuration import QuicConfiguration
from link import Adapter, Keeper, Link, Room, Service, Setup

from adapters.events import EventLink


class RawAdapter(Adapter):
    """Raw QUIC."""

    def __init__(self, setup: Setup, service: Service) -> None:
        super().__init__(setup, service)
        self.keeper = Keeper(service)

    def configuration(self, client: bool) -> QuicConfiguration:
        configuration = QuicConfiguration(
            is_client=client,
            alpn_protocols=["bench"],
            idle_timeout=self.setup.idle,
            max_datagram_frame_size=65536,
        )
        if client:
            configuration.verify_mode = ssl.CERT_NONE
        else:
            configuration.load_cert_chain(str(self.setup.cert), str(self.setup.key))
        return configuration

    async def listen(self, port: int) -> None:
        await serve(
            "127.0.0.1",
            port,
            configuration=self.configuration(False),
            create_protocol=self.protocol(self.accepted.append),
        )

    async def connect(self, port: int) -> Link:
        context = connect(
            "127.0.0.1",
            port,
            configuration=self.configuration(True),
            create_protocol=self.protocol(lambda link: None),
        )
        protocol: Any = await context.__aenter__()
        protocol.link.context = context
        link: Link = protocol.link
        return link

    def protocol(self, made: Callable[[Link], None]) -> Callable[..., Any]:
        def create(quic: Any, stream_handler: Any = None) -> Protocol:
            protocol = Protocol(quic, stream_handler)
            protocol.link = AioquicLink(protocol, self.service, self.setup)
            made(protocol.link)
            protocol.over = lambda: (
                self.accepted.remove(protocol.link) if protocol.link in self.accepted else None
            )
            return protocol

        return create


class Protocol(QuicConnectionProtocol):
    """Hands events to the link."""

    link: AioquicLink
    over: Callable[[], None]

    def quic_event_received(self, event: events.QuicEvent) -> None:
        kind = type(event)
        try:
            if kind is events.StreamDataReceived:
                self.link.on_data(event.stream_id, event.data, event.end_stream)  # type: ignore[attr-defined]
            elif kind is events.DatagramFrameReceived:
                self.link.service.datagram(event.data)  # type: ignore[attr-defined]
            elif kind is events.ConnectionTerminated:
                self.over()
                self.link.on_end(ConnectionError(str(event)))
        except Exception as error:
            self.link.service.fault = self.link.service.fault or error
            raise

    def transmit(self) -> None:
        super().transmit()
        self.link.room.look()


class AioquicLink(EventLink):
    """One connection."""

    def __init__(self, protocol: Protocol, service: Service, setup: Setup) -> None:
        super().__init__(service)
        self.protocol = protocol
        self.quic: Any = protocol._quic
        self.careful = setup.careful
        self.room = Room()
        self.context: AbstractAsyncContextManager[Any] | None = None
        self.next: dict[bool, int] = {}

    def next_id(self, uni: bool) -> int:
        # Its own counter moves on only with the first bytes.
        stream = self.next.get(uni) or int(self.quic.get_next_available_stream_id(is_unidirectional=uni))
        self.next[uni] = stream + 4
        return stream

    async def may_open(self, uni: bool) -> None:
        await self.room.until(lambda: len(self.quic._streams) < OPEN)

    def send(self, stream: int, data: bytes, fin: bool) -> None:
        self.quic.send_stream_data(stream, data, fin)  # what runs callbacks transmits after them
        self.protocol._transmit_soon()

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

    def on_end(self, error: Exception) -> None:
        super().on_end(error)
        self.room.fail(error)

    async def close(self) -> None:
        if self.context is not None:
            await self.context.__aexit__(None, None, None)


# Below its peer's limit of 128 streams; bytes of one stream; datagrams.
OPEN = 100
HIGH = 1 << 20
LOW = 1 << 19
PENDING = 64

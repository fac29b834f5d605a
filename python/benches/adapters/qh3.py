"""qh3. It shows its queue's length, but does not say when it shrinks: that is looked at after each packet."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from link import Adapter, Link, Room, Service, Setup
from qh3.asyncio.client import connect
from qh3.asyncio.protocol import QuicConnectionProtocol
from qh3.asyncio.server import serve
from qh3.quic import events
from qh3.quic.configuration import QuicConfiguration

from adapters.events import EventLink


class RawAdapter(Adapter):
    """Raw QUIC."""

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
            protocol.link = Qh3Link(protocol, self.service, self.setup)
            made(protocol.link)
            protocol.over = lambda: (
                self.accepted.remove(protocol.link) if protocol.link in self.accepted else None
            )
            return protocol

        return create


class Protocol(QuicConnectionProtocol):
    """Hands events to the link."""

    link: Qh3Link
    over: Callable[[], None]

    def quic_event_received(self, event: Any) -> None:
        kind = type(event)
        try:
            if kind is events.StreamDataReceived:
                self.link.on_data(event.stream_id, event.data, event.end_stream)
            elif kind is events.DatagramFrameReceived:
                self.link.service.datagram(event.data)
            elif kind is events.ConnectionTerminated:
                self.over()
                self.link.on_end(ConnectionError(str(event)))
        except Exception as error:
            self.link.service.fault = self.link.service.fault or error
            raise

    def transmit(self) -> None:
        super().transmit()
        self.link.room.look()


class Qh3Link(EventLink):
    """One connection."""

    def __init__(self, protocol: Protocol, service: Service, setup: Setup) -> None:
        super().__init__(service)
        self.protocol = protocol
        self.quic = protocol._quic
        self.careful = setup.careful
        self.room = Room()
        self.context: AbstractAsyncContextManager[Any] | None = None
        self.since_yield = 0

    def next_id(self, uni: bool) -> int:
        return self.quic._open_stream(is_unidirectional=uni)  # what its create_stream() calls

    async def may_open(self, uni: bool) -> None:
        await self.room.until(lambda: self.quic.open_outbound_streams < OPEN)

    def send(self, stream: int, data: bytes, fin: bool) -> None:
        self.quic.send_stream_data(stream, data, fin)
        self.protocol._transmit_soon()

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

    def on_end(self, error: Exception) -> None:
        super().on_end(error)
        self.room.fail(error)

    async def close(self) -> None:
        if self.context is not None:
            await self.context.__aexit__(None, None, None)


# Streams below its peer's limit; bytes of one stream, and how often they are looked at; datagrams.
OPEN = 100
HIGH = 1 << 20
LOW = 1 << 19
LOOK = 64 * 1024
PENDING = 32

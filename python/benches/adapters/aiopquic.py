"""aiopquic: raw QUIC in the quickest way that its documentation gives, and WebTransport."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any, ClassVar

from aiopquic.asyncio.client import connect
from aiopquic.asyncio.protocol import QuicConnectionProtocol
from aiopquic.asyncio.server import serve
from aiopquic.asyncio.webtransport import WebTransportSession, connect_webtransport, serve_webtransport
from aiopquic.quic import events
from aiopquic.quic.configuration import QuicConfiguration
from link import Adapter, Keeper, Link, Reader, Service, Setup, Writer

from adapters.events import EventAdapter, EventLink, EventWriter, Hearing, configured


class Protocol(Hearing, QuicConnectionProtocol):  # type: ignore[misc]  # it has no types
    """Hands events to the link."""

    kinds: ClassVar[Any] = events


class AiopquicLink(EventLink):
    """One connection."""

    def __init__(self, protocol: Any, service: Service, setup: Setup) -> None:
        super().__init__(service)
        self.quic: Any = protocol._quic
        self.context: AbstractAsyncContextManager[Any] | None = None
        self.fresh: set[int] = set()

    def next_id(self, uni: bool) -> int:
        stream: int = self.quic.get_next_available_stream_id(is_unidirectional=uni)
        self.fresh.add(stream)
        return stream

    def send(self, stream: int, data: bytes, fin: bool) -> None:
        self.quic.send_stream_data(stream, data, fin)

    async def write(self, stream: int, data: bytes, fin: bool) -> None:
        # Its waiting send makes tasks, so the plain one goes first; a stream's first send has a budget.
        if stream not in self.fresh:
            try:
                self.quic.send_stream_data(stream, data, fin)
            except BufferError:
                await self.quic.send_stream_data_drained(stream, data, fin)
        else:
            self.fresh.discard(stream)
            await self.quic.send_stream_data_drained(stream, data, fin)
        if self.quic.closed:
            raise ConnectionError("closed")

    async def send_datagram(self, data: bytes) -> None:
        while not self.quic.send_datagram_frame(data):
            await self.quic.get_datagram_tx_drain_event().wait()

    async def close(self) -> None:
        if self.context is not None:
            await self.context.__aexit__(None, None, None)


class RawAdapter(EventAdapter):
    """Raw QUIC."""

    connecting = staticmethod(connect)
    serving = staticmethod(serve)
    protocol = Protocol
    link = AiopquicLink

    def configured(self, client: bool) -> QuicConfiguration:
        return configure(self.setup, client)


def configure(setup: Setup, client: bool) -> Any:
    return configured(QuicConfiguration, setup, client, keep_alive_interval=setup.keep_alive)


class WebAdapter(Adapter):
    """WebTransport."""

    async def listen(self, port: int) -> None:
        def handler(session: WebTransportSession) -> Any:
            link = WebLink(session, self.service)
            self.accepted.append(link)
            return self.attend(link)

        self.server = await serve_webtransport(
            "127.0.0.1",
            port,
            PATH,
            handler=handler,
            cert_file=str(self.setup.cert),
            key_file=str(self.setup.key),
            configuration=configure(self.setup, False),
        )

    async def attend(self, link: WebLink) -> None:
        try:
            await link.attend()
        finally:
            self.accepted.remove(link)

    async def connect(self, port: int) -> Link:
        context = connect_webtransport(
            "127.0.0.1", port, PATH, sni="localhost", configuration=configure(self.setup, True)
        )
        link = WebLink(await context.__aenter__(), self.service, context)
        link.keeper.start(link.attend())
        return link


class WebLink(Link):
    """One session."""

    def __init__(
        self, session: Any, service: Service, context: AbstractAsyncContextManager[Any] | None = None
    ) -> None:
        self.session = session
        self.service = service
        self.context = context
        self.keeper = Keeper(service)

    async def attend(self) -> None:
        """Until the session is over."""
        async for event in self.session.events():
            if isinstance(event, events.WebTransportNewStream):
                self.keeper.start(self.stream(event.stream_id))
            elif isinstance(event, events.WebTransportDatagramReceived):
                self.service.datagram(event.data)

    async def stream(self, stream: int) -> None:
        check = self.service.check() if stream & UNI else None
        async for event in self.session.receive_stream_data(stream):
            if not isinstance(event, events.WebTransportStreamDataReceived):
                return
            if check is not None:
                check.feed(event.data)
            elif len(event.data) or event.end_stream:
                await self.write(stream, bytes(event.data), event.end_stream)
        if check is not None:
            check.end()

    async def open_uni(self) -> Writer:
        return EventWriter(self, await self.session.create_stream(bidir=False))

    async def open_bi(self) -> tuple[Writer, Reader]:
        stream = await self.session.create_stream(bidir=True)
        return EventWriter(self, stream), WebReader(self.session, stream)

    async def write(self, stream: int, data: bytes, fin: bool) -> None:
        try:
            self.session.send_stream_data(stream, data, fin)
        except BufferError:
            await self.session.send_stream_data_drained(stream, data, fin)

    async def send_datagram(self, data: bytes) -> None:
        while not self.session.send_datagram_frame(data):
            await self.session.get_datagram_tx_drain_event().wait()

    async def close(self) -> None:
        if self.context is not None:
            await self.context.__aexit__(None, None, None)


class WebReader:
    """A stream to read from."""

    def __init__(self, session: Any, stream: int) -> None:
        self.events = session.receive_stream_data(stream)

    async def read(self, limit: int = 0, /) -> Any:
        async for event in self.events:
            if not isinstance(event, events.WebTransportStreamDataReceived):
                raise ConnectionError(str(event))
            if len(event.data):
                return event.data
        return b""


PATH = "/bench"
UNI = 2

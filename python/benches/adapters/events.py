"""What the libraries with aioquic's asyncio interface have in common: they call back with events."""

from __future__ import annotations

import ssl
from abc import abstractmethod
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, ClassVar, Protocol

from link import Adapter, Chunk, ChunkQueue, Link, Reader, Room, Service, Setup, Writer
from payload import Check


class EventAdapter(Adapter):
    """Raw QUIC. The attributes are the library's; a link is made of a protocol, the service and the setup."""

    connecting: ClassVar[Callable[..., AbstractAsyncContextManager[Any]]]
    serving: ClassVar[Callable[..., Any]]
    configuration: ClassVar[Callable[..., Any]]
    protocol: ClassVar[type[Any]]
    link: ClassVar[Callable[..., Any]]

    async def listen(self, port: int) -> None:
        self.server = await self.serving(
            "127.0.0.1",
            port,
            configuration=self.configured(False),
            create_protocol=self.making(self.accepted.append),
        )

    async def connect(self, port: int) -> Link:
        context = self.connecting(
            "127.0.0.1",
            port,
            configuration=self.configured(True),
            create_protocol=self.making(lambda link: None),
        )
        protocol = await context.__aenter__()
        protocol.link.context = context
        link: Link = protocol.link
        return link

    def configured(self, client: bool) -> Any:
        return configured(self.configuration, self.setup, client, max_datagram_frame_size=65536)

    def making(self, made: Callable[[Link], None]) -> Callable[..., Any]:
        def create(quic: Any, stream_handler: Any = None) -> Any:
            protocol = self.protocol(quic, stream_handler)
            link = protocol.link = self.link(protocol, self.service, self.setup)
            made(link)
            protocol.over = lambda: self.accepted.remove(link) if link in self.accepted else None
            return protocol

        return create


def configured(configuration: Callable[..., Any], setup: Setup, client: bool, **more: Any) -> Any:
    made = configuration(
        is_client=client,
        alpn_protocols=["h3" if setup.web else "bench"],
        idle_timeout=setup.idle,
        **more,
    )
    if client:
        made.verify_mode = ssl.CERT_NONE
    else:
        made.load_cert_chain(str(setup.cert), str(setup.key))
    return made


class Hearing:
    """Hands events to the link. Mixed into a library's protocol; `kinds` are the library's events."""

    kinds: ClassVar[Any]
    link: Any
    over: Callable[[], None]

    def quic_event_received(self, event: Any) -> None:
        kind, kinds = type(event), self.kinds
        try:
            if kind is kinds.StreamDataReceived:
                self.link.on_data(event.stream_id, event.data, event.end_stream)
            elif kind is kinds.DatagramFrameReceived:
                self.link.service.datagram(event.data)
            elif kind is kinds.ConnectionTerminated:
                self.over()
                self.link.on_end(ConnectionError(str(event)))
        except Exception as error:
            self.link.service.fault = self.link.service.fault or error
            raise


class Looking(Hearing):
    """As that, and looks after each packet whether there is room again."""

    def transmit(self) -> None:
        super().transmit()  # type: ignore[misc]  # the library's, which this is mixed into
        self.link.room.look()


class EventLink(Link):
    """Streams by number, and their events handed on from the callback itself."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.queues: dict[int, ChunkQueue] = {}
        self.checks: dict[int, Check] = {}

    @abstractmethod
    def next_id(self, uni: bool) -> int: ...

    @abstractmethod
    def send(self, stream: int, data: bytes, fin: bool) -> None:
        """From a callback: cannot wait."""

    @abstractmethod
    async def write(self, stream: int, data: bytes, fin: bool) -> None:
        """Waits for room."""

    async def may_open(self, uni: bool) -> None:
        """Waits for the peer's leave to open one more stream, where the library does not by itself."""

    async def open_uni(self) -> Writer:
        await self.may_open(True)
        return EventWriter(self, self.next_id(True))

    async def open_bi(self) -> tuple[Writer, Reader]:
        await self.may_open(False)
        stream = self.next_id(False)
        queue = self.queues[stream] = ChunkQueue()
        return EventWriter(self, stream), queue

    def on_data(self, stream: int, data: Chunk, fin: bool) -> None:
        if stream & UNI:
            check = self.checks.get(stream)
            if check is None:
                check = self.checks[stream] = self.service.check()
            check.feed(data)
            if fin:
                del self.checks[stream]
                check.end()
        elif (queue := self.queues.get(stream)) is not None:
            queue.push(data, fin)
            if fin:
                del self.queues[stream]
        else:
            self.send(stream, bytes(data), fin)

    def on_end(self, error: Exception) -> None:
        for queue in self.queues.values():
            queue.fail(error)


class PolledLink(EventLink):
    """One connection of a library that does not say when there is room; see `Looking`."""

    def __init__(self, protocol: Any, service: Service, setup: Setup) -> None:
        super().__init__(service)
        self.protocol = protocol
        self.quic: Any = protocol._quic
        self.careful = setup.careful
        self.room = Room()
        self.context: AbstractAsyncContextManager[Any] | None = None

    def send(self, stream: int, data: bytes, fin: bool) -> None:
        self.quic.send_stream_data(stream, data, fin)
        self.protocol._transmit_soon()

    def on_end(self, error: Exception) -> None:
        super().on_end(error)
        self.room.fail(error)

    async def close(self) -> None:
        if self.context is not None:
            await self.context.__aexit__(None, None, None)


class Numbered(Protocol):
    """Writes to a stream by its number."""

    async def write(self, stream: int, data: bytes, fin: bool) -> None: ...


class EventWriter:
    """A stream to write to."""

    __slots__ = ("link", "stream")

    def __init__(self, link: Numbered, stream: int) -> None:
        self.link = link
        self.stream = stream

    async def write(self, data: bytes, /) -> None:
        await self.link.write(self.stream, data, False)

    async def finish(self) -> None:
        await self.link.write(self.stream, b"", True)


# RFC 9000 §2.1: the second bit of a stream's number.
UNI = 2

"""aioquic, HTTP/3: its own `H3Connection`, as its example programs use it."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.asyncio.server import serve
from aioquic.h3 import events as h3_events
from aioquic.h3.connection import H3Connection
from aioquic.quic.configuration import QuicConfiguration
from link import Adapter, HttpLink

from adapters.events import configured


class Protocol(QuicConnectionProtocol):
    """HTTP/3 on a connection, both sides of it. The attributes are the library's."""

    http_class: ClassVar[Any] = H3Connection
    kinds: ClassVar[Any] = h3_events

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.http = self.http_class(self._quic)
        self.body = b""
        self.waiting: dict[int, tuple[asyncio.Future[int], list[int]]] = {}

    def quic_event_received(self, event: Any) -> None:
        for received in self.http.handle_event(event):
            stream = received.stream_id
            waiting = self.waiting.get(stream)
            if waiting is None:
                if isinstance(received, self.kinds.HeadersReceived):
                    self.answer(stream, dict(received.headers)[b":path"])
                continue
            if isinstance(received, self.kinds.DataReceived):
                waiting[1][0] += len(received.data)
            if received.stream_ended:
                del self.waiting[stream]
                waiting[0].set_result(waiting[1][0])

    def answer(self, stream: int, path: bytes) -> None:
        size = int(path[1:])
        self.http.send_headers(stream, [(b":status", b"200"), (b"content-length", path[1:])])
        for start in range(0, size, PIECE):
            piece = self.body[: min(PIECE, size - start)]
            self.http.send_data(stream, piece, start + PIECE >= size)
        self.transmit()


class HttpAdapter(Adapter):
    """Requests for `/N`, which is N bytes."""

    connecting: ClassVar[Any] = staticmethod(connect)
    serving: ClassVar[Any] = staticmethod(serve)
    configuration: ClassVar[Any] = QuicConfiguration
    protocol: ClassVar[Any] = Protocol

    async def listen(self, port: int) -> None:
        await self.serving("127.0.0.1", port, configuration=self.configured(False), create_protocol=self.made)

    async def connect(self, port: int) -> HttpLink:
        context = self.connecting(
            "127.0.0.1", port, configuration=self.configured(True), create_protocol=self.made
        )
        return EventLink(context, await context.__aenter__())

    def configured(self, client: bool) -> Any:
        made = configured(self.configuration, self.setup, client)
        made.alpn_protocols = ["h3"]
        return made

    def made(self, *args: Any, **kwargs: Any) -> Any:
        protocol = self.protocol(*args, **kwargs)
        protocol.body = self.service.pattern.twice[:PIECE]
        return protocol


class EventLink(HttpLink):
    """One connection."""

    def __init__(self, context: Any, protocol: Any) -> None:
        self.context, self.protocol = context, protocol

    async def fetch(self, size: int) -> int:
        protocol = self.protocol
        stream = protocol._quic.get_next_available_stream_id()
        done = asyncio.get_running_loop().create_future()
        protocol.waiting[stream] = (done, [0])
        fields = [
            (b":method", b"GET"),
            (b":scheme", b"https"),
            (b":authority", b"localhost"),
            (b":path", b"/%d" % size),
        ]
        protocol.http.send_headers(stream, fields, True)
        protocol.transmit()
        count: int = await done
        return count

    async def close(self) -> None:
        await self.context.__aexit__(None, None, None)


PIECE = 64 << 10

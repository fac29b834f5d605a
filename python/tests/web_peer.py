"""aioquic's WebTransport as a program of its own: a server that echoes, and a client that tries an echo
server.

    web_peer.py serve '{"cert": …, "key": …}'                  prints its port, serves until its input ends
    web_peer.py call '{"roots": …, "port": …, "path": "/x"}'   prints what it saw as JSON

The server accepts `/echo` and answers 404 to everything else. Streams come back on themselves,
unidirectional ones on new ones, datagrams as datagrams.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
from typing import Any

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.asyncio.server import serve
from aioquic.h3.connection import H3Connection
from aioquic.h3.events import DatagramReceived, HeadersReceived, WebTransportStreamDataReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ConnectionTerminated, ProtocolNegotiated, QuicEvent, StreamDataReceived

HOST = "127.0.0.1"
SERVER_NAME = "localhost"
DATAGRAM_FRAME = 65535


class Web(QuicConnectionProtocol):
    """HTTP/3 on a connection, and what came on the session."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.http: Any = None
        self.statuses: list[bytes] = []
        self.streams: dict[int, bytearray] = {}
        self.ended: set[int] = set()
        self.datagrams: list[bytes] = []
        self.terminated: ConnectionTerminated | None = None
        self.changed = asyncio.Event()
        # H3Connection takes what comes back on a stream that it opened itself for HTTP/3.
        self.opened: set[int] = set()

    def quic_event_received(self, event: QuicEvent) -> None:
        if isinstance(event, StreamDataReceived) and event.stream_id in self.opened:
            self.collect(event.stream_id, event.data, event.end_stream)
            self.changed.set()
            return
        if isinstance(event, ProtocolNegotiated):
            self.http = H3Connection(self._quic, enable_webtransport=True)
        elif isinstance(event, ConnectionTerminated):
            self.terminated = event
        if self.http is not None:
            for received in self.http.handle_event(event):
                self.received(received)
        self.transmit()
        self.changed.set()

    def received(self, event: Any) -> None:
        if isinstance(event, WebTransportStreamDataReceived):
            self.collect(event.stream_id, event.data, event.stream_ended)
        elif isinstance(event, DatagramReceived):
            self.datagrams.append(event.data)
        elif isinstance(event, HeadersReceived):
            self.statuses += [value for name, value in event.headers if name == b":status"]

    def collect(self, number: int, data: bytes, ended: bool) -> None:
        self.streams.setdefault(number, bytearray()).extend(data)
        if ended:
            self.ended.add(number)

    async def until(self, condition: Any) -> None:
        while not condition():
            if self.terminated is not None:
                raise ConnectionError(f"the connection ended: {self.terminated}")
            self.changed.clear()
            await self.changed.wait()


class Server(Web):
    def received(self, event: Any) -> None:
        super().received(event)
        if isinstance(event, HeadersReceived):
            headers = dict(event.headers)
            known = headers.get(b":protocol") == b"webtransport" and headers[b":path"] == b"/echo"
            status = b"200" if known else b"404"
            answer = [(b":status", status), (b"sec-webtransport-http3-draft", b"draft02")]
            self.http.send_headers(event.stream_id, answer, end_stream=not known)
        elif isinstance(event, DatagramReceived):
            self.http.send_datagram(event.stream_id, event.data)
        elif isinstance(event, WebTransportStreamDataReceived):
            if event.stream_id % 4 == 0:
                self._quic.send_stream_data(event.stream_id, event.data, event.stream_ended)
            elif event.stream_ended:
                back = self.http.create_webtransport_stream(event.session_id, is_unidirectional=True)
                self._quic.send_stream_data(back, bytes(self.streams[event.stream_id]), True)


class Client(Web):
    async def request(self, port: int, path: str) -> int:
        """The status of the answer."""
        await self.until(lambda: self.http is not None and self.http.received_settings is not None)
        self.session = self._quic.get_next_available_stream_id()
        headers = {
            ":method": "CONNECT",
            ":scheme": "https",
            ":authority": f"{SERVER_NAME}:{port}",
            ":path": path,
            ":protocol": "webtransport",
            "sec-webtransport-http3-draft02": "1",
        }
        self.http.send_headers(
            self.session, [(name.encode(), value.encode()) for name, value in headers.items()]
        )
        self.transmit()
        await self.until(lambda: self.statuses)
        return int(self.statuses[0])

    async def echo(self) -> None:
        data = bytes(range(256)) * 400
        both = self.http.create_webtransport_stream(self.session)
        self.opened.add(both)
        self._quic.send_stream_data(both, data, True)
        one = self.http.create_webtransport_stream(self.session, is_unidirectional=True)
        self._quic.send_stream_data(one, data[:1000], True)
        self.http.send_datagram(self.session, b"datagram")
        self.transmit()
        await self.until(lambda: both in self.ended and self.datagrams and len(self.ended) == 2)
        assert bytes(self.streams[both]) == data
        assert [bytes(come) for number, come in self.streams.items() if number % 4 == 3] == [data[:1000]]
        assert self.datagrams == [b"datagram"]


async def main() -> None:
    role, options = sys.argv[1], json.loads(sys.argv[2])
    configuration = QuicConfiguration(
        alpn_protocols=["h3"], is_client=role == "call", max_datagram_frame_size=DATAGRAM_FRAME
    )
    if role == "serve":
        configuration.load_cert_chain(options["cert"], options["key"])
        server = await serve(HOST, 0, configuration=configuration, create_protocol=Server)
        transport: Any = server._transport
        print(transport.get_extra_info("sockname")[1], flush=True)
        await asyncio.to_thread(sys.stdin.read)
        server.close()
        return
    configuration.server_name = SERVER_NAME
    configuration.verify_mode = ssl.CERT_REQUIRED
    configuration.load_verify_locations(cafile=options["roots"])
    async with asyncio.timeout(60):
        async with connect(
            HOST, options["port"], configuration=configuration, create_protocol=Client
        ) as client:
            # A Client's.
            status = await client.request(options["port"], options["path"])  # type: ignore[attr-defined]
            if status == 200:
                await client.echo()  # type: ignore[attr-defined]  # a Client's
            print(json.dumps({"status": status}), flush=True)


if __name__ == "__main__":
    asyncio.run(main())

"""A program for aioquic: requests and answers over HTTP/3, with bodies both ways."""

import asyncio

from aioquic.asyncio import QuicConnectionProtocol, connect, serve
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ProtocolNegotiated, QuicEvent


class Http(QuicConnectionProtocol):
    http = None

    def quic_event_received(self, event: QuicEvent) -> None:
        if isinstance(event, ProtocolNegotiated):
            self.http = H3Connection(self._quic)
        if self.http is not None:
            for http_event in self.http.handle_event(event):
                self.http_event_received(http_event)
            self.transmit()


class Server(Http):
    def http_event_received(self, event):
        if isinstance(event, HeadersReceived):
            path = dict(event.headers)[b":path"]
            self.http.send_headers(event.stream_id, [(b":status", b"200"), (b"path", path)])
            if event.stream_ended:
                self.http.send_data(event.stream_id, b"", end_stream=True)
        elif isinstance(event, DataReceived):
            self.http.send_data(event.stream_id, event.data.upper(), event.stream_ended)


class Client(Http):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.answers = {}

    async def ask(self, path, body):
        stream_id = self._quic.get_next_available_stream_id()
        answer = self.answers[stream_id] = [None, b"", asyncio.get_running_loop().create_future()]
        method = b"POST" if body else b"GET"
        headers = [
            (b":method", method),
            (b":scheme", b"https"),
            (b":authority", b"localhost"),
            (b":path", path),
        ]
        self.http.send_headers(stream_id, headers, end_stream=not body)
        if body:
            self.http.send_data(stream_id, body, end_stream=True)
        self.transmit()
        await answer[2]
        return answer[0], answer[1]

    def http_event_received(self, event):
        answer = self.answers[event.stream_id]
        if isinstance(event, HeadersReceived):
            answer[0] = event.headers
        elif isinstance(event, DataReceived):
            answer[1] += event.data
        if event.stream_ended and not answer[2].done():
            answer[2].set_result(None)


async def start(cert, key):
    configuration = QuicConfiguration(is_client=False, alpn_protocols=H3_ALPN)
    configuration.load_cert_chain(cert, key)
    return await serve("127.0.0.1", 0, configuration=configuration, create_protocol=Server)


async def run(port, cert):
    configuration = QuicConfiguration(alpn_protocols=H3_ALPN)
    configuration.load_verify_locations(cert)
    async with connect("localhost", port, configuration=configuration, create_protocol=Client) as client:
        bodies = [b"", b"a body", b"large" * 100_000]
        return await asyncio.gather(*(client.ask(b"/%d" % size, body) for size, body in enumerate(bodies)))

"""HTTP/3 of aioquic, or of qh3, which was made of it, as a program of its own: a server that echoes, and a
client that tries an echo server.

    http3_peer.py http-serve '{"cert": …, "key": …}' aioquic      prints its port, serves until its input ends
    http3_peer.py http-call '{"roots": …, "port": …}' aioquic     prints what it saw as JSON

The server sends bodies back as they come, with `x-method` and `x-path` in the headers and `x-length` in the
trailers.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import ssl
import sys
from typing import Any

HOST = "127.0.0.1"
SERVER_NAME = "localhost"
SIZES = (0, 1, 1000, 500_000)


LIBRARY = sys.argv[3] if __name__ == "__main__" else "aioquic"


def of(module: str, name: str) -> Any:
    return getattr(importlib.import_module(f"{LIBRARY}.{module}"), name)


Protocol: Any = of("asyncio.protocol", "QuicConnectionProtocol")
H3Connection = of("h3.connection", "H3Connection")
DataReceived = of("h3.events", "DataReceived")
HeadersReceived = of("h3.events", "HeadersReceived")
ProtocolNegotiated = of("quic.events", "ProtocolNegotiated")


class Http(Protocol):  # type: ignore[misc]  # of either library
    """HTTP/3 on a connection, and what came on its streams."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.http: Any = None
        self.headers: dict[int, list[dict[str, str]]] = {}
        self.bodies: dict[int, bytearray] = {}
        self.ended: dict[int, asyncio.Event] = {}

    def quic_event_received(self, event: Any) -> None:
        if isinstance(event, ProtocolNegotiated):
            self.http = H3Connection(self._quic)
        if self.http is not None:
            for received in self.http.handle_event(event):
                self.received(received)
            self.transmit()

    def received(self, event: Any) -> None:
        if isinstance(event, HeadersReceived):
            fields = {name.decode(): value.decode("latin-1") for name, value in event.headers}
            self.headers.setdefault(event.stream_id, []).append(fields)
        elif isinstance(event, DataReceived):
            self.bodies.setdefault(event.stream_id, bytearray()).extend(event.data)
        if event.stream_ended and event.stream_id in self.ended:
            self.ended[event.stream_id].set()


class Server(Http):
    def received(self, event: Any) -> None:
        super().received(event)
        stream = event.stream_id
        if isinstance(event, HeadersReceived) and len(self.headers[stream]) == 1:
            asked = self.headers[stream][0]
            answer = {":status": "200", "x-method": asked[":method"], "x-path": asked[":path"]}
            self.http.send_headers(stream, encoded(answer))
        elif isinstance(event, DataReceived):
            self.http.send_data(stream, event.data, False)
        if event.stream_ended:
            length = len(self.bodies.get(stream, b""))
            self.http.send_headers(stream, encoded({"x-length": str(length)}), True)


class Client(Http):
    async def ask(self, port: int, body: bytes) -> dict[str, Any]:
        stream = self._quic.get_next_available_stream_id()
        self.ended[stream] = asyncio.Event()
        fields = {
            ":method": "POST",
            ":scheme": "https",
            ":authority": f"{SERVER_NAME}:{port}",
            ":path": "/echo?q=1",
            "x-long": "Ω" * 100,
        }
        self.http.send_headers(stream, encoded(fields))
        self.http.send_data(stream, body, True)
        self.transmit()
        await self.ended[stream].wait()
        assert bytes(self.bodies.get(stream, b"")) == body
        (headers,) = self.headers[stream]
        return {"headers": headers, "length": len(body)}


def encoded(fields: dict[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in fields.items()]


async def main() -> None:
    role, options = sys.argv[1], json.loads(sys.argv[2])
    configuration = of("quic.configuration", "QuicConfiguration")(
        alpn_protocols=["h3"], is_client=role == "http-call"
    )
    if role == "http-serve":
        configuration.load_cert_chain(options["cert"], options["key"])
        server = await of("asyncio.server", "serve")(
            HOST, 0, configuration=configuration, create_protocol=Server
        )
        print(server._transport.get_extra_info("sockname")[1], flush=True)
        await asyncio.to_thread(sys.stdin.read)
        server.close()
        return
    configuration.server_name = SERVER_NAME
    configuration.verify_mode = ssl.CERT_REQUIRED
    configuration.load_verify_locations(cafile=options["roots"])
    async with asyncio.timeout(60):
        async with of("asyncio.client", "connect")(
            HOST, options["port"], configuration=configuration, create_protocol=Client
        ) as client:
            asking = (client.ask(options["port"], bytes(size)) for size in SIZES)
            print(json.dumps({"answers": await asyncio.gather(*asking)}), flush=True)


if __name__ == "__main__":
    asyncio.run(main())

"""What the tests of HTTP/3 share: a small application, a served one with a client, both ends in the raw."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from support import CERT, HOST, KEY, PIN

from wayferry import http3, quic
from wayferry.http3 import _link

__all__ = [
    "CLIENT_TLS",
    "SERVER_TLS",
    "answer",
    "app",
    "body_of",
    "client_of",
    "frame",
    "raw_client",
    "raw_server",
    "served",
]

CLIENT_TLS = quic.ClientTls(pins=[PIN])
SERVER_TLS = quic.ServerTls(CERT, KEY)
RAW_CLIENT_TLS = quic.ClientTls(pins=[PIN], alpn=["h3"])
RAW_SERVER_TLS = quic.ServerTls(CERT, KEY, alpn=["h3"])
frame, number = _link.frame, _link.number

CONTROL = number(_link.CONTROL) + frame(_link.SETTINGS, b"")
"""What a control stream begins with, at least."""
GET = [(b":method", b"GET"), (b":scheme", b"https"), (b":authority", b"a"), (b":path", b"/")]
"""The fields of the least request."""


async def body_of(receive: Any) -> bytes:
    """A request's whole body."""
    pieces = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionError("the client left")
        pieces.append(message["body"])
        if not message["more_body"]:
            return b"".join(pieces)


async def answer(
    send: Any, status: int, body: bytes = b"", headers: list[tuple[bytes, bytes]] | None = None
) -> None:
    """A whole answer."""
    await send({"type": "http.response.start", "status": status, "headers": headers or []})
    await send({"type": "http.response.body", "body": body})


async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Echoes bodies: `/whole` at once, everything else as it comes."""
    if scope["path"] == "/whole":
        await answer(send, 200, await body_of(receive))
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "more_body": True})
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        more = message["more_body"]
        await send({"type": "http.response.body", "body": message["body"], "more_body": more})


@asynccontextmanager
async def served(
    application: Any = app, config: quic.Config | None = None, *, lives: bool = False
) -> AsyncIterator[http3.Server]:
    """An application on loopback, which hears of its lifespan only if it `lives`."""

    async def requests(scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan" and not lives:
            raise NotImplementedError
        await application(scope, receive, send)

    async with http3.serve_asgi(requests, HOST, 0, tls=SERVER_TLS, config=config) as server:
        yield server
        await server.close(drain=0)


@asynccontextmanager
async def client_of(
    server: http3.Server | quic.Server, config: quic.Config | None = None
) -> AsyncIterator[http3.Client]:
    """A client of `server`."""
    async with http3.connect(url_of(server), tls=CLIENT_TLS, config=config) as client:
        yield client


def url_of(server: http3.Server | quic.Server) -> str:
    return f"https://{HOST}:{server.local_addr[1]}"


@asynccontextmanager
async def raw_client(
    server: http3.Server, control: bytes | None = CONTROL, config: quic.Config | None = None
) -> AsyncIterator[quic.Connection]:
    """A QUIC connection to an HTTP/3 server, which says what the test has it say."""
    async with quic.connect(*server.local_addr, tls=RAW_CLIENT_TLS, config=config) as connection:
        stream = await connection.open_uni()
        if control is not None:
            await stream.write(control)
        yield connection
        await connection.close(drain=0)


@asynccontextmanager
async def raw_server(
    control: bytes | None = CONTROL, config: quic.Config | None = None
) -> AsyncIterator[tuple[http3.Client, quic.Connection]]:
    """An HTTP/3 client, and the QUIC connection of a server that says what the test has it say."""
    async with quic.serve(HOST, 0, tls=RAW_SERVER_TLS, config=config) as server:
        async with client_of(server) as client:
            connection = await anext(server)
            stream = await connection.open_uni()
            if control is not None:
                await stream.write(control)
            yield client, connection
            await client.close()
        await server.close(drain=0)

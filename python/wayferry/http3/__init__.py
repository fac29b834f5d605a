"""HTTP/3 (RFC 9114) for asyncio, on `wayferry.quic`.

    response = await http3.get("https://example.org/")
    print(response.status_code, response.text)

    async with http3.connect("https://example.org") as client:
        async with client.stream("GET", "/large") as exchange:
            async for piece in exchange:
                ...

A connection is for one server, and requests on it run side by side. Every coroutine is cancel-safe unless it
says otherwise, and a request that is cancelled is given up on the server, too.
"""

from wayferry.http3.asgi import App, ServeAsgi, Server, serve_asgi
from wayferry.http3.client import Client, Connect, Content, connect, get, request
from wayferry.http3.errors import (
    ErrorCode,
    GoingAway,
    ProtocolError,
    RequestReset,
    RequestStopped,
    StatusError,
)
from wayferry.http3.exchange import Exchange, Opening
from wayferry.http3.headers import HeaderInput, Headers
from wayferry.http3.response import Head, Response

__all__ = [
    "App",
    "Client",
    "Connect",
    "Content",
    "ErrorCode",
    "Exchange",
    "GoingAway",
    "Head",
    "HeaderInput",
    "Headers",
    "Opening",
    "ProtocolError",
    "RequestReset",
    "RequestStopped",
    "Response",
    "ServeAsgi",
    "Server",
    "StatusError",
    "connect",
    "get",
    "request",
    "serve_asgi",
]

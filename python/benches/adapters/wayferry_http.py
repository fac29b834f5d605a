"""Ours, HTTP/3: its client, and an ASGI application."""

from __future__ import annotations

from typing import Any

from link import HttpLink

from adapters.wayferry import RawAdapter
from wayferry import http3, quic


class HttpAdapter(RawAdapter):
    """Requests for `/N`, which is N bytes."""

    async def listen(self, port: int) -> None:
        tls = quic.ServerTls(str(self.setup.cert), str(self.setup.key))
        await http3.serve_asgi(self.app, "127.0.0.1", port, tls=tls, config=self.config)

    async def app(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        size = int(scope["path"][1:])
        length = (b"content-length", b"%d" % size)
        await send({"type": "http.response.start", "status": 200, "headers": [length]})
        for start in range(0, size, PIECE):
            body = self.service.pattern.twice[: min(PIECE, size - start)]
            await send({"type": "http.response.body", "body": body, "more_body": start + PIECE < size})

    async def connect(self, port: int) -> HttpLink:
        url = f"https://127.0.0.1:{port}"
        return WayferryLink(await http3.connect(url, tls=self.trust([]), config=self.config))


class WayferryLink(HttpLink):
    """One connection."""

    def __init__(self, client: http3.Client) -> None:
        self.client = client

    async def fetch(self, size: int) -> int:
        count = 0
        async with self.client.stream("GET", f"/{size}") as exchange:
            async for piece in exchange:
                count += len(piece)
        return count

    async def close(self) -> None:
        await self.client.close()


PIECE = 64 << 10

"""A chat room for browsers: python chat.py, then open the address that it prints.

The page comes over HTTP, the conversation over WebTransport. The certificate is made for this run; the page
is told its fingerprint, so no authority is needed.
"""

import asyncio
import contextlib
import http.server
import json
import pathlib
import threading
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

from wayferry import quic

PAGE = pathlib.Path(__file__).with_name("chat.html").read_bytes()
HOST = "127.0.0.1"
LINE = 1000  # bytes that a line may have
OUTBOX = 100  # lines that wait for a slow reader; more are not sent to that one


class Room:
    """Who is there, and what each of them is still to be told."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.outboxes: set[asyncio.Queue[bytes]] = set()

    async def join(self, request: quic.webtransport.Request) -> None:
        """One visitor, from the request until the page is closed."""
        if request.origin not in (None, self.origin):
            return request.reject(403)  # a page of another site
        async with await request.accept() as session:
            stream = await session.accept_bi()
            outbox: asyncio.Queue[bytes] = asyncio.Queue(OUTBOX)
            telling = asyncio.create_task(tell(stream.send, outbox))
            self.outboxes.add(outbox)
            try:
                async for line in lines(stream.receive):
                    self.say(line)
            except quic.QuicError:
                pass  # the visitor is gone
            finally:
                self.outboxes.discard(outbox)
                telling.cancel()

    def say(self, line: bytes) -> None:
        for outbox in self.outboxes:
            with contextlib.suppress(asyncio.QueueFull):
                outbox.put_nowait(line)


async def lines(stream: quic.ReceiveStream) -> AsyncIterator[bytes]:
    rest = b""
    async for chunk in stream:
        *complete, rest = (rest + chunk).split(b"\n")
        for line in complete:
            yield line[:LINE]
        if len(rest) > LINE:
            return


async def tell(stream: quic.SendStream, outbox: asyncio.Queue[bytes]) -> None:
    with contextlib.suppress(quic.QuicError):
        while True:
            await stream.write(await outbox.get() + b"\n")


def page_server(session: dict[str, str]) -> http.server.ThreadingHTTPServer:
    """Serves the page, and where to go from it."""
    contents = {"/": ("text/html", PAGE), "/session": ("application/json", json.dumps(session).encode())}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            kind, body = contents.get(urlsplit(self.path).path, ("", b""))
            self.send_response(200 if kind else 404)
            self.send_header("Content-Type", kind or "text/plain")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    return http.server.ThreadingHTTPServer((HOST, 0), Handler)


async def main() -> None:
    # Browsers take a certificate by its fingerprint only if its key is ECDSA, and for at most 14 days.
    cert, key = quic.self_signed([HOST], days=10)
    async with quic.serve(HOST, 0, tls=quic.ServerTls(cert, key, alpn=["h3"])) as server:
        url = f"https://{HOST}:{server.local_addr[1]}/chat"
        with page_server({"url": url, "hash": quic.fingerprint(cert)}) as pages:
            origin = f"http://{HOST}:{pages.server_address[1]}"
            server.route("/chat", Room(origin).join)
            threading.Thread(target=pages.serve_forever, daemon=True).start()
            print(f"{origin}/", flush=True)
            try:
                async for connection in server:  # raw QUIC is not spoken here
                    await connection.close(1, "WebTransport only")
            finally:
                pages.shutdown()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main())

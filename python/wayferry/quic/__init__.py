"""QUIC (RFC 9000) and WebTransport for asyncio.

    async with quic.connect("host", 4433, tls=quic.ClientTls(pins=[fingerprint])) as connection:
        stream = await connection.open_bi()
        await stream.write(b"hello")
        await stream.finish()
        print(await stream.read_to_end(1 << 20))

    async with quic.serve("::", 4433, tls=quic.ServerTls("cert.pem", "key.pem")) as server:
        async for connection in server:
            ...

The protocol runs on a thread of its own: acknowledgements and timers go on while the event loop is busy.
Objects belong to the loop that made them, in whose thread everything is called; from another thread, use
`asyncio.run_coroutine_threadsafe` or `loop.call_soon_threadsafe`.

Every coroutine is cancel-safe: a cancelled write has sent nothing, a cancelled read has lost nothing. After
256 operations that had nothing to wait for, the next one lets the rest of the program run first. What a
process opened does not survive `os.fork()` in the child: every use there raises RuntimeError.
"""

from wayferry.quic import webtransport
from wayferry.quic._accepting import Arrivals
from wayferry.quic.client import Connect, connect
from wayferry.quic.config import Config, Congestion
from wayferry.quic.connection import Connection
from wayferry.quic.errors import (
    By,
    ConnectionClosed,
    DatagramsUnsupported,
    EarlyDataRejected,
    QuicError,
    StreamReset,
    StreamStopped,
    TlsError,
    TooLarge,
    WebTransportRejected,
)
from wayferry.quic.receive import ReceiveStream, Unordered
from wayferry.quic.send import SendStream
from wayferry.quic.server import Handler, Retry, Serve, Server, serve
from wayferry.quic.stats import Path, Stats
from wayferry.quic.streams import BiStream
from wayferry.quic.tls import ClientTls, Pem, ServerTls, TicketStore, fingerprint, self_signed

__all__ = [
    "Arrivals",
    "BiStream",
    "By",
    "ClientTls",
    "Config",
    "Congestion",
    "Connect",
    "Connection",
    "ConnectionClosed",
    "DatagramsUnsupported",
    "EarlyDataRejected",
    "Handler",
    "Path",
    "Pem",
    "QuicError",
    "ReceiveStream",
    "Retry",
    "SendStream",
    "Serve",
    "Server",
    "ServerTls",
    "Stats",
    "StreamReset",
    "StreamStopped",
    "TicketStore",
    "TlsError",
    "TooLarge",
    "Unordered",
    "WebTransportRejected",
    "connect",
    "fingerprint",
    "self_signed",
    "serve",
    "webtransport",
]

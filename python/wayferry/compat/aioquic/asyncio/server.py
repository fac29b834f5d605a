"""`serve()`."""

import asyncio
from collections.abc import Callable
from typing import Any

from wayferry import quic

from ..quic.configuration import QuicConfiguration
from ..quic.connection import QuicConnection
from ..quic.packet import QuicErrorCode
from ..tls import SessionTicketFetcher, SessionTicketHandler
from .protocol import Addresses, QuicConnectionProtocol, QuicStreamHandler, attach

__all__ = ["QuicServer", "serve"]

# Connections at the same time; more wait in the listener, which refuses what it has no room for.
CONNECTIONS = 10_000


class QuicServer:
    """A server; `serve()` makes it. Protocols are made when a handshake is over, not when it begins."""

    def __init__(
        self,
        server: quic.Server,
        configuration: QuicConfiguration,
        create_protocol: Callable[..., Any],
        stream_handler: QuicStreamHandler | None,
    ) -> None:
        self._server = server
        self._configuration = configuration
        self._create_protocol = create_protocol
        self._stream_handler = stream_handler
        self._transport = Addresses(self.close, {"sockname": server.local_addr}.get)
        self._room = asyncio.Semaphore(CONNECTIONS)
        self._protocols: dict[QuicConnection, Any] = {}
        self._closing: asyncio.Task[None] | None = None
        self._accepting = asyncio.ensure_future(self._accept())
        _running.add(self)
        self._accepting.add_done_callback(lambda _: _running.discard(self))

    def close(self) -> None:
        """Closes all connections and stops to listen. It is done when `wait_closed()` says so."""
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close())

    async def wait_closed(self) -> None:
        """Waits until the server and its connections are closed. Cancel-safe: it only waits."""
        await asyncio.wait([self._accepting])
        if self._closing is not None:
            await asyncio.shield(self._closing)

    async def _close(self) -> None:
        protocols = list(self._protocols.values())
        for protocol in protocols:
            protocol.close()
        for protocol in protocols:
            await protocol.wait_closed()
        await self._server.close()

    async def _accept(self) -> None:
        try:
            async for connection in self._server:
                await self._room.acquire()
                try:
                    self._begin(connection)
                except Exception as error:
                    self._room.release()
                    context = {"message": "create_protocol failed", "exception": error}
                    asyncio.get_running_loop().call_exception_handler(context)
                    await connection.close(QuicErrorCode.INTERNAL_ERROR, drain=0)
        except OSError as error:
            context = {"message": "the server ends, as no more clients can come", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)
            self.close()
        except asyncio.CancelledError:
            # The program ends, and like most of aioquic's it does not close its server.
            await self._server.close(drain=0)
            raise

    def _begin(self, accepted: quic.Connection) -> None:
        connection = QuicConnection(configuration=self._configuration)
        protocol = self._create_protocol(connection, stream_handler=self._stream_handler)
        self._protocols[connection] = protocol
        ready: asyncio.Future[quic.Connection] = asyncio.get_running_loop().create_future()
        ready.set_result(accepted)
        attach(protocol, connection, ready).add_done_callback(lambda _: self._forget(connection))

    def _forget(self, connection: QuicConnection) -> None:
        self._protocols.pop(connection, None)
        self._room.release()


async def serve(
    host: str,
    port: int,
    *,
    configuration: QuicConfiguration,
    create_protocol: Callable[..., Any] = QuicConnectionProtocol,
    session_ticket_fetcher: SessionTicketFetcher | None = None,
    session_ticket_handler: SessionTicketHandler | None = None,
    retry: bool = False,
    stream_handler: QuicStreamHandler | None = None,
) -> QuicServer:
    """Listens.

    Args:
        configuration: with a certificate (`load_cert_chain`) and `is_client=False`.
        create_protocol: called for each connection with the `_quic` object and `stream_handler`.
        session_ticket_fetcher, session_ticket_handler: not called. Sessions are resumed, and the tickets for
            it kept, by TLS itself.
        retry: True: every client must show first that it gets what is sent to its address (RFC 9000 §8.1.2);
            False: only while many handshakes are open.
        stream_handler: called with a reader and a writer for each stream of a peer.

    Raises:
        OSError: the address is not ours, or the port is taken.
        ValueError, NotImplementedError: what is asked for is not here; the text names the field.
    """
    server = await quic.serve(
        host,
        port,
        tls=configuration._server_tls(),
        config=configuration._transport(),
        retry="always" if retry else "auto",
    )
    return QuicServer(server, configuration, create_protocol, stream_handler)


# Programs of aioquic's call `serve()` and keep nothing of it; event loops hold their tasks only weakly.
_running: set[QuicServer] = set()

"""`connect()`."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial

from wayferry import quic

from ..quic.configuration import QuicConfiguration
from ..quic.connection import QuicConnection
from ..tls import SessionTicket, SessionTicketHandler
from .protocol import QuicConnectionProtocol, QuicStreamHandler, attach

__all__ = ["connect"]


@asynccontextmanager
async def connect(
    host: str,
    port: int,
    *,
    configuration: QuicConfiguration | None = None,
    create_protocol: Callable[..., QuicConnectionProtocol] = QuicConnectionProtocol,
    session_ticket_handler: SessionTicketHandler | None = None,
    stream_handler: QuicStreamHandler | None = None,
    token_handler: None = None,
    wait_connected: bool = True,
    local_port: int = 0,
) -> AsyncGenerator[QuicConnectionProtocol, None]:
    """Connects, gives the protocol, and closes the connection at the end.

    Args:
        configuration: how; by default Mozilla's certificates are trusted.
        create_protocol: called with the `_quic` object and `stream_handler`.
        session_ticket_handler: called once, as soon as the server has given something to resume the session
            with on this connection.
        stream_handler: called with a reader and a writer for each stream of the peer.
        wait_connected: False gives the protocol at once; what is written waits for the handshake.
        local_port: the UDP port to use here, 0: any.

    Raises:
        ConnectionError: the handshake failed.
        OSError: there is no such host, or the port is taken.
        OverflowError: `local_port` is none.
        ValueError, NotImplementedError: what is asked for is not here; the text names the field.
    """
    if token_handler is not None:
        raise NotImplementedError("token_handler: tokens are kept by QUIC; leave it None")
    if not 0 <= local_port <= 65535:
        raise OverflowError(f"local_port: {local_port} is out of range, ports are 0 to 65535")
    configuration = configuration or QuicConfiguration(is_client=True)
    tls = configuration._client_tls()
    tickets = configuration.session_ticket._store if configuration.session_ticket is not None else None
    if tickets is None and session_ticket_handler is not None:
        tickets = quic.TicketStore()
    connecting = quic.connect(
        host,
        port,
        tls=tls,
        config=configuration._transport(),
        tickets=tickets,
        local_addr=("::", local_port) if local_port else None,
    )
    connection = QuicConnection(configuration=configuration)
    protocol = create_protocol(connection, stream_handler=stream_handler)
    if tickets is not None and session_ticket_handler is not None:
        connection.on_ticket = partial(tell, protocol, session_ticket_handler, SessionTicket(tickets))
    attach(protocol, connection, connecting)
    try:
        if wait_connected:
            await protocol.wait_connected()
        yield protocol
    finally:
        protocol.close()
        await protocol.wait_closed()


def tell(protocol: QuicConnectionProtocol, handler: SessionTicketHandler, ticket: SessionTicket) -> None:
    """Tells a program of a ticket that has come."""
    try:
        handler(ticket)
    except Exception as error:
        protocol.report("session_ticket_handler failed", error)

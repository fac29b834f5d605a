"""`connect()`."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

from wayferry import quic

from ..quic.configuration import QuicConfiguration
from ..quic.connection import QuicConnection
from .protocol import QuicConnectionProtocol, QuicStreamHandler, attach

__all__ = ["connect"]


@asynccontextmanager
async def connect(
    host: str,
    port: int,
    *,
    configuration: QuicConfiguration | None = None,
    create_protocol: Callable[..., Any] = QuicConnectionProtocol,
    session_ticket_handler: None = None,
    stream_handler: QuicStreamHandler | None = None,
    token_handler: None = None,
    wait_connected: bool = True,
    local_port: int = 0,
) -> AsyncGenerator[Any, None]:
    """Connects, gives the protocol, and closes the connection at the end.

    Args:
        configuration: how; by default Mozilla's certificates are trusted.
        create_protocol: called with the `_quic` object and `stream_handler`.
        stream_handler: called with a reader and a writer for each stream of the peer.
        wait_connected: False gives the protocol at once; what is written waits for the handshake.
        local_port: the UDP port to use here, 0: any.

    Raises:
        ConnectionError: the handshake failed.
        OSError: there is no such host, or the port is taken.
        ValueError, NotImplementedError: what is asked for is not here; the text names the field.
    """
    if session_ticket_handler is not None:
        raise NotImplementedError("session_ticket_handler: tickets are kept by wayferry.quic.TicketStore")
    if token_handler is not None:
        raise NotImplementedError("token_handler: tokens are kept by QUIC")
    configuration = configuration or QuicConfiguration(is_client=True)
    connecting = quic.connect(
        host,
        port,
        tls=configuration._client_tls(),
        config=configuration._transport(),
        local_addr=("::", local_port) if local_port else None,
    )
    connection = QuicConnection(configuration=configuration)
    protocol = create_protocol(connection, stream_handler=stream_handler)
    attach(protocol, connection, connecting)
    try:
        if wait_connected:
            await protocol.wait_connected()
        yield protocol
    finally:
        protocol.close()
        await protocol.wait_closed()

"""Connecting."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from wayferry.quic import _native, _reactor
from wayferry.quic._coming import Coming
from wayferry.quic._resolve import check_port, resolve
from wayferry.quic.config import Config
from wayferry.quic.connection import Connection, established
from wayferry.quic.tls import ClientTls, TicketStore

if TYPE_CHECKING:
    pass

__all__ = ["Connect", "connect"]


class Connect(Coming[Connection]):
    """A connection to come: `await` it, or use it in `async with`, which closes the connection at its end.

    Left by an exception, `async with` closes at once (`drain=0`); otherwise as `Connection.close()` does.

    Cancel-safe: cancelling the wait gives the connection up.
    """

    __slots__ = ()


def connect(
    host: str,
    port: int,
    *,
    tls: ClientTls,
    config: Config | None = None,
    early_data: bool = False,
    tickets: TicketStore | None = None,
    local_addr: tuple[str, int] | None = None,
    timeout: float | None = None,
) -> Connect:
    """Connects to a QUIC server: `async with connect(…) as connection`, or `connection = await connect(…)`.

    Of several addresses of `host` the first that answers is taken; the next is tried after a quarter of a
    second.

    Args:
        host: a name or an IP address.
        port: 1 to 65535.
        tls: whom to trust, and the application protocols to offer.
        config: the settings of the connection.
        early_data: whether to begin before the handshake is over (0-RTT), if `tickets` has a ticket of this
            server. An attacker can replay what is sent then. See `Connection.early_data_accepted`.
        tickets: where session tickets are kept, for resumption and early data.
        local_addr: the IP address and port (0: any) to send from, on a UDP socket of its own. None: up to 64
            connections of the process share one.
        timeout: seconds for all of it, the name's resolution included. `Config.handshake_timeout` bounds the
            handshake.

    Raises:
        ValueError: an argument is out of its range, or `early_data` without `tickets`.
        TlsError: the handshake failed in TLS.
        ConnectionClosed: the server refused, or did not answer in time (`by` is `timeout`).
        TimeoutError: `timeout` is over.
        OSError: the name is not known, or the local address cannot be had.
        RuntimeError: no event loop of asyncio's runs.
    """
    check_port(port)
    if early_data and tickets is None:
        raise ValueError("early_data needs tickets: a TicketStore that was used before")
    native_tls, native_config = tls._for_native(tickets), (config or Config())._for_native()

    async def start() -> Connection:
        reactor = _reactor.current()
        async with asyncio.timeout(timeout):
            addresses = await resolve(host, port)
            connecting = _native.connect(
                reactor.native, addresses, host, local_addr, native_tls, native_config, early_data
            )
            return await established(reactor, connecting)

    return Connect(start)

"""Connecting."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from typing import TYPE_CHECKING, Any

from wayferry.quic import _native, _reactor
from wayferry.quic._resolve import check_port, resolve
from wayferry.quic.config import Config
from wayferry.quic.connection import Connection, established
from wayferry.quic.tls import ClientTls, TicketStore

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["Connect", "connect"]


class Connect:
    """A connection to come: `await` it, or use it in `async with`, which closes the connection at its end.

    Left by an exception, `async with` closes at once (`drain=0`); otherwise as `Connection.close()` does.

    Cancel-safe: cancelling the wait gives the connection up.
    """

    __slots__ = ("_connection", "_start")

    def __init__(self, start: Callable[[], Coroutine[Any, Any, Connection]]) -> None:
        self._start = start
        self._connection: Connection | None = None

    def __await__(self) -> Generator[Any, None, Connection]:
        return self._start().__await__()

    async def __aenter__(self) -> Connection:
        self._connection = await self._start()
        return self._connection

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.__aexit__(kind, error, trace)


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
        local_addr: the IP address and port (0: any) to send from.
        timeout: seconds for all of it, the name's resolution included. `Config.handshake_timeout` bounds the
            handshake.

    Raises:
        ValueError: an argument is out of its range, or `early_data` without `tickets`.
        TlsError: the handshake failed in TLS.
        ConnectionClosed: the server refused, or did not answer in time (`by` is `timeout`).
        TimeoutError: `timeout` is over.
        OSError: the name is not known, or the local address cannot be had.
    """
    check_port(port)
    if early_data and tickets is None:
        raise ValueError("early_data needs tickets: a TicketStore that was used before")
    native_tls, native_config = tls._for_native(tickets), (config or Config())._for_native()

    async def start() -> Connection:
        async with asyncio.timeout(timeout):
            addresses = await resolve(host, port)
            reactor = _reactor.current()
            connecting = _native.connect(
                reactor.native, addresses, host, local_addr, native_tls, native_config, early_data
            )
            return await established(reactor, connecting)

    return Connect(start)

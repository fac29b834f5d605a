"""Names to addresses."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Iterable
from itertools import chain, zip_longest


async def resolve(host: str, port: int) -> list[tuple[str, int]]:
    """The addresses of `host`, both families in turn (RFC 8305 §4), the system's best first; at least one.

    Raises:
        OSError: the name is not known, or the system cannot tell.
    """
    if is_literal(host):
        return [(host, port)]
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_DGRAM)
    # An address with a scope cannot be written as host and port.
    addresses = dict.fromkeys((str(info[4][0]), port) for info in found if is_literal(str(info[4][0])))
    if not addresses:
        raise OSError(f"no address found for {host!r}")
    return _in_turn(addresses)[:ADDRESSES]


def is_literal(host: str) -> bool:
    """Whether `host` is an IP address and no name."""
    try:
        return "%" not in host and bool(ipaddress.ip_address(host))
    except ValueError:
        return False


def check_port(port: int, *, listens: bool = False) -> None:
    """Refuses what is no port to connect to, or to listen on."""
    if not hasattr(port, "__index__"):
        raise TypeError(f"port: a whole number is required, not `{type(port).__name__}`")
    if port == 0 and not listens:
        raise ValueError(f"port: no server is at 0, but at 1 to {PORT_MAX}; `Server.local_addr` tells")
    if not 0 <= port <= PORT_MAX:
        raise ValueError(f"port: {port} is out of range, ports are 1 to {PORT_MAX}")


def _in_turn(addresses: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    """The families by turns, beginning with that of the first."""
    families: dict[bool, list[tuple[str, int]]] = {}
    for address in addresses:
        families.setdefault(":" in address[0], []).append(address)
    return [address for address in chain(*zip_longest(*families.values())) if address is not None]


ADDRESSES = 8
"""Addresses of one name that are tried."""
PORT_MAX = 65535

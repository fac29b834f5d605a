"""Names of `aioquic.tls` that programs use: what a session is resumed with, and those of cipher suites."""

from collections.abc import Callable
from enum import IntEnum
from typing import Never

from wayferry import quic

__all__ = ["CipherSuite", "SessionTicket", "SessionTicketFetcher", "SessionTicketHandler"]


class CipherSuite(IntEnum):
    """RFC 8446 §B.4. Which is taken is rustls's choice."""

    AES_128_GCM_SHA256 = 0x1301
    AES_256_GCM_SHA384 = 0x1302
    CHACHA20_POLY1305_SHA256 = 0x1303
    EMPTY_RENEGOTIATION_INFO_SCSV = 0x00FF


class SessionTicket:
    """A handle on what servers gave for coming back, for `QuicConfiguration.session_ticket`.

    What it stands for stays in the memory of this process, so it cannot be pickled. `connect()` makes it.
    """

    def __init__(self, store: quic.TicketStore) -> None:
        self._store = store

    @property
    def is_valid(self) -> bool:
        """Whether there is a ticket left."""
        return len(self._store) > 0

    def __reduce__(self) -> Never:
        raise TypeError(
            "a session ticket stays in memory: on a disk it would resume the session for its finder"
        )


SessionTicketFetcher = Callable[[bytes], SessionTicket | None]
SessionTicketHandler = Callable[[SessionTicket], None]

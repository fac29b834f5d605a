"""Names of `aioquic.tls` that programs use in annotations; nothing of this layer makes or takes one."""

from collections.abc import Callable
from typing import Never

__all__ = ["SessionTicket", "SessionTicketFetcher", "SessionTicketHandler"]


class SessionTicket:
    """Refused: tickets never leave memory, see `wayferry.quic.TicketStore`."""

    def __init__(self, *_args: object, **_options: object) -> Never:
        raise NotImplementedError("session tickets are not objects here, see wayferry.quic.TicketStore")


SessionTicketFetcher = Callable[[bytes], SessionTicket | None]
SessionTicketHandler = Callable[[SessionTicket], None]

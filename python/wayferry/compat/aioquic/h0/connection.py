"""aioquic's own `H0Connection`, told of this layer's events."""

from typing import Any

from .._bridge import needs_aioquic, translated

with needs_aioquic(__name__):
    from aioquic.h0 import connection as theirs
    from aioquic.h0.connection import H0_ALPN

__all__ = ["H0_ALPN", "H0Connection"]


class H0Connection(theirs.H0Connection):
    """HTTP/0.9 on a `QuicConnection` of this layer."""

    def __init__(self, quic: Any) -> None:
        super().__init__(quic)

    def handle_event(self, event: Any) -> Any:
        return super().handle_event(translated(event))

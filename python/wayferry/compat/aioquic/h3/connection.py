"""aioquic's own `H3Connection`, told of this layer's events. The other names are aioquic's."""

from typing import Any

from .._bridge import needs_aioquic, translated

with needs_aioquic(__name__):
    from aioquic.h3 import connection as theirs
    from aioquic.h3.connection import H3_ALPN, ErrorCode, Setting

__all__ = ["H3_ALPN", "ErrorCode", "H3Connection", "Setting"]


class H3Connection(theirs.H3Connection):
    """HTTP/3 and WebTransport on a `QuicConnection` of this layer."""

    def __init__(self, quic: Any, enable_webtransport: bool = False) -> None:
        quic.carries_h3 = True
        super().__init__(quic, enable_webtransport)

    def handle_event(self, event: Any) -> Any:
        return super().handle_event(translated(event))


def __getattr__(name: str) -> Any:
    return getattr(theirs, name)

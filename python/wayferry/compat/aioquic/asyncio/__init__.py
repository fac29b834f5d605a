"""The names of `aioquic.asyncio`."""

from .client import connect
from .protocol import QuicConnectionProtocol
from .server import QuicServer, serve

__all__ = ["QuicConnectionProtocol", "QuicServer", "connect", "serve"]

"""`aioquic`'s asyncio interface on Wayferry's QUIC: change the import, keep the program.

    from aioquic.asyncio import connect                     # before
    from wayferry.compat.aioquic.asyncio import connect     # after

What there is: `asyncio.connect`, `asyncio.serve`, `QuicConnectionProtocol` with its stream readers and
writers, the events of raw QUIC and of datagrams, `QuicConfiguration`, and behind `protocol._quic` the methods
that programs call there. What has no counterpart is refused when it is asked for, by an error that names it.
`h3` and `h0` are aioquic's own HTTP/3 and HTTP/0.9 on this layer's connections, where aioquic is installed,
too (`pip install wayferry[h3]`).

What there is not: the sans-IO connection (bytes in, bytes out, timers), sockets of the program's own, and
session tickets that can be written down.

The one invariant: a program sees the events of one connection one at a time, those of one stream in their
order, `HandshakeCompleted` before all streams, and `ConnectionTerminated` exactly once, as the last.
"""

from wayferry.quic import _native

__version__ = _native.__version__

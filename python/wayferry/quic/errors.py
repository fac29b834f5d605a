"""What can go wrong on a QUIC connection, one class per kind.

Every error of this package that a peer or the network can cause is a `QuicError`. Wrong arguments are
`ValueError` or `TypeError`, and the operating system's refusals (no such address, port in use) are `OSError`,
as everywhere in Python. Texts that came from the peer have lost their control characters.
"""

from typing import Literal

__all__ = [
    "By",
    "ConnectionClosed",
    "DatagramsUnsupported",
    "EarlyDataRejected",
    "QuicError",
    "StreamReset",
    "StreamStopped",
    "TlsError",
    "TooLarge",
    "WebTransportRejected",
]

By = Literal["local", "peer", "transport", "timeout", "reset", "refused"]
"""Who ended a connection, see `ConnectionClosed.by`."""


class QuicError(Exception):
    """Anything that the peer, the network or the protocol made fail."""


class ConnectionClosed(QuicError):
    """The connection is over; every operation on it and on its streams raises this.

    Args:
        code: the error code. For `by` local and peer it is the application's (0 to 2⁶² − 1), for transport it
            is one of RFC 9000 §20.1; otherwise 0.
        reason: the text that came with the code, without control characters.
        by: who ended it. `local`: this side's `close()`. `peer`: the application on the other side.
            `transport`: either side's QUIC, for an error in the protocol. `timeout`: nothing was heard for
            the idle timeout, or the handshake took too long. `reset`: the peer does not know the connection
            any more (stateless reset). `refused`: the server did not take the connection.
    """

    code: int
    reason: str
    by: By

    def __init__(self, code: int, reason: str = "", by: By = "local") -> None:
        super().__init__(code, reason, by)
        self.code = code
        self.reason = reason
        self.by = by

    def __str__(self) -> str:
        return f"closed by {self.by} with code {self.code}" + (f": {self.reason}" if self.reason else "")


class StreamReset(QuicError):
    """The peer gave up sending this stream (RESET_STREAM, RFC 9000 §19.4).

    Args:
        code: the application's error code, 0 to 2⁶² − 1.
    """

    code: int

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code

    def __str__(self) -> str:
        return f"the peer reset the stream with code {self.code}"


class StreamStopped(QuicError):
    """The peer will read no more of this stream (STOP_SENDING, RFC 9000 §19.5).

    Args:
        code: the application's error code, 0 to 2⁶² − 1.
    """

    code: int

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code

    def __str__(self) -> str:
        return f"the peer stopped the stream with code {self.code}"


class TlsError(QuicError):
    """The handshake failed in TLS: a certificate was not trusted, no protocol in common, and the like.

    Args:
        alert: the TLS alert (RFC 8446 §6), None when there was none.
        text: what went wrong, for people.
    """

    alert: int | None
    text: str

    def __init__(self, alert: int | None, text: str) -> None:
        super().__init__(alert, text)
        self.alert = alert
        self.text = text

    def __str__(self) -> str:
        return self.text if self.alert is None else f"{self.text} (TLS alert {self.alert})"


class TooLarge(QuicError):
    """More than a limit allows: a datagram that no packet can hold, a stream beyond `read_to_end`'s limit.

    Args:
        size: the bytes that there were, as far as known.
        max: the bytes that would have been allowed.
    """

    size: int
    max: int

    def __init__(self, size: int, max: int) -> None:
        super().__init__(size, max)
        self.size = size
        self.max = max

    def __str__(self) -> str:
        return f"{self.size} bytes where at most {self.max} are allowed"


class EarlyDataRejected(QuicError):
    """The server did not take the 0-RTT data; what was sent on this stream is lost (RFC 9001 §4.6.2)."""

    def __str__(self) -> str:
        return "the server rejected the early data"


class DatagramsUnsupported(QuicError):
    """Datagrams are switched off here, or the peer does not take them (RFC 9221 §3)."""

    def __str__(self) -> str:
        return "datagrams are not supported on this connection"


class WebTransportRejected(QuicError):
    """The server answered the request for a WebTransport session with something else than success.

    Args:
        status: the HTTP status of the answer.
    """

    status: int

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status

    def __str__(self) -> str:
        return f"the server rejected the session with HTTP status {self.status}"

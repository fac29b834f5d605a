"""What can go wrong in HTTP/3, beside what goes wrong on a QUIC connection (`wayferry.quic.errors`).

Every error that a peer or the network can cause is a `QuicError`. Codes have names: `ErrorCode`.
"""

from __future__ import annotations

from enum import IntEnum

from wayferry.quic.errors import QuicError, StreamReset, StreamStopped

__all__ = [
    "ErrorCode",
    "GoingAway",
    "ProtocolError",
    "RequestReset",
    "RequestStopped",
    "StatusError",
    "code_name",
]


class ErrorCode(IntEnum):
    """Why a stream or a connection of HTTP/3 was given up (RFC 9114 §8.1, RFC 9204 §6; the last is
    WebTransport's, draft-ietf-webtrans-http3 §4.5)."""

    NO_ERROR = 0x100
    GENERAL_PROTOCOL_ERROR = 0x101
    INTERNAL_ERROR = 0x102
    STREAM_CREATION_ERROR = 0x103
    CLOSED_CRITICAL_STREAM = 0x104
    FRAME_UNEXPECTED = 0x105
    FRAME_ERROR = 0x106
    EXCESSIVE_LOAD = 0x107
    ID_ERROR = 0x108
    SETTINGS_ERROR = 0x109
    MISSING_SETTINGS = 0x10A
    REQUEST_REJECTED = 0x10B
    REQUEST_CANCELLED = 0x10C
    REQUEST_INCOMPLETE = 0x10D
    MESSAGE_ERROR = 0x10E
    CONNECT_ERROR = 0x10F
    VERSION_FALLBACK = 0x110
    QPACK_DECOMPRESSION_FAILED = 0x200
    QPACK_ENCODER_STREAM_ERROR = 0x201
    QPACK_DECODER_STREAM_ERROR = 0x202
    BUFFERED_STREAM_REJECTED = 0x3994BD84


class ProtocolError(QuicError):
    """The peer did what HTTP/3 forbids, or more than a limit allows. The request is over; where all requests
    are concerned, so is the connection.

    Args:
        code: what the peer is told, an `ErrorCode`.
        text: what it did.
    """

    code: int
    text: str

    def __init__(self, code: int, text: str) -> None:
        super().__init__(code, text)
        self.code = code
        self.text = text

    def __str__(self) -> str:
        return f"{self.text} ({code_name(self.code)})"


class RequestReset(StreamReset):
    """The peer gave up sending its message.

    `code` REQUEST_REJECTED says that the server has not looked at the request: it may be sent again.
    """

    def __str__(self) -> str:
        return f"the peer gave up its message: {code_name(self.code)}"


class RequestStopped(StreamStopped):
    """The peer reads no more of this side's message."""

    def __str__(self) -> str:
        return f"the peer reads no more of the message: {code_name(self.code)}"


class GoingAway(QuicError):
    """The server takes no more requests on this connection, and has not looked at this one: send it on
    another connection (RFC 9114 §5.2)."""

    def __str__(self) -> str:
        return "the server takes no more requests on this connection; a new one may"


class StatusError(QuicError):
    """The answer's status says that the request failed, see `Response.raise_for_status`.

    Args:
        status_code: the HTTP status, 400 to 599.
    """

    status_code: int

    def __init__(self, status_code: int) -> None:
        super().__init__(status_code)
        self.status_code = status_code

    def __str__(self) -> str:
        return f"the server answered with status {self.status_code}"


def code_name(code: int) -> str:
    """The name of an error code, or the number of one that has none."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"code {code:#x}"

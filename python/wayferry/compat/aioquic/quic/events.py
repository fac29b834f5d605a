"""What happens on a connection, as a program's `quic_event_received` is told."""

from dataclasses import dataclass

__all__ = [
    "ConnectionIdIssued",
    "ConnectionIdRetired",
    "ConnectionTerminated",
    "DatagramFrameReceived",
    "HandshakeCompleted",
    "PingAcknowledged",
    "ProtocolNegotiated",
    "QuicEvent",
    "StopSendingReceived",
    "StreamDataReceived",
    "StreamReset",
]


class QuicEvent:
    """What all events are."""


@dataclass
class ConnectionIdIssued(QuicEvent):
    """Never comes: Wayferry keeps connection ids to itself. Here for programs that name the class."""

    connection_id: bytes


@dataclass
class ConnectionIdRetired(QuicEvent):
    """Never comes, as `ConnectionIdIssued`."""

    connection_id: bytes


@dataclass
class ConnectionTerminated(QuicEvent):
    """The connection is over; no event follows.

    Attributes:
        error_code: of the application if it closed, else of QUIC (RFC 9000 §20.1); 0x100 + alert for TLS.
        frame_type: None when an application closed, 0 otherwise (which frame it was is not known here).
        reason_phrase: the words that came with the code, without control characters.
    """

    error_code: int
    frame_type: int | None
    reason_phrase: str


@dataclass
class DatagramFrameReceived(QuicEvent):
    """A datagram came (RFC 9221)."""

    data: bytes


@dataclass
class HandshakeCompleted(QuicEvent):
    """The handshake is over.

    Attributes:
        alpn_protocol: what was agreed on, None without ALPN.
        early_data_accepted: always False, there is no 0-RTT through this layer.
        session_resumed: always False, as QUIC does not tell.
    """

    alpn_protocol: str | None
    early_data_accepted: bool
    session_resumed: bool


@dataclass
class PingAcknowledged(QuicEvent):
    """The peer acknowledged something after the PING with this `uid` was sent, so it lives."""

    uid: int


@dataclass
class ProtocolNegotiated(QuicEvent):
    """Both sides agreed on `alpn_protocol` (None without ALPN)."""

    alpn_protocol: str | None


@dataclass
class StopSendingReceived(QuicEvent):
    """The peer wants no more of this stream, which is reset with the same code (RFC 9000 §3.5)."""

    error_code: int
    stream_id: int


@dataclass
class StreamDataReceived(QuicEvent):
    """The next bytes of a stream; with `end_stream` they are the last, and may be none."""

    data: bytes
    end_stream: bool
    stream_id: int


@dataclass
class StreamReset(QuicEvent):
    """The peer gave up sending this stream."""

    error_code: int
    stream_id: int

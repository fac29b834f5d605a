"""Figures of a connection, for people and programs that watch it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, TypeVar

__all__ = ["Path", "Stats"]

R = TypeVar("R")


@dataclass(frozen=True, kw_only=True, slots=True)
class Stats:
    """What a connection has done so far, and how its path is now. Sizes are in bytes."""

    rtt: float
    """The smoothed round-trip time in seconds (RFC 9002 §5.3)."""

    congestion_window: int
    """Bytes that may be on the way before an acknowledgement."""

    mtu: int
    """Bytes that one UDP datagram may carry."""

    sent_datagrams: int
    """UDP datagrams sent."""

    sent_bytes: int
    """Bytes of them."""

    received_datagrams: int
    """UDP datagrams received."""

    received_bytes: int
    """Bytes of them."""

    sent_packets: int
    """QUIC packets sent; several can share a UDP datagram."""

    lost_packets: int
    """QUIC packets that were lost on the way."""

    lost_bytes: int
    """Bytes of them."""

    congestion_events: int
    """Times that the congestion controller backed off."""

    sent_stream_frames: int
    """STREAM frames sent."""

    received_stream_frames: int
    """STREAM frames received; one that is taken in two pieces counts twice."""

    sent_datagram_frames: int
    """DATAGRAM frames sent."""

    received_datagram_frames: int
    """DATAGRAM frames received."""

    dropped_datagrams: int
    """Datagrams received that were dropped before the program took them, the oldest, because more waited than
    `Config.datagram_buffer` has room for. Those of the last moment may be missing."""

    acks_received: int
    """ACK frames received."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Path:
    """One network path of a connection."""

    id: int
    """QUIC's number for it; 0 is the one of the handshake."""

    remote_addr: tuple[str, int]
    """Where the peer is."""

    rtt: float
    """The smoothed round-trip time in seconds."""

    congestion_window: int
    """Bytes that may be on the way before an acknowledgement."""

    mtu: int
    """Bytes that one UDP datagram may carry."""

    sent_bytes: int
    """Bytes sent on it."""

    received_bytes: int
    """Bytes received on it."""

    lost_packets: int
    """QUIC packets that were lost on it."""


def from_figures(kind: type[R], figures: dict[str, Any]) -> R:
    """The dataclass `kind` of what the native half counted, which may be more."""
    # Of many types.
    return kind(**{field.name: figures[field.name] for field in fields(kind)})  # type: ignore[arg-type]

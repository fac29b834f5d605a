"""What may be set on a connection or a server, and what each setting costs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal

from wayferry.quic import _native

__all__ = ["Config", "Congestion"]

Congestion = Literal["cubic", "newreno", "bbr3", "copa"]
"""What decides how much is sent when, see `Config.congestion`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Config:
    """The settings of a connection, or of a server and the connections that it takes.

    The defaults are meant for use. Times are in seconds, sizes in bytes.

    Raises:
        ValueError: a value is out of its range. The message names the setting.
    """

    idle_timeout: float | None = 30.0
    """Silence after which the connection is given up; the smaller of both sides' counts (RFC 9000 §10.1).
    None: this side never gives up."""

    keep_alive: float | None = None
    """Silence after which something is sent, so that neither the peer nor a NAT forgets the connection. It is
    sent by a thread of its own, also while the event loop is busy. None: never."""

    handshake_timeout: float = 10.0
    """How long a handshake may take, WebTransport's own included."""

    congestion: Congestion = "copa"
    """The congestion controller of what this side sends: `copa`, which keeps the queue on the path short and
    does not slow down for what the link itself loses, `cubic` (RFC 9438), `newreno` (RFC 9002 §7), or
    `bbr3`."""

    datagrams: bool = True
    """Whether datagrams are sent and received (RFC 9221 §3)."""

    bi_streams: int = 512
    """Bidirectional streams that the peer may have open at once. Each costs its state, and at most its
    window."""

    uni_streams: int = 512
    """Unidirectional streams that the peer may have open at once. Each costs its state, and at most its
    window and 512 KiB."""

    stream_window: int = 2 << 20
    """Bytes that the peer may send on one stream ahead of what was read, at most 2 MiB. Small windows limit
    the rate to one window per round trip; large ones cost memory while no task reads."""

    connection_window: int = 32 << 20
    """Bytes that the peer may send on all streams together ahead of what was read."""

    send_window: int = 8 << 20
    """Bytes that are kept until the peer has acknowledged them; beyond it writes wait."""

    datagram_buffer: int = 8 << 20
    """Bytes of datagrams received that may wait to be taken, each counted with 32 bytes more; beyond it the
    oldest are lost (`Stats.dropped_datagrams`). Of those to be sent as many wait, but 1 MiB at most; beyond
    it `send_datagram` waits."""

    udp_buffer: int = 2 << 20
    """Bytes of the socket's buffer each way, as far as the system grants them."""

    half_open: int = 256
    """Handshakes that a server has under way at once; it refuses the next ones."""

    keylog: str | os.PathLike[str] | None = None
    """A file to append the TLS secrets to, in the format of `SSLKEYLOGFILE`. A reader of it can read
    everything."""

    qlog_dir: str | os.PathLike[str] | None = None
    """A directory for one qlog file per connection, made when missing. ValueError when the package was built
    without qlog, as it is by default and in wheels: it costs a fifth of the CPU at small messages.
    `pip install ./python --config-settings=build-args="--features qlog"` builds it in."""

    def __post_init__(self) -> None:
        self._for_native()

    def _for_native(self) -> _native.Config:
        """The same settings for the native half, which checks them."""
        return _native.Config(
            idle_timeout=self.idle_timeout,
            keep_alive=self.keep_alive,
            handshake_timeout=self.handshake_timeout,
            congestion=self.congestion,
            datagrams=self.datagrams,
            bi_streams=self.bi_streams,
            uni_streams=self.uni_streams,
            stream_window=self.stream_window,
            connection_window=self.connection_window,
            send_window=self.send_window,
            datagram_buffer=self.datagram_buffer,
            udp_buffer=self.udp_buffer,
            half_open=self.half_open,
            keylog=_path(self.keylog),
            qlog_dir=_path(self.qlog_dir),
        )


def _path(path: str | os.PathLike[str] | None) -> str | None:
    return None if path is None else os.fspath(path)

//! Figures of a connection.

use std::net::SocketAddr;
use std::time::Duration;

use noq::PathId;

use super::link::Link;

/// What a connection has done so far, and how its path is now.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// The smoothed round-trip time (RFC 9002 §5.3).
    pub rtt: Duration,
    /// Bytes that may be on the way before an acknowledgement.
    pub congestion_window: u64,
    /// Bytes that one UDP datagram may carry.
    pub mtu: u16,
    /// UDP datagrams sent.
    pub sent_datagrams: u64,
    /// Bytes of them.
    pub sent_bytes: u64,
    /// UDP datagrams received.
    pub received_datagrams: u64,
    /// Bytes of them.
    pub received_bytes: u64,
    /// QUIC packets sent.
    pub sent_packets: u64,
    /// QUIC packets that were lost on the way.
    pub lost_packets: u64,
    /// Bytes of them.
    pub lost_bytes: u64,
    /// Times that the congestion controller backed off.
    pub congestion_events: u64,
    /// ACK frames received.
    pub acks_received: u64,
    /// STREAM frames sent.
    pub sent_stream_frames: u64,
    /// STREAM frames received; one that is taken in two pieces counts twice.
    pub received_stream_frames: u64,
    /// DATAGRAM frames sent.
    pub sent_datagram_frames: u64,
    /// DATAGRAM frames received.
    pub received_datagram_frames: u64,
    /// Datagrams received that no caller was given: more waited than [`Config::datagram_buffer`](super::Config) has
    /// room for, and they were the oldest. Those of the last moment may be missing.
    pub dropped_datagrams: u64,
}

impl Stats {
    pub(super) fn of(link: &Link) -> Self {
        let stats = link.noq.stats();
        let path = link.noq.path_stats(PathId::ZERO).unwrap_or_default();
        Self {
            rtt: path.rtt,
            congestion_window: path.cwnd,
            mtu: path.current_mtu,
            sent_datagrams: stats.udp_tx.datagrams,
            sent_bytes: stats.udp_tx.bytes,
            received_datagrams: stats.udp_rx.datagrams,
            received_bytes: stats.udp_rx.bytes,
            sent_packets: stats.sent_packets,
            lost_packets: stats.lost_packets,
            lost_bytes: stats.lost_bytes,
            congestion_events: path.congestion_events,
            acks_received: stats.frame_rx.acks + stats.frame_rx.path_acks,
            sent_stream_frames: stats.frame_tx.stream,
            received_stream_frames: stats.frame_rx.stream,
            sent_datagram_frames: stats.frame_tx.datagram,
            received_datagram_frames: stats.frame_rx.datagram,
            dropped_datagrams: link.dropped_datagrams(),
        }
    }
}

/// One network path of a connection.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PathInfo {
    /// QUIC's number for it; 0 is the one of the handshake.
    pub id: u64,
    /// Where the peer is.
    pub remote: SocketAddr,
    /// The smoothed round-trip time.
    pub rtt: Duration,
    /// Bytes that may be on the way before an acknowledgement.
    pub congestion_window: u64,
    /// Bytes that one UDP datagram may carry.
    pub mtu: u16,
    /// Bytes sent on it.
    pub sent_bytes: u64,
    /// Bytes received on it.
    pub received_bytes: u64,
    /// QUIC packets that were lost on it.
    pub lost_packets: u64,
}

impl PathInfo {
    /// The one there is; `None` when the connection is over.
    pub(super) fn of(link: &Link) -> Option<Self> {
        let stats = link.noq.path_stats(PathId::ZERO)?;
        Some(Self {
            id: 0,
            remote: link.remote_address(),
            rtt: stats.rtt,
            congestion_window: stats.cwnd,
            mtu: stats.current_mtu,
            sent_bytes: stats.udp_tx.bytes,
            received_bytes: stats.udp_rx.bytes,
            lost_packets: stats.lost_packets,
        })
    }
}

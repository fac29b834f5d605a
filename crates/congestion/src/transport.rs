//! The parameters of QUIC that decide how an application's bytes fare: the same in the product and in the laboratory.
//!
//! What limits a peer, and what one of both alone needs, is set there. Invariant: no field is set here and there.

use std::time::Duration;

use noq_proto::{AckFrequencyConfig, TransportConfig};

/// Parameters that differ from noq's defaults.
pub fn transport() -> TransportConfig {
    let mut config = TransportConfig::default();
    // All channels are one-way.
    config.max_concurrent_bidi_streams(0u32.into());
    // The first RTT estimate decides when a lost handshake packet is sent again.
    config.initial_rtt(INITIAL_RTT);
    // Never what limits: the session schedules what it hands over.
    config.send_window(SEND_WINDOW);
    config.send_fairness(true);
    // A tail that waits 25 ms for its acknowledgement looks like loss, and holds back a window.
    let mut acks = AckFrequencyConfig::default();
    acks.max_ack_delay(Some(MAX_ACK_DELAY));
    config.ack_frequency_config(Some(acks));
    config.packet_threshold(OVERTAKEN);
    // noq 1.4.0 panics when, in one batch, a second loss probe carries an ACK_FREQUENCY frame and the first was
    // too short: all datagrams of a batch have the first one's size, and that frame is written unchecked.
    // A batch of one is never short. Costs about a third more CPU per byte sent.
    config.enable_segmentation_offload(false);
    config
}

/// Bytes that one stream may have on the way: more than any update or blob.
pub const STREAM_WINDOW: u32 = 16 << 20;

/// Bytes that all streams together may have on the way: 1 Gbit/s at 250 ms.
pub const CONNECTION_WINDOW: u32 = 32 << 20;

/// Ethernet minus IPv6 and UDP headers, minus room for one tunnel's.
pub const MTU_MAX: u16 = 1452;

/// Between a LAN and another continent; RFC 9002 §6.2.2 has 333 ms for any network at all.
const INITIAL_RTT: Duration = Duration::from_millis(100);

/// Bytes that noq keeps until they are acknowledged.
const SEND_WINDOW: u64 = 64 << 20;

/// By how many later packets a lost one is known, if time does not tell first: an eighth of a round trip. With 3, the
/// least, a link that only reorders seems to lose, and repair and congestion control believe it.
// RFC 9002 §6.1.1
const OVERTAKEN: u32 = 12;

/// How long the peer may hold an acknowledgement back.
const MAX_ACK_DELAY: Duration = Duration::from_millis(5);

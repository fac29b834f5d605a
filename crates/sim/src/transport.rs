//! The QUIC parameters: those of the product, so that what is measured here is what runs there.
//!
//! `crates/net/src/quic/config.rs` says why each has its value. The differences are the packet size, which may be
//! pinned (the paper's packets have 1400 bytes), and wider windows for the ordered baseline.

use std::sync::Arc;
use std::time::Duration;

use noq_proto::congestion::ControllerFactory;
use noq_proto::{AckFrequencyConfig, IdleTimeout, MtuDiscoveryConfig, TransportConfig, VarInt};

/// How large packets are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PacketSize {
    /// As in the product: 1200 bytes of UDP payload at first, then what probing finds, up to 1452.
    #[default]
    Discovered,
    /// This many bytes of UDP payload from the beginning, 1200 ..= 1452.
    Pinned(u16),
}

/// How much one stream, and the connection, may have on the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Windows {
    /// As in the product.
    #[default]
    Product,
    /// 64 MiB: for a session on one ordered stream, where a lost packet holds back all that follows until it has come
    /// again. With less than two bandwidth-delay products the window, and not the order, would be measured.
    Wide,
}

/// The parameters of one connection.
pub(crate) fn transport(
    controller: Arc<dyn ControllerFactory + Send + Sync>,
    size: PacketSize,
    windows: Windows,
) -> Arc<TransportConfig> {
    let mut config = TransportConfig::default();
    config.max_concurrent_uni_streams(VarInt::from_u32(STREAMS));
    config.max_concurrent_bidi_streams(VarInt::from_u32(0));
    config.datagram_receive_buffer_size(None);
    config.max_idle_timeout(IdleTimeout::try_from(IDLE_TIMEOUT).ok());
    config.keep_alive_interval(Some(KEEP_ALIVE));
    config.initial_rtt(INITIAL_RTT);
    let (stream, connection) = match windows {
        Windows::Product => (STREAM_WINDOW, CONNECTION_WINDOW),
        Windows::Wide => (WIDE_WINDOW, WIDE_WINDOW),
    };
    config.stream_receive_window(VarInt::from_u32(stream));
    config.receive_window(VarInt::from_u32(connection));
    config.send_window(SEND_WINDOW);
    config.send_fairness(true);
    match size {
        PacketSize::Discovered => {
            let mut mtu = MtuDiscoveryConfig::default();
            mtu.upper_bound(MTU_MAX);
            config.mtu_discovery_config(Some(mtu));
        }
        PacketSize::Pinned(bytes) => {
            config.initial_mtu(bytes).min_mtu(bytes).mtu_discovery_config(None);
        }
    }
    let mut acks = AckFrequencyConfig::default();
    acks.max_ack_delay(Some(MAX_ACK_DELAY));
    config.ack_frequency_config(Some(acks));
    config.packet_threshold(OVERTAKEN);
    config.enable_segmentation_offload(false);
    config.congestion_controller_factory(controller);
    Arc::new(config)
}

const STREAMS: u32 = 4096;
const IDLE_TIMEOUT: Duration = Duration::from_secs(75);
const KEEP_ALIVE: Duration = Duration::from_secs(5);
const INITIAL_RTT: Duration = Duration::from_millis(100);
const STREAM_WINDOW: u32 = 16 << 20;
const CONNECTION_WINDOW: u32 = 32 << 20;
const WIDE_WINDOW: u32 = 64 << 20;
const SEND_WINDOW: u64 = 64 << 20;
const MTU_MAX: u16 = 1452;
const MAX_ACK_DELAY: Duration = Duration::from_millis(5);
const OVERTAKEN: u32 = 12;

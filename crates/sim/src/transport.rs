//! The QUIC parameters: those of the product, so that what is measured here is what runs there.
//!
//! `crates/congestion/src/transport.rs` has them, and says why each has its value. The differences are the packet size,
//! which may be pinned (the paper's packets have 1400 bytes), and wider windows for the ordered baseline.

use std::sync::Arc;
use std::time::Duration;

use noq_proto::congestion::ControllerFactory;
use noq_proto::{IdleTimeout, MtuDiscoveryConfig, TransportConfig, VarInt};
use wayferry_congestion::{CONNECTION_WINDOW, MTU_MAX, STREAM_WINDOW};

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
    let mut config = wayferry_congestion::transport();
    config.max_concurrent_uni_streams(VarInt::from_u32(STREAMS));
    config.datagram_receive_buffer_size(Some(DATAGRAM_BUFFER));
    config.datagram_send_buffer_size(DATAGRAM_UNSENT);
    config.max_idle_timeout(IdleTimeout::try_from(IDLE_TIMEOUT).ok());
    config.keep_alive_interval(Some(KEEP_ALIVE));
    let (stream, connection) = match windows {
        Windows::Product => (STREAM_WINDOW, CONNECTION_WINDOW),
        Windows::Wide => (WIDE_WINDOW, WIDE_WINDOW),
    };
    config.stream_receive_window(VarInt::from_u32(stream));
    config.receive_window(VarInt::from_u32(connection));
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
    config.congestion_controller_factory(controller);
    Arc::new(config)
}

/// As in the product: bytes of datagrams that have come and were not taken, and of those that have not left.
const DATAGRAM_BUFFER: usize = 64 << 10;
const DATAGRAM_UNSENT: usize = 32 << 10;

const STREAMS: u32 = 4096;
const IDLE_TIMEOUT: Duration = Duration::from_secs(75);
const KEEP_ALIVE: Duration = Duration::from_secs(5);
const WIDE_WINDOW: u32 = 64 << 20;

//! The QUIC parameters, and why each differs from noq's default.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use noq::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use noq::{ClientConfig, IdleTimeout, MtuDiscoveryConfig, ServerConfig, TransportConfig, VarInt};
use wayferry_congestion::{MTU_MAX, STREAM_WINDOW};

use super::error::SetupError;
use super::meter::Meter;
use super::standing::{REQUESTS, STRANGER_STREAMS, STRANGER_WINDOW};
use crate::http3::CRITICAL;

/// What decides how much is sent when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Congestion {
    /// Our own, which keeps the queue on the path short and does not slow down for what the link itself loses.
    #[default]
    Copa,
    /// noq's BBR3.
    Bbr3,
    /// noq's CUBIC, which backs off at every loss.
    Cubic,
}

/// What may be set from outside. The defaults are meant for use; most of the rest is for tests.
#[derive(Clone, Debug)]
pub struct Options {
    /// Directory for one qlog file per connection; created when missing. Default: none. Costs a write per packet.
    pub qlog: Option<PathBuf>,
    /// The congestion controller of what this side sends. Default [`Congestion::Copa`].
    pub congestion: Congestion,
    /// Whether the variable `SSLKEYLOGFILE` is honoured. Default: yes; without the variable nothing is written.
    pub log_keys: bool,
    /// Bytes of UDP socket buffer each way. Default 4 MiB: 0.6 s at 50 Mbit/s.
    pub udp_buffer: usize,
    /// Streams that the peer may have open at once. Default 4096. Each costs its state (about 500 bytes), not its
    /// window.
    pub streams: u32,
    /// Silence after which a connection is given up. Default 75 s: longer than the 60 s after which the session gives
    /// up a display, so that an outage as long as that needs no new connection. The smaller of both sides' counts.
    pub idle_timeout: Duration,
    /// Silence after which something is sent. Default 20 s: below what NATs forget after, and above what a session lets
    /// pass by itself.
    pub keep_alive: Duration,
    /// How long a stream may wait for the peer's permission to be opened before its bytes come back in
    /// [`Arrival::OpenFailed`](wayferry_proto::Arrival::OpenFailed). Default 5 s.
    pub open_timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            qlog: None,
            congestion: Congestion::default(),
            log_keys: true,
            udp_buffer: 4 << 20,
            streams: 4096,
            idle_timeout: Duration::from_secs(75),
            keep_alive: Duration::from_secs(20),
            open_timeout: Duration::from_secs(5),
        }
    }
}

impl Options {
    /// Makes what the options name and the connections will need.
    pub(super) fn prepare(&self) -> Result<(), SetupError> {
        let Some(directory) = &self.qlog else {
            return Ok(());
        };
        prepare_qlog(directory).map_err(|source| SetupError::Qlog { directory: directory.clone(), source })
    }

    /// The transport of one connection, which reports to `meter`.
    fn transport(&self, meter: &Arc<Meter>, side: &str) -> TransportConfig {
        let mut config = wayferry_congestion::transport();
        // One stream per update, key press flush or pipe; no pool to exhaust.
        config.max_concurrent_uni_streams(self.streams.into());
        config.datagram_receive_buffer_size(Some(DATAGRAM_BUFFER));
        // What is older than a few packets of sound, or than rows of repair, is of no use: noq drops the oldest.
        config.datagram_send_buffer_size(DATAGRAM_UNSENT);
        config.max_idle_timeout(IdleTimeout::try_from(self.idle_timeout).ok());
        config.keep_alive_interval(Some(self.keep_alive));
        config.stream_receive_window(VarInt::from_u32(STREAM_WINDOW));
        config.receive_window(CONNECTION_WINDOW);
        let mut mtu = MtuDiscoveryConfig::default();
        mtu.upper_bound(MTU_MAX);
        config.mtu_discovery_config(Some(mtu));
        config.congestion_controller_factory(meter.controllers(self.congestion));
        if let Some(directory) = &self.qlog {
            write_qlog(&mut config, directory, side);
        }
        config
    }

    pub(super) fn client(
        &self,
        tls: rustls::ClientConfig,
        meter: &Arc<Meter>,
    ) -> Result<ClientConfig, SetupError> {
        let crypto = QuicClientConfig::try_from(tls).map_err(|error| SetupError::Tls(error.to_string()))?;
        let mut config = ClientConfig::new(Arc::new(crypto));
        config.transport_config(Arc::new(self.transport(meter, "display")));
        Ok(config)
    }

    /// The configuration that all connections of a listener start from.
    pub(super) fn server(&self, tls: rustls::ServerConfig) -> Result<ServerConfig, SetupError> {
        let crypto = server_crypto(tls)?;
        let mut config = ServerConfig::with_crypto(Arc::new(crypto));
        config.max_incoming(INCOMING_MAX);
        config.incoming_buffer_size(INCOMING_BYTES).incoming_buffer_size_total(INCOMING_BYTES * 8);
        Ok(config)
    }

    /// The configuration of one incoming connection, whose peer is a stranger at first.
    pub(super) fn server_connection(
        &self,
        base: &ServerConfig,
        tls: rustls::ServerConfig,
        meter: &Arc<Meter>,
    ) -> Result<Arc<ServerConfig>, SetupError> {
        self.stranger(base, tls, meter, (STRANGER_STREAMS, 0))
    }

    /// The same where it may be a page, with HTTP/3's own streams and its request (RFC 9114 §6).
    pub(super) fn page_connection(
        &self,
        base: &ServerConfig,
        tls: rustls::ServerConfig,
        meter: &Arc<Meter>,
    ) -> Result<Arc<ServerConfig>, SetupError> {
        self.stranger(base, tls, meter, (STRANGER_STREAMS + CRITICAL, REQUESTS))
    }

    fn stranger(
        &self,
        base: &ServerConfig,
        tls: rustls::ServerConfig,
        meter: &Arc<Meter>,
        (uni, bi): (u32, u32),
    ) -> Result<Arc<ServerConfig>, SetupError> {
        let mut config = base.clone();
        config.crypto = Arc::new(server_crypto(tls)?);
        let mut transport = self.transport(meter, "app");
        transport.receive_window(STRANGER_WINDOW);
        transport.max_concurrent_uni_streams(uni.into()).max_concurrent_bidi_streams(bi.into());
        config.transport_config(Arc::new(transport));
        Ok(Arc::new(config))
    }
}

fn server_crypto(tls: rustls::ServerConfig) -> Result<QuicServerConfig, SetupError> {
    QuicServerConfig::try_from(tls).map_err(|error| SetupError::Tls(error.to_string()))
}

/// Makes the directory that qlog files are to go to.
pub(crate) fn prepare_qlog(directory: &Path) -> io::Result<()> {
    if !cfg!(feature = "qlog") {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "this build cannot write qlog"));
    }
    std::fs::create_dir_all(directory)
}

/// Has each connection write a qlog file.
pub(crate) fn write_qlog(config: &mut TransportConfig, directory: &Path, side: &str) {
    #[cfg(feature = "qlog")]
    config.qlog_from_path(directory, side);
    #[cfg(not(feature = "qlog"))]
    let _ = (config, directory, side);
}

/// Bytes that all streams together may have on the way.
pub(super) const CONNECTION_WINDOW: VarInt = VarInt::from_u32(wayferry_congestion::CONNECTION_WINDOW);

/// Bytes that a display may have on the way that shows a ticket and has not yet proved who it is.
pub(super) const EARLY_WINDOW: VarInt = VarInt::from_u32(256 << 10);

/// Bytes of datagrams that have come and were not taken; noq drops the oldest.
const DATAGRAM_BUFFER: usize = 64 << 10;

/// Bytes of datagrams that have not left: those of three answers whose rows leave at once.
const DATAGRAM_UNSENT: usize = 32 << 10;

/// First packets that have not been looked at; the next ones are lost. They are looked at between two reads of the
/// socket.
const INCOMING_MAX: usize = 256;

/// Bytes kept of one such handshake.
const INCOMING_BYTES: u64 = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regression_a_connection_outlasts_the_silence_that_ends_a_session() {
        // The session's own is 60 s.
        assert!(Options::default().idle_timeout > Duration::from_secs(60));
    }
}

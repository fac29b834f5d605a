//! What may be set, and what each setting costs.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use noq::congestion::{Bbr3Config, Controller, ControllerFactory, CubicConfig, NewRenoConfig};
use noq::{IdleTimeout, TransportConfig, VarInt};
use wayferry_congestion::CopaFactory;

use super::Failure;
use crate::quic::config::{prepare_qlog, write_qlog};

/// What decides how much is sent when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Congestion {
    /// noq's CUBIC (RFC 9438).
    Cubic,
    /// noq's New Reno (RFC 9002 §7).
    NewReno,
    /// noq's BBR3.
    Bbr3,
    /// Our own, which keeps the queue on the path short and does not slow down for what the link itself loses.
    #[default]
    Copa,
}

/// The settings of a connection or a listener.
#[derive(Clone, Debug)]
pub struct Config {
    /// Silence after which a connection is given up; the smaller of both sides' counts. `None`: this side never does.
    /// Default 30 s.
    pub idle_timeout: Option<Duration>,
    /// Silence after which something is sent. Default: never.
    pub keep_alive: Option<Duration>,
    /// How long a handshake may take, WebTransport's own included. Default 10 s.
    pub handshake_timeout: Duration,
    /// The congestion controller of what this side sends. Default [`Congestion::Copa`].
    pub congestion: Congestion,
    /// Whether datagrams are sent and received (RFC 9221). Default: yes.
    pub datagrams: bool,
    /// Bidirectional streams that the peer may have open at once. Default 512.
    pub bi_streams: u32,
    /// Unidirectional streams that the peer may have open at once. Default 512.
    pub uni_streams: u32,
    /// Bytes that the peer may send on one stream ahead of what was read: 1 to [`Config::STREAM_WINDOW_MAX`], the
    /// default.
    pub stream_window: u32,
    /// Bytes that the peer may send on all streams together ahead of what was read. Default 32 MiB.
    pub connection_window: u32,
    /// Bytes that are kept until the peer has acknowledged them; more waits. Default 8 MiB.
    pub send_window: u32,
    /// Bytes of datagrams received that wait to be taken; of more the oldest are lost. Of those to be sent as many
    /// wait, but 1 MiB at most: a longer queue is only later. Default 8 MiB.
    pub datagram_buffer: usize,
    /// Bytes of UDP socket buffer each way, as far as the system grants them. Default 2 MiB.
    pub udp_buffer: usize,
    /// A file to append the TLS secrets to, in the format of `SSLKEYLOGFILE`. A reader of the file can read everything.
    /// Default: none.
    pub keylog: Option<PathBuf>,
    /// A directory for one qlog file per connection; made when missing. Needs the feature `qlog`. Default: none.
    pub qlog: Option<PathBuf>,
    /// Handshakes that a listener has under way at once; the next ones are refused. Default 256.
    pub half_open: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            idle_timeout: Some(Duration::from_secs(30)),
            keep_alive: None,
            handshake_timeout: Duration::from_secs(10),
            congestion: Congestion::default(),
            datagrams: true,
            bi_streams: 512,
            uni_streams: 512,
            stream_window: Self::STREAM_WINDOW_MAX,
            connection_window: 32 << 20,
            send_window: 8 << 20,
            datagram_buffer: 8 << 20,
            udp_buffer: 2 << 20,
            keylog: None,
            qlog: None,
            half_open: 256,
        }
    }
}

impl Config {
    /// The largest [`Config::stream_window`]. A larger one, in packets of 1200 bytes, would be more than the 2048
    /// pieces at which noq closes a connection, where the stream is read in any order.
    pub const STREAM_WINDOW_MAX: u32 = 2 << 20;

    /// Whether every value is in its range.
    ///
    /// # Errors
    /// [`Failure::Config`], which names the setting.
    pub fn check(&self) -> Result<(), Failure> {
        let wrong = |what: String| Err(Failure::Config(what));
        let times = [
            ("idle_timeout", self.idle_timeout),
            ("keep_alive", self.keep_alive),
            ("handshake_timeout", Some(self.handshake_timeout)),
        ];
        for (name, time) in times {
            if time.is_some_and(|time| time.is_zero() || time > TIME_MAX) {
                return wrong(format!("`{name}` must be longer than nothing, and not longer than a year"));
            }
        }
        let sizes = [
            ("stream_window", self.stream_window as usize, Self::STREAM_WINDOW_MAX as usize),
            ("connection_window", self.connection_window as usize, usize::MAX),
            ("send_window", self.send_window as usize, usize::MAX),
            ("datagram_buffer", self.datagram_buffer, usize::MAX),
            ("udp_buffer", self.udp_buffer, UDP_BUFFER_MAX),
            ("half_open", self.half_open, usize::MAX),
        ];
        for (name, size, max) in sizes {
            if size == 0 {
                return wrong(format!("`{name}` must be at least 1"));
            }
            if size > max {
                return wrong(format!("`{name}` must be at most {max}"));
            }
        }
        if self.qlog.is_some() && !cfg!(feature = "qlog") {
            return wrong("this build cannot write qlog: it is without the feature `qlog`".into());
        }
        Ok(())
    }

    /// Makes what the settings name, and the transport of a side's connections.
    pub(super) fn transport(&self, side: &str) -> Result<TransportConfig, Failure> {
        self.check()?;
        let mut config = TransportConfig::default();
        config.max_concurrent_bidi_streams(self.bi_streams.into());
        config.max_concurrent_uni_streams(self.uni_streams.into());
        config.max_idle_timeout(self.idle_timeout.and_then(|timeout| IdleTimeout::try_from(timeout).ok()));
        config.keep_alive_interval(self.keep_alive);
        config.stream_receive_window(VarInt::from_u32(self.stream_window));
        config.receive_window(VarInt::from_u32(self.connection_window));
        config.send_window(self.send_window.into());
        config.datagram_receive_buffer_size(self.datagrams.then_some(self.datagram_buffer));
        config.datagram_send_buffer_size(self.datagram_buffer.min(DATAGRAMS_UNSENT_MAX));
        // Segmentation offload stays on, and saves much CPU; so no acknowledgement frequency: see `quic::config`.
        match self.congestion {
            Congestion::Cubic => config.congestion_controller_factory(Arc::new(CubicConfig::default())),
            Congestion::NewReno => config.congestion_controller_factory(Arc::new(NewRenoConfig::default())),
            Congestion::Bbr3 => config.congestion_controller_factory(Arc::new(Bbr3Config::default())),
            Congestion::Copa => config.congestion_controller_factory(Arc::new(CopaForEach)),
        };
        if let Some(directory) = &self.qlog {
            prepare_qlog(directory)?;
            write_qlog(&mut config, directory, side);
        }
        Ok(config)
    }
}

/// Copa for many connections: what one publishes of itself, no other writes over.
struct CopaForEach;

impl ControllerFactory for CopaForEach {
    fn build(self: Arc<Self>, now: Instant, mtu: u16) -> Box<dyn Controller> {
        Arc::new(CopaFactory::default()).build(now, mtu)
    }
}

/// Bytes of datagrams that wait to be sent.
const DATAGRAMS_UNSENT_MAX: usize = 1 << 20;

/// Clocks overflow with much more.
const TIME_MAX: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// More than any system grants.
const UDP_BUFFER_MAX: usize = 1 << 30;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_good_and_what_is_out_of_range_is_named() {
        Config::default().check().unwrap();
        let wrong = |change: fn(&mut Config)| {
            let mut config = Config::default();
            change(&mut config);
            config.check().unwrap_err().to_string()
        };
        assert!(
            wrong(|config| config.stream_window = Config::STREAM_WINDOW_MAX + 1)
                .contains("`stream_window` must be at most")
        );
        assert!(wrong(|config| config.stream_window = 0).contains("`stream_window` must be at least"));
        assert!(wrong(|config| config.idle_timeout = Some(Duration::MAX)).contains("`idle_timeout`"));
        let beyond = |config: &mut Config| config.keep_alive = Some(TIME_MAX + Duration::from_secs(1));
        assert!(wrong(beyond).contains("`keep_alive`"));
        assert!(wrong(|config| config.handshake_timeout = Duration::MAX).contains("`handshake_timeout`"));
        assert!(wrong(|config| config.keep_alive = Some(Duration::ZERO)).contains("`keep_alive`"));
        assert!(wrong(|config| config.half_open = 0).contains("`half_open`"));
        assert!(wrong(|config| config.udp_buffer = usize::MAX).contains("`udp_buffer`"));
    }
}

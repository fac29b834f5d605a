//! What may be set, and what each setting costs.

use std::path::PathBuf;
use std::time::Duration;

use super::Failure;

/// What decides how much is sent when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Congestion {
    /// noq's CUBIC (RFC 9438).
    #[default]
    Cubic,
    /// noq's New Reno (RFC 9002 §7).
    NewReno,
    /// noq's BBR3.
    Bbr3,
    /// Our own, which keeps the queue on the path short and does not slow down for what the link itself loses.
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
    /// The congestion controller of what this side sends. Default [`Congestion::Cubic`].
    pub congestion: Congestion,
    /// Whether the peer may send datagrams (RFC 9221). Default: yes.
    pub datagrams: bool,
    /// Bidirectional streams that the peer may have open at once. Default 100.
    pub bi_streams: u32,
    /// Unidirectional streams that the peer may have open at once. Default 100.
    pub uni_streams: u32,
    /// Bytes that the peer may send on one stream ahead of what was read: 1 to [`Config::STREAM_WINDOW_MAX`], the
    /// default.
    pub stream_window: u32,
    /// Bytes that the peer may send on all streams together ahead of what was read. Default 16 MiB.
    pub connection_window: u32,
    /// Bytes that are kept until the peer has acknowledged them; more waits. Default 8 MiB.
    pub send_window: u32,
    /// Bytes of datagrams that wait, each way; more waits, or on the receiving side is lost, oldest first. Default
    /// 1 MiB.
    pub datagram_buffer: usize,
    /// Bytes of UDP socket buffer each way, as far as the system grants them. Default 2 MiB.
    pub udp_buffer: usize,
    /// A file to append the TLS secrets to, in the format of `SSLKEYLOGFILE`. Whoever has it reads everything. Default:
    /// none.
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
            bi_streams: 100,
            uni_streams: 100,
            stream_window: Self::STREAM_WINDOW_MAX,
            connection_window: 16 << 20,
            send_window: 8 << 20,
            datagram_buffer: 1 << 20,
            udp_buffer: 2 << 20,
            keylog: None,
            qlog: None,
            half_open: 256,
        }
    }
}

impl Config {
    /// The largest [`Config::stream_window`]. A stream with a larger one, sent in small packets and not read, would end its
    /// connection: noq keeps 2048 pieces of one stream, and no more.
    pub const STREAM_WINDOW_MAX: u32 = 1 << 20;

    /// Whether every value is in its range.
    ///
    /// # Errors
    /// [`Failure::Config`], which names the setting.
    pub fn check(&self) -> Result<(), Failure> {
        unimplemented!()
    }
}

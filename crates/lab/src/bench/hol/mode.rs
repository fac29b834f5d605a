//! What carries a session.

use wayferry_host::settings::Delivery;
use wayferry_host::sound;

use crate::emulated::Transport;

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// The byte-stream carrier on the kernel's TCP.
    Tcp,
    /// QUIC, with all in one stream.
    QuicOne,
    /// QUIC as it ships.
    QuicMany,
}

impl Mode {
    pub(super) const ALL: [Self; 3] = [Self::Tcp, Self::QuicOne, Self::QuicMany];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::QuicOne => "quic-one",
            Self::QuicMany => "quic-many",
        }
    }

    pub(super) fn transport(self) -> Transport {
        match self {
            Self::Tcp => Transport::Tcp,
            Self::QuicOne | Self::QuicMany => Transport::Quic,
        }
    }

    pub(super) fn delivery(self) -> Delivery {
        match self {
            Self::QuicOne => Delivery::Total,
            Self::Tcp | Self::QuicMany => Delivery::default(),
        }
    }

    /// Datagrams would go beside the one stream.
    pub(super) fn sound(self) -> sound::Mode {
        match self {
            Self::Tcp | Self::QuicOne => sound::Mode::Stream,
            Self::QuicMany => sound::Mode::default(),
        }
    }

    /// Of its server in the tunnel.
    pub(super) fn port(self) -> u16 {
        match self {
            Self::Tcp => 7001,
            Self::QuicOne => 7002,
            Self::QuicMany => 7003,
        }
    }
}
